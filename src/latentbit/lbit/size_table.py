"""What a packed network weighs, as a table for the terminal."""

from rich.markup import escape
from rich.table import Table

from latentbit.lbit.sizes import Sizes


def size_table(sizes: Sizes) -> Table:
    """A row for each layer that holds numbers, and the header of the file."""
    table = Table(box=None, pad_edge=False, show_footer=True)
    table.add_column("layer", "total", no_wrap=True)
    n_weights = f"{sizes.binary_weights + sizes.real_weights:,}"
    table.add_column("weights", n_weights, justify="right", no_wrap=True)
    table.add_column("bits", justify="right", no_wrap=True)
    table.add_column("bytes", f"{sizes.file_bytes:,}", justify="right", no_wrap=True)
    table.add_column("as FP32", f"{sizes.fp32_bytes:,}", justify="right", no_wrap=True)
    table.add_column("still real", f"{sizes.ratio:.1f}x smaller")
    for row in sizes.rows:
        n_weights, bits = (f"{row.n_weights:,}", str(row.weight_bits)) if row.n_weights else ("", "")
        table.add_row(escape(row.name), n_weights, bits, f"{row.n_bytes:,}", f"{row.fp32_bytes:,}", row.why)
    header = sizes.file_bytes - sum(row.n_bytes for row in sizes.rows)
    table.add_row("header", "", "", f"{header:,}", "", "")
    return table
