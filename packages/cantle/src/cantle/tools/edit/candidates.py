"""What a model is told when its text is not in the file, or is there more than once.

The nearest places are found by lines that are the same but for white space, else by short pieces in common;
only the best few are compared letter by letter. So the work is one pass over the file, however large.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import islice

__all__ = ["ambiguous_text", "missing_text"]

_PLACES = 2
_SHOWN_LINES = 12
_SHOWN_WIDTH = 200
_OLD_LINES = 60
_VOTES = 50
_LINES = 200_000
"""Lines of a file that are looked at."""
_LISTED = 10
_SHORT = 8
"""Characters below which a line is compared by pieces of two: one wrong letter spoils most pieces of three."""
_PIECES = 16


def ambiguous_text(text: str, places: list[int], number: int, name: str, more: bool) -> str:
    """Says on which lines the text stands."""
    lines, line, seen = [], 1, 0
    for place in places[:_LISTED]:
        line += text.count("\n", seen, place)
        seen = place
        lines.append(str(line))
    rest = ", ..." if len(places) > _LISTED else ""
    count = f"{len(places)} or more" if more else str(len(places))
    return (
        f"edits[{number}]: oldText occurs {count} times in {name}, on lines {', '.join(lines)}{rest}; it must "
        "occur once. Nothing was changed. Add neighbouring lines to it until it is unique."
    )


def missing_text(text: str, old: str, number: int, name: str) -> str:
    """Says that the text is not there, and shows the nearest places."""
    sentence = f"edits[{number}]: oldText is not in {name}; nothing was changed."
    if not text:
        return f"{sentence} The file is empty; use write."
    lines = list(islice(text.removesuffix("\n").split("\n"), _LINES))
    wanted = old.strip("\n").split("\n")
    starts = _same_but_space(lines, wanted) or _by_pieces(lines, wanted)
    if not starts:
        return f"{sentence} Nothing in it is similar; read the file and copy the text from there."
    shown = "\n\n".join(_place(lines, start, wanted, whole=old.endswith("\n")) for start in starts)
    return f"{sentence} The nearest {'place' if len(starts) == 1 else 'places'}:\n\n{shown}"


def _same_but_space(lines: list[str], wanted: list[str]) -> list[int]:
    """Starts of the places that share most lines with the wanted ones, white space aside."""
    keys: dict[str, list[int]] = {}
    for number, line in enumerate(wanted[:_OLD_LINES]):
        if key := "".join(line.split()):
            keys.setdefault(key, []).append(number)
    votes: Counter[int] = Counter()
    used: Counter[str] = Counter()
    for number, line in enumerate(lines):
        key = "".join(line.split())
        if key in keys and used[key] < _VOTES:
            used[key] += 1
            for place in keys[key]:
                votes[number - place] += len(key)
    # A closing bracket that stands on every tenth line says nothing, unless it is all that is wanted.
    whole = sum(len(key) * len(places) for key, places in keys.items())
    best = [start for start, weight in votes.most_common(_PLACES) if weight > 2 or weight == whole]
    return sorted(max(start, 0) for start in best)


def _by_pieces(lines: list[str], wanted: list[str]) -> list[int]:
    """Starts of the places whose lines are most like the longest wanted one."""
    from difflib import SequenceMatcher
    from heapq import nlargest

    anchor = max(range(min(len(wanted), _OLD_LINES)), key=lambda number: len(wanted[number].strip()))
    target = wanted[anchor].strip()[:_SHOWN_WIDTH]
    pieces = _pieces(target)
    ranked = []
    for number, line in enumerate(lines):
        line = line.strip()[:_SHOWN_WIDTH]
        if common := sum(piece in line for piece in pieces):
            ranked.append((common, -abs(len(line) - len(target)), -number))
    rated = []
    for _, _, place in nlargest(_VOTES, ranked):
        line = lines[-place].strip()[:_SHOWN_WIDTH]
        rated.append((SequenceMatcher(None, target, line, autojunk=False).ratio(), place))
    rated.sort(reverse=True)
    return sorted(max(-place - anchor, 0) for ratio, place in rated[:_PLACES] if ratio >= 0.5)


def _pieces(text: str) -> set[str]:
    """Short pieces from all over a text, a bounded number of them."""
    size = min(2 if len(text) < _SHORT else 3, len(text))
    starts = range(0, len(text) - size + 1, len(text) // _PIECES + 1) if size else ()
    return {text[start : start + size] for start in starts}


def _place(lines: list[str], start: int, wanted: list[str], *, whole: bool) -> str:
    """The lines at a place, and where they first differ; `whole` says that the last wanted line ends there."""
    shown = lines[start : start + min(len(wanted), _SHOWN_LINES)]
    width = len(str(start + len(shown)))
    rows = [f"{start + offset + 1:>{width}} {_clipped(line)}" for offset, line in enumerate(shown)]
    if len(wanted) > _SHOWN_LINES:
        rows.append("...")
    return "\n".join([*rows, *_first_difference(lines, start, wanted, whole=whole)])


def _first_difference(lines: list[str], start: int, wanted: list[str], *, whole: bool) -> list[str]:
    last = len(wanted) - 1
    for offset, want in enumerate(wanted):
        have = lines[start + offset] if start + offset < len(lines) else None
        if have is None:
            return [f"(The file ends there; oldText goes on with {_quoted(want)}.)"]
        # The first wanted line may begin inside a line of the file, the last one may end inside one.
        if have == want or (offset == 0 < last and have.endswith(want)):
            continue
        if offset == last > 0 and not whole and have.startswith(want):
            continue
        at = next(
            (index for index, pair in enumerate(zip(have, want, strict=False)) if pair[0] != pair[1]),
            min(len(have), len(want)),
        )
        begin = max(at - 8, 0)
        there, wanted_there = _quoted(have[begin : at + 24]), _quoted(want[begin : at + 24])
        return [f"(Line {start + offset + 1} has {there} where oldText has {wanted_there}.)"]
    return []


def _quoted(text: str) -> str:
    # White space and look-alikes must be seen.
    return ascii(text) if not text.isprintable() or re.search(r"[^\x00-\x7f]", text) else repr(text)


def _clipped(line: str) -> str:
    return line if len(line) <= _SHOWN_WIDTH else line[:_SHOWN_WIDTH] + "..."
