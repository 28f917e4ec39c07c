"""OpenVINO IR (.xml and .bin) with the 1-bit convolutions of its CPU plugin.

What it takes for them to be right, each of it silent if missed: a sign is a FakeQuantize of two levels that gives 0
and 1 (-1 would be wrong), its threshold is one float below ours because it asks x > t where we ask x >= t, input
channels are a multiple of 8, there are no groups, and the packed weights stay alive until the file is written.
"""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from latentbit.atomic import atomic_write
from latentbit.export.parts.checking import check
from latentbit.export.parts.macs import real_weight
from latentbit.export.parts.report import Report
from latentbit.export.parts.target import ExportError, Target
from latentbit.lbit import INPUT, Layer, unpack_signs

SMALLEST = np.float32(np.finfo(np.float32).tiny)
"""Below 0 by no less than this: the CPU may take smaller numbers for 0."""


class Openvino(Target):
    title = "OpenVINO IR with its 1-bit convolutions"
    suffix = ".xml"
    gives_maps = True

    def write(self, out: Path) -> Report:
        """Write `out` (.xml) and the weights beside it (.bin)."""
        if out.suffix != ".xml":
            raise ExportError(f"-o {out}: an OpenVINO network is a .xml file with a .bin file beside it")
        try:
            import openvino
        except ImportError:
            raise ExportError(
                "--to openvino needs the package of OpenVINO: pip install openvino. Its CPU plugin also reads --to onnx"
            ) from None
        self._refuse_unfit()
        from openvino import opset1, opset8

        self.ov, self.op1, self.op = openvino, opset1, opset8
        self.alive: list[Any] = []
        shape = [1, *self.network.input_shape]
        image = self.op.parameter(shape, np.float32, "image")
        logits = self.walk(image)
        logits.set_friendly_name("logits")
        model = openvino.Model([logits], [image], "latentbit")
        report = Report([out, out.with_suffix(".bin")])
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "net.xml"
            openvino.save_model(model, path, compress_to_fp16=False)
            self._check(report, path)
            for source, target in zip((path, path.with_suffix(".bin")), report.files, strict=True):
                with atomic_write(target) as file:
                    file.write(source.read_bytes())
        sizes = [path.stat().st_size for path in report.files]
        report.add("written", f"{out} and {report.files[1].name} ({sum(sizes):,} bytes)", bytes=sum(sizes))
        return report

    def _check(self, report: Report, path: Path) -> None:
        """Read back what was written and run it."""
        settings = {"INFERENCE_PRECISION_HINT": "f32"}
        compiled = self.ov.Core().compile_model(self.ov.Core().read_model(path), "CPU", settings)
        check(report, self.network, "OpenVINO", lambda images: compiled(images)[0])

    def _refuse_unfit(self) -> None:
        for layer in self.network.layers:
            if layer.op != "binary_conv":
                continue
            channels, groups = layer.attributes["in_channels"], layer.attributes["groups"]
            if channels % 8 or groups > 1:
                has = f"{groups} groups" if groups > 1 else f"{channels} input channels"
                wants = "one group" if groups > 1 else "a multiple of 8"
                raise ExportError(
                    f"{layer.name} (binary_conv): it has {has}, the 1-bit convolutions of OpenVINO want {wants}. "
                    "--to onnx can, and OpenVINO reads it; --to c can too"
                )

    def _constant(self, array: Any) -> Any:
        return self.op.constant(np.ascontiguousarray(array, np.float32))

    def _vector(self, layer: Layer, values: Any) -> Any:
        return self._constant(np.asarray(values, np.float32).reshape(1, -1, *([1] * (len(layer.shape) - 1))))

    def _quantise(self, x: Any, edge: Any, below: Any, above: Any, layer: Layer) -> Any:
        """`below` where x <= edge, else `above`, per channel: 1 stands for +1 and 0 for -1."""
        at = self._vector(layer, edge)
        return self.op.fake_quantize(x, at, at, self._vector(layer, below), self._vector(layer, above), 2)

    def _is_quantised(self, layer: Layer) -> bool:
        """Whether a layer gives what the 1-bit convolutions read. A pool or flatten could not read that: for them
        bits are the floats 0 and 1.
        """
        readers = [other for other in self.network.layers if layer.name in other.inputs]
        return layer.op in ("sign", "binary_conv") and all(other.op == "binary_conv" for other in readers)

    def _signs(self, layer: Layer, x: Any, edge: Any, flip: Any) -> Any:
        if self._is_quantised(layer):
            return self._quantise(x, edge, flip, 1 - flip, layer)
        above = self.op.greater(x, self._vector(layer, edge))
        return self.op.select(above, self._vector(layer, 1 - flip), self._vector(layer, flip))

    # Bits are 0 and 1 here.

    def op_sign(self, layer: Layer, x: Any) -> Any:
        n = layer.shape[0]
        threshold = layer.tensors.get("threshold", np.zeros(n, np.float32))
        edge = np.nextafter(threshold, np.float32(-np.inf), dtype=np.float32)
        edge[np.abs(threshold) < SMALLEST] = -SMALLEST
        flip = layer.tensors.get("flip", np.zeros(n, np.uint8))
        return self._signs(layer, x, edge, flip)

    def op_binary_conv(self, layer: Layer, x: Any) -> Any:
        a, source = layer.attributes, self.network[layer.inputs[0]]
        if not self._is_quantised(source):
            zero = np.zeros(source.shape[0], np.float32)
            x = self._quantise(x, zero + 0.5, zero, zero + 1, source)
        signs = unpack_signs(layer.tensors["bits"], a["in_channels"]).transpose(0, 3, 1, 2)
        packed = np.packbits((signs > 0).ravel(), bitorder="little")
        self.alive.append(packed)
        weights = self.ov.op.Constant(
            self.ov.Tensor(packed, self.ov.Shape(list(signs.shape)), self.ov.Type.u1)
        )
        top, left, bottom, right = a["padding"]
        dot = self.op1.binary_convolution(
            x, weights, list(a["stride"]), [top, left], [bottom, right], list(a["dilation"]), "xnor-popcount", 0.0,
            "explicit",
        )  # fmt: skip
        return self._finish(layer, dot)

    def op_binary_linear(self, layer: Layer, x: Any) -> Any:
        signs = unpack_signs(layer.tensors["bits"], layer.attributes["in_features"])
        plus_minus = self.op.subtract(self.op.multiply(x, self._constant(2.0)), self._constant(1.0))
        return self._finish(layer, self.op.matmul(plus_minus, self._constant(signs), False, True))

    def _finish(self, layer: Layer, dot: Any) -> Any:
        if layer.bits:
            flip = layer.tensors["flip"]
            return self._signs(layer, dot, layer.tensors["threshold"] - 0.5, flip)
        return self.op_affine(layer, dot)

    def op_conv(self, layer: Layer, x: Any) -> Any:
        a, weight = layer.attributes, real_weight(layer)
        top, left, bottom, right = a["padding"]
        window = (list(a["stride"]), [top, left], [bottom, right], list(a["dilation"]))
        if a["groups"] == 1:
            y = self.op.convolution(x, self._constant(weight), *window)
        else:
            grouped = weight.reshape(a["groups"], -1, *weight.shape[1:])
            y = self.op.group_convolution(x, self._constant(grouped), *window)
        return self.op.add(y, self._vector(layer, layer.tensors["bias"]))

    def op_linear(self, layer: Layer, x: Any) -> Any:
        y = self.op.matmul(x, self._constant(real_weight(layer)), False, True)
        return self.op.add(y, self._vector(layer, layer.tensors["bias"]))

    def op_affine(self, layer: Layer, x: Any) -> Any:
        scaled = self.op.multiply(x, self._vector(layer, layer.tensors["scale"]))
        return self.op.add(scaled, self._vector(layer, layer.tensors["bias"]))

    def op_prelu(self, layer: Layer, x: Any) -> Any:
        return self.op.prelu(x, self._constant(layer.tensors["slope"]))

    def op_relu(self, layer: Layer, x: Any) -> Any:
        return self.op.relu(x)

    def op_hardtanh(self, layer: Layer, x: Any) -> Any:
        return self.op.clamp(x, -1.0, 1.0)

    def op_clamp(self, layer: Layer, x: Any) -> Any:
        return self.op.clamp(x, float(layer.attributes["low"]), float(layer.attributes["high"]))

    def op_sigmoid(self, layer: Layer, x: Any) -> Any:
        return self.op.sigmoid(x)

    def op_silu(self, layer: Layer, x: Any) -> Any:
        return self.op.swish(x)

    def op_hard_sigmoid(self, layer: Layer, x: Any) -> Any:
        return self.op.hsigmoid(x)

    def op_hard_swish(self, layer: Layer, x: Any) -> Any:
        return self.op.hswish(x)

    def op_multiply(self, layer: Layer, a: Any, b: Any) -> Any:
        return self.op.multiply(a, b)

    def op_max_pool(self, layer: Layer, x: Any) -> Any:
        a = layer.attributes
        return self.op1.max_pool(x, list(a["stride"]), *self._pads(layer), list(a["kernel"]))

    def op_avg_pool(self, layer: Layer, x: Any) -> Any:
        a = layer.attributes
        inside = not a["count_include_pad"]
        return self.op1.avg_pool(x, list(a["stride"]), *self._pads(layer), list(a["kernel"]), inside)

    def _pads(self, layer: Layer) -> tuple[list[int], list[int]]:
        """Before and after: no more than the last window reaches."""
        a, source = layer.attributes, layer.inputs[0]
        shape = self.network.input_shape if source == INPUT else self.network[source].shape
        before = [a["padding"][0], a["padding"][1]]
        reach = [(layer.shape[i + 1] - 1) * a["stride"][i] + a["kernel"][i] for i in (0, 1)]
        return before, [max(0, reach[i] - shape[i + 1] - before[i]) for i in (0, 1)]

    def op_global_avg_pool(self, layer: Layer, x: Any) -> Any:
        return self.op.reduce_mean(x, self.op.constant(np.array([2, 3])), False)

    def op_flatten(self, layer: Layer, x: Any) -> Any:
        return self.op.reshape(x, self.op.constant(np.array([1, layer.shape[0]])), False)

    def op_add(self, layer: Layer, a: Any, b: Any) -> Any:
        return self.op.add(a, b)

    def op_concat(self, layer: Layer, *parts: Any) -> Any:
        return self.op.concat(list(parts), 1)
