"""What we write by hand, read by the onnx package."""

import numpy as np
import pytest

from latentbit.export.parts.onnx_graph import IR_VERSION, OPSET, Graph

onnx = pytest.importorskip("onnx")


def test_a_graph_read_back() -> None:
    graph = Graph()
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    first = graph.constant("w", array)
    second = graph.constant("w", np.array([7], np.int64))
    assert (first, second) == ("w", "w:2")
    value = graph.node("Conv", "c", ["image", first], strides=[2, 1], group=3, alpha=0.5)
    graph.output(value)
    model = onnx.load_from_string(graph.file("g", (1, 4, 5), (10,), {"classes": "[\u00fc]"}))
    assert (model.ir_version, model.opset_import[0].version) == (IR_VERSION, OPSET)
    np.testing.assert_array_equal(onnx.numpy_helper.to_array(model.graph.initializer[0]), array)
    assert onnx.numpy_helper.to_array(model.graph.initializer[1]).tolist() == [7]
    node = model.graph.node[0]
    assert (node.op_type, list(node.input), list(node.output)) == ("Conv", ["image", "w"], ["c"])
    found = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    assert found == {"strides": [2, 1], "group": 3, "alpha": 0.5}
    shape = model.graph.input[0].type.tensor_type.shape.dim
    assert [d.dim_param or d.dim_value for d in shape] == ["N", 1, 4, 5]
    assert model.graph.output[0].name == "logits" and model.metadata_props[0].value == "[\u00fc]"
