"""Searching the text of files: with ripgrep where it is there, with our own reading where it is not."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Iterator
from itertools import chain, groupby, islice, repeat

from msgspec import Struct

from cantle.tools.blocking import Check
from cantle.tools.search.lines import HEAD, Line, LineMatcher, is_text, matching_lines
from cantle.tools.search.nodes import Node
from cantle.tools.search.raw_files import joined, open_file, read_head, size_of
from cantle.tools.search.ripgrep import ARGUMENT_BYTES, Halt, Ripgrep, RipgrepError
from cantle.tools.search.walk import Unreadable
from cantle_ai.system_errors import reason_of

__all__ = ["Content", "FileLines"]

_FIRST_BATCH = 200
_BATCH = 4_000
"""Files that one call of ripgrep gets: few at first, for many a search ends soon."""
_LARGE = 1 << 26
"""Bytes of a file that ripgrep does not get: it holds each line as a whole, and there may be one line only."""


class FileLines(Struct, frozen=True):
    """A file with its matching lines and those around them, which come as they are found."""

    path: bytes
    lines: Iterator[Line]


class Content(Struct, kw_only=True):
    """One search: for what, where and how."""

    root: str
    """The folder that paths count from."""
    node: Node
    context: int
    most: int
    """Matching lines of one file after which no more of them are wanted."""
    check: Check
    halt: Halt
    unreadable: list[Unreadable]
    """Files that can't be read are added to it."""
    program: str | None = None
    """ripgrep; None for our own reading."""

    def search(self, paths: Iterable[bytes]) -> Generator[FileLines, None, None]:
        """The files that hold a match, in the order of `paths`."""
        waiting = iter(paths)
        if self.program is None:
            yield from self._by_ourselves(waiting)
        else:
            ripgrep = Ripgrep(
                self.program, self.root, self.node, context=self.context, most=self.most, halt=self.halt
            )
            sizes = chain((_FIRST_BATCH,), repeat(_BATCH))
            for is_ours, same in groupby(waiting, self._is_ours):
                if is_ours:
                    yield from self._by_ourselves(same)
                else:
                    yield from self._by_ripgrep(same, ripgrep, sizes)

    def _place(self, path: bytes) -> bytes:
        return joined(os.fsencode(self.root), path)

    def _is_ours(self, path: bytes) -> bool:
        """Whether it is not for ripgrep, which might wait for ever, or hold all of it."""
        place = self._place(path)
        size = size_of(place)
        if size:
            return size > _LARGE
        try:
            # Files that the system makes up while they are read have no size, and some of them make one wait.
            return bool(read_head(place, 1))
        except OSError:
            return True

    def _by_ourselves(self, paths: Iterator[bytes]) -> Iterator[FileLines]:
        matcher = LineMatcher(self.node, self.check)
        for path in paths:
            self.check()
            lines = self._read(path, matcher)
            first = next(lines, None)
            if first is not None:
                yield FileLines(path, chain((first,), lines))

    def _read(self, path: bytes, matcher: LineMatcher) -> Iterator[Line]:
        try:
            yield from matching_lines(self._place(path), matcher, self.context, self.check)
        except OSError as problem:
            self.unreadable.append(Unreadable(path, reason_of(problem)))

    def _by_ripgrep(
        self, paths: Iterator[bytes], ripgrep: Ripgrep, sizes: Iterator[int]
    ) -> Iterator[FileLines]:
        while batch := _batch(paths, next(sizes)):
            done = 0
            try:
                for path, lines in ripgrep.search(batch, self.check):
                    done = batch.index(path, done) + 1
                    if self._is_text(path):
                        yield FileLines(path, self._completed(path, lines))
            except (RipgrepError, ValueError):
                # Whatever it can't do, we can, and where it names a file that it was not given, it is not to be trusted.
                yield from self._by_ourselves(iter(batch[done:]))
                continue
            if ripgrep.failed:
                self._note_unreadable(batch)

    def _completed(self, path: bytes, lines: Iterator[Line]) -> Iterator[Line]:
        """The lines of a file; where ripgrep gives up, those that it has not told are found by ourselves."""
        told = 0
        try:
            for line in lines:
                told += 1
                yield line
        except (RipgrepError, ValueError):
            yield from islice(self._read(path, LineMatcher(self.node, self.check)), told, None)

    def _is_text(self, path: bytes) -> bool:
        try:
            return is_text(read_head(self._place(path), HEAD))
        except OSError:
            return False

    def _note_unreadable(self, batch: list[bytes]) -> None:
        for path in batch:
            try:
                os.close(open_file(self._place(path)))
            except OSError as problem:
                self.unreadable.append(Unreadable(path, reason_of(problem)))


def _batch(paths: Iterator[bytes], size: int) -> list[bytes]:
    batch: list[bytes] = []
    room = ARGUMENT_BYTES
    for path in islice(paths, size):
        batch.append(path)
        room -= len(path) + 12
        if room <= 0:
            break
    return batch
