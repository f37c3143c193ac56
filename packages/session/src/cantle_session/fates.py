"""What becomes of each entry of a path when a model is asked."""

from __future__ import annotations

from collections.abc import Iterator, Set
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from cantle_agent.messages import AgentMessage
from cantle_ai.codec import JsonObject
from cantle_ai.messages import AssistantMessage
from cantle_session.entries import ContextEditEntry, Entry
from cantle_session.messages import BashExecutionMessage
from cantle_session.projection import Projected, message_of
from cantle_session.tokens import estimate_tokens, sent_messages

if TYPE_CHECKING:
    from cantle_session.session import Session

__all__ = ["EntryFate", "Fate", "fates"]

Fate: TypeAlias = Literal["sent", "summed up", "edited out", "replaced", "excluded", "not sent"]
"""`sent` as it is, or `replaced`: with other content. `summed up`: a compaction stands for it. `edited out`: a
context edit took it away. `excluded`: a shell record that was marked so. `not sent`: it never is, such as a change
of the model, or a failed answer."""


class EntryFate(Struct, frozen=True):
    """What becomes of one entry. `tokens` is what it takes, or would take if it were sent, by estimate."""

    entry: Entry
    fate: Fate
    tokens: int


def fates(session: Session) -> Iterator[EntryFate]:
    """The entries from the root to the session's leaf, each with its fate. Reads all of them, one after the other."""
    projected = session.projected()
    in_view = {place.entry.id: place for place in projected}
    sent = {place.entry.id for place in sent_messages(projected)}
    edits = {
        entry.target_id: entry.replacement
        for entry in session.walk(kind="context_edit")
        if isinstance(entry, ContextEditEntry)
    }
    return (_fate(entry, in_view.get(entry.id), sent, edits) for entry in session.walk())


def _fate(
    entry: Entry, place: Projected | None, sent: Set[str], edits: dict[str, JsonObject | None]
) -> EntryFate:
    omitted = entry.id in edits and edits[entry.id] is None
    message = message_of(entry, {} if omitted else edits) if place is None else place.message
    if message is None:
        return EntryFate(entry, "not sent", 0)
    if entry.id in sent:
        return EntryFate(entry, "replaced" if entry.id in edits else "sent", estimate_tokens(message))
    tokens = _would_take(message)
    if omitted:
        return EntryFate(entry, "edited out", tokens)
    if isinstance(message, BashExecutionMessage) and message.exclude_from_context:
        return EntryFate(entry, "excluded", tokens)
    if place is None and tokens and not (isinstance(message, AssistantMessage) and message.failed):
        return EntryFate(entry, "summed up", tokens)
    return EntryFate(entry, "not sent", 0)


def _would_take(message: AgentMessage) -> int:
    if isinstance(message, BashExecutionMessage) and message.exclude_from_context:
        message = replace(message, exclude_from_context=False, shown=[], wire={})
    return estimate_tokens(message)
