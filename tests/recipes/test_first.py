import pytest

from latentbit import recipes
from latentbit.recipes import RecipeError, dumps, first_stage, loads
from latentbit.runs import changed_keys

STAGES = """
[optim]
lr = 1e-3
weight_decay = 0.0
[first]
real_weights = true
weight_decay = 1
"""


def load(folder, text: str = STAGES, *overrides: str) -> recipes.Recipe:
    (folder / "mine.toml").write_text(text)
    return recipes.load(str(folder / "mine.toml"), overrides)


def test_the_first_stage_is_the_recipe_but_for_its_table(tmp_path) -> None:
    recipe = load(tmp_path, STAGES, "epochs=7", "first.epochs=3", "first.lr=0.5")
    first = first_stage(recipe)
    assert (first.model.real_weights, recipe.model.real_weights) == (True, False)
    assert (first.optim.weight_decay, first.optim.lr, first.optim.epochs) == (1.0, 0.5, 3)
    assert isinstance(first.optim.weight_decay, float)
    assert (recipe.optim.weight_decay, recipe.optim.lr, recipe.optim.epochs) == (0.0, 1e-3, 7)
    assert first.first == {} and first.name == "mine_first"
    assert load(tmp_path, STAGES).optim.epochs == first_stage(load(tmp_path, STAGES)).optim.epochs


def test_it_is_written_read_back_and_compared(tmp_path) -> None:
    recipe = load(tmp_path)
    assert loads(dumps(recipe), "test") == recipe
    assert "[first]" not in dumps(first_stage(recipe))
    other = load(tmp_path, STAGES, "first.weight_decay=2", "first.lr=1e-4")
    assert changed_keys(recipe, other) == ["first.weight_decay", "first.lr"]


def test_faults_are_told_with_their_lines(tmp_path) -> None:
    with pytest.raises(RecipeError) as error:
        load(
            tmp_path,
            "[first]\nreal_weigths = true\nlr = -1\nlatent = 'a.py:f'\n",
            "first.lr=x",
            "first.epochs",
        )
    assert error.value.problems == [
        "line 2: first.real_weigths: unknown key, did you mean 'real_weights'?",
        "line 3: first.lr: -1 is out of range, it must be at least 1e-30",
        "line 4: first.latent: names code: both stages use the code that the other sections name",
        "override 'first.lr=x': 'x' is not a number",
        "override 'first.epochs': write it as first.key=value",
    ]
    with pytest.raises(
        RecipeError, match=r"\[first\]: optim.warmup_epochs = 5 is longer than optim.epochs = 2"
    ):
        load(tmp_path, STAGES, "warmup_epochs=5", "first.epochs=2")
    with pytest.raises(RecipeError, match="first: is a section, write it as a table"):
        load(tmp_path, "first = 3\n")
