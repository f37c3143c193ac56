"""Lines and tables for people: as wide as the terminal, and safe to show whatever a session holds."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from cantle.cli.arguments import terminal_columns
from cantle.console import HIDDEN

if TYPE_CHECKING:
    from cantle_ai.usage import Cost

__all__ = ["cost_of", "cut", "edge", "local_time", "one_line", "quantity", "size_of", "table"]

_NARROWEST = 20
"""The last column of a table is at least this wide, whatever the terminal is."""

_PIPED = 200
"""Columns where a line ends that goes to no terminal."""

_LOOKED_AT = 4000
"""Characters of a text that one line is made of: more than any terminal shows."""


def one_line(text: str) -> str:
    """The beginning of `text` on one line, with white space as single spaces and control characters as escapes."""
    line = " ".join(text[:_LOOKED_AT].split())
    return line if line.isprintable() else line.translate(HIDDEN)


def cut(text: str, width: int) -> str:
    """`text` in at most `width` columns of a terminal, with … where something is left out."""
    if text[: width + 1].isascii():
        return text if len(text) <= width else f"{text[: width - 1].rstrip()}…"
    used = fitting = 0
    for at, character in enumerate(text, 1):
        used += _width(character)
        if used < width:
            fitting = at
        elif used > width:
            return f"{text[:fitting].rstrip()}…"
    return text


def edge(descriptor: int = 1) -> int:
    """The column where lines end that go to `descriptor`: stdout, or 2 for stderr."""
    return terminal_columns(descriptor, otherwise=_PIPED)


def table(rows: Iterable[Sequence[str]], *, right: Collection[int] = (), columns: int | None = None) -> str:
    """Rows of equally many cells under one another, the columns in `right` to the right; the last is cut where the
    line ends: at `columns`, or at stdout's :func:`edge`.
    """
    end = columns or edge()
    shown = [(*cells, cut(last, max(_NARROWEST, end))) for *cells, last in rows]  # no more is held of each
    if not shown:
        return ""
    widths = [max(map(_columns_of, column)) for column in list(zip(*shown, strict=True))[:-1]]
    room = max(_NARROWEST, end - sum(widths) - 2 * len(widths))
    lines = []
    for *cells, last in shown:
        padded = [
            _padded(cell, width, right=index in right)
            for index, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        lines.append("  ".join([*padded, cut(last, room)]).rstrip() + "\n")
    return "".join(lines)


def quantity(count: int, thing: str) -> str:
    """`1 entry`, `2 entries`: `thing` in the singular."""
    plural = (
        f"{thing[:-1]}ies" if thing.endswith("y") else f"{thing}es" if thing.endswith("ch") else f"{thing}s"
    )
    return f"{count:,} {thing if count == 1 else plural}"


def cost_of(cost: Cost) -> str:
    """What was paid: `$1.2345`; with what could not be priced `at least $1.2345`, or `unknown`."""
    if cost.unknown and not cost.total:
        return "unknown"
    return f"{'at least ' if cost.unknown else ''}${cost.total:,.4f}"


def size_of(count: int) -> str:
    """Bytes as a person reads them: `812 B`, `3.4 KB`, `12 MB`."""
    amount, unit = float(count), "B"
    for unit in ("B", "KB", "MB", "GB"):
        if amount < 999.5 or unit == "GB":
            break
        amount /= 1000
    return f"{amount:.0f} {unit}" if unit == "B" or amount >= 9.95 else f"{amount:.1f} {unit}"


def local_time(ms: int) -> str:
    """A Unix time in milliseconds as the clock on the wall shows it; `-` for one that no calendar has."""
    try:
        return time.strftime("%Y-%m-%d %H:%M", time.localtime(ms / 1000))
    except (OverflowError, OSError, ValueError):
        return "-"


def _padded(text: str, width: int, *, right: bool) -> str:
    space = " " * (width - _columns_of(text))
    return space + text if right else text + space


def _columns_of(text: str) -> int:
    """How many columns of a terminal a text takes."""
    return len(text) if text.isascii() else sum(map(_width, text))


@lru_cache(maxsize=4096)
def _width(character: str) -> int:
    from unicodedata import category, east_asian_width

    if category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if east_asian_width(character) in "WF" else 1
