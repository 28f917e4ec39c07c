from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from latentbit.training.board import Board


def test_numbers_of_an_epoch_reach_tensorboard(tmp_path) -> None:
    with Board(tmp_path, 0, wanted=True) as board:
        board.log({"epoch": 1, "loss": 2.5})
        board.log({"epoch": 2, "loss": 1.5})
    events = EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    assert [(e.step, e.value) for e in events.Scalars("loss")] == [(1, 2.5), (2, 1.5)]


def test_other_ranks_write_nothing(tmp_path) -> None:
    with Board(tmp_path, 0, wanted=False) as board:
        board.log({"epoch": 1, "loss": 2.5})
    assert not list(tmp_path.iterdir())
