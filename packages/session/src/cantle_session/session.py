"""A session: what was said and chosen, entry by entry, and what it comes to.

folder = session_folder(cwd, sessions_root)
with Session.create(cwd, folder) as session:
    session.append_message(UserMessage("Hello"))
    context = session.context()
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from cantle_agent.messages import AgentMessage
from cantle_ai.codec import Json, JsonObject
from cantle_ai.messages import AssistantMessage, ToolResultMessage, encode_message, now_ms
from cantle_ai.usage import Usage, total_usage
from cantle_session.entries import (
    VERSION,
    BranchSummaryEntry,
    CompactionEntry,
    ContextEditEntry,
    CustomEntry,
    Entry,
    MessageEntry,
    ModelChangeEntry,
    SessionHeader,
    SessionInfoEntry,
    ThinkingLevelChangeEntry,
    UnknownEntry,
    UsageEntry,
)
from cantle_session.errors import SessionFileError
from cantle_session.folders import absolute_directory, session_file_name
from cantle_session.lines import (
    Link,
    decode_entry,
    decode_header,
    encode_entry,
    encode_header,
    link_of,
    sound_part,
)
from cantle_session.projection import PathView, SessionContext, project
from cantle_session.stamps import check_session_id, iso_time, new_entry_id, new_session_id
from cantle_session.storage.jsonl import JsonlStorage
from cantle_session.tree import ROOT, Tree

if TYPE_CHECKING:
    from typing import TypedDict

    from cantle_session.storage.port import Storage

    class _Place(TypedDict):
        """What every entry has, for the next one."""

        id: str
        parent_id: str | None
        timestamp: str


__all__ = ["Session", "SessionWarning"]

_MOST_WARNINGS = 100

_E = TypeVar("_E", bound=Entry)


class SessionWarning(Struct, frozen=True):
    """Something that a person should know about a session. `line` counts from 1, where it is about one."""

    text: str
    line: int | None = None

    def __str__(self) -> str:
        return self.text if self.line is None else f"line {self.line}: {self.text}"


class Session:
    """The history of one conversation.

    A new session is written from its first user message on; what was added before is written with it, so
    one that was never used leaves no file. Every `append_…` returns once its entry is kept, and adds it
    behind `leaf_id`. If it raises :class:`SessionFileError`, nothing was added, on disk or here.

    Other processes may have the same session open: each goes on from its own leaf, so two of them make two
    branches, and `warnings` says so. Not thread-safe.
    """

    def __init__(self, header: SessionHeader, storage: Storage, file: Path | None) -> None:
        """For :meth:`create`, :meth:`open` and :meth:`in_memory`."""
        self.header = header
        self.warnings: list[SessionWarning] = []
        self._storage = storage
        self._file = file
        self._tree = Tree()
        self._numbers = array("Q")
        self._leaf = ROOT
        self._named = ROOT
        self._waiting: list[bytes] | None = None
        self._crowded = False

    @classmethod
    def create(
        cls,
        cwd: str | os.PathLike[str],
        directory: str | os.PathLike[str],
        *,
        session_id: str | None = None,
        parent: str | os.PathLike[str] | None = None,
    ) -> Self:
        """A new session for the working directory `cwd`, with its file in `directory`, which is made when it is needed.

        `parent` is the file of the session that this one came from. Raises ValueError for a `session_id` that
        cannot be part of a file name.
        """
        header = _new_header(cwd, session_id, parent)
        file = Path(directory) / session_file_name(header.timestamp, header.id)
        session = cls(header, JsonlStorage.create(file), file)
        session._waiting = [encode_header(header)]
        return session

    @classmethod
    def in_memory(cls, cwd: str | os.PathLike[str], *, session_id: str | None = None) -> Self:
        """A new session that is written nowhere."""
        from cantle_session.storage.memory import MemoryStorage

        header = _new_header(cwd, session_id, None)
        storage = MemoryStorage()
        storage.append([encode_header(header)])
        return cls(header, storage, None)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Self:
        """The session in the file `path`, standing at its last line.

        A spoilt line is left out, left as it was on disk, and named in `warnings`. Raises
        :class:`SessionFileError` when the file cannot be read or is no session file.
        """
        file = Path(path).absolute()
        plain = JsonlStorage.open(file)
        lines = plain.pull()
        first = next(lines, None)
        header = None if first is None else decode_header(first[1])
        if header is None:
            plain.close()
            what = "it is empty" if first is None else "its first line is not the header of a session"
            raise SessionFileError(file, f"{what}; it was left as it is, give the path of a session file")
        if header.version >= VERSION:
            return cls._opened(header, plain, lines)
        from cantle_session.storage.legacy import LegacyStorage

        storage = LegacyStorage(plain, header, lines)
        lines = storage.pull()
        next(lines)
        return cls._opened(replace(header, version=VERSION), storage, lines)

    @classmethod
    def _opened(cls, header: SessionHeader, storage: Storage, lines: Iterator[tuple[int, bytes]]) -> Self:
        session = cls(header, storage, storage.path)
        if header.version > VERSION:
            session._warn(f"version {header.version} is newer than {VERSION}, the one that is known here")
        session._take_in(lines)
        session._leaf = len(session._tree) - 1
        if storage.shared():
            session._crowded = True
            session._warn(
                "another process has this session open; both can go on, each on a branch of its own"
            )
        return session

    # --- what it is

    def __repr__(self) -> str:
        count = len(self._tree)
        entries = f"{count} entr{'y' if count == 1 else 'ies'}"
        return f"<Session {self.id}, {entries}, {self._file or 'in memory'}>"

    @property
    def id(self) -> str:
        return self.header.id

    @property
    def file(self) -> Path | None:
        """The session's file, which may not have been written yet; None for one in memory."""
        return self._file

    @property
    def saved(self) -> bool:
        """Whether there is a file."""
        return self._file is not None and self._waiting is None

    @property
    def leaf_id(self) -> str | None:
        """The entry that the next one follows."""
        return None if self._leaf == ROOT else self._tree.ids[self._leaf]

    @property
    def name(self) -> str | None:
        """The name it was given last, on whichever branch."""
        entry = None if self._named == ROOT else self._entry(self._named)
        return entry.name or None if isinstance(entry, SessionInfoEntry) else None

    def entry(self, entry_id: str) -> Entry:
        """Raises KeyError when there is none."""
        position = self._tree.position(entry_id)
        if position is None:
            raise KeyError(entry_id)
        return self._entry(position)

    def entries(self) -> list[Entry]:
        """All entries, in the order in which they were written."""
        return list(self._load(range(len(self._tree))))

    def path(self) -> list[Entry]:
        """The entries from the root to the leaf."""
        return list(self._load(self._tree.path(self._leaf)))

    def context(self) -> SessionContext:
        """What an agent that goes on from the leaf knows: messages, model and thinking level."""
        positions = self._tree.path(self._leaf)
        kinds, ids = self._tree.kinds, self._tree.ids
        return project(
            PathView(
                [kinds[position] for position in positions],
                [ids[position] for position in positions],
                lambda indexes: self._load([positions[index] for index in indexes]),
            )
        )

    def usage(self) -> Usage:
        """What the session took in all, on every branch: answers, also those that failed or that no model is told
        of any more, what tools took themselves, summaries, and entries of usage alone. Reads every entry.
        """
        return total_usage(filter(None, map(_usage_of, self._load(range(len(self._tree))))))

    # --- adding to it

    def append_message(self, message: AgentMessage) -> MessageEntry:
        """A finished message. Raises TypeError when it is none, or holds what JSON has no form for."""
        if not isinstance(message, AgentMessage):
            raise TypeError(f"Give a message, such as UserMessage(...), not {type(message).__name__}.")
        encode_message(message)
        with self._turn() as place:
            return self._add(MessageEntry(**place, message=message))

    def append_model_change(self, provider: str, model_id: str) -> ModelChangeEntry:
        """From here on this model is asked."""
        with self._turn() as place:
            return self._add(ModelChangeEntry(**place, provider=provider, model_id=model_id))

    def append_thinking_level_change(self, level: str) -> ThinkingLevelChangeEntry:
        """From here on the model is asked to think this much."""
        with self._turn() as place:
            return self._add(ThinkingLevelChangeEntry(**place, thinking_level=level))

    def append_session_info(self, name: str) -> SessionInfoEntry:
        """A name for the session, on one line; an empty one takes the name away."""
        with self._turn() as place:
            return self._add(SessionInfoEntry(**place, name=" ".join(name.split())))

    def append_context_edit(self, target_id: str, replacement: JsonObject | None = None) -> ContextEditEntry:
        """From here on a model sees an earlier entry's message not at all, or with the `content` of `replacement`.

        Raises KeyError when there is no such entry.
        """
        if target_id not in self._tree:
            raise KeyError(target_id)
        with self._turn() as place:
            return self._add(ContextEditEntry(**place, target_id=target_id, replacement=replacement))

    def append_custom(self, custom_type: str, data: Json = None) -> CustomEntry:
        """What an extension wants to find again. No model sees it. Raises TypeError when `data` is not JSON."""
        with self._turn() as place:
            return self._add(CustomEntry(**place, custom_type=custom_type, data=data))

    def close(self) -> None:
        """Let go of the file, with everything on the disk. The session cannot be read or added to afterwards."""
        self._storage.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- how

    @contextmanager
    def _turn(self) -> Iterator[_Place]:
        """The place of the next entry, with other writers kept out and what they added taken in."""
        with self._storage.locked():
            if self._waiting is None and self._take_in(self._storage.pull()) and not self._crowded:
                self._crowded = True
                self._warn("another process adds to this session; its entries are a branch of their own")
            yield {
                "id": new_entry_id(self._tree),
                "parent_id": self.leaf_id,
                "timestamp": iso_time(now_ms()),
            }

    def _add(self, entry: _E) -> _E:
        line = encode_entry(entry)
        waiting = self._waiting
        if waiting is None:
            number = self._storage.append([line])
        elif isinstance(entry, MessageEntry) and entry.message.role == "user":
            self._storage.append([*waiting, line])
            number, self._waiting = len(waiting), None
        else:
            number = len(waiting)
            waiting.append(line)
        self._leaf = self._put(Link(entry.type, entry.id, entry.parent_id), number)
        return entry

    def _take_in(self, lines: Iterator[tuple[int, bytes]]) -> bool:
        """Give each line its place in the tree. Whether there was an entry among them."""
        before = len(self._tree)
        for number, line in lines:
            link = link_of(line) or self._rescued(number, line)
            if link is None:
                continue
            if link.type == "session":
                self._warn("is a second header; it was left as it was", number)
                continue
            if link.id in self._tree:
                self._warn(f"has the id of an earlier entry, {link.id!r}", number)
            self._put(link, number)
        for position, problem in self._tree.settle():
            self._warn(f"{problem}, so it begins a branch", self._numbers[position])
        return len(self._tree) > before

    def _rescued(self, number: int, line: bytes) -> Link | None:
        """The place of what is still sound of a spoilt line."""
        part = sound_part(line)
        what = "is not a session entry" if part is None else "is spoilt in front of its last entry"
        self._warn(f"{what}; it was left as it was", number)
        return None if part is None else link_of(part)

    def _put(self, link: Link, number: int) -> int:
        """Add the entry of the line `number` to the tree; gives its position."""
        position = self._tree.add(link.id, link.parent_id, link.type)
        self._numbers.append(number)
        if link.type == "session_info":
            self._named = position
        return position

    def _entry(self, position: int) -> Entry:
        (entry,) = self._load([position])
        return entry

    def _load(self, positions: Sequence[int]) -> Iterator[Entry]:
        numbers = [self._numbers[position] for position in positions]
        waiting = self._waiting
        lines = self._storage.read(numbers) if waiting is None else (waiting[number] for number in numbers)
        for position, line in zip(positions, lines, strict=True):
            try:
                yield decode_entry(line)
            except ValueError:
                self._warn("can no longer be read; its entry is left out", self._numbers[position])
                yield UnknownEntry({"type": self._tree.kinds[position], "id": self._tree.ids[position]})

    def _warn(self, text: str, number: int | None = None) -> None:
        warning = SessionWarning(text, None if number is None else number + 1)
        if len(self.warnings) == _MOST_WARNINGS:
            warning = SessionWarning("there are more warnings than are shown here")
        if len(self.warnings) <= _MOST_WARNINGS and warning not in self.warnings:
            self.warnings.append(warning)


def _usage_of(entry: Entry) -> Usage | None:
    match entry:
        case MessageEntry(message=AssistantMessage() | ToolResultMessage() as message):
            return message.usage
        case CompactionEntry() | BranchSummaryEntry() | UsageEntry():
            return entry.usage
    return None


def _new_header(
    cwd: str | os.PathLike[str], session_id: str | None, parent: str | os.PathLike[str] | None
) -> SessionHeader:
    now = now_ms()
    return SessionHeader(
        id=new_session_id(now) if session_id is None else check_session_id(session_id),
        timestamp=iso_time(now),
        cwd=absolute_directory(cwd),
        parent_session=None if parent is None else os.fspath(parent),
    )
