"""OpenVINO: variant "binary" runs true 1-bit convolutions, "int8" the same float network quantised by NNCF.

The traps of the binary path: fake_quantize must give 0 and 1 (with -1 the result is silently wrong), input channels
must be a multiple of 8, the weights are shared with numpy and must stay alive, a sign followed by a +-1 convolution
is not recognised and runs in float32.
"""

from typing import Any

import numpy as np
import openvino as ov
from openvino import opset1
from openvino import opset8 as op
from protocol import Subject, serve, subject

alive: list[Any] = []


def per_channel(values: Any) -> Any:
    return op.constant(np.asarray(values, np.float32).reshape(1, -1, 1, 1))


def binary_conv(this: Subject, layer: dict[str, Any], x: Any) -> Any:
    """x is 0 or 1; a set weight bit is +1 there."""
    signs = this.signs(layer)
    packed = np.packbits((signs > 0).ravel(), bitorder="little")
    alive.append(packed)
    weights = ov.op.Constant(ov.Tensor(packed, ov.Shape(list(signs.shape)), ov.Type.u1))
    top, left, bottom, right = layer["padding"]
    return opset1.binary_convolution(
        x,
        weights,
        layer["stride"],
        [top, left],
        [bottom, right],
        layer["dilation"],
        "xnor-popcount",
        0.0,
        "explicit",
    )


def conv(this: Subject, layer: dict[str, Any], x: Any, weight: Any) -> Any:
    top, left, bottom, right = layer["padding"]
    return op.convolution(
        x, op.constant(weight), layer["stride"], [top, left], [bottom, right], layer["dilation"]
    )


def build(this: Subject, binary: bool) -> ov.Model:
    """The layers one by one; without binary, signs are left out and weights are floats."""
    start = op.parameter(list(this.image.shape), np.float32)
    values: dict[str, Any] = {"input": start}
    for layer in this.layers:
        x, kind = values[layer["inputs"][0]], layer["op"]
        if kind == "sign":
            zero = op.constant(np.zeros((1, 1, 1, 1), np.float32))
            one = op.constant(np.ones((1, 1, 1, 1), np.float32))
            # x <= input_low gives output_low: step just below 0, so that 0 itself counts as +1.
            edge = op.constant(np.full((1, 1, 1, 1), -1e-38, np.float32))
            y = op.fake_quantize(x, edge, edge, zero, one, 2) if binary else x
        elif kind == "binary_conv":
            scale, bias = this.tensor(layer, "scale"), this.tensor(layer, "bias")
            if binary:
                y = binary_conv(this, layer, x)
                if layer["affine"]:
                    y = op.add(op.multiply(y, per_channel(scale)), per_channel(bias))
            else:
                weight = this.signs(layer) * scale.reshape(-1, 1, 1, 1)
                y = op.add(conv(this, layer, x, weight), per_channel(bias))
        elif kind == "conv":
            weight = this.tensor(layer, "weight")
            y = op.add(conv(this, layer, x, weight), per_channel(this.tensor(layer, "bias")))
        elif kind == "linear":
            y = op.matmul(x, op.constant(this.tensor(layer, "weight")), False, True)
            y = op.add(y, op.constant(this.tensor(layer, "bias").reshape(1, -1)))
        elif kind == "max_pool":
            top, left, bottom, right = layer["padding"]
            y = opset1.max_pool(x, layer["stride"], [top, left], [bottom, right], layer["kernel"])
        elif kind == "global_avg_pool":
            y = op.reduce_mean(x, op.constant(np.array([2, 3])), False)
        elif kind == "prelu":
            y = op.prelu(x, op.constant(this.tensor(layer, "slope")))
        elif kind == "add":
            y = op.add(x, values[layer["inputs"][1]])
        elif kind == "concat":
            y = op.concat([values[name] for name in layer["inputs"]], 1)
        elif kind == "flatten":
            y = x  # the last layer of the single convolutions: the result stays a map
        else:
            raise SystemExit(f"no OpenVINO counterpart of {kind}")
        values[layer["name"]] = y
    return ov.Model([values[this.layers[-1]["name"]]], [start], "subject")


def quantised(this: Subject) -> ov.Model:
    import nncf

    rng = np.random.default_rng(0)
    batches = [rng.normal(size=this.image.shape).astype(np.float32) for _ in range(8)]
    return nncf.quantize(build(this, False), nncf.Dataset(batches), subset_size=8)


this = subject()
streams = this.variant == "streams"
images = this.image
if streams:  # one image per request, as many requests at a time as threads
    this = this._replace(image=np.ascontiguousarray(images[:1]))
model = quantised(this) if this.variant == "int8" else build(this, this.variant in ("binary", "streams"))
settings = {
    "INFERENCE_NUM_THREADS": this.threads,
    "PERFORMANCE_HINT": "THROUGHPUT" if streams else "LATENCY",
    "NUM_STREAMS": this.threads if streams else 1,
    "ENABLE_CPU_PINNING": False,
    "INFERENCE_PRECISION_HINT": "f32",
}
core = ov.Core()
compiled = core.compile_model(model, "CPU", settings)
request = compiled.create_infer_request()
request.set_input_tensor(ov.Tensor(this.image, shared_memory=True))
queue = ov.AsyncInferQueue(compiled, this.threads) if streams else None


def call() -> Any:
    if queue is None:
        request.infer()
        return request.get_output_tensor().data
    for i in range(len(images)):
        queue.start_async({0: images[i : i + 1]})
    queue.wait_all()
    return queue[0].get_output_tensor().data


def node() -> float | None:
    """The binary convolution alone, from OpenVINO's own counters."""
    counted = core.compile_model(model, "CPU", settings | {"PERF_COUNT": True}).create_infer_request()
    counted.set_input_tensor(ov.Tensor(this.image, shared_memory=True))
    times = []
    for _ in range(200):
        counted.infer()
        times += [
            info.real_time.total_seconds() * 1e9
            for info in counted.get_profiling_info()
            if info.node_type == "BinaryConvolution"
        ]
    return min(times) if times else None


serve(call, node)
