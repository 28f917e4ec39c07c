import tomllib
from pathlib import Path

import pytest

from latentbit import recipes
from latentbit.comparison import compare
from latentbit.paper.tables import NAMES, TABLES


def test_every_recipe_exists_and_no_place_is_taken_twice() -> None:
    assert set(NAMES) == {*TABLES, "complexity"}
    for table in TABLES.values():
        places = [(number.row, number.column) for number in table.numbers]
        assert len(places) == len(set(places))
        for number in table.numbers:
            if not number.recipe:  # quoted from others
                assert table.images
                continue
            name, *overrides = number.recipe.split()
            assert recipes.load(name, overrides).optim.epochs == 300 or table.images


def test_layer_errors_average_to_what_the_paper_prints() -> None:
    numbers = TABLES["table2"].numbers
    for strategy in ("baseline", "min_fre", "label_aware"):
        mine = [number for number in numbers if number.column == strategy]
        layers = [number.paper for number in mine if number.metric.startswith("layer")]
        average = next(number.paper for number in mine if number.metric == "average")
        assert len(layers) == 16
        assert sum(layers) / 16 == pytest.approx(average, abs=6e-5)


def test_imagenet_has_the_numbers_that_recipes_and_the_comparison_quote() -> None:
    printed = {(number.row, number.metric): number for number in TABLES["table8"].numbers}
    assert len(printed) == 2 * (10 + 9)
    with (Path(compare.__file__).parent / "published.toml").open("rb") as file:
        published = tomllib.load(file)["imagenet"]
    names = {"Bi-Real": "bireal", "PCNN": "pcnn", "CI-BNN": "cibnn", "IR-Net": "irnet", "RBNN": "rbnn"}
    names |= {"Si-BNN": "sibnn", "SA-BNN": "sabnn", "label-aware": "sign+latent"}
    for (row, metric), number in printed.items():
        network, method = row.removeprefix("ResNet-").split(" ", 1)
        if metric == "accuracy_b" and method in names:
            assert published[f"resnet{network}"][names[method]][0] == number.paper
        if number.recipe and " " not in number.recipe:
            which = "top-1" if metric == "accuracy_b" else "top-5"
            said = recipes.header(number.recipe)["paper"]
            # The release of Si-BNN is newer than what the paper quotes.
            assert f"{which} {number.paper} %" in said or method == "Si-BNN"
