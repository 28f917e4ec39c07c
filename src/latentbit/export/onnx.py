"""ONNX (opset 18): standard ops alone, so that ONNX Runtime, ORT-web and OpenVINO run it as it is.

ONNX has no 1-bit type. Bits are stored eight to a byte and unpacked by BitwiseAnd, Cast and Where, which runtimes
fold when they load the file: it stays as small as ours. Sign(0) of ONNX is 0, so signs are Less and Where: 0 -> +1.
"""

import json
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from latentbit.atomic import atomic_write
from latentbit.export.parts.checking import check
from latentbit.export.parts.macs import real_weight
from latentbit.export.parts.onnx_graph import BOOL, FLOAT, Graph
from latentbit.export.parts.report import Report
from latentbit.export.parts.target import ExportError, Target
from latentbit.lbit import Layer, unpack_signs


class Onnx(Target):
    title = "ONNX, for ONNX Runtime, ORT-web and OpenVINO"
    suffix = ".onnx"
    gives_maps = True
    batch: ClassVar[str | int] = "N"

    def write(self, out: Path, *, weights: str = "bits") -> Report:
        """Write one .onnx file; with `weights="float"` plain convolutions of float32."""
        if weights not in ("bits", "float"):
            raise ExportError(f"--weights {weights}: choose bits or float")
        self.weights = weights
        content = self.model()
        report = Report([out])
        try:
            import onnxruntime
        except ImportError:
            report.add("checked", "not in ONNX Runtime, which is not installed: pip install onnxruntime")
        else:
            session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
            check(
                report, self.network, "ONNX Runtime", lambda images: session.run(None, {"image": images})[0]
            )
        with atomic_write(out) as file:
            file.write(content)
        report.add("written", f"{out} ({len(content):,} bytes)", bytes=len(content))
        return report

    def model(self) -> bytes:
        """The bytes of the file."""
        network, self.graph = self.network, Graph()
        self.graph.output(self.walk("image"))
        notes = {
            key: json.dumps(list(getattr(network, key)))
            for key in ("mean", "std", "classes")
            if getattr(network, key) is not None
        }
        return self.graph.file("latentbit", network.input_shape, network.output_shape, notes, self.batch)

    def _vector(self, layer: Layer, role: str, values: Any) -> str:
        """One number per channel, in a shape that goes with the value of the layer."""
        shape = (1, -1, *([1] * (len(layer.shape) - 1)))
        return self.graph.constant(f"{layer.name}.{role}", np.asarray(values).reshape(shape))

    def _real_weight(self, layer: Layer) -> str:
        """float32 in the graph; in the file as many bits as ours has."""
        g, weight = self.graph, layer.tensors["weight"]
        if weight.dtype == np.float32 or self.weights == "float":
            return g.constant(f"{layer.name}.weight", real_weight(layer))
        small = g.constant(f"{layer.name}.weight", weight)
        cast = g.node("Cast", f"{layer.name}.weight.cast", [small], to=FLOAT)
        if "weight_scale" not in layer.tensors:
            return cast
        column = layer.tensors["weight_scale"].reshape(-1, *([1] * (weight.ndim - 1)))
        scale = g.constant(f"{layer.name}.weight_scale", column)
        return g.node("Mul", f"{layer.name}.weight.scaled", [cast, scale])

    def op_conv(self, layer: Layer, x: str) -> str:
        inputs = [
            x,
            self._real_weight(layer),
            self.graph.constant(f"{layer.name}.bias", layer.tensors["bias"]),
        ]
        return self.graph.node(
            "Conv", layer.name, inputs, **_window(layer, layer.tensors["weight"].shape[2:])
        )

    def op_linear(self, layer: Layer, x: str) -> str:
        inputs = [
            x,
            self._real_weight(layer),
            self.graph.constant(f"{layer.name}.bias", layer.tensors["bias"]),
        ]
        return self.graph.node("Gemm", layer.name, inputs, transB=1)

    def op_sign(self, layer: Layer, x: str) -> str:
        n = layer.shape[0]
        threshold = layer.tensors.get("threshold", np.zeros(n, np.float32))
        return self._signs(layer, x, threshold, layer.tensors.get("flip", np.zeros(n, np.uint8)))

    def _signs(self, layer: Layer, x: str, threshold: Any, flip: Any) -> str:
        g = self.graph
        negative = g.node("Less", f"{layer.name}.less", [x, self._vector(layer, "threshold", threshold)])
        # A flipped channel is +1 where the others are -1.
        below = np.where(flip, 1, -1).astype(np.float32)
        return g.node(
            "Where",
            layer.name,
            [negative, self._vector(layer, "below", below), self._vector(layer, "above", -below)],
        )

    def _signs_of_weights(self, layer: Layer, signs: Any) -> str:
        """+1 and -1 in the graph, one bit each in the file."""
        g, name = self.graph, layer.name
        bits = np.packbits((signs < 0).ravel(), bitorder="little")
        octets = g.constant(f"{name}.bits", bits.reshape(-1, 1))
        masks = g.constant(f"{name}.masks", np.array([[1, 2, 4, 8, 16, 32, 64, 128]], np.uint8))
        masked = g.node("BitwiseAnd", f"{name}.masked", [octets, masks])
        negative = g.node("Cast", f"{name}.negative", [masked], to=BOOL)
        minus, plus = (g.constant(f"{name}.{v}", np.float32(v)) for v in (-1, 1))
        value = g.node("Where", f"{name}.signs", [negative, minus, plus])
        if signs.size % 8:
            ends = [
                g.constant(f"{name}.{end}", np.array([v], np.int64))
                for end, v in (("first", 0), ("end", signs.size))
            ]
            flat = g.constant(f"{name}.flat", np.array([-1], np.int64))
            value = g.node("Reshape", f"{name}.row", [value, flat])
            value = g.node("Slice", f"{name}.cut", [value, *ends])
        shape = g.constant(f"{name}.shape", np.array(signs.shape, np.int64))
        return g.node("Reshape", f"{name}.weight", [value, shape])

    def op_binary_conv(self, layer: Layer, x: str) -> str:
        per_group = layer.attributes["in_channels"] // layer.attributes["groups"]
        signs = unpack_signs(layer.tensors["bits"], per_group).transpose(0, 3, 1, 2)
        return self._binary(layer, x, signs, "Conv", **_window(layer, signs.shape[2:]))

    def op_binary_linear(self, layer: Layer, x: str) -> str:
        signs = unpack_signs(layer.tensors["bits"], layer.attributes["in_features"])
        return self._binary(layer, x, signs, "Gemm", transB=1)

    def _binary(self, layer: Layer, x: str, signs: Any, op: str, **attributes: Any) -> str:
        g, tensors = self.graph, layer.tensors
        if self.weights == "float" and not layer.bits:
            weight = signs * tensors["scale"].reshape(-1, *([1] * (signs.ndim - 1)))
            inputs = [x, g.constant(f"{layer.name}.weight", weight.astype(np.float32))]
            return g.node(
                op, layer.name, [*inputs, g.constant(f"{layer.name}.bias", tensors["bias"])], **attributes
            )
        weight = self._binary_weight(layer, signs)
        dot = g.node(op, f"{layer.name}.dot", [x, weight], **attributes)
        if layer.bits:
            return self._signs(layer, dot, tensors["threshold"].astype(np.float32), tensors["flip"])
        return self.op_affine(layer, dot)

    def _binary_weight(self, layer: Layer, signs: Any) -> str:
        if self.weights == "float":
            return self.graph.constant(f"{layer.name}.weight", signs.astype(np.float32))
        return self._signs_of_weights(layer, signs)

    def op_affine(self, layer: Layer, x: str) -> str:
        scale, bias = (self._vector(layer, role, layer.tensors[role]) for role in ("scale", "bias"))
        return self.graph.node(
            "Add", layer.name, [self.graph.node("Mul", f"{layer.name}.scaled", [x, scale]), bias]
        )

    def op_prelu(self, layer: Layer, x: str) -> str:
        return self.graph.node("PRelu", layer.name, [x, self._vector(layer, "slope", layer.tensors["slope"])])

    def op_relu(self, layer: Layer, x: str) -> str:
        return self.graph.node("Relu", layer.name, [x])

    def op_hardtanh(self, layer: Layer, x: str) -> str:
        ends = [self.graph.constant(f"{layer.name}.{v}", np.float32(v)) for v in (-1, 1)]
        return self.graph.node("Clip", layer.name, [x, *ends])

    def op_clamp(self, layer: Layer, x: str) -> str:
        low, high = (np.float32(layer.attributes[end]) for end in ("low", "high"))
        ends = [self.graph.constant(f"{layer.name}.{end}", v) for end, v in (("low", low), ("high", high))]
        return self.graph.node("Clip", layer.name, [x, *ends])

    def op_sigmoid(self, layer: Layer, x: str) -> str:
        return self.graph.node("Sigmoid", layer.name, [x])

    def op_silu(self, layer: Layer, x: str) -> str:
        return self.graph.node("Mul", layer.name, [x, self.graph.node("Sigmoid", f"{layer.name}.gate", [x])])

    def op_hard_sigmoid(self, layer: Layer, x: str) -> str:
        return self.graph.node("HardSigmoid", layer.name, [x], alpha=1 / 6, beta=0.5)

    def op_hard_swish(self, layer: Layer, x: str) -> str:
        return self.graph.node("HardSwish", layer.name, [x])

    def op_multiply(self, layer: Layer, a: str, b: str) -> str:
        return self.graph.node("Mul", layer.name, [a, b])

    def op_reshape(self, layer: Layer, x: str) -> str:
        size = np.array([0, *layer.shape], np.int64)  # 0 keeps the number of images
        return self.graph.node("Reshape", layer.name, [x, self.graph.constant(f"{layer.name}.size", size)])

    def op_permute(self, layer: Layer, x: str) -> str:
        order = [0, *(axis + 1 for axis in layer.attributes["order"])]
        return self.graph.node("Transpose", layer.name, [x], perm=order)

    def op_max_pool(self, layer: Layer, x: str) -> str:
        return self.graph.node("MaxPool", layer.name, [x], **self._pool(layer))

    def op_avg_pool(self, layer: Layer, x: str) -> str:
        include = int(layer.attributes["count_include_pad"])
        return self.graph.node("AveragePool", layer.name, [x], count_include_pad=include, **self._pool(layer))

    def _pool(self, layer: Layer) -> dict[str, Any]:
        a = layer.attributes
        pads = list(a["padding"])
        _, height, width = (
            self.network[layer.inputs[0]].shape if layer.inputs[0] != "input" else self.network.input_shape
        )
        for axis, size in enumerate((height, width)):
            # Padding that no window reaches would be refused: only what the last window needs.
            reach = (layer.shape[axis + 1] - 1) * a["stride"][axis] + a["kernel"][axis]
            pads[axis + 2] = max(0, reach - size - pads[axis])
        return {"kernel_shape": a["kernel"], "strides": a["stride"], "pads": pads}

    def op_global_avg_pool(self, layer: Layer, x: str) -> str:
        pooled = self.graph.node("GlobalAveragePool", f"{layer.name}.map", [x])
        return self.graph.node("Flatten", layer.name, [pooled], axis=1)

    def op_flatten(self, layer: Layer, x: str) -> str:
        return self.graph.node("Flatten", layer.name, [x], axis=1)

    def op_add(self, layer: Layer, a: str, b: str) -> str:
        return self.graph.node("Add", layer.name, [a, b])

    def op_concat(self, layer: Layer, *parts: str) -> str:
        return self.graph.node("Concat", layer.name, list(parts), axis=1)


def _window(layer: Layer, kernel: Any) -> dict[str, Any]:
    a = layer.attributes
    return {
        "kernel_shape": list(kernel),
        "strides": a["stride"],
        "pads": a["padding"],
        "dilations": a["dilation"],
        "group": a["groups"],
    }
