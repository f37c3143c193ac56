"""What a compaction of a session sums up, and what it keeps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from cantle_agent.messages import AgentMessage
from cantle_session.compaction.cuts import Cut, all_but_the_question, choose_cut, everything
from cantle_session.compaction.files import FileLists, without_lists
from cantle_session.compaction.settings import CompactionSettings
from cantle_session.entries import CompactionEntry
from cantle_session.errors import SessionError
from cantle_session.tokens import estimate_tokens, sent_messages, size_of_sent

if TYPE_CHECKING:
    from cantle_session.compaction.summary import Summary
    from cantle_session.projection import Projected
    from cantle_session.session import Session

__all__ = ["CompactionPlan", "NothingToCompact", "plan_compaction", "record"]


class NothingToCompact(SessionError):
    """The context is so short that a summary would not make it shorter."""


class CompactionPlan(Struct, frozen=True, kw_only=True):
    """What a compaction sums up, and what it keeps."""

    leaf_id: str
    """Where the session stood when this was planned."""
    first_kept_entry_id: str | None
    """What stays begins here. None: nothing stays but the summary."""
    messages: Sequence[AgentMessage]
    """What is summed up, oldest first, without what `turn` has."""
    turn: Sequence[AgentMessage] = ()
    """The beginning of the turn that the cut goes through, summed up apart; empty where it goes between turns."""
    previous_summary: str | None = None
    """The summary of an earlier compaction, which is carried on in the new one."""
    files: FileLists = FileLists()
    """What was read and changed so far, by the earlier summary and by what is summed up now."""
    tokens_before: int = 0
    """The size of the context."""
    tokens_kept: int = 0
    """The estimated size of what stays, without the summary."""


def plan_compaction(
    session: Session,
    settings: CompactionSettings,
    *,
    window: int | None = None,
    question_stays: bool = False,
) -> CompactionPlan:
    """Where to cut the context at the session's leaf. Changes nothing.

    With a `window`, the settings are fitted to it, and what stays leaves the reserve free: if need be, nothing
    but the summary stays of a run whose last tool gave too much. With `question_stays`, what the user said
    last and nobody answered is not summed up, however long it is. Raises :class:`NothingToCompact`.
    """
    leaf_id = session.leaf_id
    sent = sent_messages(session.projected())
    previous = sent[0].entry if sent and isinstance(sent[0].entry, CompactionEntry) else None
    rest = sent if previous is None else sent[1:]
    messages = [place.message for place in rest]
    cut = _cut(messages, settings, window, question_stays)
    if cut is None or leaf_id is None:
        raise NothingToCompact("there is nothing to compact yet: the conversation is short enough as it is")
    carried = FileLists.of_summaries(place.entry for place in sent[: len(sent) - len(rest) + cut.kept])
    return CompactionPlan(
        leaf_id=leaf_id,
        first_kept_entry_id=_entry_id(rest, cut),
        messages=messages[: cut.turn],
        turn=messages[cut.turn : cut.kept],
        previous_summary=None if previous is None else _notes_of(previous) or None,
        files=carried.then(FileLists.of_messages(messages[: cut.kept])),
        tokens_before=size_of_sent(sent).tokens,
        tokens_kept=sum(map(estimate_tokens, messages[cut.kept :])),
    )


def record(
    session: Session, plan: CompactionPlan, summary: Summary, *, from_hook: bool | None = None
) -> CompactionEntry:
    """Add the compaction behind the leaf. What was added there since the plan was made stays, too.

    Raises :class:`~cantle_session.errors.SessionError` when the session has gone to another branch.
    """
    place = session.leaf_id
    while place is not None and place != plan.leaf_id:
        place = session.parent(place)
    if place is None:
        raise SessionError(
            "the session went to another branch while it was summed up; nothing was compacted, try again"
        )
    return session.append_compaction(
        summary.text,
        plan.first_kept_entry_id,
        plan.tokens_before,
        details=summary.details,
        usage=summary.usage,
        from_hook=from_hook,
    )


def _cut(
    messages: Sequence[AgentMessage],
    settings: CompactionSettings,
    window: int | None,
    question_stays: bool,
) -> Cut | None:
    if window is None:
        return choose_cut(messages, settings.keep_recent_tokens)
    fitted = settings.within(window)
    cut = choose_cut(messages, fitted.keep_recent_tokens)
    kept = messages if cut is None else messages[cut.kept :]
    if messages and sum(map(estimate_tokens, kept)) > window - fitted.reserve_tokens:
        return all_but_the_question(messages) if question_stays else everything(messages)
    return cut


def _notes_of(previous: CompactionEntry) -> str:
    """The earlier summary, without the lists that its details have as well."""
    return without_lists(previous.summary) if FileLists.of_summaries([previous]) else previous.summary


def _entry_id(places: Sequence[Projected], cut: Cut) -> str | None:
    return places[cut.kept].entry.id if cut.kept < len(places) else None
