"""From layers to the steps of a C program, and a place in one arena for every value.

A layer that makes real values takes along what follows it and works value by value:

    producer -> + shortcut -> activation -> sign

if nobody else reads what lies between; a sign joins in any case, because a step can write a value and its bits.
An addition writes over the shortcut where nobody reads that afterwards.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from latentbit.lbit import Layer, Network

WORD_BITS = 32


def n_words(n_bits: int) -> int:
    return -(-n_bits // WORD_BITS)


@dataclass(eq=False)
class Storage:
    """Words of the arena that one value, or several in turn, live in."""

    name: str
    words: int
    first: int = 0
    """Index of the step that writes it, and of the last that reads it."""
    last: int = 0
    at: int = 0


@dataclass(eq=False)
class Value:
    """What a layer gives: the image, or what a step writes."""

    shape: tuple[int, int, int]
    bits: bool = False
    step: "Step | None" = None
    """Who makes it; None for the image."""
    name: str = ""
    repeats: int = 1
    """How often a map stands side by side with itself in this value, which nobody has built."""
    concat: Layer | None = None
    """The layer that would build it."""


@dataclass(eq=False)
class Step:
    """One row of the table of layers."""

    run: str
    layer: Layer
    inputs: list[Value]
    shape: tuple[int, int, int]
    affine: Layer | None = None
    residual: Value | None = None
    activation: Layer | None = None
    sign: Layer | None = None
    also: list[str] = field(default_factory=list)
    """Names of the layers that the step takes along."""
    value: Value | None = None
    """Its real result."""
    signs: Value | None = None
    """Its result as bits."""
    scratch_words: int = 0
    wide: bool = False
    """Its real result is kept as floats though other maps are in 16 bit: the logits."""
    real: Storage | None = None
    bits: Storage | None = None
    scratch: Storage | None = None

    @property
    def sources(self) -> list[Value]:
        return [*self.inputs, *([self.residual] if self.residual is not None else [])]

    @property
    def pixels(self) -> int:
        return self.shape[1] * self.shape[2]


class Plan:
    """The steps in the order in which they run; a walk over the layers adds to them."""

    def __init__(self, network: Network) -> None:
        self.output = network.layers[-1].name
        self.steps: list[Step] = []
        self.readers: dict[str, int] = {}
        for layer in network.layers:
            for name in layer.inputs:
                self.readers[name] = self.readers.get(name, 0) + 1
        self.readers[self.output] = self.readers.get(self.output, 0) + 1

    def add(
        self, run: str, layer: Layer, inputs: list[Value], shape: tuple[int, ...], *, bits: bool = False
    ) -> tuple[Step, Value]:
        """A new step for a layer, and the value it makes."""
        step = Step(run, layer, inputs, as_map(shape))
        value = Value(as_map(shape), bits, step, layer.name)
        if bits:
            step.signs = value
        else:
            step.value = value
        self.steps.append(step)
        return step, value

    def joins(self, value: Value) -> bool:
        """Whether a layer that works on this value alone can become part of the step that makes it."""
        step = value.step
        return (
            step is not None
            and step.run not in ("flatten", "concat")
            and not value.bits
            and value.repeats == 1
            and step.value is value
            and step.sign is None
            and self.readers[value.name] == 1
        )

    def extend(self, step: Step, layer: Layer) -> Value:
        """The step now ends with this layer; it runs as late as the layer stands."""
        step.also.append(layer.name)
        assert step.value is not None
        step.value = Value(step.shape, False, step, layer.name)
        self.steps.remove(step)
        self.steps.append(step)
        return step.value


def as_map(shape: tuple[int, ...]) -> tuple[int, int, int]:
    channels, height, width = (*shape, 1, 1)[:3]
    return channels, height, width


def keeps(plan: Plan, step: Step) -> bool:
    """Whether anyone but its own sign reads the real value of a step."""
    if step.value is None:
        return False
    n_readers = plan.readers.get(step.value.name, 0)
    return n_readers > (1 if step.sign is not None else 0)


def place(plan: Plan, value_words: Callable[[Step], int]) -> int:
    """Give every value its words of the arena; returns the words of all. `value_words`: of the real value of a step."""
    # A pool can write over what it reads, but then the rest of that room stays taken: better in some networks only.
    over = min((False, True), key=lambda over: _place(plan, value_words, over))
    return _place(plan, value_words, over)


def _place(plan: Plan, value_words: Callable[[Step], int], pools_write_over: bool) -> int:
    _storages(plan, value_words, pools_write_over)
    placed: list[Storage] = []
    for storage in sorted(_every(plan), key=lambda storage: (-storage.words, storage.first)):
        taken = sorted(
            (other for other in placed if other.first <= storage.last and storage.first <= other.last),
            key=lambda other: other.at,
        )
        storage.at = 0
        for other in taken:
            if storage.at + storage.words <= other.at:
                break
            storage.at = max(storage.at, other.at + other.words)
        placed.append(storage)
    return max((storage.at + storage.words for storage in placed), default=0)


def live_words(plan: Plan, index: int) -> int:
    """Words in use while a step runs."""
    return sum(storage.words for storage in _every(plan) if storage.first <= index <= storage.last)


def _every(plan: Plan) -> list[Storage]:
    found: dict[int, Storage] = {}
    for step in plan.steps:
        for storage in (step.real, step.bits, step.scratch):
            if storage is not None:
                found[id(storage)] = storage
    return list(found.values())


def _storages(plan: Plan, value_words: Callable[[Step], int], pools_write_over: bool) -> None:
    last_read: dict[int, int] = {}
    for index, step in enumerate(plan.steps):
        for value in step.sources:
            if value.step is not None:
                last_read[id(_storage_key(value))] = index
    last_read[id(_storage_key(_output(plan)))] = len(plan.steps)
    for index, step in enumerate(plan.steps):
        if step.scratch_words:
            step.scratch = Storage(f"{step.layer.name}: scratch", step.scratch_words, index, index)
        if step.value is not None and keeps(plan, step):
            words = value_words(step)
            reused = None if step.wide else _reusable(step, index, last_read, words, pools_write_over)
            step.real = reused or Storage(step.value.name, words, index, index)
            step.real.last = max(step.real.last, last_read.get(id(step.value), index))
        if step.signs is not None:
            channels, height, width = step.shape
            words = n_words(channels) * height * width
            last = last_read.get(id(step.signs), index)
            step.bits = Storage(step.signs.name, words, index, last)


def _storage_key(value: Value) -> Value:
    """The value of a step that another stands for: a flattened pixel, a map repeated."""
    assert value.step is not None
    found = value.step.signs if value.bits else value.step.value
    assert found is not None
    return found


def _output(plan: Plan) -> Value:
    value = next(
        step.value for step in plan.steps if step.value is not None and step.value.name == plan.output
    )
    return value


def _reusable(
    step: Step, index: int, last_read: dict[int, int], words: int, pools_write_over: bool
) -> Storage | None:
    """The words of a value that this step reads last and pixel by pixel, so that it can write over them."""
    in_order = [step.residual] if step.residual is not None and step.residual.repeats == 1 else []
    windows = [value.step for value in step.inputs if not value.bits]
    if step.run == "each_pixel" or (pools_write_over and _reads_ahead(step)):
        in_order += step.inputs
        windows = []
    for value in in_order:
        if value.step is None or value.bits or value.step in windows:
            continue
        storage = value.step.real
        if storage is not None and last_read[id(_storage_key(value))] == index and storage.words >= words:
            return storage
    return None


def _reads_ahead(step: Step) -> bool:
    """A max-pool without padding: output p needs no input pixel before the p-th, and later outputs need later ones."""
    return step.run == "max_pool" and step.residual is None and not any(step.layer.attributes["padding"])
