"""metrics.jsonl: one line of JSON for each finished epoch. Damaged lines are put aside, never dropped in silence."""

import json
from pathlib import Path
from typing import Any

from latentbit.atomic import atomic_write

ASIDE = "metrics.damaged.jsonl"


def read(path: Path) -> tuple[list[dict[str, Any]], list[bytes]]:
    """Whole entries in the order of their epochs, and the lines that are none."""
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return [], []
    entries: dict[int, dict[str, Any]] = {}
    damaged = []
    for line in filter(None, lines):
        try:
            entry = json.loads(line)
            entries[int(entry["epoch"])] = entry
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
            damaged.append(line)
    return [entries[epoch] for epoch in sorted(entries)], damaged


def add(path: Path, entry: dict[str, Any]) -> int:
    """Write the line of one epoch; later epochs, of an interrupted run, are replaced. Returns the lines put aside."""
    entries, damaged = read(path)
    if damaged:
        with (path.parent / ASIDE).open("ab") as aside:
            aside.write(b"".join(line + b"\n" for line in damaged))
    kept = [old for old in entries if old["epoch"] < entry["epoch"]] + [entry]
    with atomic_write(path) as file:
        file.write("".join(json.dumps(e) + "\n" for e in kept).encode())
    return len(damaged)
