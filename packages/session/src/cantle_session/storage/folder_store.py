"""Sessions as files in a folder: all in one, or in one folder for each working directory."""

from __future__ import annotations

import os
from collections import deque
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from cantle_session.entries import VERSION, SessionHeader
from cantle_session.errors import SessionFileError, still_open
from cantle_session.folders import session_file_name, session_folder
from cantle_session.lines import decode_header
from cantle_session.listing import SessionInfo, find_session, latest_first, list_sessions, subfolders
from cantle_session.storage.bin import Deletion, delete_file
from cantle_session.storage.jsonl import JsonlStorage
from cantle_session.storage.names import append_name
from cantle_session.storage.search import Query, SearchHit, hit_in

if TYPE_CHECKING:
    from cantle_session.storage.port import Storage
    from cantle_session.storage.store import SessionStore

__all__ = ["FolderStore"]


class FolderStore:
    """The session files of a folder, which is made with the first of them."""

    def __init__(self, folder: str | os.PathLike[str], *, by_directory: bool = False) -> None:
        """With `by_directory`, the sessions of each working directory lie in a folder of their own in it:
        :func:`~cantle_session.folders.session_folder`.
        """
        self._folder = Path(folder).absolute()
        self._by_directory = by_directory

    @property
    def location(self) -> str:
        return str(self._folder)

    def create(self, header: SessionHeader) -> JsonlStorage:
        folder = session_folder(header.cwd, self._folder) if self._by_directory else self._folder
        return JsonlStorage.create(folder / session_file_name(header.timestamp, header.id))

    def open(self, location: str, *, reading: bool = False) -> JsonlStorage:
        return JsonlStorage.open(Path(location).absolute(), reading=reading)

    def sessions(self, *, cwd: str | os.PathLike[str] | None = None) -> list[SessionInfo]:
        if not self._by_directory:
            return list_sessions(self._folder, cwd=cwd)
        if cwd is not None:
            return list_sessions(session_folder(cwd, self._folder), cwd=cwd)
        return latest_first(info for folder in subfolders(self._folder) for info in list_sessions(folder))

    def find(self, text: str) -> str:
        return str(find_session(text, self._folder, root=self._folder if self._by_directory else None))

    def search(
        self, words: str, *, cwd: str | os.PathLike[str] | None = None, limit: int = 50
    ) -> list[SearchHit]:
        query = Query(words)
        hits: list[SearchHit] = []
        for info in self.sessions(cwd=cwd) if query else ():
            if len(hits) >= limit:
                break
            hits += _hits(info, query, limit - len(hits))
        return hits

    def rename(self, location: str, name: str) -> None:
        with closing(_current(self.open(location))) as storage:
            append_name(storage, name)

    def delete(self, location: str) -> Deletion:
        path = Path(location).absolute()
        if os.path.isfile(path):  # noqa: PTH113 - what is none, or out of reach, `delete_file` names
            with closing(self.open(location)) as file:
                _, line = next(file.lines(), (0, b""))
                shared = file.shared()
            if decode_header(line) is None:
                raise SessionFileError(path, "it is no session file; nothing was deleted")
            if shared:
                raise still_open(path, "nothing was deleted")
        return delete_file(path)

    def close(self) -> None:
        pass


def _current(file: JsonlStorage) -> Storage:
    """The lines of a file as version 3. Closes the file and raises where it is no session."""
    lines = file.lines()
    _, line = next(lines, (0, b""))
    header = decode_header(line)
    if header is None:
        file.close()
        raise SessionFileError(file.path, "it is no session file; it was left as it is")
    if header.version >= VERSION:
        return file
    from cantle_session.storage.legacy import LegacyStorage

    return LegacyStorage(file, header, lines)


def _hits(info: SessionInfo, query: Query, limit: int) -> list[SearchHit]:
    """The last hits in a file, the latest first. The file is read line by line."""
    found: deque[SearchHit] = deque(maxlen=limit)
    assert info.path is not None
    try:
        with info.path.open("rb") as file:
            for line in file:
                if query.may_be_in(line) and (hit := hit_in(line, info, query)) is not None:
                    found.append(hit)
    except OSError:
        pass  # it went away, or may not be read, since it was listed
    return list(found)[::-1]


if TYPE_CHECKING:
    _: type[SessionStore] = FolderStore
