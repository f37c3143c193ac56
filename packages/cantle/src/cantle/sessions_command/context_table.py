"""What becomes of each entry when a model is asked, and how many tokens it takes."""

from __future__ import annotations

from collections.abc import Iterator

from cantle.sessions_command.descriptions import describe
from cantle.sessions_command.table import one_line, quantity, table
from cantle_ai.codec import JsonObject
from cantle_session.fates import EntryFate, fates
from cantle_session.session import Session

__all__ = ["context_records", "context_table"]


def context_table(session: Session) -> str:
    """A line for each entry of the branch where the session stands, and what is sent in all."""
    entries = sent = tokens = 0

    def rows() -> Iterator[tuple[str, ...]]:
        nonlocal entries, sent, tokens
        yield "entry", "kind", "fate", "tokens", "what it holds"
        for each in fates(session):
            entries += 1
            if each.fate in ("sent", "replaced"):
                sent += 1
                tokens += each.tokens
            yield _row(each)

    shown = table(rows(), right=(3,))
    total = f"{quantity(sent, 'entry')} of {entries:,} sent, about {quantity(tokens, 'token')}"
    return f"{shown}\n{total}\n"


def context_records(session: Session) -> Iterator[JsonObject]:
    """The same as JSON objects."""
    for each in fates(session):
        yield {"id": each.entry.id, "type": each.entry.type, "fate": each.fate, "tokens": each.tokens}


def _row(each: EntryFate) -> tuple[str, ...]:
    kind, text = describe(each.entry)
    return (one_line(each.entry.id), kind, each.fate, f"{each.tokens:,}" if each.tokens else "", text)
