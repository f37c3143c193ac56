"""What was done on a branch that is left, summed up for the branch that is gone to.

    A ─┬─ B ─ C ─ D      the leaf that is left
       └─ E ─ [B, C, D]  the summary, where the new branch begins

It covers the way from the common ancestor to the old leaf, as a model saw it there: a compaction's summary stands
for what it stands for, edits are applied. Within a budget, the newest messages come first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from cantle_agent.messages import AgentMessage
from cantle_ai.abort import AbortSignal
from cantle_ai.model import Model, StreamOptions
from cantle_session.compaction import prompts
from cantle_session.compaction.files import FileLists
from cantle_session.compaction.summary import Attempts, Summarizer, Summary
from cantle_session.compaction.transcript import transcript_part
from cantle_session.entries import BranchSummaryEntry, Entry
from cantle_session.tokens import estimate_tokens_of_text, sent_messages

if TYPE_CHECKING:
    from cantle_ai.stream import StreamFunction
    from cantle_session.projection import Projected
    from cantle_session.session import Session

__all__ = ["BranchPlan", "plan_branch_summary", "record_branch_summary", "summarize_branch"]


class BranchPlan(Struct, frozen=True, kw_only=True):
    """What a summary of the branch that is left covers."""

    from_id: str | None
    """The leaf that is left."""
    target_id: str | None
    """Where the session goes; None: before everything."""
    common_ancestor_id: str | None
    """Where the two ways part; None where they share no root."""
    entries: Sequence[Entry]
    """The entries behind the common ancestor up to the leaf, oldest first."""
    messages: Sequence[AgentMessage]
    """Those of their messages that the budget has room for, oldest first. Empty: there is nothing to sum up."""
    left_out: int = 0
    """How many older messages it has no room for."""
    files: FileLists = FileLists()
    """What was read and changed on the branch, also by what was left out."""


def plan_branch_summary(session: Session, target_id: str | None, budget: int | None = None) -> BranchPlan:
    """What would be summed up if the session went from its leaf to `target_id`. Changes nothing.

    `budget` is in tokens of the text that a model is given; None sets no limit. Raises UnknownEntryError when there is no
    such entry.
    """
    leaf_id = session.leaf_id
    if target_id is not None:
        session.parent(target_id)  # raises for an unknown one, whatever the leaf is
    ancestor = session.common_ancestor(leaf_id, target_id)
    entries = [] if leaf_id is None else session.path(behind=ancestor)
    own = {entry.id for entry in entries}
    branch = [place for place in sent_messages(session.projected()) if place.entry.id in own]
    kept = _newest(branch, budget)
    return BranchPlan(
        from_id=leaf_id,
        target_id=target_id,
        common_ancestor_id=ancestor,
        entries=entries,
        messages=[place.message for place in kept],
        left_out=len(branch) - len(kept),
        files=FileLists.of_summaries(entries).then(FileLists.of_messages(place.message for place in branch)),
    )


async def summarize_branch(
    plan: BranchPlan,
    stream: StreamFunction,
    model: Model,
    *,
    instructions: str | None = None,
    replace_instructions: bool = False,
    signal: AbortSignal | None = None,
    options: StreamOptions | None = None,
    attempts: Attempts | None = None,
) -> Summary:
    """Sum up the branch, with `instructions` beside the usual ones, or in their place.

    Raises :class:`~cantle_session.compaction.summary.SummaryFailed`, and
    :class:`~cantle_session.compaction.summary.SummaryAborted` when `signal` is aborted. ValueError for a plan
    without messages.
    """
    if not plan.messages:
        raise ValueError("the branch has no messages that could be summed up")
    summarizer = Summarizer(stream, model, signal=signal, options=options, attempts=attempts)
    task = prompts.BRANCH
    if replace_instructions and instructions is not None:
        task, instructions = instructions, None
    text = await summarizer.notes(plan.messages, task, instructions=instructions)
    return Summary(text + plan.files.text(), summarizer.usage, plan.files.to_json())


def record_branch_summary(
    session: Session, plan: BranchPlan, summary: Summary, *, from_hook: bool | None = None
) -> BranchSummaryEntry:
    """Add the summary behind the leaf, which has gone to where the new branch begins."""
    return session.append_branch_summary(
        plan.from_id, summary.text, details=summary.details, usage=summary.usage, from_hook=from_hook
    )


def _newest(branch: Sequence[Projected], budget: int | None) -> Sequence[Projected]:
    """As many of the newest as fit, one at least."""
    if budget is None:
        return branch
    size = 0
    for place in range(len(branch) - 1, -1, -1):
        size += estimate_tokens_of_text(transcript_part(branch[place].message)) + 1
        if size > budget and place < len(branch) - 1:
            return branch[place + 1 :]
    return branch
