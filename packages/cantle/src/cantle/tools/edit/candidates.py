"""What a model is told when its text is not in the file, or is there more than once.

The nearest places are found by lines that are the same but for white space, else by words in common; only
those few are compared letter by letter. So the work is one pass over the file, however large.
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
_WORD = re.compile(r"\w{2,}")
_LISTED = 10


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
    starts = _same_but_space(lines, wanted) or _by_words(lines, wanted)
    if not starts:
        return f"{sentence} Nothing in it is similar; read the file and copy the text from there."
    shown = "\n\n".join(_place(lines, start, wanted) for start in starts)
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
    # A closing bracket that stands on every tenth line says nothing.
    best = [start for start, weight in votes.most_common(_PLACES) if weight > 2]
    return sorted(max(start, 0) for start in best)


def _by_words(lines: list[str], wanted: list[str]) -> list[int]:
    from difflib import SequenceMatcher

    anchor = max(range(min(len(wanted), _OLD_LINES)), key=lambda number: len(wanted[number].strip()))
    target = wanted[anchor].strip()[:_SHOWN_WIDTH]
    words = set(_WORD.findall(target))
    if not words:
        return []
    ranked: Counter[int] = Counter()
    for number, line in enumerate(lines):
        common = len(words.intersection(_WORD.findall(line[: 5 * _SHOWN_WIDTH])))
        if common:
            ranked[number] = common
    rated = []
    for number, _ in ranked.most_common(_VOTES):
        ratio = SequenceMatcher(None, target, lines[number].strip()[:_SHOWN_WIDTH], autojunk=False).ratio()
        rated.append((ratio, number))
    rated.sort(key=lambda item: (-item[0], item[1]))
    return sorted(max(number - anchor, 0) for ratio, number in rated[:_PLACES] if ratio >= 0.5)


def _place(lines: list[str], start: int, wanted: list[str]) -> str:
    shown = lines[start : start + min(len(wanted), _SHOWN_LINES)]
    width = len(str(start + len(shown)))
    rows = [f"{start + offset + 1:>{width}} {_clipped(line)}" for offset, line in enumerate(shown)]
    if len(wanted) > _SHOWN_LINES:
        rows.append("...")
    return "\n".join([*rows, *_first_difference(lines, start, wanted)])


def _first_difference(lines: list[str], start: int, wanted: list[str]) -> list[str]:
    for offset, want in enumerate(wanted):
        have = lines[start + offset] if start + offset < len(lines) else None
        if have is None:
            return [f"(The file ends there; oldText goes on with {_quoted(want)}.)"]
        if have == want or (offset in (0, len(wanted) - 1) and want and want in have):
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
