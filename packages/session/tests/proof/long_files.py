"""Session files of any length and shape, written without the code under test."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from packages.session.tests.support import HEADER, answer, encoded, said, user

__all__ = ["SHAPES", "long_file"]

_TEXT = "a line of some words\n" * 20


def long_file(path: Path, count: int, shape: str, *, compact_every: int = 0) -> Path:
    """A file of about so many entries whose parents are as `shape` says; a compaction keeps the last eight messages."""
    parent_of = SHAPES[shape]
    lines: list[dict[str, Any]] = [HEADER]
    ids: list[str] = []

    def add(entry: dict[str, Any]) -> None:
        place = {
            "type": entry["type"],
            "id": f"{len(ids) * 2654435761 % 2**32:08x}",
            "parentId": parent_of(ids),
            "timestamp": "2026-01-01T00:00:00.000Z",
        }
        ids.append(place["id"])
        lines.append({**place, **entry})

    for number in range(count):
        add(said(user(f"{number} {_TEXT}") if number % 2 == 0 else answer(f"{number} {_TEXT}")))
        if compact_every and number % compact_every == compact_every - 1 and number < count - 20:
            add({"type": "compaction", "summary": "sum", "firstKeptEntryId": ids[-8], "tokensBefore": 9})
    path.write_bytes(encoded(*lines))
    return path


def _deep(ids: list[str]) -> str | None:
    return ids[-1] if ids else None


def _wide(ids: list[str]) -> str | None:
    return ids[0] if ids else None


def _comb(ids: list[str]) -> str | None:
    """A long branch with a tooth of one entry at every other place."""
    return ids[len(ids) - 2 if len(ids) > 2 and len(ids) % 2 else -1] if ids else None


def _roots(ids: list[str]) -> str | None:
    return None


SHAPES: dict[str, Callable[[list[str]], str | None]] = {
    "deep": _deep,
    "wide": _wide,
    "comb": _comb,
    "roots": _roots,
}
"""The parent of the next entry, from the ids before it."""
