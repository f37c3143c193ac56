"""Shrinks what a model is sent of a long session, and nothing that is on disk.

    if compaction_needed(context_size(session.projected()).tokens, model.context_window, settings):
        plan = plan_compaction(session, settings, window=model.context_window)
        summary = await summarize(plan, stream, model)
        record(session, plan, summary)

===============  ===================================================================================
`settings`       when a context is too full, and how much of it stays
`cuts`           where a conversation can be cut
`plan`           what is summed up, what is kept
`summary`        the request for a summary, through a stream function that is given
`transcript`     a conversation as one text with a label for each role
`files`          the files that the calls of a conversation read and changed
`prompts`        what the model that sums up is told
`drift`          how much is still known after compactions upon compactions
===============  ===================================================================================

When to compact, what waits meanwhile, and who is told, is for whoever runs the session.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cantle_session.compaction.plan import CompactionPlan, NothingToCompact, plan_compaction, record
    from cantle_session.compaction.settings import CompactionSettings, compaction_needed
    from cantle_session.compaction.summary import Summary, SummaryAborted, SummaryFailed, summarize

__all__ = [
    "CompactionPlan",
    "CompactionSettings",
    "NothingToCompact",
    "Summary",
    "SummaryAborted",
    "SummaryFailed",
    "compaction_needed",
    "plan_compaction",
    "record",
    "summarize",
]

_HOMES = {
    "CompactionPlan": "plan",
    "CompactionSettings": "settings",
    "NothingToCompact": "plan",
    "Summary": "summary",
    "SummaryAborted": "summary",
    "SummaryFailed": "summary",
    "compaction_needed": "settings",
    "plan_compaction": "plan",
    "record": "plan",
    "summarize": "summary",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
