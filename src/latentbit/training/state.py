"""A network in training: what a step changes and a checkpoint holds. The loop, `compare` and the bench share its step.

    state = TrainingState(recipe, facts, device, steps_per_epoch)
    state.step(images, labels)

Every crop and dropout mask is a function of (seed, epoch, step), so nothing random needs saving.
"""

import contextlib
import copy
from collections.abc import Callable, Iterator
from functools import cached_property

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from latentbit import distributed, recipes
from latentbit.checkpoints import checkpoint
from latentbit.checkpoints.checkpoint import Position
from latentbit.distributed.batchnorm import sync_batchnorm_
from latentbit.errors import LatentbitError
from latentbit.objective import Outcome
from latentbit.recipes import Recipe
from latentbit.recipes.build import build_objective
from latentbit.runs import RunDirectory, RunError, changed_keys
from latentbit.runs.dataset_facts import DatasetFacts
from latentbit.runs.extend import only_extended
from latentbit.training import flips, optimizers
from latentbit.training.compiling import autocast_for
from latentbit.training.layout import fastest_layout, in_layout
from latentbit.training.metrics import Meter
from latentbit.training.parallel import parallel
from latentbit.training.schedule import learning_rate
from latentbit.training.start import first_network
from latentbit.training.teacher import Teacher, teacher_of
from latentbit.views import TwoView


class TrainingStopped(LatentbitError):
    """Training could not go on: a loss that is not finite, or a recipe that does not fit the machine."""


class TrainingState:
    """`step` trains on one batch, `save` and `restore` carry the rest of the run over a stop."""

    def __init__(
        self,
        recipe: Recipe,
        facts: DatasetFacts,
        device: torch.device,
        steps_per_epoch: int,
        *,
        compiled: bool = False,
        teacher: nn.Module | None = None,
    ) -> None:
        self.recipe, self.device, self.compiled = recipe, device, compiled
        self.steps_per_epoch, optim = steps_per_epoch, recipe.optim
        self.total_steps = optim.epochs * steps_per_epoch
        self.warmup_steps = round(optim.warmup_epochs * steps_per_epoch)
        check_batch(recipe)
        self.model, self.started = first_network(recipe, facts)  # the same on every process
        self.objective = build_objective(recipe.loss, self.model, facts.num_classes).to(device).train()
        self.objective.parts = optim.accumulate
        views = self.objective.network
        if isinstance(views, TwoView):
            views.compiled_apart = views.latent_grad
        if recipe.run.sync_batchnorm and distributed.world_size() > 1:
            sync_batchnorm_(self.objective)
        self.layout = fastest_layout(self.model, facts.input_shape)
        self.optimizer = optimizers.create(self.objective, optim)
        self.average = copy.deepcopy(self.model) if optim.ema > 0 else None
        teacher = teacher_of(recipe, device) if teacher is None else teacher
        self.teacher = (
            None if teacher is None else Teacher(teacher.to(device), recipe.loss.attention_weight > 0)
        )
        if self.teacher is None and recipe.loss.attention_weight > 0:
            raise TrainingStopped(
                f"attention_weight={recipe.loss.attention_weight} compares with a teacher: add teacher=RUN"
            )
        self.position, self.restored = Position(), False
        self.stepped = False
        """By this process, whose first step compiles."""
        self.meter = Meter(device)
        self.signs = flips.signs(self.model)
        """Of the binary weights when the epoch began."""
        self.lr = 0.0
        self.projected: Tensor | None = None
        self.labels: Tensor | None = None
        """Of the last step, for the spread of features."""

    @cached_property
    def _forward(self) -> Callable[..., Outcome]:
        """The objective, wrapped for many processes and compiled if so chosen; made when the first step needs it."""
        module = self._parallel or self.objective
        return torch.compile(module) if self.compiled else module

    @cached_property
    def _parallel(self) -> DistributedDataParallel | None:
        return parallel(self.objective) if distributed.world_size() > 1 else None

    @property
    def done(self) -> int:
        """Steps since the beginning of the training."""
        return self.position.epoch * self.steps_per_epoch + self.position.step

    @property
    def deployed(self) -> nn.Module:
        """The network that is evaluated and kept: the running average if there is one."""
        return self.model if self.average is None else self.average

    def begin_epoch(self) -> None:
        """Set schedules of methods; count from zero unless the epoch was begun before a stop."""
        self.objective.train()
        self.objective.progress(self.position.epoch / self.recipe.optim.epochs)
        if self.position.step == 0:
            self.signs, self.meter = flips.signs(self.model), Meter(self.device)

    def step(self, images: Tensor, labels: Tensor) -> None:
        """Train on one batch, in parts of which each fits the memory if the recipe accumulates."""
        optim = self.recipe.optim
        self.lr = learning_rate(self.done, self.total_steps, optim.lr, self.warmup_steps, optim.schedule)
        for group in self.optimizer.param_groups:
            group["lr"] = self.lr
        torch.manual_seed(step_seed(self.recipe.run.seed, self.done, distributed.rank()))  # dropout
        self.optimizer.zero_grad(set_to_none=True)
        parts = optim.accumulate
        images = in_layout(images, self.layout)
        if self.compiled:
            self.objective.check_inputs(images)
        for part in range(parts):
            x, y = images.chunk(parts)[part], labels.chunk(parts)[part]
            with self._gradients_shared(part + 1 == parts):
                outcome = self.outcome_of(x, y)
                (outcome.loss if parts == 1 else outcome.loss / parts).backward()
            self.meter.add(outcome, y, self.position.step)
            self.projected, self.labels = outcome.projected, y
        if optim.clip_norm > 0:
            nn.utils.clip_grad_norm_(self.objective.parameters(), optim.clip_norm)
        self.optimizer.step()  # which also tells the methods: methods/parts/loops.py
        if self.average is not None:
            _update_average(self.average, self.model, optim.ema)
        self.position.step += 1
        self.stepped = True

    def outcome_of(self, images: Tensor, labels: Tensor) -> Outcome:
        """One forward of the objective, in the precision of the recipe."""
        with autocast_for(self.recipe.run.precision, self.device):
            return self._forward(images, labels, *(() if self.teacher is None else self.teacher(images)))

    @contextlib.contextmanager
    def _gradients_shared(self, wanted: bool) -> Iterator[None]:
        """Processes add up their gradients in the last part of a step only."""
        if wanted or self._parallel is None:
            yield
        else:
            with self._parallel.no_sync():
                yield

    def check_finite(self, run: RunDirectory) -> None:
        """Raise if some loss of this epoch was not finite; waits for the device."""
        bad = self.meter.read_first_bad()
        if bad is None:
            return
        step, terms = bad
        loss = terms.pop("loss")
        parts = ", ".join(f"{name} {value:.4g}" for name, value in terms.items())
        path, _ = checkpoint.newest_whole(run.checkpoints)
        kept = f"the last good checkpoint is {path}" if path else "there is no checkpoint yet"
        raise TrainingStopped(
            f"the loss is {loss} at epoch {self.position.epoch + 1}, step {step + 1} ({parts}); {kept}. "
            "Lower lr or latent_weight, or set clip_norm=1"
        )

    def begin_with(self, first: RunDirectory) -> None:
        """Take the weights of the stage before as the first ones."""
        checkpoint.read_model(first.weights(), self.model)
        if self.average is not None:
            self.average.load_state_dict(self.model.state_dict())
        self.signs = flips.signs(self.model)

    def save(self, run: RunDirectory) -> None:
        """Write a checkpoint of all that changes; rank 0 does, the others have the same."""
        self.check_finite(run)
        if distributed.rank() > 0:
            return
        if self.position.step:
            self.position.sums = self.meter.read()
        extra = {f"signs.{name}": mask for name, mask in self.signs.items()}
        if self.average is not None:
            extra |= {f"average.{name}": value for name, value in self.average.state_dict().items()}
        text = recipes.dumps(self.recipe)
        checkpoint.write(run.checkpoints, self.position, self.objective, self.optimizer, extra, text)

    def restore(self, run: RunDirectory, accept_changes: bool = False) -> list[str]:
        """Take up the newest whole checkpoint, if there is one; gives what is wrong with those skipped."""
        path, broken = checkpoint.newest_whole(run.checkpoints)
        if path is None:
            if broken:
                raise RunError(f"{run.path} has no whole checkpoint left: {broken[0]}")
            return []
        if not accept_changes:
            _refuse_changes(run, checkpoint.recipe_in(path), self.recipe)
        self.position, extra, _ = checkpoint.read(path, self.objective, self.optimizer)
        self.restored = True
        self.meter.restore(self.position.sums)
        if self.average is not None:
            prefix = "average."
            state = {k.removeprefix(prefix): v for k, v in extra.items() if k.startswith(prefix)}
            self.average.load_state_dict(state)
        self.signs = {k.removeprefix("signs."): v for k, v in extra.items() if k.startswith("signs.")}
        return broken


def step_seed(seed: int, step: int, rank: int) -> int:
    """A seed of its own for every step and process."""
    return (seed * 1_000_003 + step) * 4099 + rank


def check_batch(recipe: Recipe) -> None:
    """TrainingStopped unless the batch divides among the processes and the parts of a step."""
    world, parts, size = distributed.world_size(), recipe.optim.accumulate, recipe.data.batch_size
    if size % world:
        raise TrainingStopped(f"batch_size={size} does not divide among {world} processes")
    if size // world % parts:
        raise TrainingStopped(
            f"accumulate={parts} does not divide the {size // world} images of a process and step"
        )


def _refuse_changes(run: RunDirectory, before: str, recipe: Recipe) -> None:
    """The recipe of a resumed run is the one that it was stopped with, and so is the code that it names."""
    if edited := run.changed_code():
        raise RunError(
            f"{', '.join(edited)} of {run.path} changed since the run began. Change it back, or add --accept-changes"
        )
    then = recipes.loads(before, f"the checkpoint of {run.path}") if before else recipe
    if (odd := changed_keys(then, recipe)) and not only_extended(then, recipe):
        raise RunError(
            f"the recipe of {run.path} was changed since its last checkpoint: {', '.join(odd)}. "
            "Change it back, or add --accept-changes to go on with the new values"
        )


@torch.no_grad()
def _update_average(average: nn.Module, model: nn.Module, decay: float) -> None:
    for mine, theirs in zip(average.parameters(), model.parameters(), strict=True):
        mine.lerp_(theirs, 1 - decay)
    for mine_b, theirs_b in zip(average.buffers(), model.buffers(), strict=True):
        mine_b.copy_(theirs_b)
