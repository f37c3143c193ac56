"""The tree of a session as a list of links: what the user said, where history was summed up, what has a label."""

from __future__ import annotations

from cantle.export.branches import Chain, Fork
from cantle.export.conversation import Conversation, way_anchor
from cantle.export.entry_texts import gist, one_line
from cantle.export.figures import counted
from cantle.export.markup import Html, tag, text
from cantle_ai.messages import UserMessage
from cantle_session.entries import BranchSummaryEntry, CompactionEntry, MessageEntry

__all__ = ["outline"]

_OPEN = 30
"""Lines of another branch that are shown unfolded."""


def outline(conversation: Conversation, chain: Chain) -> Html:
    """The list of a chain and, folded into it, of the branches that leave it."""
    rows, _ = _rows(conversation, chain)
    return tag("ol", *rows, class_="tree")


def _rows(conversation: Conversation, chain: Chain) -> tuple[list[Html], int]:
    """The rows of a chain, and how many there are with all that lies in them."""
    rows: list[Html] = []
    count = 0
    for item in chain.items:
        if isinstance(item, Fork):
            for row, size in _ways(conversation, item):
                rows.append(row)
                count += size
            continue
        line = _row(conversation, item)
        if line is not None:
            rows.append(line)
            count += 1
    return rows, count


def _ways(conversation: Conversation, fork: Fork) -> list[tuple[Html, int]]:
    found = []
    for way in fork.ways:
        if way.chain is None:
            continue
        rows, size = _rows(conversation, way.chain)
        link = tag(
            "a",
            text(conversation.title_of(way)),
            tag("small", text(counted(way.messages, "message"))),
            href=f"#{way_anchor(fork, way)}",
        )
        if _row(conversation, way.first) is not None:
            del rows[0]  # the link itself
        inner = tag("details", tag("summary", link), tag("ol", *rows), open=size <= _OPEN)
        found.append((tag("li", inner if rows else link, class_="branch"), size + 1))
    return found


def _row(conversation: Conversation, position: int) -> Html | None:
    entry = conversation.entries[position]
    label = conversation.labels.get(entry.id)
    match entry:
        case MessageEntry(message=UserMessage()):
            kind = "prompt"
        case CompactionEntry() | BranchSummaryEntry():
            kind = "cut"
        case _ if label:
            kind = "marked"
        case _:
            return None
    mark = tag("mark", text(one_line(label, 60))) if label else text("")
    link = tag("a", tag("span", text(gist(entry, 90))), mark, href=f"#{conversation.anchors[position]}")
    return tag("li", link, class_=kind)
