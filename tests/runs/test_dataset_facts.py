import pytest

from latentbit import data, recipes
from latentbit.runs.dataset_facts import BadFacts, DatasetFacts


def facts(**changes: object) -> DatasetFacts:
    return DatasetFacts.of(data.open(recipes.Data(dataset="digits", **changes)))  # type: ignore[arg-type]


def test_facts_come_back_from_their_text() -> None:
    found = facts()
    assert found.input_shape == (1, 8, 8) and found.num_classes == 10
    assert (found.n_train, found.n_test) == (1437, 360)
    assert DatasetFacts.loads(found.dumps(), "data.json") == found


def test_the_checksum_is_of_the_pixels_that_the_network_sees() -> None:
    assert facts().checksum == facts(pad=2, flip=True).checksum
    assert facts().differences(facts(image_size=16)) == ["image_size", "checksum"]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"name": 3}', "nonsense"])
def test_damaged_facts_are_named(text) -> None:
    with pytest.raises(BadFacts, match="run/data.json is damaged"):
        DatasetFacts.loads(text, "run/data.json")


def test_sizes_must_be_sizes() -> None:
    with pytest.raises(BadFacts, match="image_size is -8"):
        DatasetFacts.loads(facts().dumps().replace('"image_size": 8', '"image_size": -8'), "x")
