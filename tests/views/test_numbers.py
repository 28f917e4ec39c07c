from pathlib import Path

from latentbit.views.numbers import BY_KEY, EXPLAINED, IN_TRAINING, NUMBERS


def test_the_order_is_b_w_w_dagger() -> None:
    assert [number.name for number in NUMBERS] == ["B", "W", "W†"]
    assert [number.metric for number in NUMBERS] == ["accuracy_b", "accuracy_w", "accuracy_w_dagger"]
    assert list(BY_KEY) == ["B", "W", "W_dagger"]


def test_each_is_explained_in_its_place() -> None:
    places = [EXPLAINED.index(f"{number.name} {number.meaning}") for number in NUMBERS]
    assert places == sorted(places) and places[0] == 0


def test_nobody_else_spells_the_metrics() -> None:
    spelled = [f'"{number.metric}"' for number in IN_TRAINING]
    source = Path(__file__).parents[2] / "src" / "latentbit"
    for path in source.rglob("*.py"):
        if path.name != "numbers.py":
            assert not [word for word in spelled if word in path.read_text(encoding="utf-8")], path


def test_no_two_numbers_share_a_name() -> None:
    for field in ("key", "metric", "name", "short", "meaning"):
        assert len({getattr(number, field) for number in IN_TRAINING}) == len(IN_TRAINING)
