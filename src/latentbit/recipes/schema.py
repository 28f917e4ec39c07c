"""Frozen dataclasses as the schema of a TOML file; what each field takes is in latentbit.fields.

Every problem is collected with the line it stands on and the nearest valid key, none is raised alone.
"""

import json
import re
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Self

from latentbit.errors import nearest
from latentbit.fields import hints, parse, problem_with, settle
from latentbit.imports import is_import


class Problem(NamedTuple):
    """One fault of a file."""

    line: int
    """0 if it cannot be told."""
    what: str

    @classmethod
    def at(cls, text: str, section: str, key: str, what: str) -> Self:
        """With the line of `key` in the file's text."""
        return cls(line_of(text, section, key), f"{'.'.join(filter(None, (section, key)))}: {what}")

    def __str__(self) -> str:
        return f"line {self.line}: {self.what}" if self.line else self.what


class Sections:
    """A file of named tables, one dataclass each; keys are unique over all of them.

    `known(key)` gives the valid values of keys whose choices live elsewhere, else None; `others` are sections that
    are read elsewhere.
    """

    def __init__(
        self,
        classes: Mapping[str, type],
        known: Callable[[str], list[str] | None],
        others: Sequence[str] = (),
    ):
        self.classes, self.known, self.others = classes, known, others
        self.hints = {section: hints(cls) for section, cls in classes.items()}
        self.home = {key: section for section, own in self.hints.items() for key in own}

    def check(self, tables: Mapping[str, Any], text: str) -> list[Problem]:
        """Unknown sections and keys, wrong types and values, each with its line in `text`."""
        problems: list[Problem] = []

        def add(section: str, key: str, what: str) -> None:
            problems.append(Problem.at(text, section, key, what))

        for section, table in tables.items():
            if section == "name":
                if what := problem_with(table, str):
                    add("", "name", what)
            elif section in self.home:
                add("", section, f"is not a section, it belongs in [{self.home[section]}]")
            elif section not in self.classes:
                add("", section, f"unknown section{nearest(section, [*self.classes, *self.others])}")
            elif not isinstance(table, dict):
                add("", section, "is a section, write it as a table")
            else:
                for key, value in table.items():
                    if what := self.fault(section, key, value):
                        add(section, key, what)
        return problems

    def fault(self, section: str, key: str, value: Any) -> str:
        """What is wrong with one value, or the empty string."""
        valid = self.hints[section]
        if key not in valid and key in self.home:
            return f"unknown key here, it belongs in [{self.home[key]}]"
        if key not in valid:
            return f"unknown key{nearest(key, valid) or nearest(key, self.home)}"
        if what := problem_with(value, valid[key]):
            return what
        known = self.known(key)
        if known is None or value in known or is_import(value):
            return ""
        return f"no {key} {value!r}{nearest(value, known)} ({', '.join(known)})"

    def override(self, tables: dict[str, Any], text: str, others: Sequence[str] = ()) -> list[str]:
        """Put `key=value`, `section.key=value` or `table.key=value` into the tables, or say why not.

        `others` are keys that are read elsewhere, and may be what the user meant.
        """
        dotted, equals, value = (part.strip() for part in text.partition("="))
        path = dotted.split(".")
        if not equals or not all(path):
            return [f"override {text!r}: write it as key=value"]
        if path[0] not in self.classes and path[0] in self.home:
            path.insert(0, self.home[path[0]])
        section, key, *deeper = path if len(path) > 1 else (path[0], "")
        if section not in self.classes or not key:
            every = [*self.home, *(f"{home}.{key}" for key, home in self.home.items()), *others]
            return [f"override {text!r}: unknown key{nearest(dotted, every)}"]
        hint = self.hints[section].get(key)
        table = tables.setdefault(section, {})
        if not isinstance(table, dict):
            return []  # the file's fault, and told as such
        if deeper and typing.get_origin(hint) is Mapping:
            if isinstance(table.setdefault(key, {}), dict):
                table[key][".".join(deeper)] = parse(value, Any)
            return []
        parsed = parse(value, hint)
        if what := self.fault(section, ".".join((key, *deeper)), parsed):
            return [f"override {text!r}: {what}"]
        table[key] = parsed
        return []

    def build(self, tables: Mapping[str, Any]) -> dict[str, Any]:
        """The dataclasses of tables that `check` found no fault in."""
        return {
            section: cls(**{key: settle(v, self.hints[section][key]) for key, v in tables[section].items()})
            for section, cls in self.classes.items()
            if section in tables
        }


def line_of(text: str, section: str, key: str) -> int:
    """The line of a TOML text on which `key` of `[section]` stands, 0 if it cannot be told."""
    here = ""
    for number, line in enumerate(text.splitlines(), 1):
        if header := re.match(r"\s*\[\s*([\w.]+)\s*\]", line):
            here = header[1]
            if here == ".".join(filter(None, (section, key))):
                return number
        elif here == section and re.match(rf"\s*[\"']?{re.escape(key)}[\"']?\s*(=|\.)", line):
            return number
    return 0


def toml_value(value: Any) -> str:
    """A value as TOML writes it: read back, it is equal."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, str):
        return _toml_string(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_toml_string(k)} = {toml_value(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    return str(value)


def _toml_string(text: str) -> str:
    # JSON escapes are TOML escapes, except that TOML forbids a bare DEL.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
