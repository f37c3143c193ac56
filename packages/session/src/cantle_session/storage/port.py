"""What a place that keeps one session's lines must do. The conformance tests in `tests/storage/` hold for every one.

A line is bytes without LF; the first that is not blank is the header. Each has a *key*, a number that grows with
the lines: an offset in a file, the number of a row. A line that is kept is never changed. Several processes may
keep lines in one place; each sees those of the others through :meth:`Storage.pull`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol, TypeAlias

__all__ = ["KeyedLine", "Storage"]

KeyedLine: TypeAlias = tuple[int, bytes]
"""A line and its key."""


class Storage(Protocol):
    """One session's lines. Not thread-safe. Failures are :class:`~cantle_session.errors.SessionFileError`."""

    @property
    def path(self) -> Path | None:
        """The file that holds these lines and no others, where there is one."""
        ...

    @property
    def location(self) -> str:
        """What :meth:`cantle_session.session.Session.open` finds it by: a path, or the address of a database with the
        session's id. Empty in memory.
        """
        ...

    def lines(self) -> Iterator[KeyedLine]:
        """Every line that this object knows of, the header first: those that were there when it was opened, those
        pulled, its own. Blank ones are left out.
        """
        ...

    def backwards(self) -> Iterator[KeyedLine]:
        """What :meth:`lines` gives, the last line first. Whoever stops early has not paid for the rest."""
        ...

    def containing(self, text: bytes) -> Iterator[KeyedLine]:
        """The lines that hold `text`, the last one first. Faster than looking at each."""
        ...

    def pull(self) -> Iterator[KeyedLine]:
        """What others have kept since this object was opened, or last pulled or appended."""
        ...

    def read(self, keys: Sequence[int]) -> Iterator[bytes]:
        """These lines, in the order asked for."""
        ...

    def number(self, key: int) -> int:
        """Which line has this key, counted from 0, blank ones too. For people; it may take a while."""
        ...

    def size(self) -> int:
        """How many bytes the known lines have, roughly: whether to read them all is worth a thought."""
        ...

    def locked(self) -> AbstractContextManager[None]:
        """Keeps the other writers out for a moment. Waits a few seconds at most, then raises."""
        ...

    def append(self, lines: Sequence[bytes]) -> Sequence[int]:
        """Keep these lines, all or none, within :meth:`locked`. Gives their keys."""
        ...

    def wait(self, seconds: float) -> bool:
        """Wait until others may have kept something, for so long at most. Whether to look."""
        ...

    def shared(self) -> bool:
        """Whether another live process had the same session open. False where that cannot be known."""
        ...

    def close(self) -> None:
        """Let go of it, with everything kept on the disk. May be called again."""
        ...
