import pytest
import torch
from tiny_run import tiny_recipe

from latentbit import data
from latentbit.recipes import Data
from latentbit.runs.dataset_facts import DatasetFacts
from latentbit.training import measure
from latentbit.training.measure import generated, is_absent, measure_input, measure_memory, measure_speed
from latentbit.training.state import TrainingState

CPU = torch.device("cpu")


@pytest.fixture
def state(tmp_path, monkeypatch) -> tuple[TrainingState, DatasetFacts]:
    monkeypatch.setattr(measure, "SECONDS", 0.02)
    recipe = tiny_recipe(tmp_path, "ema=0.9")
    facts = DatasetFacts.of(data.open(recipe.data))
    return TrainingState(recipe, facts, CPU, 11), facts


def test_memory_is_that_of_weights_gradients_adam_and_what_autograd_keeps(state) -> None:
    state, facts = state
    speed = measure_speed(state, facts, 16)
    assert speed.step > 0 and speed.forward > 0 and 2 <= speed.batch <= 16
    found = measure_memory(state, facts)
    trained = sum(p.nbytes for p in state.objective.parameters())
    assert found.weights == trained + sum(b.nbytes for b in state.objective.buffers())
    assert found.gradients == trained
    assert found.optimizer == 2 * trained + 4 * len(
        list(state.objective.parameters())
    )  # two moments and a count
    assert found.average == sum(t.nbytes for t in state.model.state_dict().values())
    # A line through two and four images meets what eight keep, but for the alignment of small tensors.
    images, labels = torch.randn(8, 1, 8, 8), torch.zeros(8, dtype=torch.int64)
    eight = measure._kept(state, images, labels)
    assert found.fixed + 8 * found.activations == pytest.approx(eight, rel=0.01)
    assert found.total(8) == pytest.approx(found.total(0) + 8 * found.activations)


def test_autograd_keeps_the_input_of_a_product_once() -> None:
    """Two layers on one input: x, and the result that the square keeps; weights do not count."""

    class State:
        layout = torch.contiguous_format
        objective = torch.nn.ModuleList([torch.nn.Linear(3, 5), torch.nn.Linear(3, 5)])

        def outcome_of(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return (self.objective[0](x) + self.objective[1](x)).square().sum()

    kept = measure._kept(State(), torch.randn(7, 3), torch.zeros(7))
    assert kept == 4 * (7 * 3 + 7 * 5)


def test_pictures_stand_for_a_folder_that_is_not_here(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(measure, "PICTURES", 24)
    monkeypatch.setattr(measure, "DISTINCT", 2)
    wanted = Data(dataset="image_folder", workers=0, image_size=32, batch_size=8)
    assert is_absent(wanted) and is_absent(Data(dataset="image_folder", root=str(tmp_path / "nowhere")))
    assert not is_absent(Data(dataset="image_folder", root=str(tmp_path))) and not is_absent(Data())
    with generated(wanted, CPU) as dataset:
        assert len(dataset.train) == 24 and dataset.image_size == 32
        assert measure_input(dataset, 8, seed=0) > 0


@pytest.mark.parametrize(
    ("fixed", "each", "most", "batch"),
    [
        (0.3, 0.0, 64, 64),  # a small network: the images cost nothing beside the step itself
        (0.02, 0.001, 128, 128),
        (0.1, 0.01, 256, 90),  # a second's worth
        (1.0, 0.5, 256, 8),  # not even that: the fewest
        (1.0, 0.5, 4, 4),
    ],
)
def test_as_many_images_are_timed_as_a_second_has_room_for(
    state, monkeypatch, fixed: float, each: float, most: int, batch: int
) -> None:
    training, facts = state
    monkeypatch.setattr(measure, "SECONDS", 1.0)
    monkeypatch.setattr(measure, "_seconds", lambda state, n, facts: fixed + each * n)
    speed = measure.measure_speed(training, facts, most)
    assert speed.batch == pytest.approx(batch, abs=1)
    assert speed.step == pytest.approx(speed.batch / (fixed + each * speed.batch))
