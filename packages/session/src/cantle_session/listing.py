"""Which sessions there are, from the heads and tails of their files.

A session can be as large as it likes: only the beginning of its file is read, up to the user's first message,
and the end, back to the last message. So a name given in the middle of a long session is not seen. Most of a
file's bytes are in long messages, and of these, too, only as much is read as the list shows. Files that are no
sessions are passed over.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from cantle_ai.codec import JsonObject, decode_json, decode_object
from cantle_ai.messages import UserMessage, message_from_json
from cantle_ai.system_errors import reason_of
from cantle_session.errors import SessionFileError, SessionLookupError
from cantle_session.folders import absolute_directory, is_database
from cantle_session.lines import decode_header
from cantle_session.stamps import milliseconds

__all__ = [
    "FIRST_MESSAGE",
    "SessionInfo",
    "file_with_id",
    "find_session",
    "latest",
    "latest_first",
    "list_sessions",
    "message_time",
    "parents",
    "session_info",
    "subfolders",
    "user_text",
]

_HEAD_BLOCK = 1024
_TAIL_BLOCK = 512
_HEAD_LIMIT = 1 << 18
_TAIL_LIMIT = 1 << 20
_NO_TIME = 1 << 62
"""From here on a number is no time, and may be too large for a database."""
NAMED_AT_ONCE = 5
"""How many sessions are named of those that an id fits."""
FIRST_MESSAGE = 200
"""How many characters of the first message are shown."""


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
    """How the user's first message begins: :data:`FIRST_MESSAGE` characters at most."""
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
    return latest_first(info for info in infos if wanted is None or info.cwd == wanted)


def latest_first(infos: Iterable[SessionInfo]) -> list[SessionInfo]:
    """The order of every list: the session with the latest message first."""
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
    for folders in ([Path(directory)], [] if root is None else subfolders(Path(root))):
        found = _with_id(text, folders)
        if len(found) > 1:
            shown: list[object] = [_id_of(path) for path in found[:NAMED_AT_ONCE]]
            if text in shown:  # several have this very id
                shown = list(found[:NAMED_AT_ONCE])
            listed = ", ".join(map(str, shown)) + (", …" if len(found) > NAMED_AT_ONCE else "")
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
    header = decode_header(head.lines[0]) if head.lines else None
    if header is None:
        return None
    ending, last_message_at = _ending(fd, size)
    begun = [raw for line in head.lines[1:] if _NAMED in line and (raw := _object(line)) is not None]
    names = [raw.get("name") for raw in (*begun, *ending) if raw.get("type") == "session_info"]
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
        first_message=head.text,
        parent_session=header.parent_session,
    )


class _Head(Struct):
    """The lines at the beginning of a file, and how the first message of the user begins."""

    lines: list[bytes]
    text: str = ""


def _head(fd: int, size: int) -> _Head:
    data = _read_at(fd, 0, _HEAD_BLOCK)
    looked = 0
    while True:
        whole = len(data) >= size
        while (match := _USER.search(data, looked)) is not None:
            start, end = data.rfind(b"\n", 0, match.start()) + 1, data.find(b"\n", match.end())
            if end < 0 and not whole:
                text = _beginning(data[start : match.start()], data[match.start() :])
            else:
                end = len(data) if end < 0 else end
                raw = _object(data[start:end])
                text = None if raw is None else user_text(raw)
            if text is not None:
                return _Head(_lines(data[:start]), text[:FIRST_MESSAGE])
            if end < 0:
                break
            looked = end
        if whole or len(data) >= _HEAD_LIMIT or not _may_be_session(data):
            return _Head(_lines(data if whole else data[: data.rfind(b"\n") + 1]))
        block = _read_at(fd, len(data), len(data))
        if not block:
            size = len(data)
        data += block


def _may_be_session(data: bytes) -> bool:
    """Whether a file that begins so can have a header: one that has none need not be read on."""
    first, end, _ = data.removeprefix(_BOM).lstrip().partition(b"\n")
    return first.startswith(b"{") and (not end or decode_header(first) is not None)


def _beginning(before: bytes, data: bytes) -> str | None:
    """The text of a message that goes on behind `data`, which begins with a role; None when that is not enough.

    `before` is the part of its line in front of that: the role of a message is the first one in its line.
    """
    match = _TEXT.match(data)
    if match is None or not before.startswith(_MESSAGE) or b'"role"' in before:
        return None
    text = _CUT_ESCAPE.sub(b"", match[1]).decode("utf-8", "ignore")
    try:
        value = decode_json(f'"{text}"')
    except ValueError:
        return None
    # The last character may be half of one.
    return value if isinstance(value, str) and len(value) > FIRST_MESSAGE else None


def _ending(fd: int, size: int) -> tuple[list[JsonObject], int | None]:
    """The entries at the end, from the last message on, and when that was."""
    start = max(0, size - _TAIL_BLOCK)
    data = _read_at(fd, start, size - start)
    while True:
        # The first piece is the rest of a line, or the header.
        first, *lines = data.split(b"\n")
        found: list[JsonObject] = []
        for line in reversed(lines):
            raw = _object(line) if line.strip() else None
            if raw is None:
                continue
            found.append(raw)
            if raw.get("type") == "message":
                return found[::-1], message_time(raw)
        if start and (stamped := _STAMPED.search(first)) is not None:
            return found[::-1], int(stamped[1])
        if start == 0 or len(data) >= _TAIL_LIMIT:
            return found[::-1], None
        size, start = start, max(0, start - len(data))
        data = _read_at(fd, start, size - start) + data


def _lines(data: bytes) -> list[bytes]:
    return [line for line in data.split(b"\n") if line.strip()]


def _object(line: bytes) -> JsonObject | None:
    try:
        return decode_object(line)
    except ValueError:
        return None


def user_text(raw: JsonObject) -> str | None:
    """The text of the entry `raw`; None when it is no message of the user."""
    message = raw.get("message")
    user = message_from_json(message) if isinstance(message, dict) else None
    return user.text if isinstance(user, UserMessage) else None


def message_time(raw: JsonObject) -> int | None:
    """When the message of the entry `raw` was, in Unix milliseconds; None when neither of them says it."""
    match raw:
        case {"message": {"timestamp": int(timestamp)}} if 0 < timestamp < _NO_TIME:
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
        raise _unlisted(folder, problem) from None
    for name in names:
        yield folder / name


def _with_id(text: str, folders: Sequence[Path]) -> list[Path]:
    """The files in `folders` whose id is `text`; failing that, begins with it."""
    ids = [(path, _id_of(path)) for folder in folders for path in _files(folder)] if text else []
    exact = [path for path, session_id in ids if session_id == text]
    return exact or [path for path, session_id in ids if session_id.startswith(text)]


def file_with_id(session_id: str, folder: Path) -> Path | None:
    """The first file in a folder that holds the session with this id."""
    return next((path for path in _files(folder) if _id_of(path) == session_id), None)


def parents(infos: Iterable[SessionInfo]) -> dict[str, str]:
    """Which of some sessions was made from which: the location of a fork to that of its origin.

    A fork names its origin as it was reached then, so links are followed. One that was moved since is still found,
    by the id in its name.
    """
    by_place: dict[str, str] = {}
    by_id: dict[str, str] = {}
    listed = list(infos)
    for info in listed:
        by_place[_place(info.location)] = info.location
        by_id.setdefault(info.id, info.location)
    found = {}
    for info in listed:
        if info.parent_session is not None:
            named = Path(info.parent_session).stem.partition("_")[2]
            parent = by_place.get(_place(info.parent_session)) or by_id.get(named)
            if parent is not None and parent != info.location:
                found[info.location] = parent
    return found


def _place(location: str) -> str:
    return location if is_database(location) else os.path.realpath(location)


def subfolders(folder: Path) -> list[Path]:
    """The folders in a folder; none where there is no such folder. Raises :class:`SessionFileError`."""
    try:
        return sorted(path for path in folder.iterdir() if path.is_dir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as problem:
        raise _unlisted(folder, problem) from None


def _unlisted(folder: Path, problem: OSError) -> SessionFileError:
    return SessionFileError(folder, f"could not be listed: {reason_of(problem)}; check its permissions")


def _id_of(path: Path) -> str:
    """The id in a file's name; the one in its header where the name is of another form."""
    if _NAME.match(path.name):
        return path.stem.partition("_")[2]
    info = session_info(path)
    return "" if info is None else info.id


_NAME = re.compile(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{3}Z_")
_NAMED = b'"session_info"'
_MESSAGE = b'{"type":"message",'
_BOM = b"\xef\xbb\xbf"
_USER = re.compile(rb'"role"\s*:\s*"user"')
_TEXT = re.compile(
    rb'"role":"user","content":(?:\[\{"type":"text","text":)?"((?:[^"\\\x00-\x1f]|\\["\\/bfnrtu])*)'
)
"""The role and the text of a user's message, as they are written, until its end or that of what was read."""
_CUT_ESCAPE = re.compile(rb"\\u[0-9A-Fa-f]{0,3}$")
_STAMPED = re.compile(
    rb'"(?:stopReason":"\w+"|isError":(?:true|false)),"timestamp":([1-9]\d{0,15})'
    rb'(?:,"\w+":(?:"[^"\\]*"|[\d.]+|true|false))*\}\}\r?$'
)
"""How the line of an answer or of a result ends: when it was, without what it says."""
