"""What a function's docstring says of it and of its parameters.

Three ways of writing parameters are understood: Google's (`Args:` and an indented list), Sphinx's
(`:param name: text`), and plain lines (`name: text` or `name - text`) anywhere after the first paragraph.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection
from typing import TypeAlias

from msgspec import Struct

__all__ = ["Described", "parse_docstring"]

_PARAMETERS = frozenset({"args", "arguments", "parameters", "params"})
_SECTIONS = _PARAMETERS | {
    "returns", "return", "raises", "yields", "example", "examples", "note", "notes", "attributes",
    "see also", "warning", "warnings", "todo", "references",
}  # fmt: skip
_SPHINX = re.compile(r":(?:param|parameter|arg|argument)\s+(?:[^:]*\s)?\*{0,2}(\w+)\s*:\s*(.*)")
_SPHINX_OTHER = re.compile(r":(?:returns?|rtype|raises?|type|yields?|var|meta)\b[^:]*:")
_PLAIN = re.compile(r"[-*]?\s*`{0,2}(\w+)`{0,2}\s*(?:\([^)]*\))?\s*(?::|\s-{1,2}\s)\s*(.*)")

_Collect: TypeAlias = "dict[str, list[str]]"


class Described(Struct, frozen=True):
    """What a docstring says."""

    description: str
    """All but its parts about parameters, results and errors."""
    parameters: dict[str, str]
    """A text for each of the names that it describes."""
    strangers: list[str]
    """What it describes as a parameter and is none of the names."""


def parse_docstring(docstring: str, names: Collection[str]) -> Described:
    """What a docstring says of a function with parameters of these names."""
    description: list[str] = []
    found: _Collect = {}
    strangers: list[str] = []
    lines = inspect.cleandoc(docstring).split("\n")
    section = ""
    current: str | None = None
    indent = 0
    for line in lines:
        text = line.strip()
        title = _section_title(text)
        if title is not None and not line.startswith(" "):
            section, current = title, None
        elif match := _SPHINX.match(text):
            section, indent = "sphinx", _indent(line)
            current = _begin(found, strangers, names, match)
        elif _SPHINX_OTHER.match(text):
            section, current = "sphinx", None
        elif current is not None and text and _indent(line) > indent:
            found[current].append(text)
        elif section in _PARAMETERS or not section:
            match = _PLAIN.match(text)
            if match and _is_entry(match.group(1), names, line, section, description):
                indent = _indent(line)
                current = _begin(found, strangers, names, match)
            elif not section:
                description.append(line)
                current = None
            elif text and not line.startswith(" ") and not set(text) <= {"-"}:
                section, current = "", None
                description.append(line)
    parameters = {name: " ".join(parts) for name, parts in found.items() if name in names}
    return Described("\n".join(description).strip(), parameters, strangers)


def _section_title(text: str) -> str | None:
    title = text.removesuffix(":").lower()
    return title if title in _SECTIONS and text.endswith(":") else None


def _is_entry(name: str, names: Collection[str], line: str, section: str, description: list[str]) -> bool:
    if section and line.startswith(" "):
        return True
    return name in names and bool(section or _after_first_paragraph(description))


def _begin(found: _Collect, strangers: list[str], names: Collection[str], match: re.Match[str]) -> str:
    name, text = match.groups()
    if name not in names:
        strangers.append(name)
    found[name] = [text] if text else []
    return name


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _after_first_paragraph(description: list[str]) -> bool:
    return any(not line.strip() for line in description)
