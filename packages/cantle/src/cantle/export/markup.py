"""HTML that is safe by its type: text of a session becomes :data:`Html` only by being escaped.

Tags and the names of attributes are literals of this package; everything else goes through :func:`text`, as
content, or is quoted, as an attribute's value. A function that wants `Html` and is given a string of the
session does not pass the type checker.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape
from typing import NewType

__all__ = ["EMPTY", "Html", "clean", "joined", "plain", "tag", "text", "void"]

Html = NewType("Html", str)

EMPTY = Html("")

_ODD = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]"
)
_TERMINAL = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-~])|[^\n]\x08"
)


def clean(value: str) -> str:
    """`value` with nothing in it that a reader would not see: control characters as their pictures, marks that
    turn the direction of the text around by name, what is no character as U+FFFD.
    """
    return _ODD.sub(_visible, value)


def plain(value: str) -> str:
    """What a terminal would have shown of `value`, without colours: its control sequences are left out."""
    return _TERMINAL.sub("", value) if "\x1b" in value or "\x08" in value else value


def text(value: str) -> Html:
    """`value` as it stands."""
    return Html(escape(clean(value)))


def tag(element: str, /, *content: Html, **attributes: str | bool | None) -> Html:
    """An element. `class_` stands for `class`, `_` in a name for `-`; None and False leave an attribute out."""
    return Html(f"<{element}{_attributes(attributes)}>{''.join(content)}</{element}>")


def void(element: str, /, **attributes: str | bool | None) -> Html:
    """An element without content, such as `img`."""
    return Html(f"<{element}{_attributes(attributes)}>")


def joined(parts: Iterable[Html], separator: Html = EMPTY) -> Html:
    """One after the other."""
    return Html(separator.join(parts))


def _attributes(attributes: dict[str, str | bool | None]) -> str:
    written = []
    for name, value in attributes.items():
        name = name.rstrip("_").replace("_", "-")
        if value is True:
            written.append(f" {name}")
        elif value is not None and value is not False:
            written.append(f' {name}="{escape(clean(value))}"')
    return "".join(written)


def _visible(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    if code == 0x61C or 0x202A <= code <= 0x2069:
        return f"\u27e8U+{code:04X}\u27e9"
    return "\ufffd"
