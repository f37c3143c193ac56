"""One compaction: planned, shown to hooks, summed up, written down, and taken over by the agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET
from msgspec.structs import replace

from cantle.errors import CompactionError
from cantle.hub.events import CompactionReason, CompactionResult
from cantle.hub.history_hooks import CallOff, CompactionRequest, OwnSummary
from cantle.hub.recorder import saving
from cantle.hub.summaries import SummaryRequests, ask_hooks, sentence
from cantle_ai.abort import AbortSignal
from cantle_session.compaction.plan import CompactionPlan, NothingToCompact, record
from cantle_session.compaction.summary import Summary, SummaryFailed, summarize
from cantle_session.errors import SessionError

if TYPE_CHECKING:
    from cantle.hub.compaction import Compactor
    from cantle_agent.agent import Agent
    from cantle_session.session import Session

__all__ = ["make_compaction"]

_NEXT = "The session is as it was; try again later, or with another model."


async def make_compaction(
    compactor: Compactor,
    reason: CompactionReason,
    signal: AbortSignal,
    *,
    instructions: str | None,
    will_retry: bool,
) -> CompactionResult:
    """Compact once. Raises what :meth:`cantle.hub.compaction.Compactor.compact` does, and AbortError."""
    parts = compactor.parts
    agent, session = parts.agent, parts.session
    plan = _plan(compactor, will_retry)
    request = CompactionRequest(
        plan=plan,
        settings=compactor.settings(),
        reason=reason,
        instructions=instructions,
        will_retry=will_retry,
        session=session,
        signal=signal,
    )
    own = await ask_hooks("before_compact", compactor.before, request, signal, agent.grace)
    if isinstance(own, CallOff):
        why = f": {own.reason}" if own.reason else ""
        raise CompactionError(f"The compaction was called off{why}.", aborted=True)
    requests = SummaryRequests(compactor, source="compaction", reason=reason)
    try:
        with requests.counted("compaction"):
            if own is None:
                summary = await _ask(requests, agent, plan, instructions, signal)
            else:
                plan = _with_own_cut(compactor, plan, own)
                summary = Summary(own.summary, own.usage, own.details)
            with saving():
                entry = record(session, plan, summary, from_hook=own is not None)
    except SummaryFailed as error:
        raise CompactionError(sentence(str(error)), _NEXT) from None
    except SessionError as error:
        raise CompactionError(sentence(str(error))) from None
    compactor.usage.add_usage(summary.usage)
    agent.messages[:] = session.context().messages
    return CompactionResult(
        summary=entry.summary,
        first_kept_entry_id=entry.first_kept_entry_id,
        tokens_before=plan.tokens_before,
        estimated_tokens_after=compactor.context_usage().tokens,
        usage=entry.usage,
        details=entry.details,
    )


def _plan(compactor: Compactor, will_retry: bool) -> CompactionPlan:
    try:
        return compactor.plan(will_retry=will_retry)
    except NothingToCompact as error:
        raise CompactionError(sentence(str(error))) from None


def _with_own_cut(compactor: Compactor, plan: CompactionPlan, own: OwnSummary) -> CompactionPlan:
    kept = own.first_kept_entry_id
    if kept is UNSET or kept == plan.first_kept_entry_id:
        return plan
    if kept is not None and not _on_path(compactor.parts.session, kept):
        raise CompactionError(
            f"before_compact failed: there is no entry {kept!r} on this branch to begin with."
        )
    return replace(plan, first_kept_entry_id=kept)


def _on_path(session: Session, entry_id: str) -> bool:
    try:
        return session.common_ancestor(entry_id, session.leaf_id) == entry_id
    except (KeyError, TypeError):  # no such entry, or no id at all
        return False


async def _ask(
    requests: SummaryRequests,
    agent: Agent,
    plan: CompactionPlan,
    instructions: str | None,
    signal: AbortSignal,
) -> Summary:
    return await summarize(
        plan,
        agent.stream,
        requests.model,
        instructions=instructions,
        signal=signal,
        options=await requests.options(signal),
        attempts=requests.attempts(signal),
    )
