"""`latentbit cost`: parameters, memory and operations of a network, layer by layer."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.table import Table

    from latentbit.models.cost import Cost, LayerCost
    from latentbit.paper.cost import Line


def cost(
    network: Annotated[str, typer.Argument(help="Name of a network.")],
    side: Annotated[int, typer.Option("--input", help="Side of the square input image.", min=1)] = 32,
    classes: Annotated[
        int | None, typer.Option(help="Number of classes. Default: the network's own.")
    ] = None,
    channels: Annotated[int, typer.Option(help="Channels of the input image.", min=1)] = 3,
    shortcut: Annotated[str | None, typer.Option(help='ResNet shortcuts: "pool" or "conv".')] = None,
    norm: Annotated[str | None, typer.Option(help='ResNet BatchNorm: "after", "before", "both".')] = None,
    method: Annotated[str, typer.Option(help="How to binarize.")] = "sign",
    real: Annotated[bool, typer.Option("--real", help="Leave every layer at 32 bit.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Count parameters, memory, FLOPs and BOPs of a network for one image.

    \b
    latentbit cost resnet18 --input 224                    the paper's network
    latentbit cost resnet18 --input 224 --shortcut conv    with real 1x1 shortcuts
    latentbit cost resnet34_standard --input 224 --real    a 32-bit network
    latentbit cost resnet18_compact --json                 for programs
    """
    import json

    import torch

    from latentbit import models
    from latentbit.binarize import binarize_
    from latentbit.models import cost as costs
    from latentbit.paper import cost as paper_cost

    asked = {"shortcut": shortcut, "norm": norm}
    with torch.device("meta"):  # a count needs shapes only
        model = models.create(network, classes, channels, **{k: v for k, v in asked.items() if v is not None})
        if not real:
            binarize_(model, method)
    shape = (channels, side, side)
    counted = costs.count(model, shape)
    in_paper = (
        network in paper_cost.TABLE and shape == paper_cost.INPUT and classes in (None, 1000) and not real
    )
    beside = paper_cost.compare(network, counted) if in_paper else []
    if as_json:
        paper = [asdict(line) | {"difference": line.difference} for line in beside]
        typer.echo(
            json.dumps({"network": network, "input": shape, **counted.as_dict(), "paper": paper}, indent=2)
        )
        return
    from rich.console import Console

    console = Console()
    console.print(_layer_table(counted, f"{network}, input {channels}x{side}x{side}"))
    console.print(_kind_table(counted))
    for line in summary(counted):
        console.print(line, highlight=False)
    if beside:
        console.print(_paper_table(beside))


def summary(counted: "Cost") -> list[str]:
    """The totals in words."""
    total = counted.total()
    ratio = counted.float_mbit / counted.mbit
    return [
        f"memory        {counted.mbit:.2f} Mbit; all at 32 bit {counted.float_mbit:.2f} Mbit, {ratio:.2f} times",
        f"real FLOPs    {total.macs:.4g} multiply-adds of real convolutions and linears",
        f"element-wise  {total.elementwise:.4g} operations, counted apart",
        f"BOPs          {total.bops:.4g} binary multiply-adds",
        f"scales        {counted.folded_scales} fold into the BatchNorm behind, not counted",
    ]


def _table(title: str, *columns: str) -> "Table":
    from rich import box
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=0)
    for i, column in enumerate(columns):
        table.add_column(column, justify="left" if i == 0 else "right", no_wrap=True)
    return table


def _numbers(row: "LayerCost") -> list[str]:
    counts = (row.binary_params, row.real_params, row.macs, row.bops, row.elementwise)
    mbit = f"{row.n_bits / 1e6:.3f}" if row.n_bits else ""
    return [mbit, *((f"{n / 1e6:,.2f}M" if n >= 1e5 else f"{n:,}") if n else "" for n in counts)]


_COLUMNS = ("Mbit", "1-bit", "32-bit", "MACs", "BOPs", "element-wise")


def _layer_table(counted: "Cost", title: str) -> "Table":
    """Layers that multiply; what stands between them is summed in the next table."""
    table = _table(title, "layer", "output", *_COLUMNS[:-1])
    for row in counted.layers:
        if row.macs or row.bops:
            table.add_row(row.name, "x".join(map(str, row.shape)), *_numbers(row)[:-1])
    return table


def _kind_table(counted: "Cost") -> "Table":
    table = _table("by kind", "kind", *_COLUMNS)
    for kind in counted.kinds():
        table.add_row(kind, *_numbers(counted.total(kind)))
    table.add_section()
    table.add_row("total", *_numbers(counted.total()))
    return table


def _paper_table(lines: "list[Line]") -> "Table":
    table = _table("beside the paper's table", "", "ours", "paper", "difference")
    for line in lines:
        style = ".4g" if line.paper > 1e6 else ".2f"
        table.add_row(line.quantity, *(f"{n:{style}}" for n in (line.ours, line.paper, line.difference)))
    return table
