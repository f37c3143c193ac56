"""A session: what was said and chosen, entry by entry, and what it comes to.

folder = session_folder(cwd, sessions_root)
with Session.create(cwd, folder) as session:
    session.append_message(UserMessage("Hello"))
    context = session.context()
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from msgspec.structs import replace

from cantle_agent.messages import AgentMessage
from cantle_ai.codec import Json, JsonObject
from cantle_ai.content import UserContent
from cantle_ai.messages import encode_message, now_ms
from cantle_ai.usage import Usage, total_usage
from cantle_session.entries import (
    VERSION,
    BranchSummaryEntry,
    CompactionEntry,
    ContextEditEntry,
    CustomEntry,
    CustomMessageEntry,
    Entry,
    LabelEntry,
    MessageEntry,
    ModelChangeEntry,
    SessionHeader,
    SessionInfoEntry,
    ThinkingLevelChangeEntry,
    UsageEntry,
    usage_of,
)
from cantle_session.errors import SessionFileError, no_session
from cantle_session.folders import absolute_directory, is_database, session_file_name
from cantle_session.kept import Kept, SessionWarning
from cantle_session.lines import Link, decode_header, encode_header
from cantle_session.projection import Projected, SessionContext, project, projected
from cantle_session.stamps import check_session_id, iso_time, new_session_id
from cantle_session.storage.jsonl import JsonlStorage
from cantle_session.tail import older_thinking_level
from cantle_session.tree import ROOT

if TYPE_CHECKING:
    from cantle_session.storage.port import Storage
    from cantle_session.storage.store import SessionStore

__all__ = ["Session", "SessionWarning", "new_header"]


class Session:
    """The history of one conversation.

    A new session is kept from its first user message on; what was added before is kept with it, so one that was
    never used leaves nothing. Every `append_…` returns once its entry is kept, adds it behind `leaf_id` and moves
    that there. If it raises :class:`SessionFileError`, nothing was added, on disk or here.

    A long session opens without being read: from its end back to what the latest compaction keeps. What asks for
    more (`entries`, `branch`, `labels` …) reads it once. Where an id is no entry's,
    :class:`~cantle_session.errors.UnknownEntryError`, which is a KeyError, says so.

    Other processes may have the same session open: each goes on from its own leaf, so two of them make two
    branches, and `warnings` says so. Not thread-safe.
    """

    def __init__(self, header: SessionHeader, kept: Kept) -> None:
        """For :meth:`create`, :meth:`open` and :meth:`in_memory`."""
        self.header = header
        self._kept = kept

    @classmethod
    def create(
        cls,
        cwd: str | os.PathLike[str],
        directory: str | os.PathLike[str] | SessionStore,
        *,
        session_id: str | None = None,
        parent: str | os.PathLike[str] | None = None,
    ) -> Self:
        """A new session for the working directory `cwd`, kept in `directory`, which is made when it is needed; in a
        store, or at the location of one, such as `sqlite:sessions.db`.

        `parent` is the file of the session that this one came from. Raises ValueError for a `session_id` that
        cannot be part of a file name.
        """
        header = new_header(absolute_directory(cwd), session_id, parent)
        if isinstance(directory, str) and is_database(directory):
            from cantle_session.storage.store import open_store

            directory = open_store(directory)
        if isinstance(directory, str | os.PathLike):
            file = Path(directory) / session_file_name(header.timestamp, header.id)
            storage: Storage = JsonlStorage.create(file)
        else:
            storage = directory.create(header)
        return cls(header, Kept(storage, [encode_header(header)]))

    @classmethod
    def in_memory(cls, cwd: str | os.PathLike[str], *, session_id: str | None = None) -> Self:
        """A new session that is written nowhere."""
        from cantle_session.storage.memory import MemoryStorage

        header = new_header(absolute_directory(cwd), session_id, None)
        storage = MemoryStorage()
        storage.append([encode_header(header)])
        return cls(header, Kept(storage))

    @classmethod
    def open(cls, location: str | os.PathLike[str], *, reading: bool = False) -> Self:
        """The session in a file, or at a location such as `sqlite:sessions.db#ID`, standing at its last entry.

        A spoilt line is left out, left as it was on disk, and named in `warnings`. With `reading`, which promises
        that nothing will be added, others who have the file open are not told of this one, nor this one of them.
        Raises :class:`SessionFileError` when it cannot be read or is no session.
        """
        if is_database(location):
            from cantle_session.storage.store import open_storage

            return cls.of(open_storage(location, reading=reading))
        return cls.of(JsonlStorage.open(Path(location).absolute(), reading=reading))

    @classmethod
    def of(cls, storage: Storage) -> Self:
        """The session that a storage keeps; it is closed with it. Raises as :meth:`open` does, and closes it then."""
        try:
            return cls._of(storage)
        except SessionFileError:
            storage.close()
            raise

    @classmethod
    def _of(cls, storage: Storage) -> Self:
        lines = storage.lines()
        key, line = next(lines, (0, b""))
        header = decode_header(line)
        if header is None:
            raise no_session(storage.path or storage.location, line)
        if header.version < VERSION and isinstance(storage, JsonlStorage):
            from cantle_session.storage.legacy import LegacyStorage

            storage = LegacyStorage(storage, header, lines)
            lines = storage.lines()
            next(lines)
            header = replace(header, version=VERSION)
        kept = Kept(storage)
        if header.version > VERSION:
            kept.warn(f"version {header.version} is newer than {VERSION}, the one that is known here")
        if header.odd_version is not None:
            kept.warn(f"says version {header.odd_version}, which is none; it is read as {VERSION}", key)
        kept.begin(lines)
        return cls(header, kept)

    # --- what it is

    def __repr__(self) -> str:
        tail = self._kept.tail
        known = len(self._kept.history if tail is None else tail.links)
        entries = f"{'' if tail is None else 'the last '}{known} entr{'y' if known == 1 else 'ies'}"
        return f"<Session {self.id}, {entries}, {self.location or 'in memory'}>"

    @property
    def warnings(self) -> list[SessionWarning]:
        """What a person should know about it."""
        return self._kept.warnings

    @property
    def id(self) -> str:
        return self.header.id

    @property
    def file(self) -> Path | None:
        """The session's file, which may not have been written yet; None for one in memory or in a database."""
        return self._kept.storage.path

    @property
    def location(self) -> str:
        """What :meth:`open` finds it by; empty for one in memory."""
        return self._kept.storage.location

    @property
    def saved(self) -> bool:
        """Whether it is kept anywhere."""
        return bool(self.location) and self._kept.waiting is None

    @property
    def leaf_id(self) -> str | None:
        """The entry that the next one follows."""
        return self._kept.leaf_id

    @property
    def name(self) -> str | None:
        """The name it was given last, on whichever branch."""
        for entry in self._kept.newest(b'"session_info"'):
            if isinstance(entry, SessionInfoEntry):
                return entry.name or None
        return None

    # --- reading it

    def entry(self, entry_id: str) -> Entry:
        """Raises UnknownEntryError when there is none."""
        (entry,) = self._kept.load([self._kept.position(entry_id)])
        return entry

    def entries(self) -> list[Entry]:
        """All entries, in the order in which they were written."""
        return list(self.walk(whole=True))

    def walk(
        self, leaf_id: str | None = None, *, whole: bool = False, kind: str | None = None
    ) -> Iterator[Entry]:
        """The entries of :meth:`path`, or with `whole` of :meth:`entries`, each decoded when it is its turn; with
        `kind`, only those of this type. `warnings` tells all that is wrong with them from the start.

        Raises UnknownEntryError when there is no entry `leaf_id`.
        """
        positions = self._positions(leaf_id, whole=whole)
        if kind is not None:
            kinds = self._kept.history.tree.kinds
            positions = [position for position in positions if kinds[position] == kind]
        return self._kept.load(positions)

    def links(self) -> Iterator[Link]:
        """Type, id and parent of every entry, in the order in which they were written. None is decoded."""
        tree = self._kept.history.tree
        for position, entry_id in enumerate(tree.ids):
            yield Link(tree.kinds[position], entry_id, self._kept.id_at(tree.parent(position)))

    def path(self, leaf_id: str | None = None, *, behind: str | None = None) -> list[Entry]:
        """The entries from the root to the leaf, or to another entry; with `behind` only those after that entry, where
        it is among them. Raises UnknownEntryError when there is no entry `leaf_id`.
        """
        positions = self._kept.path_to(leaf_id)
        if behind is not None:
            ids = self._kept.history.tree.ids
            at = next((at for at in range(len(positions) - 1, -1, -1) if ids[positions[at]] == behind), -1)
            del positions[: at + 1]
        return list(self._kept.load(positions))

    def lines(self, leaf_id: str | None = None, *, whole: bool = False) -> Iterable[bytes]:
        """The lines of :meth:`path`, or with `whole` of :meth:`entries`, as they are kept: byte for byte, also where
        one is spoilt in front of its entry.
        """
        return self._kept.lines(self._positions(leaf_id, whole=whole))

    def _positions(self, leaf_id: str | None, *, whole: bool) -> Sequence[int]:
        return range(len(self._kept.history)) if whole else self._kept.path_to(leaf_id)

    def parent(self, entry_id: str) -> str | None:
        """The entry that this one follows; None for a root. Raises UnknownEntryError when there is no such entry."""
        if (tail := self._kept.tail) is not None:
            for link in reversed(tail.links[1:]):  # what the first one follows was not read
                if link.id == entry_id:
                    return link.parent_id
        position = self._kept.position(entry_id)
        return self._kept.id_at(self._kept.history.tree.parent(position))

    def children(self, entry_id: str | None) -> list[str]:
        """The entries that follow this one, or the roots for None. Raises UnknownEntryError when there is no such entry."""
        tree = self._kept.history.tree
        position = ROOT if entry_id is None else self._kept.position(entry_id)
        return [tree.ids[child] for child in tree.children(position)]

    def roots(self) -> list[str]:
        """The entries without a parent."""
        return self.children(None)

    def common_ancestor(self, first_id: str | None, second_id: str | None) -> str | None:
        """The deepest entry that both lie behind, one of them perhaps; None where they share no root."""
        if first_id is None or second_id is None:
            return None
        first, second = self._kept.position(first_id), self._kept.position(second_id)
        return self._kept.id_at(self._kept.history.tree.common_ancestor(first, second))

    def labels(self) -> dict[str, str]:
        """The marks that entries have, by their ids. Those of entries that are not here are left out."""
        found: dict[str, str] = {}
        tree = self._kept.history.tree
        for entry in self.walk(whole=True, kind="label"):
            if isinstance(entry, LabelEntry):
                found.pop(entry.target_id, None)
                if entry.label and entry.target_id in tree:
                    found[entry.target_id] = entry.label
        return found

    def context(self) -> SessionContext:
        """What an agent that goes on from the leaf knows: messages, model and thinking level."""
        context = project(self._kept.view())
        tail = self._kept.tail
        if tail is None:
            return context
        if context.model is None:
            return project(self._kept.view(whole=True))
        return replace(context, older_level=self._older_level)

    def _older_level(self) -> str | None:
        def whole() -> str | None:
            return project(self._kept.view(whole=True)).thinking_level

        return older_thinking_level(self._kept.storage, whole)

    def projected(self) -> list[Projected]:
        """The messages of :meth:`context`, each with the entry that it comes from."""
        return projected(self._kept.view())

    def usage(self) -> Usage:
        """What the session took in all, on every branch: answers, also those that failed or that no model is told
        of any more, what tools took themselves, summaries, and entries of usage alone. Reads every entry.
        """
        return total_usage(filter(None, map(usage_of, self._kept.every_entry())))

    # --- moving in it

    def branch(self, entry_id: str) -> None:
        """Stand at another entry: the next one follows it, and begins a branch. Raises UnknownEntryError when there is none.

        Nothing is written, so who opens the session later stands at its last entry.
        """
        if entry_id != self.leaf_id:
            self._kept.stand_at(entry_id)

    def reset_leaf(self) -> None:
        """Stand before the first entry: the next one is a root of its own."""
        self._kept.stand_at(None)

    def pull(self) -> list[Entry]:
        """What other processes have added since the last call, or since the session was opened. The leaf stays."""
        return self._kept.pull()

    def follow(self, seconds: float) -> Iterator[Entry]:
        """What other processes add, as it comes, until nothing has come for so long. Blocks meanwhile."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            if self._kept.storage.wait(left) and (added := self.pull()):
                yield from added
                deadline = time.monotonic() + seconds

    # --- adding to it

    def append_message(self, message: AgentMessage) -> MessageEntry:
        """A finished message. Raises TypeError when it is none, or holds what JSON has no form for."""
        if not isinstance(message, AgentMessage):
            raise TypeError(f"Give a message, such as UserMessage(...), not {type(message).__name__}.")
        encode_message(message)
        with self._kept.turn() as place:
            return self._kept.add(MessageEntry(**place, message=message))

    def append_custom_message(
        self,
        custom_type: str,
        content: str | Sequence[UserContent],
        *,
        display: bool = True,
        details: Json = None,
    ) -> CustomMessageEntry:
        """An extension's note, which a model reads as a user's message. `details` are for programs."""
        with self._kept.turn() as place:
            return self._kept.add(
                CustomMessageEntry(
                    **place, custom_type=custom_type, content=content, display=display, details=details
                )
            )

    def append_model_change(self, provider: str, model_id: str) -> ModelChangeEntry:
        """From here on this model is asked."""
        with self._kept.turn() as place:
            return self._kept.add(ModelChangeEntry(**place, provider=provider, model_id=model_id))

    def append_thinking_level_change(self, level: str) -> ThinkingLevelChangeEntry:
        """From here on the model is asked to think this much."""
        with self._kept.turn() as place:
            return self._kept.add(ThinkingLevelChangeEntry(**place, thinking_level=level))

    def append_session_info(self, name: str) -> SessionInfoEntry:
        """A name for the session, on one line; an empty one takes the name away."""
        with self._kept.turn() as place:
            return self._kept.add(SessionInfoEntry(**place, name=" ".join(name.split())))

    def append_context_edit(self, target_id: str, replacement: JsonObject | None = None) -> ContextEditEntry:
        """From here on a model sees an earlier entry's message not at all, or with the `content` of `replacement`.

        Raises UnknownEntryError when there is no such entry.
        """
        self._kept.check_known(target_id)
        with self._kept.turn() as place:
            return self._kept.add(ContextEditEntry(**place, target_id=target_id, replacement=replacement))

    def append_label(self, target_id: str, label: str | None) -> LabelEntry:
        """A person's mark on an entry; None takes it away. Raises UnknownEntryError when there is no such entry."""
        self._kept.check_known(target_id)
        with self._kept.turn() as place:
            return self._kept.add(LabelEntry(**place, target_id=target_id, label=label or None))

    def append_compaction(
        self,
        summary: str,
        first_kept_entry_id: str | None,
        tokens_before: int,
        *,
        details: Json = None,
        usage: Usage | None = None,
        from_hook: bool | None = None,
    ) -> CompactionEntry:
        """A summary that stands for what comes before an entry of the path; for everything, with None.

        Raises UnknownEntryError when there is no such entry.
        """
        if first_kept_entry_id is not None:
            self._kept.check_known(first_kept_entry_id)
        with self._kept.turn() as place:
            return self._kept.add(
                CompactionEntry(
                    **place,
                    summary=summary,
                    first_kept_entry_id=first_kept_entry_id or place["id"],
                    tokens_before=tokens_before,
                    details=details,
                    usage=usage,
                    from_hook=from_hook,
                )
            )

    def append_branch_summary(
        self,
        from_id: str | None,
        summary: str,
        *,
        details: Json = None,
        usage: Usage | None = None,
        from_hook: bool | None = None,
    ) -> BranchSummaryEntry:
        """What happened on the branch that was left at `from_id`, put where the new branch begins: behind the leaf."""
        with self._kept.turn() as place:
            return self._kept.add(
                BranchSummaryEntry(
                    **place,
                    from_id=from_id,
                    summary=summary,
                    details=details,
                    usage=usage,
                    from_hook=from_hook,
                )
            )

    def append_usage(
        self, kind: str, provider: str, model: str, usage: Usage, *, note: str | None = None
    ) -> UsageEntry:
        """Model work that is no answer. It counts in the session's totals."""
        with self._kept.turn() as place:
            return self._kept.add(
                UsageEntry(**place, kind=kind, provider=provider, model=model, usage=usage, note=note)
            )

    def append_custom(self, custom_type: str, data: Json = None) -> CustomEntry:
        """What an extension wants to find again. No model sees it. Raises TypeError when `data` is not JSON."""
        with self._kept.turn() as place:
            return self._kept.add(CustomEntry(**place, custom_type=custom_type, data=data))

    def close(self) -> None:
        """Let go of the file, with everything on the disk. The session cannot be read or added to afterwards."""
        self._kept.storage.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def new_header(
    cwd: str, session_id: str | None = None, parent: str | os.PathLike[str] | None = None
) -> SessionHeader:
    """The header of a session that begins now, for the absolute path `cwd`. Raises ValueError as
    :meth:`Session.create` does.
    """
    now = now_ms()
    return SessionHeader(
        id=new_session_id(now) if session_id is None else check_session_id(session_id),
        timestamp=iso_time(now),
        cwd=cwd,
        parent_session=None if parent is None else os.fspath(parent),
    )
