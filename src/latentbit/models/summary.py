"""summary: every layer that multiplies, with its shape, bits, memory and work, in a terminal or a notebook.

print(latentbit.summary(model, images))      # or the shape of one input, (3, 32, 32)
"""

import html
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from torch import Tensor, nn

from latentbit.layers import BINARY_LAYERS
from latentbit.models import cost, cost_tables
from latentbit.models.cost import Cost

COLUMNS = ("layer", "kind", "bits", "output", "parameters", "kB", "MACs", "BOPs")


@dataclass(frozen=True)
class Summary:
    """What a network consists of. Printed it is a table, the last value of a notebook cell too."""

    name: str
    cost: Cost
    binary: frozenset[str]
    """Names of binary layers."""

    def rows(self) -> list[tuple[str, ...]]:
        """One for each layer that multiplies, in the order of COLUMNS."""
        found = []
        for layer in self.cost.layers:
            if layer.macs or layer.bops:
                numbers = (
                    layer.binary_params + layer.real_params,
                    layer.n_bits / 8000,
                    layer.macs,
                    layer.bops,
                )
                counts = (f"{n:,.1f}" if isinstance(n, float) else f"{n:,}" for n in numbers)
                bits = "1" if layer.bops else "32"
                found.append((layer.name, layer.kind, bits, "x".join(map(str, layer.shape)), *counts))
        return found

    def __str__(self) -> str:
        console = Console(width=120, highlight=False)
        table = cost_tables.narrow_table(self.name, *COLUMNS)
        for row in self.rows():
            table.add_row(*row)
        with console.capture() as caught:
            console.print(table)
        n_layers = len(self.rows())
        totals = [f"{len(self.binary)} of {n_layers} layers are binary", *cost_tables.summary(self.cost)]
        return caught.get() + "\n".join(totals)

    def _repr_html_(self) -> str:
        cells = "".join(f"<th>{html.escape(name)}</th>" for name in COLUMNS)
        rows = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in self.rows()
        )
        totals = "<br>".join(html.escape(line) for line in cost_tables.summary(self.cost))
        return (
            f"<table><caption>{html.escape(self.name)}</caption><tr>{cells}</tr>{rows}</table><p>{totals}</p>"
        )


def summary(model: nn.Module, input: Tensor | Sequence[int]) -> Summary:
    """Of a network for one input: a batch of inputs, or the shape of one of them without the batch."""
    shape = tuple(input.shape[1:]) if isinstance(input, Tensor) else tuple(input)
    binary = frozenset(name for name, module in model.named_modules() if isinstance(module, BINARY_LAYERS))
    title = f"{type(model).__name__}, input {'x'.join(map(str, shape))}"
    return Summary(title, cost.count(model, shape), binary)
