"""Frozen dataclasses as the schema of a TOML file: types, ranges and choices come from the annotations.

Every problem is collected with the line it stands on and the nearest valid key, none is raised alone.
"""

import dataclasses
import difflib
import json
import math
import re
import tomllib
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal


@dataclasses.dataclass(frozen=True)
class Range:
    """Closed bounds of a number, used as `Annotated[int, Range(1)]`."""

    low: float = -math.inf
    high: float = math.inf

    def __str__(self) -> str:
        if self.high == math.inf:
            return f"at least {self.low:g}"
        return f"between {self.low:g} and {self.high:g}"


_NAMES = {int: "an integer", float: "a number", bool: "true or false", str: "a string", dict: "a table"}


def hints(cls: type) -> dict[str, Any]:
    """The annotation of each field of a dataclass, with `Annotated` kept."""
    resolved = typing.get_type_hints(cls, include_extras=True)
    return {field.name: resolved[field.name] for field in dataclasses.fields(cls)}


def nearest(word: str, words: Iterable[str]) -> str:
    """', did you mean ...?' when some valid word is close, else the empty string."""
    found = difflib.get_close_matches(word, list(words), n=1, cutoff=0.5)
    return f", did you mean {found[0]!r}?" if found else ""


def _parts(hint: Any) -> tuple[type, Range | None, tuple[str, ...]]:
    """A hint as (python type, range, choices)."""
    if typing.get_origin(hint) is typing.Annotated:
        kind, *extras = typing.get_args(hint)
        return kind, next((e for e in extras if isinstance(e, Range)), None), ()
    if typing.get_origin(hint) is Literal:
        return str, None, typing.get_args(hint)
    return dict if typing.get_origin(hint) is Mapping else hint, None, ()


def problem_with(value: Any, hint: Any) -> str:
    """What is wrong with `value` under `hint`, or the empty string."""
    kind, bounds, choices = _parts(hint)
    right = isinstance(value, kind) or (kind is float and isinstance(value, int))
    if not right or (isinstance(value, bool) and kind is not bool):
        return f"{value!r} is not {_NAMES[kind]}"
    if choices and value not in choices:
        return f"{value!r} is not one of {', '.join(choices)}{nearest(value, choices)}"
    if kind is float and not math.isfinite(value):
        return f"{value!r} is not finite"
    if bounds and not bounds.low <= value <= bounds.high:
        return f"{value!r} is out of range, it must be {bounds}"
    return ""


def settle(value: Any, hint: Any) -> Any:
    """A sound value in the type of its field: `lr = 1` is 1.0."""
    return float(value) if _parts(hint)[0] is float else value


def parse(text: str, hint: Any) -> Any:
    """The value of a `key=value` override; text that does not fit the hint comes back unchanged."""
    kind, _, _ = _parts(hint)
    if kind is str:
        return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" else text
    if kind is float:
        try:
            return float(text)
        except ValueError:
            return text
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


class Sections:
    """A file of named tables, one dataclass each; keys are unique over all of them.

    `known(key)` gives the valid values of keys whose choices live elsewhere, else None.
    """

    def __init__(self, classes: Mapping[str, type], known: Callable[[str], list[str] | None]):
        self.classes, self.known = classes, known
        self.hints = {section: hints(cls) for section, cls in classes.items()}
        self.home = {key: section for section, own in self.hints.items() for key in own}

    def check(self, tables: Mapping[str, Any], text: str) -> list[str]:
        """Unknown sections and keys, wrong types and values, each with its line in `text`."""
        problems: list[str] = []

        def add(section: str, key: str, what: str) -> None:
            line = line_of(text, section, key)
            at = f"line {line}: " if line else ""
            problems.append(f"{at}{'.'.join(filter(None, (section, key)))}: {what}")

        for section, table in tables.items():
            if section == "name":
                if what := problem_with(table, str):
                    add("", "name", what)
            elif section in self.home:
                add("", section, f"is no section, it belongs in [{self.home[section]}]")
            elif section not in self.classes:
                add("", section, f"unknown section{nearest(section, self.classes)}")
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
        if known is None or value in known:
            return ""
        return f"no {key} {value!r}{nearest(value, known)} ({', '.join(known)})"

    def override(self, tables: dict[str, Any], text: str) -> list[str]:
        """Put `key=value`, `section.key=value` or `table.key=value` into the tables, or say why not."""
        dotted, equals, value = (part.strip() for part in text.partition("="))
        path = dotted.split(".")
        if not equals or not all(path):
            return [f"override {text!r}: write it as key=value"]
        if path[0] not in self.classes and path[0] in self.home:
            path.insert(0, self.home[path[0]])
        section, key, *deeper = path if len(path) > 1 else (path[0], "")
        if section not in self.classes or not key:
            every = [*self.home, *(f"{home}.{key}" for key, home in self.home.items())]
            return [f"override {text!r}: unknown key{nearest(dotted, every)}"]
        hint = self.hints[section].get(key)
        table = tables.setdefault(section, {})
        if not isinstance(table, dict):
            return []  # the file's fault, and told as such
        if deeper and _parts(hint)[0] is dict:
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
    """The line of a TOML text on which `key` of `[section]` stands, 0 if it can not be told."""
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
