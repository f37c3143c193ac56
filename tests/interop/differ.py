"""Where two JSON values differ, as paths that a person can read and a ledger row can name.

    requests[1].body.messages[3].content: 'text' != [{…}]
    events.message_end assistant[0].message.usage.reasoning: 0 != (missing)
    events.order[+turn_end]                      only Cantle has it here; [-…] only the reference

A list of plain texts is compared as a sequence, so that one line more moves nothing that follows it. A
part of a view that is empty on one side is one difference, not one for each thing in it.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

__all__ = ["MISSING", "Difference", "differences"]


class _Missing:
    def __repr__(self) -> str:
        return "(missing)"


MISSING = _Missing()


@dataclass(frozen=True)
class Difference:
    """One place where the programs differ."""

    path: str
    ours: Any
    theirs: Any

    def __str__(self) -> str:
        return f"{self.path}: {_short(self.ours)} != {_short(self.theirs)}"


def differences(ours: Any, theirs: Any, path: str = "") -> Iterator[Difference]:
    """Every place where `ours` and `theirs` are not the same, from the outside in."""
    if isinstance(ours, dict) and isinstance(theirs, dict) and not _whole(ours, theirs, path):
        for name in [*theirs, *(name for name in ours if name not in theirs)]:
            inner = f"{path}.{name}" if path else name
            yield from differences(ours.get(name, MISSING), theirs.get(name, MISSING), inner)
    elif _texts(ours) and _texts(theirs) and (ours or theirs):
        yield from _sequence(ours, theirs, path)
    elif isinstance(ours, list) and isinstance(theirs, list):
        for index in range(max(len(ours), len(theirs))):
            yield from differences(_at(ours, index), _at(theirs, index), f"{path}[{index}]")
    elif ours != theirs or isinstance(ours, bool) != isinstance(theirs, bool):
        yield Difference(path, ours, theirs)


def _sequence(ours: list[str], theirs: list[str], path: str) -> Iterator[Difference]:
    for tag, a, b, c, d in difflib.SequenceMatcher(a=theirs, b=ours, autojunk=False).get_opcodes():
        if tag != "equal":
            yield from (Difference(f"{path}[-{line}]", MISSING, line) for line in theirs[a:b])
            yield from (Difference(f"{path}[+{line}]", line, MISSING) for line in ours[c:d])


def _whole(ours: dict[str, Any], theirs: dict[str, Any], path: str) -> bool:
    """Whether a part of a view is there on one side only."""
    return bool(path) and "." not in path and bool(ours) != bool(theirs)


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _at(values: list[Any], index: int) -> Any:
    return values[index] if index < len(values) else MISSING


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 160 else f"{text[:100]}… {text[-50:]}"
