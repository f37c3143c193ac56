"""How much of what was said is still known after compactions upon compactions.

    report = await measure_drift(models.stream, model)

The fixture (:mod:`cantle_session.compaction.drift_fixture`) is worked through piece by piece, with a compaction
after each. Then it is counted which facts of all pieces the summary still has: files, decisions, open steps. What
was kept word for word does not count.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from msgspec import Struct

from cantle_ai.context import Context
from cantle_ai.model import Model, StreamOptions
from cantle_ai.usage import Usage, total_usage
from cantle_session.compaction.drift_fixture import Fact, FactKind, pieces
from cantle_session.compaction.plan import plan_compaction, record
from cantle_session.compaction.settings import CompactionSettings
from cantle_session.compaction.summary import summarize
from cantle_session.session import Session
from cantle_session.tokens import estimate_tokens_of_text

if TYPE_CHECKING:
    from cantle_ai.stream import StreamFunction

__all__ = ["ROUNDS", "Drift", "DriftReport", "copied_notes", "measure_drift"]

ROUNDS = (1, 3, 10)
"""After how many compactions it is counted."""

_SETTINGS = CompactionSettings(keep_recent_tokens=20)
"""Keeps the check at the end of a piece, and none of its facts."""
_COPIED = re.compile(r"^(?:\[Assistant\]: |- )?((?:Decision|Open): .+)$", re.MULTILINE)


class Drift(Struct, frozen=True):
    """What is still known after so many compactions."""

    compactions: int
    planted: dict[FactKind, int]
    found: dict[FactKind, int]
    lost: tuple[Fact, ...]
    summary_tokens: int
    """The size of the summary, by estimate."""


class DriftReport(Struct, frozen=True):
    """The counts, and what all of it took."""

    rows: tuple[Drift, ...]
    usage: Usage

    def table(self) -> str:
        """The counts as a table in Markdown."""
        kinds: tuple[FactKind, ...] = ("file", "decision", "open step")
        lines = ["| compactions | files | decisions | open steps | summary |", "|---|---|---|---|---|"]
        for row in self.rows:
            counts = " | ".join(f"{row.found[kind]} of {row.planted[kind]}" for kind in kinds)
            lines.append(f"| {row.compactions} | {counts} | {row.summary_tokens} tokens |")
        return "\n".join(lines)


async def measure_drift(
    stream: StreamFunction,
    model: Model,
    *,
    rounds: Collection[int] = ROUNDS,
    options: StreamOptions | None = None,
) -> DriftReport:
    """Count what survives, with `model` summing up. `rounds` are numbers of compactions from 1 to 10.

    Raises :class:`~cantle_session.compaction.summary.SummaryFailed` when the model gives no summary.
    """
    work = pieces()
    if not rounds or not all(1 <= number <= len(work) for number in rounds):
        raise ValueError(f"Give numbers of compactions from 1 to {len(work)}.")
    planted: list[Fact] = []
    rows: list[Drift] = []
    usages: list[Usage] = []
    with Session.in_memory("/work") as session:
        for number, piece in enumerate(work[: max(rounds)], 1):
            for message in piece.messages:
                session.append_message(message)
            planted += piece.facts
            plan = plan_compaction(session, _SETTINGS)
            summary = await summarize(plan, stream, model, options=options)
            record(session, plan, summary)
            usages.append(summary.usage or Usage())
            if number in rounds:
                rows.append(_counted(number, planted, summary.text))
    return DriftReport(tuple(rows), total_usage(usages))


def copied_notes(context: Context) -> str:
    """A summary as a model without a mind would make it: it copies the lines that say what they are.

    For scripted models (:class:`cantle_ai.testing.ScriptedModel`): what gets lost with it, compaction lost.
    """
    text = "\n".join(message.text for message in context.messages)
    kept = dict.fromkeys(match.group(1) for match in _COPIED.finditer(text))
    return "\n".join(("## Progress", *(f"- {line}" for line in kept)))


def _counted(number: int, planted: Iterable[Fact], summary: str) -> Drift:
    text = _plain(summary)
    counts: dict[FactKind, int] = {}
    found: dict[FactKind, int] = {}
    lost = []
    for fact in planted:
        counts[fact.kind] = counts.get(fact.kind, 0) + 1
        known = all(_plain(mark) in text for mark in fact.marks)
        found[fact.kind] = found.get(fact.kind, 0) + known
        if not known:
            lost.append(fact)
    return Drift(number, counts, found, tuple(lost), estimate_tokens_of_text(summary))


def _plain(text: str) -> str:
    """For comparing: without case, and without the commas in figures."""
    return re.sub(r"(?<=\d),(?=\d{3})", "", text.casefold())
