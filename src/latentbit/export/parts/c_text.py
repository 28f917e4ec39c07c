"""Pieces of C text: names, numbers, arrays, strings, comments."""

import re
from collections.abc import Iterable
from typing import Any

import numpy as np

LINE = 116


class Names:
    """C identifiers for names of layers: no two alike."""

    def __init__(self) -> None:
        self.taken: set[str] = set()

    def fresh(self, prefix: str, name: str) -> str:
        stem = f"{prefix}_{re.sub(r'[^0-9A-Za-z]+', '_', name).strip('_') or 'layer'}"[:60]
        found, i = stem, 2
        while found in self.taken:
            found, i = f"{stem}_{i}", i + 1
        self.taken.add(found)
        return found


def comment(text: str) -> str:
    """Text that can stand in a comment, whatever a file calls its layers."""
    return text.replace("*/", "* /").replace("/*", "/ *").replace("??", "? ?")


def string(text: str) -> str:
    """A C string: plain letters as they are, all other bytes of its UTF-8 in octal."""
    plain = (
        chr(byte) if 32 <= byte < 127 and chr(byte) not in '"\\?' else f"\\{byte:03o}"
        for byte in text.encode("utf-8")
    )
    return f'"{"".join(plain)}"'


def number(value: Any) -> str:
    """A float32 in the fewest digits that give it back."""
    text = str(np.float32(value))
    return f"{text}f" if re.search(r"[.e]", text) else f"{text}.0f"


def array(kind: str, name: str, values: Iterable[str], size: str) -> str:
    """A constant array, as many values on a line as fit."""
    lines, line = [], "   "
    for value in values:
        if len(line) + len(value) + 2 > LINE:
            lines.append(line)
            line = "   "
        line += f" {value},"
    lines.append(line)
    return f"static const {kind} {name}[{size}] = {{\n" + "\n".join(lines) + "\n};\n"
