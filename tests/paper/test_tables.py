import pytest

from latentbit import recipes
from latentbit.paper.tables import NAMES, TABLES


def test_every_recipe_exists_and_no_place_is_taken_twice() -> None:
    assert set(NAMES) == {*TABLES, "complexity"}
    for table in TABLES.values():
        places = [(number.row, number.column) for number in table.numbers]
        assert len(places) == len(set(places))
        for number in table.numbers:
            name, *overrides = number.recipe.split()
            assert recipes.load(name, overrides).optim.epochs == 300


def test_layer_errors_average_to_what_the_paper_prints() -> None:
    numbers = TABLES["table2"].numbers
    for strategy in ("baseline", "min_fre", "label_aware"):
        mine = [number for number in numbers if number.column == strategy]
        layers = [number.paper for number in mine if number.metric.startswith("layer")]
        average = next(number.paper for number in mine if number.metric == "average")
        assert len(layers) == 16
        assert sum(layers) / 16 == pytest.approx(average, abs=6e-5)
