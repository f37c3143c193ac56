"""One call of `find`: from its arguments to the paths that a model reads."""

from __future__ import annotations

from pathlib import Path

from cantle.tools.blocking import Check
from cantle.tools.paths import existing_path
from cantle.tools.search.globs import path_filter
from cantle.tools.search.results import Listing, folder_at, shown_name
from cantle.tools.search.walk import Unreadable, walk
from cantle_agent.tool import ToolResult

__all__ = ["search"]


def search(cwd: Path, pattern: str, name: str, limit: int, check: Check) -> ToolResult:
    """The paths below the folder that a model calls `name` which the glob takes. Raises :class:`ToolError`."""
    root = folder_at(existing_path(cwd, name), name)
    wanted = path_filter(pattern, root)
    listing = Listing()
    unreadable: list[Unreadable] = []
    looked_at = found = 0
    for entry in walk(root, unreadable, check):
        looked_at += 1
        if not wanted.takes(entry.marked):
            continue
        found += 1
        if found > limit or not listing.add(shown_name(entry.path) + "/" * (entry.kind == "folder")):
            advice = "Narrow the glob." if listing.full else "Narrow the glob, or raise limit."
            listing.note_limit("paths", "resultLimitReached", limit, advice=advice)
            break
    listing.note_unreadable(unreadable)
    entries = "entry" if looked_at == 1 else "entries"
    return listing.result(f"No path matches, among {looked_at:,} {entries}.")
