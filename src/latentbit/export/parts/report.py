"""What an export tells about itself: lines for people, plain data for programs."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class Report:
    """The files that were written, and facts about them in the order in which they are told."""

    files: list[Path] = field(default_factory=list)
    lines: list[tuple[str, str]] = field(default_factory=list)
    data: dict[str, Any] = field(default_factory=dict)

    def add(self, label: str, text: str, **data: Any) -> None:
        self.lines.append((label, text))
        self.data |= data

    def __str__(self) -> str:
        width = max((len(label) for label, _ in self.lines), default=0)
        return "\n".join(f"{label:{width}}  {text}" for label, text in self.lines)

    def as_dict(self) -> dict[str, Any]:
        return {"files": [str(path) for path in self.files], **self.data}
