"""ONNX Runtime: the same topology in float32 (signs left out), or its static int8 form (u8s8, per channel)."""

from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper
from protocol import Subject, serve, subject


def build(this: Subject) -> onnx.ModelProto:
    """The layers one by one, binary convolutions as float ones."""
    nodes: list[Any] = []
    constants: list[Any] = []
    names = {"input": "input"}

    def constant(name: str, array: Any) -> str:
        constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def node(kind: str, inputs: list[str], name: str, **attributes: Any) -> str:
        nodes.append(helper.make_node(kind, inputs, [name], name=name, **attributes))
        return name

    for layer in this.layers:
        name, kind = layer["name"], layer["op"]
        x = names[layer["inputs"][0]]
        if kind in ("conv", "binary_conv"):
            if kind == "conv":
                weight = this.tensor(layer, "weight")
            else:
                weight = this.signs(layer) * this.tensor(layer, "scale").reshape(-1, 1, 1, 1)
            inputs = [x, constant(f"{name}.w", weight), constant(f"{name}.b", this.tensor(layer, "bias"))]
            keys = {"strides": layer["stride"], "pads": layer["padding"], "dilations": layer["dilation"]}
            y = node("Conv", inputs, name, kernel_shape=list(weight.shape[2:]), group=layer["groups"], **keys)
        elif kind == "linear":
            weight, bias = this.tensor(layer, "weight"), this.tensor(layer, "bias")
            y = node("Gemm", [x, constant(f"{name}.w", weight), constant(f"{name}.b", bias)], name, transB=1)
        elif kind == "max_pool":
            keys = {"kernel_shape": layer["kernel"], "strides": layer["stride"], "pads": layer["padding"]}
            y = node("MaxPool", [x], name, **keys)
        elif kind == "global_avg_pool":
            y = node("Flatten", [node("GlobalAveragePool", [x], f"{name}.map")], name)
        elif kind == "prelu":
            slope = constant(f"{name}.slope", this.tensor(layer, "slope").reshape(-1, 1, 1))
            y = node("PRelu", [x, slope], name)
        elif kind == "add":
            y = node("Add", [x, names[layer["inputs"][1]]], name)
        elif kind == "concat":
            y = node("Concat", [names[i] for i in layer["inputs"]], name, axis=1)
        elif kind in ("sign", "flatten"):
            y = x
        else:
            raise SystemExit(f"no ONNX counterpart of {kind}")
        names[name] = y
    last = names[this.layers[-1]["name"]]
    start = helper.make_tensor_value_info("input", TensorProto.FLOAT, list(this.image.shape))
    end = helper.make_tensor_value_info(last, TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "subject", [start], [end], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def quantised(this: Subject, model: onnx.ModelProto) -> onnx.ModelProto:
    from onnxruntime import quantization as q

    class Noise(q.CalibrationDataReader):
        def __init__(self) -> None:
            rng = np.random.default_rng(0)
            self.left = [{"input": rng.normal(size=this.image.shape).astype(np.float32)} for _ in range(8)]

        def get_next(self) -> Any:
            return self.left.pop() if self.left else None

    source, target = this.folder / "float.onnx", this.folder / "int8.onnx"
    onnx.save(model, source)
    q.quantize_static(
        str(source),
        str(target),
        Noise(),
        quant_format=q.QuantFormat.QDQ,
        per_channel=True,
        reduce_range=True,
        activation_type=q.QuantType.QUInt8,
        weight_type=q.QuantType.QInt8,
    )
    return onnx.load(target)


this = subject()
model = build(this)
if this.variant == "int8":
    model = quantised(this, model)
options = ort.SessionOptions()
options.intra_op_num_threads = this.threads
options.inter_op_num_threads = 1
options.log_severity_level = 3
session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
serve(lambda: session.run(None, {"input": this.image})[0])
