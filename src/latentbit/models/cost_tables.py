"""What a network costs, as tables and lines for the terminal."""

from rich import box
from rich.table import Table

from latentbit.models.cost import Cost, LayerCost


def tables(counted: Cost, title: str) -> list[Table]:
    """Layer by layer, then by kind of work."""
    return [_layer_table(counted, title), _kind_table(counted)]


def summary(counted: Cost) -> list[str]:
    """The totals in words."""
    total = counted.total()
    ratio = counted.float_mbit / counted.mbit
    return [
        f"memory        {counted.mbit:.2f} Mbit; all real (FP32) {counted.float_mbit:.2f} Mbit, {ratio:.2f} times",
        f"real FLOPs    {total.macs:.4g} multiply-adds of real convolutions and linears",
        f"element-wise  {total.elementwise:.4g} operations, counted separately",
        f"BOPs          {total.bops:.4g} binary multiply-adds",
        f"scales        {counted.folded_scales} folded into the BatchNorm that follows, not counted",
    ]


def narrow_table(title: str, *columns: str) -> Table:
    """A table whose first column is words and whose others are numbers."""
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=0)
    for i, column in enumerate(columns):
        table.add_column(column, justify="left" if i == 0 else "right", no_wrap=True)
    return table


def _numbers(row: LayerCost) -> list[str]:
    counts = (row.binary_params, row.real_params, row.macs, row.bops, row.elementwise)
    mbit = f"{row.n_bits / 1e6:.3f}" if row.n_bits else ""
    return [mbit, *((f"{n / 1e6:,.2f}M" if n >= 1e5 else f"{n:,}") if n else "" for n in counts)]


_COLUMNS = ("Mbit", "binary", "real", "MACs", "BOPs", "element-wise")


def _layer_table(counted: Cost, title: str) -> Table:
    """Layers that multiply; what stands between them is summed in the next table."""
    table = narrow_table(title, "layer", "output", *_COLUMNS[:-1])
    for row in counted.layers:
        if row.macs or row.bops:
            table.add_row(row.name, "x".join(map(str, row.shape)), *_numbers(row)[:-1])
    return table


def _kind_table(counted: Cost) -> Table:
    table = narrow_table("by kind", "kind", *_COLUMNS)
    for kind in counted.kinds():
        table.add_row(kind, *_numbers(counted.total(kind)))
    table.add_section()
    table.add_row("total", *_numbers(counted.total()))
    return table
