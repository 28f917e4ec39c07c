import lbit_examples
import pytest

from latentbit.data import DataError
from latentbit.engine import Engine
from latentbit.packing.score import score_dataset

NETWORK = lbit_examples.every_op()


def test_data_sets_must_exist_and_fit() -> None:
    with pytest.raises(DataError, match="nonsense: no such file"):
        score_dataset(Engine(NETWORK), "nonsense")
    with pytest.raises(
        DataError, match="digits has 1 channels and 10 classes; the network takes 3x6x6 and gives 4"
    ):
        score_dataset(Engine(NETWORK), "digits")
    with pytest.raises(DataError, match="the network gives a map of .6, 5, 6.: in Python"):
        score_dataset(Engine(lbit_examples.version_2()), "digits")
