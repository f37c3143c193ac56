"""What a place that keeps a session's lines must do. The conformance tests in `tests/` hold for every one.

A line is bytes without LF. Lines are numbered from 0, in the order in which they were kept; the header is the
first that is not blank. A line that is kept is never changed. Several processes may keep lines in one place;
each sees those of the others through :meth:`Storage.pull`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

__all__ = ["Storage"]


class Storage(Protocol):
    """One session's lines. Not thread-safe. Failures are :class:`~cantle_session.errors.SessionFileError`."""

    @property
    def path(self) -> Path | None:
        """The file, where there is one."""
        ...

    def pull(self) -> Iterator[tuple[int, bytes]]:
        """The lines that this object has neither handed out nor kept itself, with their numbers. Blank ones are left out."""
        ...

    def read(self, numbers: Sequence[int]) -> Iterator[bytes]:
        """These lines again, in the order asked for."""
        ...

    def locked(self) -> AbstractContextManager[None]:
        """Keeps the other writers out for a moment. Waits a few seconds at most, then raises."""
        ...

    def append(self, lines: Sequence[bytes]) -> int:
        """Keep these lines, all or none, within :meth:`locked`. Gives the number of the first."""
        ...

    def shared(self) -> bool:
        """Whether another live process has the same session open. False where that cannot be known."""
        ...

    def close(self) -> None:
        """Let go of it, with everything kept on the disk. May be called again."""
        ...
