"""C99 for microcontrollers: net.h and net.c, weights in flash, one arena in RAM, no malloc, no library.

The floats are added in the order in which the portable kernels of the engine add them, so that logits are those of
`LATENTBIT_ISA=scalar latentbit run` to the last bit where the compiler keeps IEEE arithmetic (-ffp-contract=off, which
-std=c99 implies; no -ffast-math). With --real 16 the maps between steps are rounded, and how far that moves the logits
is measured before anything is written.
"""

import re
from pathlib import Path

import numpy as np

from latentbit.atomic import atomic_write
from latentbit.export.parts import c_rounding
from latentbit.export.parts.c_plan import Plan, Step, Value, as_map, live_words, n_words, place
from latentbit.export.parts.c_source import Source
from latentbit.export.parts.macs import macs
from latentbit.export.parts.report import Report
from latentbit.export.parts.target import ExportError, Target
from latentbit.lbit import Layer

ACTIVATIONS = ("prelu", "relu", "hardtanh")


class C(Target):
    title = "C99 source for microcontrollers"

    def write(
        self, out: Path, *, input: str = "f32", ram: str = "", real: str = "32", name: str = "net"
    ) -> Report:
        """Write NAME.h and NAME.c to the folder `out`."""
        if input not in ("f32", "u8"):
            raise ExportError(
                f"--input {input}: choose f32 (normalised, as in training) or u8 (pixels as they are)"
            )
        if str(real) not in ("16", "32"):
            raise ExportError(f"--real {real}: choose 32 (maps as floats) or 16 (half of the RAM, rounded)")
        if not re.fullmatch(r"[a-z][a-z0-9_]{0,30}", name):
            raise ExportError(
                f"--name {name}: choose a C identifier of lower-case letters, such as net or digits"
            )
        limit = _bytes(ram) if ram else None
        self.plan = Plan(self.network)
        self._image_map: Value | None = None
        self.walk(Value(self.network.input_shape))
        self.real_bits = int(real)
        if self.real_bits == 16:
            self._narrow()
        arena = 4 * place(self.plan, _real_words if self.real_bits == 32 else _half_words)
        source = Source(self.network, self.plan, name, input, arena, self.real_bits)
        header, code = source.header(), source.code()
        report = self._report(source, arena, input)
        if limit is not None and arena > limit:
            raise ExportError(f"--ram {ram}: {self._too_large(arena, limit)}")
        if self.real_bits == 16:
            c_rounding.check(report, self.network, self.plan)
        for path, text in ((out / f"{name}.h", header), (out / f"{name}.c", code)):
            with atomic_write(path) as file:
                file.write(text.encode("ascii"))
            report.files.append(path)
        report.add("written", " and ".join(str(path) for path in report.files))
        return report

    def _narrow(self) -> None:
        """Maps in 16 bit: only the logits stay floats, if they are what a step finishes and nobody reads them."""
        for step in self.plan.steps:
            if step.run == "each_pixel":
                step.scratch_words = step.shape[0]
            is_output = step.value is not None and step.value.name == self.plan.output
            step.wide = (
                is_output
                and step.run not in ("flatten", "concat")
                and self.plan.readers[self.plan.output] == 1
            )

    def _report(self, source: Source, arena: int, input: str) -> Report:
        report, (binary, real) = Report(), macs(self.network)
        report.add(
            "flash", f"{source.flash_bytes:,} bytes of constants, 3 to 6 kB of code", flash=source.flash_bytes
        )
        pixel = 1 if input == "u8" else 4
        image, logits = pixel * int(np.prod(self.network.input_shape)), 4 * self.network.n_outputs
        report.add(
            "RAM",
            f"{arena:,} bytes of arena; your own: {image:,} for the image, {logits} for the logits",
            ram=arena,
            image_bytes=image,
        )
        report.add("largest step", self._largest())
        report.add(
            "MACs", f"{binary:,} of bits, {real:,} of floats per image", binary_macs=binary, real_macs=real
        )
        return report

    def _largest(self) -> str:
        index = max(range(len(self.plan.steps)), key=lambda i: live_words(self.plan, i))
        step = self.plan.steps[index]
        channels, height, width = step.shape
        needs = 4 * live_words(self.plan, index)
        return (
            f"{step.layer.name} ({step.layer.op}, {channels}x{height}x{width}) keeps {needs:,} bytes in use"
        )

    def _too_large(self, arena: int, limit: int) -> str:
        remedy = "Try --real 16, or train" if self.real_bits == 32 else "Train"
        return (
            f"this network needs {arena:,} bytes of RAM, {arena - limit:,} too many. {self._largest()}. "
            f"{remedy} with fewer channels in the first layers or on smaller images"
        )

    # One method per op. Values that nobody else reads grow with the step that makes them.

    def op_conv(self, layer: Layer, x: Value) -> Value:
        weight = layer.tensors["weight"]
        step, value = self.plan.add("conv", layer, [x], layer.shape)
        step.scratch_words = int(np.prod(weight.shape[1:])) + layer.shape[0]
        return value

    def op_linear(self, layer: Layer, x: Value) -> Value:
        return self.op_conv(layer, self._map(x))

    def op_binary_conv(self, layer: Layer, x: Value) -> Value:
        run = "binary_conv_bits" if layer.bits else "binary_conv"
        step, value = self.plan.add(run, layer, [x], layer.shape, bits=layer.bits)
        n_in = layer.attributes.get("in_channels", layer.attributes.get("in_features"))
        groups = layer.attributes.get("groups", 1)
        taps = int(np.prod(layer.tensors["bits"].shape[1:-1]))
        row = n_words(taps * n_in // groups)
        step.scratch_words = 2 * row + layer.shape[0] // groups + (0 if layer.bits else layer.shape[0])
        return value

    op_binary_linear = op_binary_conv

    def op_max_pool(self, layer: Layer, x: Value) -> Value:
        if layer.bits:
            return self.plan.add("bits_pool", layer, [x], layer.shape, bits=True)[1]
        return self._pool("max_pool", layer, x)

    def op_avg_pool(self, layer: Layer, x: Value) -> Value:
        return self._pool("avg_pool", layer, x)

    op_global_avg_pool = op_avg_pool

    def _pool(self, run: str, layer: Layer, x: Value) -> Value:
        step, value = self.plan.add(run, layer, [self._map(x)], layer.shape)
        step.scratch_words = layer.shape[0]
        return value

    def op_flatten(self, layer: Layer, x: Value) -> Value:
        if x.shape[1:] == (1, 1) and self.plan.joins(x):
            assert x.step is not None
            return self.plan.extend(x.step, layer)
        run = "flatten_bits" if layer.bits else "flatten"
        return self.plan.add(run, layer, [x if layer.bits else self._map(x)], layer.shape, bits=layer.bits)[1]

    def op_concat(self, layer: Layer, *inputs: Value) -> Value:
        same = all(x is inputs[0] for x in inputs) and inputs[0].step is not None
        readers = [other for other in self.network.layers if layer.name in other.inputs]
        if same and len(readers) == 1 and readers[0].op == "add" and readers[0].inputs.count(layer.name) == 1:
            # Perhaps never built: an addition can read the map again from its first channel on.
            x = inputs[0]
            return Value(as_map(layer.shape), False, x.step, layer.name, len(inputs), layer)
        return self.plan.add("concat", layer, [self._map(x) for x in inputs], layer.shape)[1]

    def op_add(self, layer: Layer, a: Value, b: Value) -> Value:
        for one, other in ((a, b), (b, a)):
            step = one.step
            if one is not other and self.plan.joins(one) and step is not None:
                if step.residual is None and step.activation is None:
                    step.residual = self._map(other)
                    return self.plan.extend(step, layer)
        first, second = self._built(a), self._built(b)  # before the step that reads them
        step, value = self.plan.add("each_pixel", layer, [first], layer.shape)
        step.residual = second
        return value

    def op_affine(self, layer: Layer, x: Value) -> Value:
        step, value = self.plan.add("each_pixel", layer, [self._map(x)], layer.shape)
        step.affine = layer
        return value

    def op_prelu(self, layer: Layer, x: Value) -> Value:
        if self.plan.joins(x) and x.step is not None and x.step.activation is None:
            x.step.activation = layer
            return self.plan.extend(x.step, layer)
        step, value = self.plan.add("each_pixel", layer, [self._map(x)], layer.shape)
        step.activation = layer
        return value

    op_relu = op_hardtanh = op_clamp = op_prelu

    def op_sign(self, layer: Layer, x: Value) -> Value:
        x = self._map(x)
        step = x.step
        assert step is not None
        if step.value is not x or step.sign is not None or step.run in ("flatten", "concat"):
            step, _ = self.plan.add("each_pixel", layer, [x], layer.shape)
            step.value = None
        step.sign = layer
        step.signs = Value(step.shape, True, step, layer.name)
        if step.layer is not layer:
            step.also.append(layer.name)
        return step.signs

    def _map(self, x: Value) -> Value:
        """The value, or the image as a map for those layers that do not read the image itself."""
        if x.step is not None:
            return x
        if self._image_map is None:
            shape = self.network.input_shape
            step, self._image_map = self.plan.add("read_image", Layer("image", "input", ()), [], shape)
            step.scratch_words = shape[0]
        return self._image_map

    def _built(self, x: Value) -> Value:
        if x.repeats > 1 and x.concat is not None and x.step is not None and x.step.value is not None:
            return self.plan.add("concat", x.concat, [x.step.value] * x.repeats, x.concat.shape)[1]
        return self._map(x)


def _real_words(step: Step) -> int:
    return int(np.prod(step.shape))


def _half_words(step: Step) -> int:
    return _real_words(step) if step.wide else -(-_real_words(step) // 2)


def _bytes(text: str) -> int:
    found = re.fullmatch(r"(\d{1,9})\s*(k|kb|kib|m|mb|mib|b)?", text.strip().lower())
    if not found:
        raise ExportError(f"--ram {text}: give bytes, such as 65536, or 64k")
    unit = (found[2] or "b")[0]
    return int(found[1]) * {"b": 1, "k": 1024, "m": 1024 * 1024}[unit]
