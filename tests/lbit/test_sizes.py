import json

import lbit_examples

from latentbit.lbit import to_bytes
from latentbit.lbit.sizes import weigh


def test_counts_by_hand() -> None:
    sizes = weigh(lbit_examples.tiny())
    (row,) = sizes.rows
    assert (row.name, row.op, row.n_weights, row.weight_bits) == ("fc", "binary_linear", 3 * 2, 1)
    assert row.n_bytes == 3 * 8 + 3 * 4 + 3 * 4
    assert row.fp32_bytes == sizes.fp32_bytes == (3 * 2 + 3) * 4
    assert sizes.file_bytes == len(to_bytes(lbit_examples.tiny()))
    assert sizes.ratio == sizes.fp32_bytes / sizes.file_bytes


def test_every_layer_with_numbers_has_a_reason() -> None:
    network = lbit_examples.every_op()
    sizes = weigh(network)
    why = {row.name: row.why for row in sizes.rows}
    assert why.keys() == {layer.name for layer in network.layers if layer.tensors}
    assert why["stem"] == "weights (first layer)"
    assert why["a"] == "nothing: integer threshold"
    assert why["b"] == "scale, bias (for add)"
    assert why["fc"] == "scale, bias (for output)"
    grouped = next(row for row in sizes.rows if row.name == "c")
    assert grouped.n_weights == 12 * 3
    assert sizes.real_weights == 6 * 3 * 9 + 5 * 12


def test_as_data() -> None:
    sizes = weigh(lbit_examples.every_op())
    data = json.loads(json.dumps(sizes.as_dict()))
    assert data["file_bytes"] == sizes.file_bytes and len(data["layers"]) == len(sizes.rows)
