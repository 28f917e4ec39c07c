import lbit_examples
import numpy as np
import pytest

from latentbit.lbit.network import real_vector


def test_a_layer_knows_its_bytes() -> None:
    layer = lbit_examples.tiny()["fc"]
    assert layer.n_bytes == 3 * 8 + 3 * 4 + 3 * 4


def test_layers_are_found_by_name() -> None:
    network = lbit_examples.every_op()
    assert network["stem"].op == "conv"
    assert network.n_outputs == 4
    with pytest.raises(KeyError, match="absent"):
        network["absent"]


def test_real_vector_flattens_to_float32() -> None:
    vector = real_vector([[1, 2], [3, 4]])
    assert vector.dtype == np.float32 and vector.tolist() == [1, 2, 3, 4]
