"""The lines of files, and which of them match: our own reading, where ripgrep is not there.

What a file is, both ways of reading see alike: UTF-16 where its mark says so, else bytes that contain ASCII,
UTF-8 as far as they are; a file with a NUL in its first 64 KB is not text. Lines end with LF.
"""

from __future__ import annotations

import codecs
import os
import re
import stat
from collections import deque
from collections.abc import Generator, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct

from cantle.tools.blocking import Check
from cantle.tools.search.expressions import python_source, quick_part, required_text
from cantle.tools.search.nodes import Node
from cantle.tools.search.raw_files import open_file, read_up_to

if TYPE_CHECKING:
    from cantle.tools.search.automaton import Automaton

__all__ = ["HEAD", "KEPT", "Line", "LineMatcher", "is_text", "matching_lines"]

HEAD = 1 << 16
"""Bytes of a file's beginning that decide whether it is text."""
KEPT = 4_096
"""Bytes that are kept of a line: more than is ever shown of one."""
_CHUNK = 1 << 18
_LONG = 1 << 20
"""Bytes of a line from which it is no longer held as a whole."""
_UTF_16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


class Line(Struct, frozen=True):
    """A line that a search shows."""

    number: int
    data: bytes
    """At least as much of its beginning as is shown, without its end, in UTF-8 as far as it is."""
    is_match: bool


def is_text(head: bytes) -> bool:
    """Whether a file that begins with these bytes, `HEAD` of them or all, is text."""
    codec = _UTF_16.get(head[:2])
    if codec is None:
        return b"\0" not in head
    return "\0" not in head.decode(codec, "replace")


class LineMatcher:
    """An expression, ready to be used on chunks of whole lines.

    Python's `re` may need for ever, and nothing else in the program runs meanwhile. So it only looks for what is
    quick, and where that is not the whole expression, an automaton has the last word on the lines it finds.
    """

    def __init__(self, node: Node, check: Check) -> None:
        """`check` is called while a search takes its time."""
        self._node = node
        self._check = check
        self._quick, self._is_whole = quick_part(node)
        self._required = required_text(node).encode("utf-8", "surrogatepass")

    def lines_of(self, chunk: bytes) -> Iterator[int]:
        """The numbers of the lines in a chunk that match, counted from 0. The chunk has no line end at its end."""
        if self._required and self._required not in chunk:
            return
        if chunk.isascii():
            for number, line in _lines(self._in_ascii, chunk, b"\n"):
                if self._is_whole or self._matches(line.decode("ascii")):
                    yield number
        else:
            for number, text in _lines(self._in_any, chunk.decode("utf-8", "surrogateescape"), "\n"):
                if self._is_whole or self._matches(text):
                    yield number

    def _matches(self, line: str) -> bool:
        self._check()
        return self.automaton.matches(line)

    @cached_property
    def automaton(self) -> Automaton:
        """The whole expression."""
        from cantle.tools.search.automaton import Automaton

        return Automaton(self._node, self._check)

    @cached_property
    def _in_ascii(self) -> re.Pattern[bytes]:
        return re.compile(python_source(self._quick, ascii_only=True).encode("ascii"), re.MULTILINE)

    @cached_property
    def _in_any(self) -> re.Pattern[str]:
        return re.compile(python_source(self._quick, ascii_only=False), re.MULTILINE)


Text = TypeVar("Text", str, bytes)


def _lines(expression: re.Pattern[Text], chunk: Text, end: Text) -> Iterator[tuple[int, Text]]:
    """The lines that match, with their numbers."""
    number = start = 0
    while (found := expression.search(chunk, start)) is not None:
        number += chunk.count(end, start, found.start())
        start = chunk.rfind(end, start, found.start()) + 1 or start
        stop = chunk.find(end, found.start())
        yield number, chunk[start : stop if stop >= 0 else len(chunk)]
        if stop < 0:
            return
        start = stop + 1
        number += 1


def matching_lines(path: bytes, matcher: LineMatcher, context: int, check: Check) -> Iterator[Line]:
    """The lines of a file that match, with `context` lines around each. Raises OSError.

    Nothing for what is not a regular file and what is not text. `check` is called for every piece read.
    """
    descriptor = open_file(path)
    try:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            yield from _Reading(matcher, context, check).lines(_pieces(descriptor, check))
    finally:
        os.close(descriptor)


def _pieces(descriptor: int, check: Check) -> Iterator[bytes]:
    """The file in pieces, as UTF-8 without mark; nothing when it is not text."""
    head = read_up_to(descriptor, HEAD)
    if not is_text(head):
        return
    codec = _UTF_16.get(head[:2])
    if codec is None:
        yield head.removeprefix(codecs.BOM_UTF8)
        while len(head) >= HEAD and (piece := os.read(descriptor, _CHUNK)):
            check()
            yield piece
        return
    decoder = codecs.getincrementaldecoder(codec)("replace")
    yield decoder.decode(head[2:]).encode()
    while len(head) >= HEAD and (piece := os.read(descriptor, _CHUNK)):
        check()
        yield decoder.decode(piece).encode()
    yield decoder.decode(b"", final=True).encode()


class _Reading:
    """One pass over a file."""

    def __init__(self, matcher: LineMatcher, context: int, check: Check) -> None:
        self._matcher = matcher
        self._context = context
        self._check = check
        self._number = 1
        """Of the next line."""
        self._before: deque[Line] = deque(maxlen=context)
        """Lines that may come to stand before a match."""
        self._after = 0
        """How many lines that follow are wanted for the match before them."""

    def lines(self, pieces: Iterator[bytes]) -> Iterator[Line]:
        kept: list[bytes] = []
        size = 0
        for piece in pieces:
            end = piece.rfind(b"\n")
            if end < 0:
                kept.append(piece)
                size += len(piece)
                if size >= _LONG:
                    rest = yield from self._long_line(b"".join(kept), pieces)
                    kept, size = [rest], len(rest)
                    # What is behind the long line may hold whole lines.
                    if (end := rest.rfind(b"\n")) >= 0:
                        yield from self._chunk(rest[:end])
                        kept, size = [rest[end + 1 :]], len(rest) - end - 1
                continue
            kept.append(piece[:end])
            yield from self._chunk(b"".join(kept))
            kept, size = [piece[end + 1 :]], len(piece) - end - 1
        rest = b"".join(kept)
        if rest:
            yield from self._chunk(rest)

    def _chunk(self, chunk: bytes) -> Iterator[Line]:
        first = self._number
        if not self._context:
            start, end, number = 0, -1, -1
            for found in self._matcher.lines_of(chunk):
                while number < found:
                    start = end + 1
                    end = chunk.find(b"\n", start)
                    number += 1
                yield Line(
                    first + found, chunk[start : end if end >= 0 else len(chunk)][:KEPT], is_match=True
                )
            self._number += chunk.count(b"\n") + 1
            return
        matching = set(self._matcher.lines_of(chunk))
        for number, data in enumerate(chunk.split(b"\n")):
            yield from self._one(Line(first + number, data[:KEPT], number in matching))
        self._number = first + number + 1

    def _one(self, line: Line) -> Iterator[Line]:
        if line.is_match:
            yield from self._before
            self._before.clear()
            self._after = self._context
            yield line
        elif self._after:
            self._after -= 1
            yield line
        elif self._context:
            self._before.append(line)

    def _long_line(self, begun: bytes, pieces: Iterator[bytes]) -> Generator[Line, None, bytes]:
        """Take a line that is too long to be held; gives what was read beyond it."""
        automaton = self._matcher.automaton
        decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        state = automaton.feed(automaton.begin(), decoder.decode(begun))
        rest = b""
        for piece in pieces:
            part, end, rest = piece.partition(b"\n")
            if state is not None:
                state = automaton.feed(state, decoder.decode(part))
            if end:
                break
        if state is not None:
            state = automaton.feed(state, decoder.decode(b"", final=True))
        is_match = state is None or automaton.ends(state)
        yield from self._one(Line(self._number, begun[:KEPT], is_match))
        self._number += 1
        return rest
