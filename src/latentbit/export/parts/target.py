"""The one walk over the layers of a packed network that every exporter makes.

A target is a class with a method `op_<op>` for each op that it can express. The walk calls them layer by layer
with what they returned for the inputs. An op without a method is refused by name, before anything is written.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from latentbit.errors import LatentbitError
from latentbit.export.parts.report import Report
from latentbit.lbit import INPUT, Network


class ExportError(LatentbitError):
    """A network that a target cannot express, or a package that an export needs."""


class Target:
    """What a network is turned into; a subclass per file in export/."""

    title: ClassVar[str]
    """In a few words, for lists."""
    suffix: ClassVar[str] = ""
    """Of the file; a target that writes a folder has none."""

    gives_maps: ClassVar[bool] = False
    """Whether the output may be a map, with logits for every pixel."""

    def __init__(self, network: Network) -> None:
        self.network = network

    def write(self, out: Path) -> Report:
        """Write it; keyword-only parameters of a subclass are its options."""
        raise NotImplementedError

    @classmethod
    def name(cls) -> str:
        return cls.__module__.rpartition(".")[2]

    @classmethod
    def knows(cls, op: str) -> bool:
        return hasattr(cls, f"op_{op}")

    def walk(self, start: Any) -> Any:
        """What the methods made of the last layer; `start` stands for the input of the network."""
        values = {INPUT: start}
        for layer in self.network.layers:
            inputs = [values[name] for name in layer.inputs]
            values[layer.name] = getattr(self, f"op_{layer.op}")(layer, *inputs)
        return values[self.network.layers[-1].name]


def refuse_unknown(network: Network, target: type[Target], targets: Sequence[type[Target]]) -> None:
    """ExportError for the first layer whose op the target has no method for, with the targets that have one for
    every layer.
    """
    for layer in network.layers:
        if not target.knows(layer.op):
            ops = {layer.op for layer in network.layers}
            able = [other.name() for other in targets if all(other.knows(op) for op in ops)]
            remedy = f"these targets can: {', '.join(able)}" if able else "no other target can either"
            raise ExportError(
                f"{layer.name}: --to {target.name()} has no counterpart of {layer.op!r}; {remedy}. "
                "The engine runs it: `latentbit run`"
            )
    last = network.layers[-1]
    if len(last.shape) != 1 and not target.gives_maps:
        able = [other.name() for other in targets if other.gives_maps]
        raise ExportError(
            f"{last.name}: its output is a map {list(last.shape)}, and --to {target.name()} is for networks that give "
            f"one vector of logits; these targets can: {', '.join(able)}"
        )
