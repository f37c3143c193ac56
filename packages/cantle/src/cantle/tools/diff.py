"""What an edit changed, for people and programs to look at.

    diff               lines with numbers, four unchanged ones around each change: ` 12 same`, `-13 old`, `+13 new`;
                       those of lines that stay are the old file's; `...` where lines are left out
    patch              the same as a unified diff
    firstChangedLine   its number in the new file

Made from the known places of the changes, not by comparing two files: the cost is one pass over the text.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise

from msgspec import Struct

from cantle_ai.codec import JsonObject

__all__ = ["Change", "diff_details"]

_CONTEXT = 4
_WIDTH = 2_000
"""Characters of a line that `diff` shows."""
_LIMIT = 262_144
"""Characters of `diff` and of `patch`; a longer patch is left out, a longer diff is cut."""


class Change(Struct, frozen=True):
    """Text from `start` to `end` becomes `new`. Positions are characters of the old text."""

    start: int
    end: int
    new: str


class _Hunk(Struct):
    """Lines `first` up to `last` of the old file, counted from 0, become `new`."""

    first: int
    last: int
    new: list[str]


def diff_details(text: str, changes: list[Change], name: str) -> JsonObject:
    """The details of a result for these changes of `text`, which are in order and do not overlap."""
    lines = _Lines(text)
    hunks = _hunks(text, lines, changes)
    details: JsonObject = {"diff": _diff(lines, hunks)}
    patch = _patch(lines, hunks, name)
    if len(patch) <= _LIMIT:
        details["patch"] = patch
    if hunks:
        details["firstChangedLine"] = hunks[0].first + 1
    return details


class _Lines:
    """The lines of a text, each with its end, by number from 0."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.end = "\r" if "\r" in text and "\n" not in text else "\n"
        self._starts = [0]
        position = text.find(self.end)
        while position >= 0:
            self._starts.append(position + 1)
            position = text.find(self.end, position + 1)
        self.count = len(self._starts) - (self._starts[-1] == len(text))

    def at(self, position: int) -> int:
        """The line in which a position lies; one past the last for the end of a text that ends a line."""
        return bisect_right(self._starts, position) - 1

    def start(self, number: int) -> int:
        return self._starts[number] if number < len(self._starts) else len(self._text)

    def of(self, first: int, last: int) -> list[str]:
        starts = [self.start(number) for number in range(first, last + 1)]
        return [self._text[low:high] for low, high in pairwise(starts)]

    def split(self, text: str) -> list[str]:
        pieces = text.split(self.end)
        return [piece + self.end for piece in pieces[:-1]] + ([pieces[-1]] if pieces[-1] else [])


def _hunks(text: str, lines: _Lines, changes: list[Change]) -> list[_Hunk]:
    hunks: list[_Hunk] = []
    index = 0
    while index < len(changes):
        first = lines.at(changes[index].start)
        last = _last_line(lines, changes[index])
        group = [changes[index]]
        index += 1
        while index < len(changes) and lines.at(changes[index].start) < last:
            last = max(last, _last_line(lines, changes[index]))
            group.append(changes[index])
            index += 1
        hunk = _hunk(text, lines, first, last, group)
        if not hunk.new and hunk.first == hunk.last:
            continue
        if hunks and hunks[-1].last == hunk.first:
            hunks[-1].last = hunk.last
            hunks[-1].new += hunk.new
        else:
            hunks.append(hunk)
    return hunks


def _last_line(lines: _Lines, change: Change) -> int:
    """One past the last line that a change touches."""
    line = lines.at(change.end)
    if lines.start(line) == change.end and change.start < change.end:
        from_start = lines.start(lines.at(change.start)) == change.start
        if change.new.endswith(lines.end) or (from_start and not change.new):
            return line
    return min(line + 1, lines.count)


def _hunk(text: str, lines: _Lines, first: int, last: int, changes: list[Change]) -> _Hunk:
    done, stop = lines.start(first), lines.start(last)
    pieces: list[str] = []
    for change in changes:
        pieces += (text[done : change.start], change.new)
        done = change.end
    pieces.append(text[done:stop])
    old, new = lines.of(first, last), lines.split("".join(pieces))
    front = 0
    while front < min(len(old), len(new)) and old[front] == new[front]:
        front += 1
    back = 0
    while back < min(len(old), len(new)) - front and old[-1 - back] == new[-1 - back]:
        back += 1
    return _Hunk(first + front, last - back, new[front : len(new) - back])


def _diff(lines: _Lines, hunks: list[_Hunk]) -> str:
    grown = sum(len(hunk.new) - (hunk.last - hunk.first) for hunk in hunks)
    width = len(str(max(lines.count, lines.count + grown)))
    rows: list[str] = []
    shift, shown = 0, 0
    for number, hunk in enumerate(hunks):
        following = hunks[number + 1].first if number + 1 < len(hunks) else lines.count
        begin = max(shown, hunk.first - _CONTEXT)
        if begin > shown:
            rows.append(f" {'':>{width}} ...")
        rows += _rows(" ", lines.of(begin, hunk.first), begin, width)
        rows += _rows("-", lines.of(hunk.first, hunk.last), hunk.first, width)
        rows += _rows("+", hunk.new, hunk.first + shift, width)
        shift += len(hunk.new) - (hunk.last - hunk.first)
        shown = min(hunk.last + _CONTEXT, following)
        rows += _rows(" ", lines.of(hunk.last, shown), hunk.last, width)
    if hunks and shown < lines.count:
        rows.append(f" {'':>{width}} ...")
    text = "\n".join(rows)
    return text if len(text) <= _LIMIT else text[:_LIMIT] + "\n..."


def _rows(sign: str, lines: list[str], first: int, width: int) -> list[str]:
    rows = []
    for number, line in enumerate(lines, first + 1):
        shown = line.rstrip("\r\n")
        rows.append(f"{sign}{number:>{width}} {shown[:_WIDTH]}{'...' if len(shown) > _WIDTH else ''}")
    return rows


def _patch(lines: _Lines, hunks: list[_Hunk], name: str) -> str:
    rows = [f"--- {name}\n", f"+++ {name}\n"]
    shift = index = 0
    while index < len(hunks):
        stop = index + 1
        while stop < len(hunks) and hunks[stop].first - hunks[stop - 1].last <= 2 * _CONTEXT:
            stop += 1
        group = hunks[index:stop]
        begin, end = max(group[0].first - _CONTEXT, 0), min(group[-1].last + _CONTEXT, lines.count)
        body: list[str] = []
        done = begin
        for hunk in group:
            body += _signed(" ", lines.of(done, hunk.first), lines.end)
            body += _signed("-", lines.of(hunk.first, hunk.last), lines.end)
            body += _signed("+", hunk.new, lines.end)
            done = hunk.last
        body += _signed(" ", lines.of(done, end), lines.end)
        grown = sum(len(hunk.new) - (hunk.last - hunk.first) for hunk in group)
        old, new = end - begin, end - begin + grown
        rows.append(f"@@ -{_range(begin, old)} +{_range(begin + shift, new)} @@\n")
        rows += body
        shift += grown
        index = stop
    return "".join(rows)


def _signed(sign: str, lines: list[str], end: str) -> list[str]:
    return [
        f"{sign}{line}" if line.endswith(end) else f"{sign}{line}\n\\ No newline at end of file\n"
        for line in lines
    ]


def _range(first: int, count: int) -> str:
    return f"{first + 1 if count else first},{count}"
