from latentbit.training import display
from latentbit.training.display import Display

ENTRY = {"epoch": 1, "loss": 1.5, "train_accuracy": 0.5, "images_per_second": 100.0, "accuracy_b": 0.25}


def test_plain_lines_where_there_is_no_terminal(capsys, monkeypatch) -> None:
    monkeypatch.setattr(display, "PLAIN_EVERY", 0.0)
    shown = Display()
    with shown.over(2, 10, 0):
        shown.step(0, 3, 1e-3, 42.0, {"loss": 1.25})
        shown.epoch(ENTRY)
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("epoch 1/2 step 3/10  loss 1.25  lr 1.00e-03  42 img/s  left 0:00:")
    assert second.startswith("epoch 1/2  loss 1.5000  train 50.00 %  test B 25.00 %  100 img/s")


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
    out = capsys.readouterr().out
    assert "epoch 2/2" in out and "13/20" in out and "B 25.00 %" in out
