import numpy as np

from latentbit.export.parts.c_text import Names, array, comment, number, string


def test_numbers_give_back_the_float() -> None:
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.normal(size=100), rng.normal(size=100) * 1e-30, [0, -0.0, 1, 1e10, 1e-45]])
    for value in values.astype(np.float32):
        text = number(value)
        assert text.endswith("f") and ("." in text or "e" in text)
        assert np.float32(text[:-1]).tobytes() == value.tobytes()


def test_names_differ() -> None:
    names = Names()
    assert [names.fresh("w", name) for name in ("a.b", "a_b", "\u00fc", "*/")] == [
        "w_a_b", "w_a_b_2", "w_layer", "w_layer_2",
    ]  # fmt: skip


def test_text_cannot_end_a_comment_or_string() -> None:
    assert "*/" not in comment("a */ b") and "/*" not in comment("/* x")
    assert string('a"b\\?\u00fc') == '"a\\042b\\134\\077\\303\\274"'


def test_long_arrays_are_broken_into_lines() -> None:
    text = array("float", "w", ["1.0f"] * 100, "100")
    assert text.count("1.0f,") == 100 and max(map(len, text.splitlines())) <= 116
