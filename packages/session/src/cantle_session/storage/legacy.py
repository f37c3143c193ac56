"""Files of versions 1 and 2, read as if they were version 3.

    version 1   entries in a row, without `id` and `parentId`; a compaction names what it keeps by its index
                in the file, header included (`firstKeptEntryIndex`)
    version 2   as version 3, but a message with the role `custom` has the role `hookMessage`

Reading changes nothing on disk. The first line that is added to such a file writes the whole of it as
version 3 beside it, puts that in its place, and keeps the original as `<name>.v1` or `<name>.v2`.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from cantle_ai.codec import JsonObject, decode_object, encode_json
from cantle_session.entries import VERSION, SessionHeader
from cantle_session.errors import SessionFileError
from cantle_session.storage.jsonl import JsonlStorage, file_problem
from cantle_session.storage.memory import MemoryStorage

if TYPE_CHECKING:
    from cantle_session.storage.port import KeyedLine, Storage

__all__ = ["LegacyStorage", "upgraded"]


def upgraded(header: SessionHeader, lines: Iterable[tuple[int, bytes]]) -> Iterator[bytes]:
    """The lines of a version 3 file for those of an older one. What is no entry stays as it is."""
    yield encode_json({**header.to_json(), "version": VERSION})
    ids: list[str] = [header.id]
    for _, line in lines:
        try:
            raw = decode_object(line)
        except ValueError:
            yield line
            continue
        if header.version < 2 and not isinstance(raw.get("id"), str):
            _link(raw, ids)
        message = raw.get("message")
        if isinstance(message, dict) and message.get("role") == "hookMessage":
            message["role"] = "custom"
        yield encode_json(raw)


def _link(raw: JsonObject, ids: list[str]) -> None:
    """Give the next entry of version 1 an id and a parent. `ids` are those before it, the header's first."""
    # Made from its place, so that it is the same whenever the file is read.
    entry_id = f"{len(ids) * 2654435761 % (1 << 32):08x}"
    raw |= {"id": entry_id, "parentId": ids[-1] if len(ids) > 1 else None}
    if raw.get("type") == "compaction":
        kept = raw.pop("firstKeptEntryIndex", None)
        named = ids[kept] if isinstance(kept, int) and 0 < kept < len(ids) else entry_id
        raw["firstKeptEntryId"] = named
    ids.append(entry_id)


class LegacyStorage:
    """An older file behind the port. It is a version 3 file from the first :meth:`append` on.

    The key of a line is its number, since offsets change when the file is written anew.
    """

    __slots__ = ("_file", "_lines", "_offsets", "_path", "_version")

    def __init__(self, file: JsonlStorage, header: SessionHeader, lines: Iterable[KeyedLine]) -> None:
        """`lines` are those behind the header."""
        self._path = file.path
        self._version = header.version
        self._lines: MemoryStorage | None = MemoryStorage(list(upgraded(header, lines)))
        self._offsets = array("Q")
        self._file = file

    @property
    def path(self) -> Path:
        return self._path

    @property
    def location(self) -> str:
        return str(self._path)

    def lines(self) -> Iterator[KeyedLine]:
        return _without_blanks(enumerate(self.read(range(self._count()))))

    def backwards(self) -> Iterator[KeyedLine]:
        numbers = range(self._count() - 1, -1, -1)
        return _without_blanks(zip(numbers, self.read(numbers), strict=True))

    def containing(self, text: bytes) -> Iterator[KeyedLine]:
        return ((number, line) for number, line in self.backwards() if text in line)

    def pull(self) -> Iterator[KeyedLine]:
        for offset, line in self._file.pull():
            if self._lines is not None:
                raise SessionFileError(self._path, "another program has changed it; open the session again")
            self._offsets.append(offset)
            yield len(self._offsets) - 1, line

    def read(self, keys: Sequence[int]) -> Iterator[bytes]:
        if self._lines is not None:
            return self._lines.read(keys)
        return self._file.read([self._offsets[key] for key in keys])

    def number(self, key: int) -> int:
        return key

    def size(self) -> int:
        return self._file.size() if self._lines is None else self._lines.size()

    def locked(self) -> AbstractContextManager[None]:
        return self._file.locked()

    def append(self, lines: Sequence[bytes]) -> Sequence[int]:
        first = self._count()
        if self._lines is None:
            self._offsets.extend(self._file.append(lines))
        else:
            self._upgrade(list(self._lines.read(range(first))), lines)
        return range(first, self._count())

    def wait(self, seconds: float) -> bool:
        return self._file.wait(seconds)

    def shared(self) -> bool:
        return self._file.shared()

    def close(self) -> None:
        self._file.close()

    def _count(self) -> int:
        return len(self._offsets) if self._lines is None else len(self._lines)

    def _upgrade(self, old: Sequence[bytes], new: Sequence[bytes]) -> None:
        self._file.check_in_place()
        _replace(self._path, b"".join([line + b"\n" for line in [*old, *new]]), self._version)
        replaced, self._file = self._file, JsonlStorage.open(self._path, in_turn=True)
        replaced.close()
        offset = 0
        for line in [*old, *new]:
            self._offsets.append(offset)
            offset += len(line) + 1
        self._lines = None


def _without_blanks(lines: Iterable[KeyedLine]) -> Iterator[KeyedLine]:
    return ((number, line) for number, line in lines if line and not line.isspace())


def _replace(path: Path, data: bytes, version: int) -> None:
    """Put `data` in the place of the file, whole or not at all, and keep the file beside it."""
    from cantle_ai.new_files import new_file

    try:
        with new_file(path.parent, path.stat().st_mode & 0o777) as fresh:
            fresh.write(data)
            os.fsync(fresh.descriptor)
            _keep(path, version)
            fresh.replace(path)
    except OSError as problem:
        raise file_problem(path, f"could not be written as version {VERSION}", problem) from None


def _keep(path: Path, version: int) -> None:
    """A second name for the file; a copy where the file system has no such thing."""
    from cantle_ai.new_files import new_file

    name = kept = f"{path.name}.v{version}"
    number = 1
    while path.with_name(kept).exists():
        number += 1
        kept = f"{name}.{number}"
    try:
        os.link(path, path.with_name(kept))
    except OSError:
        with new_file(path.parent, path.stat().st_mode & 0o777) as copy:
            copy.write(path.read_bytes())
            copy.replace(path.with_name(kept))


if TYPE_CHECKING:
    _: type[Storage] = LegacyStorage
