"""Writes docs/methods.md: what every method, and every network, takes from its source. A test keeps it current.

python docs/methods.py

The docstring of a file in methods/ or models/ says it in four lines, each of which may go on, indented, in the next:

    Source: the paper, what of it was read, and Confidence: high, medium or low.
    Exact: what is computed as the source prints it.
    Differs: what is not, with the reason; "nothing" where nothing does.
    Packs: yes or no, with the condition or the reason.
"""

import importlib
import re
from collections.abc import Iterator
from pathlib import Path

from latentbit import methods, models
from latentbit.models import registry

PAGE = Path(__file__).with_name("methods.md")
TESTS = Path(__file__).parents[1] / "tests"
LABELS = ("Source", "Exact", "Differs", "Packs")
INTRODUCTION = """# Methods and networks, and how near they are to their sources

Made by `python docs/methods.py` from the docstrings of `src/latentbit/methods/` and `src/latentbit/models/`.
`latentbit methods show NAME` prints the formulas and the options of a method. Published accuracies, each with its
source, are in `src/latentbit/comparison/published.toml`, and stand beside ours in what `latentbit compare` prints.
"""
LEFT_OUT = {
    "BATS (Bulat et al., 2020)": "its authors released the operations of its cell but not the cell that was found, "
    "which the paper prints as a drawing only",
    "Noisy supervision (Han et al., 2020)": "it learns a network that maps W to signs; no release was found, nor a "
    "text that gives the sizes of that network and the noise rates of its loss",
    "XNOR-Net++, cases 2 to 4 (Bulat and Tzimiropoulos, 2019)": "they learn a scale for every output pixel, and a "
    "layer does not know its resolution when it is binarized; case 1 is `xnor_pp`",
    "BENN (Zhu et al., 2019)": "an ensemble of whole networks, whose layers are those of others; of the two ensembles "
    "that the paper names `group_net` is the one that changes a layer",
    "ReActNet-B and C (Liu et al., 2020)": "how many groups each of their layers has is in no release that was found",
}
"""Systems that the paper names, or that came after it, and why they are not here."""
COLUMNS = ("system", "name", "source read", "exact", "differs", "test", "packs")


class NoFacts(ValueError):
    """A docstring lacks one of the four lines."""


def facts(docstring: str) -> dict[str, str]:
    """What the four lines of a docstring say."""
    found = re.findall(rf"^({'|'.join(LABELS)}): (.*(?:\n    .*)*)", docstring, re.MULTILINE)
    said = {label: " ".join(text.split()) for label, text in found}
    if missing := [label for label in LABELS if label not in said]:
        first = docstring.strip().splitlines()[0] if docstring.strip() else "(empty)"
        raise NoFacts(f'no line "{missing[0]}: ..." in the docstring that begins {first!r}')
    return said


def page() -> str:
    """All of docs/methods.md."""
    lines = [INTRODUCTION, "## Methods\n", *table(method_rows()), ""]
    lines += ["## Networks\n", *table(network_rows()), ""]
    lines += ["## Not here\n", "| system | why |", "|---|---|"]
    lines += [f"| {system} | {why} |" for system, why in LEFT_OUT.items()]
    return "\n".join(lines) + "\n"


def table(rows: Iterator[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(COLUMNS)} |"
    yield "|---" * len(COLUMNS) + "|"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"


def method_rows() -> Iterator[tuple[str, ...]]:
    for name in methods.names():
        yield row(methods.manual(name), [name], f"methods/test_{name}.py")


def network_rows() -> Iterator[tuple[str, ...]]:
    """One for each file that builds networks."""
    builders: dict[str, list[str]] = {}
    for name in models.names():
        builders.setdefault(registry.find(name).__module__, []).append(name)
    for module, names in sorted(builders.items()):
        text = importlib.import_module(module).__doc__ or ""
        yield row(text, names, f"models/test_{module.rpartition('.')[2]}.py")


def row(docstring: str, names: list[str], test: str) -> tuple[str, ...]:
    said = facts(docstring)
    if not (TESTS / test).exists():
        raise NoFacts(f"{', '.join(names)}: there is no tests/{test}")
    system = docstring.strip().partition(":")[0]
    called = ", ".join(f"`{name}`" for name in names)
    link = f"[{Path(test).stem}](../tests/{test})"
    return (system, called, said["Source"], said["Exact"], said["Differs"], link, said["Packs"])


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"{PAGE}: {len(page().splitlines())} lines")
