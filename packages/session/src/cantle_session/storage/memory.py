"""A session that lives as long as its process: nothing is written. The key of a line is its number."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from cantle_session.storage.port import KeyedLine, Storage

__all__ = ["MemoryStorage"]


class MemoryStorage:
    """Lines in a list. `lines` are there from the start."""

    __slots__ = ("_lines",)

    def __init__(self, lines: Sequence[bytes] = ()) -> None:
        self._lines = list(lines)

    def __len__(self) -> int:
        return len(self._lines)

    @property
    def path(self) -> Path | None:
        return None

    @property
    def location(self) -> str:
        return ""

    def lines(self) -> Iterator[KeyedLine]:
        return ((number, line) for number, line in enumerate(self._lines) if line.strip())

    def backwards(self) -> Iterator[KeyedLine]:
        numbers = range(len(self._lines) - 1, -1, -1)
        return ((number, self._lines[number]) for number in numbers if self._lines[number].strip())

    def containing(self, text: bytes) -> Iterator[KeyedLine]:
        return ((number, line) for number, line in self.backwards() if text in line)

    def pull(self) -> Iterator[KeyedLine]:
        return iter(())

    def read(self, keys: Sequence[int]) -> Iterator[bytes]:
        return (self._lines[key] for key in keys)

    def number(self, key: int) -> int:
        return key

    def size(self) -> int:
        return sum(map(len, self._lines))

    def locked(self) -> AbstractContextManager[None]:
        return nullcontext()

    def append(self, lines: Sequence[bytes]) -> Sequence[int]:
        first = len(self._lines)
        self._lines += lines
        return range(first, len(self._lines))

    def wait(self, seconds: float) -> bool:
        time.sleep(seconds)
        return False

    def shared(self) -> bool:
        return False

    def close(self) -> None:
        pass


if TYPE_CHECKING:
    _: type[Storage] = MemoryStorage
