import io
import re

import lbit_examples
from rich.console import Console

from latentbit.lbit.size_table import size_table
from latentbit.lbit.sizes import weigh


def test_bytes_of_the_rows_add_up_to_the_file() -> None:
    sizes = weigh(lbit_examples.every_op())
    file = io.StringIO()
    Console(width=200, file=file).print(size_table(sizes))
    lines = file.getvalue().splitlines()
    heading = lines[0]
    column = slice(heading.index("bits") + len("bits"), heading.index("bytes") + len("bytes"))
    shown = [int(re.sub(r"\D", "", line[column]) or 0) for line in lines[1:]]
    assert len(lines) == 1 + len(sizes.rows) + 2  # headings, the header of the file, the total
    assert sum(shown[:-1]) == shown[-1] == sizes.file_bytes
    assert f"{sizes.ratio:.1f}x smaller" in lines[-1]
