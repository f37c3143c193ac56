"""A session that lives as long as its process: nothing is written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from cantle_session.storage.port import Storage

__all__ = ["MemoryStorage"]


class MemoryStorage:
    """Lines in a list. `lines` are there from the start, to be pulled."""

    __slots__ = ("_lines", "_pulled")

    def __init__(self, lines: Sequence[bytes] = ()) -> None:
        self._lines = list(lines)
        self._pulled = 0

    def __len__(self) -> int:
        return len(self._lines)

    @property
    def path(self) -> Path | None:
        return None

    def pull(self) -> Iterator[tuple[int, bytes]]:
        while self._pulled < len(self._lines):
            number = self._pulled
            self._pulled += 1
            if self._lines[number].strip():
                yield number, self._lines[number]

    def read(self, numbers: Sequence[int]) -> Iterator[bytes]:
        return (self._lines[number] for number in numbers)

    def locked(self) -> AbstractContextManager[None]:
        return nullcontext()

    def append(self, lines: Sequence[bytes]) -> int:
        number = len(self._lines)
        self._lines += lines
        self._pulled = len(self._lines)
        return number

    def shared(self) -> bool:
        return False

    def close(self) -> None:
        pass


if TYPE_CHECKING:
    _: type[Storage] = MemoryStorage
