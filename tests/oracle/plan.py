"""Which layers of a packed network run as one step: what produces a value takes along what follows it.

    producer -> scale, bias -> + shortcut -> activation -> sign and pack

A layer joins the step of its input if nobody else reads that input; a sign joins even then, because a step can
write a real value and its bits. A convolution also takes a max-pool along. Pure bookkeeping: no arrays touched.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from latentbit.lbit import INPUT, Layer, Network

ACTIVATIONS = ("prelu", "relu", "hardtanh", "clamp")
ELEMENTWISE = ("affine", "add", "sign", *ACTIVATIONS)
MOVES = ("concat", "flatten", "reshape", "permute")
ADDERS = ("conv", "linear", "binary_conv", "binary_linear", "affine")
"""Ops whose step is sure to take an add along that follows them."""


@dataclass
class Chain:
    """The element-wise layers that a step applies to what it computes, in this order; None where absent."""

    affine: Layer | None = None
    add: Layer | None = None
    residual: str | None = None
    repeat: int = 1
    """How often the shortcut's channels are repeated: a concat of a value with itself is never carried out."""
    activation: Layer | None = None
    sign: Layer | None = None
    value: str = ""
    """Name of the real result, before the sign."""
    keep: bool = True
    """Whether anyone but the sign reads the real result."""


@dataclass
class Step:
    """A producing layer and what it takes along; position orders the steps."""

    layer: Layer
    chain: Chain
    position: int
    pool: Layer | None = None
    pool_chain: Chain = field(default_factory=Chain)

    def layers(self) -> Iterator[Layer]:
        """All layers of the step."""
        yield self.layer
        for chain, last in ((self.chain, self.pool), (self.pool_chain, None)):
            members = (chain.affine, chain.add, chain.activation, chain.sign, last)
            yield from (m for m in members if m is not None and m is not self.layer)


def plan(network: Network) -> list[Step]:
    """The steps of a network in an order in which they can run."""
    return _Planner(network).steps()


class _Planner:
    def __init__(self, network: Network) -> None:
        self.layers = network.layers
        self.named = {layer.name: layer for layer in network.layers}
        self.index = {layer.name: i for i, layer in enumerate(network.layers)}
        self.output = network.layers[-1].name
        self.readers: dict[str, list[Layer]] = {layer.name: [] for layer in network.layers}
        self.readers[INPUT] = []
        for layer in network.layers:
            for name in layer.inputs:
                self.readers[name].append(layer)
        self.taken: set[str] = set()

    def steps(self) -> list[Step]:
        steps = [self._step(layer) for layer in self.layers]
        return sorted((step for step in steps if step is not None), key=lambda step: step.position)

    def _step(self, layer: Layer) -> Step | None:
        if layer.name in self.taken or self._is_virtual(layer):
            return None
        step = Step(layer, Chain(value=layer.name), self.index[layer.name])
        if layer.op in MOVES or layer.bits and layer.op != "sign":
            return step
        if layer.op in ELEMENTWISE:
            self._begin(step)
        self._extend(step, step.chain)
        pool = self._only_reader(step.chain.value)
        if layer.op == "conv" and pool is not None and pool.op == "max_pool" and self._can_pool(step.chain):
            self.taken.add(pool.name)
            step.pool, step.pool_chain = pool, Chain(value=pool.name)
            self._add_sign(step.pool_chain)
        return step

    def _begin(self, step: Step) -> None:
        """An element-wise layer that joined nobody starts a step of its own."""
        layer, chain = step.layer, step.chain
        if layer.op == "affine":
            chain.affine = layer
        elif layer.op == "add":
            chain.add, (chain.residual, chain.repeat) = layer, self._shortcut(layer.inputs[1])
        elif layer.op in ACTIVATIONS:
            chain.activation = layer
        else:
            chain.sign, chain.keep = layer, False
            chain.value = layer.inputs[0]

    def _extend(self, step: Step, chain: Chain) -> None:
        if chain.sign is not None:
            return
        if chain.add is None and chain.activation is None:
            after = self._only_reader(chain.value)
            if after is not None and after.op == "add" and after.inputs[0] != after.inputs[1]:
                other = after.inputs[1] if after.inputs[0] == chain.value else after.inputs[0]
                chain.add, (chain.residual, chain.repeat) = after, self._shortcut(other)
                self._take(chain, after)
                step.position = self.index[after.name]
        if chain.activation is None:
            after = self._only_reader(chain.value)
            if after is not None and after.op in ACTIVATIONS:
                chain.activation = after
                self._take(chain, after)
        self._add_sign(chain)

    def _add_sign(self, chain: Chain) -> None:
        readers = self.readers[chain.value]
        signs = [layer for layer in readers if layer.op == "sign"]
        if signs:
            chain.sign = signs[0]
            self.taken.add(signs[0].name)
        chain.keep = not signs or len(readers) > 1 or chain.value == self.output

    def _take(self, chain: Chain, layer: Layer) -> None:
        self.taken.add(layer.name)
        chain.value = layer.name

    def _only_reader(self, name: str) -> Layer | None:
        readers = self.readers[name]
        if len(readers) != 1 or name == self.output or readers[0].name in self.taken:
            return None
        return readers[0]

    def _can_pool(self, chain: Chain) -> bool:
        pixels = self.named[chain.value].shape[1:]
        return chain.add is None and chain.sign is None and pixels != (1, 1)

    def _shortcut(self, name: str) -> tuple[str, int]:
        layer = self.named.get(name)
        if layer is not None and self._is_virtual(layer):
            return layer.inputs[0], len(layer.inputs)
        return name, 1

    def _is_virtual(self, layer: Layer) -> bool:
        """A concat of one value with itself that only an add reads."""
        readers = self.readers[layer.name]
        return (
            layer.op == "concat"
            and len(set(layer.inputs)) == 1
            and len(readers) == 1
            and readers[0].op == "add"
            and readers[0].inputs[0] != readers[0].inputs[1]
            and layer.name != self.output
            and self._joins_other(readers[0], layer.name)
        )

    def _joins_other(self, add: Layer, concat: str) -> bool:
        """Whether the add's other input can be the side that computes, which leaves the concat to be read."""
        other = add.inputs[1] if add.inputs[0] == concat else add.inputs[0]
        layer = self.named.get(other)
        return layer is not None and layer.op in ADDERS and len(self.readers[other]) == 1
