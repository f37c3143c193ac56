"""Where the texts of an edit stand in a file, and which parts of it they change.

A model sees the lines of a file and sends `\\n` between them, whatever is there. So texts are compared
with every line end taken as `\\n`. Positions are translated back, a pair `\\r\\n` is never parted, and what
a new text has in common with the old one keeps its own bytes: line ends, and bytes that are no text.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from itertools import pairwise

from cantle.tools.diff import Change
from cantle.tools.text_files import REPLACEMENT, TextFile, shown
from cantle_agent.tool import ToolError

__all__ = ["Matcher"]

_LINE_END = re.compile(r"\r\n?|\n")
_ALIGNED = 4_000
"""Lines of old and new text together that are aligned line by line; longer texts change as one piece."""
_COUNTED = 100
"""Places that are counted when a text should have one."""


class _Span:
    """One edit's place in the file, in positions of the text with `\\n` line ends."""

    __slots__ = ("end", "new", "number", "start")

    def __init__(self, number: int, start: int, end: int, new: str) -> None:
        self.number = number
        self.start = start
        self.end = end
        self.new = new


class Matcher:
    """Finds edits in one file."""

    def __init__(self, file: TextFile, name: str) -> None:
        self._file = file
        self._name = name
        self._pairs = array("q")
        self._has_cr = "\r" in file.shown
        self._text = self._unified(file.shown) if self._has_cr else file.shown

    def changes(self, edits: list[tuple[str, str]]) -> list[Change]:
        """What the edits change, in order, in positions of the file's text.

        Raises :class:`ToolError` when a text is not there exactly once, when two places overlap, and when
        nothing would change.
        """
        spans = sorted((self._find(*item) for item in enumerate(edits)), key=lambda span: span.start)
        for one, two in pairwise(spans):
            if two.start < one.end:
                first, second = sorted((one.number, two.number))
                raise ToolError(
                    f"edits[{first}] and edits[{second}] overlap in {self._name}; nothing was changed. "
                    "Make one edit of them, or choose oldTexts that do not share text."
                )
        changes = [change for span in spans for change in self._changes_of(span)]
        if not changes:
            only_ends = any(old != new for old, new in edits)
            advice = (
                " Line ends are kept as they are; convert them with bash, if that was meant."
                if only_ends
                else ""
            )
            raise ToolError(f"Nothing would change in {self._name}: newText is the same as oldText.{advice}")
        return changes

    def _unified(self, text: str) -> str:
        for removed, match in enumerate(re.finditer("\r\n", text)):
            self._pairs.append(match.start() - removed)
        return text.replace("\r\n", "\n").replace("\r", "\n")

    def _position(self, unified: int) -> int:
        """The position in the file's text of one in the unified text."""
        return unified + bisect_left(self._pairs, unified) if self._pairs else unified

    def _find(self, number: int, edit: tuple[str, str]) -> _Span:
        old, new = edit
        wanted = old.replace("\r\n", "\n").replace("\r", "\n") if "\r" in old else old
        places = self._places(wanted)
        if len(places) > 1 and self._has_cr:
            exact = [place for place in places if self._original(place, place + len(wanted)) == old]
            places = exact if len(exact) == 1 else places
        if not places:
            from cantle.tools.edit.candidates import missing_text

            raise ToolError(missing_text(self._text, wanted, number, self._name))
        if len(places) > 1:
            from cantle.tools.edit.candidates import ambiguous_text

            raise ToolError(ambiguous_text(self._text, places, number, self._name, len(places) == _COUNTED))
        return _Span(number, places[0], places[0] + len(wanted), new)

    def _places(self, wanted: str) -> list[int]:
        places: list[int] = []
        position = self._text.find(wanted)
        while position >= 0 and len(places) < _COUNTED:
            places.append(position)
            position = self._text.find(wanted, position + 1)
        return places

    def _original(self, start: int, end: int) -> str:
        return self._file.shown[self._position(start) : self._position(end)]

    def _changes_of(self, span: _Span) -> list[Change]:
        old = self._text[span.start : span.end]
        # A lone CR that is wanted is written as such; to be compared it counts as a line end.
        new = span.new.replace("\r\n", "\n")
        changes = []
        for low, high, new_low, new_high in _differences(old, new.replace("\r", "\n")):
            change = self._change(span, span.start + low, span.start + high, new[new_low:new_high])
            changes.append(change)
        return changes

    def _change(self, span: _Span, start: int, end: int, new: str) -> Change:
        first, last = self._position(start), self._position(end)
        if "\n" in new:
            new = new.replace("\n", self._line_end(first, last))
        if shown(new) != new:
            raise ToolError(
                f"edits[{span.number}]: newText holds half of a surrogate pair, which no file can hold as text; "
                "nothing was changed."
            )
        if REPLACEMENT in new:
            new = self._with_wrong_bytes(span, first, last, new)
        return Change(first, last, new)

    def _line_end(self, start: int, end: int) -> str:
        """The line end in use there: inside, else the next one, else the last one before."""
        if not self._has_cr:
            return "\n"
        text = self._file.shown
        match = _LINE_END.search(text, start, end) or _LINE_END.search(text, end)
        if match is not None:
            return match[0]
        last = max(text.rfind("\n", 0, start), text.rfind("\r", 0, start))
        if last < 0:
            return "\n"
        return "\r\n" if text[last] == "\n" and text[last - 1 : last] == "\r" else text[last]

    def _with_wrong_bytes(self, span: _Span, start: int, end: int, new: str) -> str:
        """`new` with the file's own bytes where it repeats a U+FFFD that stands for them."""
        text = self._file.text[start:end]
        if text == self._file.shown[start:end]:
            return new
        kept = [
            char for char, seen in zip(text, self._file.shown[start:end], strict=True) if seen == REPLACEMENT
        ]
        if len(kept) != new.count(REPLACEMENT):
            raise ToolError(
                f"edits[{span.number}]: oldText covers bytes of {self._name} that are no {self._file.encoding.label} "
                "text (shown as U+FFFD), and newText has another number of them; nothing was changed. "
                "Leave them out of oldText, or keep each."
            )
        given = iter(kept)
        return re.sub(REPLACEMENT, lambda _: next(given), new)


def _differences(old: str, new: str) -> list[tuple[int, int, int, int]]:
    """Where two texts differ, as (start, end) in the old one and in the new one, line by line where it pays."""
    if old == new:
        return []
    old_lines, new_lines = old.splitlines(keepends=True), new.splitlines(keepends=True)
    if min(len(old_lines), len(new_lines)) < 2 or len(old_lines) + len(new_lines) > _ALIGNED:
        return [_trimmed(old, new, 0, len(old), 0, len(new))]
    from difflib import SequenceMatcher

    starts, new_starts = _starts(old_lines), _starts(new_lines)
    blocks = SequenceMatcher(None, old_lines, new_lines, autojunk=False).get_opcodes()
    return [
        _trimmed(old, new, starts[low], starts[high], new_starts[new_low], new_starts[new_high])
        for kind, low, high, new_low, new_high in blocks
        if kind != "equal"
    ]


def _starts(lines: list[str]) -> list[int]:
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    return starts


def _trimmed(
    old: str, new: str, start: int, end: int, new_start: int, new_end: int
) -> tuple[int, int, int, int]:
    front = _common(old[start:end], new[new_start:new_end])
    start, new_start = start + front, new_start + front
    back = _common(old[start:end][::-1], new[new_start:new_end][::-1])
    return start, end - back, new_start, new_end - back


def _common(one: str, two: str) -> int:
    """How many characters at the front are the same: halved until it is found, each step one comparison."""
    low, high = 0, min(len(one), len(two))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == two[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
