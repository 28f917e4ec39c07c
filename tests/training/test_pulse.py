import torch
from tiny_run import tiny_recipe

from latentbit import data
from latentbit.checkpoints.checkpoint import listed
from latentbit.runs import RunDirectory
from latentbit.runs.dataset_facts import DatasetFacts
from latentbit.training.display import Display
from latentbit.training.interrupt import Interrupt
from latentbit.training.metrics import Meter
from latentbit.training.pulse import Pulse
from latentbit.training.state import TrainingState


def pulse(folder, *changes: str) -> tuple[Pulse, TrainingState, RunDirectory]:
    recipe = tiny_recipe(folder, *changes)
    run = RunDirectory.create(recipe, folder / "run")
    state = TrainingState(recipe, DatasetFacts.of(data.open(recipe.data)), torch.device("cpu"), 11)
    state.begin_epoch()
    made = Pulse(run, state, Display(quiet=True), Interrupt())
    made.begin_epoch()
    return made, state, run


IMAGES, LABELS = torch.randn(128, 1, 8, 8), torch.randint(10, (128,))


def test_the_device_is_waited_for_every_log_every_steps_and_at_the_end(tmp_path, monkeypatch) -> None:
    made, state, _ = pulse(tmp_path, "log_every=4")
    read, seen = Meter.read_latest, []
    monkeypatch.setattr(Meter, "read_latest", lambda self: seen.append(state.position.step) or read(self))
    for _ in range(11):
        state.step(IMAGES, LABELS)
        assert not made.after_step()
    assert seen == [4, 8, 11]
    assert made.terms["loss"] > 0 and made.speed > 0 and state.position.seconds > 0


def test_a_signal_is_seen_after_the_next_step_and_a_checkpoint_when_due(tmp_path) -> None:
    made, state, run = pulse(tmp_path, "log_every=100")
    state.step(IMAGES, LABELS)
    made.interrupt.name = "SIGINT"
    assert made.after_step() and listed(run.checkpoints) == []
    made.saved -= 60 * 11  # the recipe saves every 10 minutes
    state.step(IMAGES, LABELS)
    made.after_step()
    assert [path.name for path in listed(run.checkpoints)] == ["00000-000002.safetensors"]
