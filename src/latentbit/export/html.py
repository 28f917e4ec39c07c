"""A web page: one file with the network, a program that runs it and a pad to draw on; no server, no network access.

The program is plain JavaScript on typed arrays (parts/page/network.js), not WebAssembly: it needs no compiler here and
no binary in the wheel, can be read, and is fast enough to follow a stroke. The .lbit file is in the page as it is.
"""

import base64
import functools
import json
import re
from pathlib import Path

from latentbit.atomic import atomic_write
from latentbit.export.parts.macs import macs
from latentbit.export.parts.report import Report
from latentbit.export.parts.target import ExportError, Target
from latentbit.lbit import to_bytes
from latentbit.lbit.sizes import weigh

PARTS = Path(__file__).parent / "parts" / "page"


@functools.cache
def part(name: str) -> str:
    return (PARTS / name).read_text(encoding="utf-8")


@functools.cache
def script_ops() -> frozenset[str]:
    """The ops that network.js has a function for."""
    table = part("network.js").partition("const ops = {")[2].partition("\n};")[0]
    return frozenset(re.findall(r"^  (\w+)\(", table, re.MULTILINE))


class Html(Target):
    title = "a web page that runs the network"
    suffix = ".html"

    @classmethod
    def knows(cls, op: str) -> bool:
        return op in script_ops()

    def write(self, out: Path) -> Report:
        """Write one .html file."""
        channels = self.network.input_shape[0]
        if channels not in (1, 3):
            raise ExportError(
                f"--to html: the network takes {channels} channels; images on a page have 1 or 3"
            )
        content = self.page().encode("utf-8")
        with atomic_write(out) as file:
            file.write(content)
        report = Report([out])
        report.add("page", "one file that opens anywhere, without a server", bytes=len(content))
        report.add("written", f"{out} ({len(content):,} bytes)")
        return report

    def page(self) -> str:
        """The text of the page."""
        model, sizes = to_bytes(self.network), weigh(self.network)
        facts = {
            "title": _title(self.network.source),
            "bytes": sizes.file_bytes,
            "fp32_bytes": sizes.fp32_bytes,
            "binary_macs": macs(self.network)[0],
        }
        pieces = {
            "@CSS": part("page.css"),
            # A closing tag in a name would end the script that holds it.
            "@FACTS": json.dumps(facts).replace("<", "\\u003c"),
            "@MODEL": base64.b64encode(model).decode("ascii"),
            "@NETWORK": part("network.js"),
            "@PAGE": part("page.js"),
        }
        return re.sub(
            r"@[A-Z]+$|@FACTS|@MODEL", lambda found: pieces[found[0]], part("page.html"), flags=re.MULTILINE
        )


def _title(source: object) -> str:
    recipe = source.get("recipe") if isinstance(source, dict) else None
    return f"Trained from the recipe {recipe}" if isinstance(recipe, str) else "A binary neural network"
