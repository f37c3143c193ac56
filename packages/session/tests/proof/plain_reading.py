"""A session's entries read in the plainest way, to hold the real reading against. Slow, and written from the format alone.

An entry is its JSON. Nothing here uses the code under test.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

__all__ = ["Entries", "children", "common_ancestor", "labels", "messages", "model_and_level", "path", "roots"]

Raw: TypeAlias = dict[str, Any]
Entries: TypeAlias = Sequence[Raw]

_OWN_CONTENT = {"user", "assistant", "toolResult", "custom"}


def path(entries: Entries, leaf: str | None) -> list[Raw]:
    """The entries from the root to `leaf`."""
    by_id = {entry["id"]: entry for entry in entries}
    found: list[Raw] = []
    while leaf is not None:
        found.insert(0, by_id[leaf])
        leaf = by_id[leaf]["parentId"]
    return found


def children(entries: Entries, entry_id: str | None) -> list[str]:
    return [entry["id"] for entry in entries if entry["parentId"] == entry_id]


def roots(entries: Entries) -> list[str]:
    return children(entries, None)


def common_ancestor(entries: Entries, one: str, other: str) -> str | None:
    """The deepest entry that is on both paths."""
    on_other = {entry["id"] for entry in path(entries, other)}
    shared = [entry["id"] for entry in path(entries, one) if entry["id"] in on_other]
    return shared[-1] if shared else None


def labels(entries: Entries) -> dict[str, str]:
    """The last label of each entry, on whichever branch it was given."""
    found: dict[str, str] = {}
    for entry in entries:
        if entry["type"] == "label":
            found.pop(entry["targetId"], None)
            if entry.get("label"):
                found[entry["targetId"]] = entry["label"]
    return found


def model_and_level(entries: Entries, leaf: str | None) -> tuple[tuple[str, str] | None, str | None]:
    """What the path says last of the model, by a choice or an answer, and of the thinking level."""
    model = level = None
    for entry in path(entries, leaf):
        if entry["type"] == "model_change":
            model = entry["provider"], entry["modelId"]
        elif entry["type"] == "thinking_level_change":
            level = entry["thinkingLevel"]
        elif entry["type"] == "message" and entry["message"]["role"] == "assistant":
            model = entry["message"]["provider"], entry["message"]["model"]
    return model, level


def messages(entries: Entries, leaf: str | None) -> list[tuple[str, Any]]:
    """What an agent that goes on from `leaf` knows: role and content, or summary, of each message, in order."""
    on_path = path(entries, leaf)
    edits = {entry["targetId"]: entry["replacement"] for entry in on_path if entry["type"] == "context_edit"}
    found = []
    for entry in _selected(on_path):
        message = _message(entry)
        if message is None or (entry["id"] in edits and edits[entry["id"]] is None):
            continue
        role, said = message
        if entry["id"] in edits and role in _OWN_CONTENT:
            said = edits[entry["id"]]["content"]
            if isinstance(said, str) and role in ("assistant", "toolResult"):
                said = [{"type": "text", "text": said}]
        found.append((role, said))
    return found


def _selected(on_path: Entries) -> list[Raw]:
    places = [place for place, entry in enumerate(on_path) if entry["type"] == "compaction"]
    if not places:
        return list(on_path)
    last = places[-1]
    first_kept = on_path[last]["firstKeptEntryId"]
    ids = [entry["id"] for entry in on_path[:last]]
    kept = on_path[ids.index(first_kept) : last] if first_kept in ids else []
    return [
        on_path[last],
        *(entry for entry in kept if entry["type"] != "compaction"),
        *on_path[last + 1 :],
    ]


def _message(entry: Raw) -> tuple[str, Any] | None:
    match entry["type"]:
        case "message":
            message = entry["message"]
            return message["role"], message.get("content", message.get("command"))
        case "custom_message":
            return "custom", entry["content"]
        case "compaction":
            return "compactionSummary", entry["summary"]
        case "branch_summary" if entry["summary"]:
            return "branchSummary", entry["summary"]
    return None
