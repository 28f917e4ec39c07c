import re

import pytest

from latentbit.training import display
from latentbit.training.display import Display

ENTRY = {"epoch": 1, "loss": 1.5, "train_accuracy": 0.5, "images_per_second": 100.0, "accuracy_b": 0.25}


def test_plain_lines_where_there_is_no_terminal(capsys, monkeypatch) -> None:
    monkeypatch.setattr(display, "PLAIN_EVERY", 0.0)
    shown = Display()
    with shown.over(2, 10, 0):
        shown.step(0, 2, 1e-3, 0.0, {})
        shown.step(0, 3, 1e-3, 42.0, {"loss": 1.25})
        shown.epoch(ENTRY)
    first, second, third = capsys.readouterr().out.splitlines()
    assert first == "epoch 1/2 step 2/10  lr 1.00e-03  left ?"  # no speed yet
    assert second.startswith("epoch 1/2 step 3/10  loss 1.25  lr 1.00e-03  42 img/s  left 0:00:")
    assert third.startswith("epoch 1/2  loss 1.5000  train 50.00 %  test B 25.00 %  100 img/s")


def test_the_time_that_is_left_leaves_out_the_first_step_which_compiles(capsys, monkeypatch) -> None:
    clock = 0.0
    monkeypatch.setattr(display.time, "monotonic", lambda: clock)
    shown = Display()
    with shown.over(10, 100, 500):  # resumed after half of 1,000 steps
        clock = 120.0
        shown.step(5, 1, 1e-3, 0.0, {})
        clock = 160.0
        shown.step(5, 11, 1e-3, 32.0, {})
    assert capsys.readouterr().out.splitlines()[1].endswith("left 0:32:36")  # 489 steps of 4 seconds


def test_quiet_says_nothing(capsys) -> None:
    shown = Display(quiet=True)
    with shown.over(2, 10, 0):
        shown.say("x")
        shown.epoch(ENTRY)
    assert capsys.readouterr().out == ""


def test_a_terminal_gets_a_live_bar(monkeypatch, capsys) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    shown = Display()
    with shown.over(2, 10, 5):
        assert shown.live
        shown.epoch(ENTRY)
        shown.step(1, 3, 1e-3, 42.0, {"loss": 1.25})
        shown.evaluating()
    out = capsys.readouterr().out
    assert "epoch 2/2" in out and "13/20" in out and "B 25.00 %" in out
    assert "loss" not in out.rpartition("evaluating")[0].splitlines()[-1]  # the loss of a step that is past


@pytest.mark.parametrize("width, wide", [(80, False), (120, True)])
def test_every_line_fits_the_terminal(width, wide, monkeypatch, capsys) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("COLUMNS", str(width))
    shown = Display()
    names = ("accuracy_b_val", "accuracy_b", "accuracy_w", "accuracy_w_dagger", "accuracy_w_tracked")
    with shown.over(300, 390, 5):
        shown.step(299, 380, 1e-3, 12345.0, {"loss": 1.2345, "task": 1.2, "latent": 0.01})
        shown.progress.refresh()
        shown.epoch(ENTRY | {"epoch": 300} | dict.fromkeys(names, 0.25))
    lines = [
        re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", line) for line in re.split(r"[\r\n]", capsys.readouterr().out)
    ]
    bar = [line for line in lines if "116990/117000" in line]
    assert bar and all("epoch 300/300" in line and "12345 img/s" in line for line in bar[:1])
    assert ("latent 0.01" in bar[0]) == wide and "loss 1.5  100 img/s" in bar[-1]
    assert "…" not in "".join(lines) and all(len(line) <= width for line in lines)
    assert any("val B 25.00 %  test B 25.00 %  W 25.00 %  W† 25.00 %  W‡ 25.00 %" in line for line in lines)
