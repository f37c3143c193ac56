"""Which sessions there are, from the heads and tails of their files.

A session can be as large as it likes: only the first lines of its file, up to the first message of the user,
and the last ones, back to the last message, are read. So a name given in the middle of a long session is not
seen. Files that are no sessions are passed over.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from cantle_ai.codec import JsonObject, decode_object
from cantle_ai.messages import UserMessage, message_from_json
from cantle_ai.system_errors import reason_of
from cantle_session.errors import SessionFileError, SessionLookupError
from cantle_session.folders import absolute_directory
from cantle_session.lines import decode_header
from cantle_session.stamps import milliseconds

__all__ = ["SessionInfo", "find_session", "latest", "list_sessions", "session_info"]

_BLOCK = 16_384
_HEAD_LIMIT = 1 << 18
_TAIL_LIMIT = 1 << 20


class SessionInfo(Struct, frozen=True, kw_only=True):
    """What a list says about a session. Times are Unix milliseconds."""

    location: str
    """What opens it: a path, or a place in a store."""
    path: Path | None = None
    """The file, where there is one."""
    id: str
    cwd: str
    created: int
    last_message_at: int
    """When the last message was; the time of creation where none is near the end of the file."""
    name: str | None = None
    first_message: str = ""
    """The text of the user's first message."""
    parent_session: str | None = None
    """The location of the session that it was made from."""
    size: int = 0
    """Bytes."""


def list_sessions(
    directory: str | os.PathLike[str], *, cwd: str | os.PathLike[str] | None = None
) -> list[SessionInfo]:
    """The sessions in a folder, the one with the latest message first. With `cwd`, only that directory's.

    A folder that is not there holds none. Raises :class:`SessionFileError` for one that may not be read.
    """
    wanted = None if cwd is None else absolute_directory(cwd)
    infos = [info for path in _files(Path(directory)) if (info := session_info(path)) is not None]
    infos = [info for info in infos if wanted is None or info.cwd == wanted]
    return sorted(infos, key=lambda info: (info.last_message_at, info.location), reverse=True)


def latest(directory: str | os.PathLike[str], *, cwd: str | os.PathLike[str] | None = None) -> Path | None:
    """The file of the session in a folder whose last message is the latest."""
    infos = list_sessions(directory, cwd=cwd)
    return infos[0].path if infos else None


def find_session(
    text: str, directory: str | os.PathLike[str], *, root: str | os.PathLike[str] | None = None
) -> Path:
    """The file that `text` means: a path, or an id or the beginning of one.

    Ids are looked for in `directory`, then in all folders under `root`. Raises :class:`SessionLookupError` when
    there is none, or more than one.
    """
    if "/" in text or os.sep in text or text.endswith(".jsonl"):
        return Path(text)
    for folders in ([Path(directory)], _children(root)):
        found = _with_id(text, folders)
        if len(found) > 1:
            listed = ", ".join(map(str, found[:5]))
            raise SessionLookupError(
                f"{text!r} fits {len(found)} sessions; give more of the id, or a path: {listed}"
            )
        if found:
            return found[0]
    raise SessionLookupError(
        f"there is no session whose id begins with {text!r}; give another id, or the path of a session file"
    )


def session_info(path: Path) -> SessionInfo | None:
    """What the head and tail of a file say; None when it is no session, or cannot be read."""
    try:
        fd = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except OSError:
        return None
    try:
        status = os.fstat(fd)
        return _info(fd, status.st_size, path) if stat.S_ISREG(status.st_mode) else None
    except OSError:
        return None
    finally:
        os.close(fd)


def _info(fd: int, size: int, path: Path) -> SessionInfo | None:
    head = _head(fd, size)
    header = decode_header(head[0]) if head else None
    if header is None:
        return None
    entries = [raw for line in head[1:] if (raw := _object(line)) is not None]
    ending, last_message_at = _ending(fd, size)
    names = [raw.get("name") for raw in (*entries, *ending) if raw.get("type") == "session_info"]
    created = milliseconds(header.timestamp) or 0
    return SessionInfo(
        location=str(path),
        path=path,
        size=size,
        id=header.id,
        cwd=header.cwd,
        created=created,
        last_message_at=last_message_at or created,
        name=names[-1] or None if names and isinstance(names[-1], str) else None,
        first_message=next((text for raw in entries if (text := _user_text(raw)) is not None), ""),
        parent_session=header.parent_session,
    )


def _head(fd: int, size: int) -> list[bytes]:
    """The lines at the beginning, up to the user's first message; what is there of it if it is very long."""
    data = b""
    lines: list[bytes] = []
    while len(data) < min(size, _HEAD_LIMIT) and not any(_USER in line for line in lines):
        block = _read_at(fd, len(data), max(_BLOCK, len(data)))
        if not block:
            break
        data += block
        lines = data.split(b"\n")
        if len(data) < size:
            lines.pop()
    return [line for line in lines if line.strip()]


def _ending(fd: int, size: int) -> tuple[list[JsonObject], int | None]:
    """The entries at the end, from the last message on, and when that was."""
    length = _BLOCK
    while True:
        start = max(0, size - length)
        lines = _read_at(fd, start, size - start).split(b"\n")
        found: list[JsonObject] = []
        # The first piece is the rest of a line, or the header.
        for line in reversed(lines[1:]):
            raw = _object(line) if line.strip() else None
            if raw is None:
                continue
            found.append(raw)
            if raw.get("type") == "message":
                return found[::-1], _message_time(raw)
        if start == 0 or length >= _TAIL_LIMIT:
            return found[::-1], None
        length *= 4


def _object(line: bytes) -> JsonObject | None:
    try:
        return decode_object(line)
    except ValueError:
        return None


def _user_text(raw: JsonObject) -> str | None:
    message = raw.get("message")
    user = message_from_json(message) if isinstance(message, dict) else None
    return user.text if isinstance(user, UserMessage) else None


def _message_time(raw: JsonObject) -> int | None:
    match raw:
        case {"message": {"timestamp": int(timestamp)}} if timestamp > 0:
            return timestamp
        case {"timestamp": str(timestamp)}:
            return milliseconds(timestamp)
    return None


def _read_at(fd: int, offset: int, size: int) -> bytes:
    os.lseek(fd, offset, os.SEEK_SET)
    return os.read(fd, size)


def _files(folder: Path) -> Iterator[Path]:
    try:
        with os.scandir(folder) as listed:
            names = sorted(entry.name for entry in listed if entry.name.endswith(".jsonl"))
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as problem:
        raise SessionFileError(
            folder, f"could not be listed: {reason_of(problem)}; check its permissions"
        ) from None
    for name in names:
        yield folder / name


def _with_id(text: str, folders: Sequence[Path]) -> list[Path]:
    """The files in `folders` whose id is `text`; failing that, begins with it."""
    ids = [(path, _id_of(path)) for folder in folders for path in _files(folder)] if text else []
    exact = [path for path, session_id in ids if session_id == text]
    return exact or [path for path, session_id in ids if session_id.startswith(text)]


def _children(root: str | os.PathLike[str] | None) -> list[Path]:
    """The folders in a folder; none where there is no such folder."""
    try:
        return [] if root is None else sorted(path for path in Path(root).iterdir() if path.is_dir())
    except (FileNotFoundError, NotADirectoryError):
        return []


def _id_of(path: Path) -> str:
    """The id in a file's name; the one in its header where the name is of another form."""
    if _NAME.match(path.name):
        return path.stem.partition("_")[2]
    info = session_info(path)
    return "" if info is None else info.id


_NAME = re.compile(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{3}Z_")
_USER = b'"role":"user"'
