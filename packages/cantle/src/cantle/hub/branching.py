"""Goes to another place in a session's tree, with a summary of the branch that is left if one is wanted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from cantle.errors import CompactionError, SessionError
from cantle.hub.history_hooks import BeforeNavigate, CallOff, NavigationRequest, OwnSummary
from cantle.hub.recorder import saving
from cantle.hub.summaries import SummaryRequests, ask_hooks, sentence
from cantle_ai.abort import AbortError, AbortSignal
from cantle_ai.messages import UserMessage
from cantle_session.branch_summary import (
    BranchPlan,
    plan_branch_summary,
    record_branch_summary,
    summarize_branch,
)
from cantle_session.compaction.summary import Summary, SummaryFailed
from cantle_session.entries import BranchSummaryEntry, CustomMessageEntry, Entry, MessageEntry
from cantle_session.projection import message_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cantle.hub.compaction import Compactor
    from cantle_agent.agent import Agent

__all__ = ["NavigateResult", "navigate", "place_of"]

_STAYS = "The session stays where it is"


class NavigateResult(Struct, frozen=True, kw_only=True):
    """Where a session stands after it was moved."""

    leaf_id: str | None
    """What the next entry follows; None where it will be a root."""
    editor_text: str | None = None
    """What the user had said at the entry that was chosen, to be said anew."""
    summary: BranchSummaryEntry | None = None
    """The summary of the branch that was left; None where none was wanted, or there was nothing to sum up."""


async def navigate(
    compactor: Compactor,
    hooks: Sequence[BeforeNavigate],
    entry_id: str,
    signal: AbortSignal,
    *,
    summarize: bool,
    instructions: str | None,
) -> NavigateResult:
    """Stand at `entry_id`, or before it where the user speaks there. On failure the session stays where it is.

    Raises SessionError when there is no such entry or the session cannot be written, CompactionError when a hook
    or an abort prevented it, or the summary failed.
    """
    parts = compactor.parts
    session, agent = parts.session, parts.agent
    try:
        target = session.entry(entry_id)
    except KeyError:
        raise SessionError(f"There is no entry {entry_id!r} in this session.") from None
    new_leaf, said = place_of(target)
    if entry_id == session.leaf_id and said is None:
        return NavigateResult(leaf_id=new_leaf)
    if not (summarize or hooks):  # nobody asks what is left, which may be long
        _move(compactor, new_leaf)
        return NavigateResult(leaf_id=session.leaf_id, editor_text=said)
    plan = plan_branch_summary(session, new_leaf, _budget(compactor))
    request = NavigationRequest(
        target_id=entry_id,
        new_leaf_id=new_leaf,
        old_leaf_id=plan.from_id,
        common_ancestor_id=plan.common_ancestor_id,
        entries=plan.entries,
        summarize=summarize,
        instructions=instructions,
        session=session,
        signal=signal,
    )
    requests = SummaryRequests(compactor, source="branchSummary")
    try:
        with requests.counted("branch_summary"):
            own = await ask_hooks("before_navigate", hooks, request, signal, agent.grace)
            if isinstance(own, CallOff):
                raise CompactionError(f"{_STAYS}: {own.reason or 'a hook called it off'}.", aborted=True)
            summary = await _summary(requests, agent, plan, own, instructions, signal) if summarize else None
            signal.raise_if_aborted()
            entry = _move(compactor, new_leaf, plan, summary, from_hook=own is not None)
    except AbortError:
        raise CompactionError(f"{_STAYS}: it was stopped.", aborted=True) from None
    except SummaryFailed as error:
        advice = f"{_STAYS}; try again, or leave the branch without a summary."
        raise CompactionError(sentence(str(error)), advice) from None
    return NavigateResult(leaf_id=session.leaf_id, editor_text=said, summary=entry)


def place_of(target: Entry) -> tuple[str | None, str | None]:
    """Where to stand for an entry that was chosen, and what the user had said there."""
    if isinstance(target, CustomMessageEntry) or (
        isinstance(target, MessageEntry) and isinstance(target.message, UserMessage)
    ):
        message = message_of(target, {})
        return target.parent_id, "" if message is None else message.text
    return target.id, None


def _move(
    compactor: Compactor,
    target_id: str | None,
    plan: BranchPlan | None = None,
    summary: Summary | None = None,
    *,
    from_hook: bool = False,
) -> BranchSummaryEntry | None:
    session, agent = compactor.parts.session, compactor.parts.agent
    left = session.leaf_id
    _stand(compactor, target_id)
    entry = None
    if plan is not None and summary is not None:
        try:
            with saving():
                entry = record_branch_summary(session, plan, summary, from_hook=from_hook)
        except SessionError:
            _stand(compactor, left)
            raise
        compactor.usage.add_usage(summary.usage)
    context = session.context()
    agent.messages = context.messages
    compactor.parts.recorder.moved(context.model, context.thinking_level)
    return entry


def _stand(compactor: Compactor, leaf_id: str | None) -> None:
    if leaf_id is None:
        compactor.parts.session.reset_leaf()
    else:
        compactor.parts.session.branch(leaf_id)


def _budget(compactor: Compactor) -> int | None:
    window = compactor.parts.agent.model.context_window
    if window <= 0:
        return None
    return window - min(compactor.parts.settings.branch_summary_reserve, window // 2)


async def _summary(
    requests: SummaryRequests,
    agent: Agent,
    plan: BranchPlan,
    own: OwnSummary | None,
    instructions: str | None,
    signal: AbortSignal,
) -> Summary | None:
    """The summary of the branch: a hook's own, or one that a model is asked for; None without anything to sum up."""
    if own is not None:
        return Summary(own.summary, own.usage, own.details)
    if not plan.messages:
        return None
    return await summarize_branch(
        plan,
        agent.stream,
        requests.model,
        instructions=instructions,
        signal=signal,
        options=await requests.options(signal),
        attempts=requests.attempts(signal),
    )
