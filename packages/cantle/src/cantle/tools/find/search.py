"""One call of `find`: from its arguments to the paths that a model reads."""

from __future__ import annotations

import os
import re
from pathlib import Path

from cantle.tools.blocking import Check
from cantle.tools.paths import existing_path
from cantle.tools.search.globs import GlobError, path_glob
from cantle.tools.search.results import Listing, folder_at, shown_name
from cantle.tools.search.walk import Unreadable, walk
from cantle_agent.tool import ToolError, ToolResult

__all__ = ["search"]


def search(cwd: Path, pattern: str, name: str, limit: int, check: Check) -> ToolResult:
    """The paths below the folder that a model calls `name` which the glob takes. Raises :class:`ToolError`."""
    root = folder_at(existing_path(cwd, name), name)
    expression = _expression(pattern, root)
    listing = Listing()
    unreadable: list[Unreadable] = []
    looked_at = found = 0
    for entry in walk(root, unreadable, check):
        looked_at += 1
        if expression.fullmatch(os.fsdecode(entry.marked)) is None:
            continue
        found += 1
        if found > limit or not listing.add(shown_name(entry.path) + "/" * (entry.kind == "folder")):
            advice = "Narrow the glob." if listing.full else "Narrow the glob, or raise limit."
            listing.note_limit("paths", "resultLimitReached", limit, advice=advice)
            break
    listing.note_unreadable(unreadable)
    entries = "entry" if looked_at == 1 else "entries"
    return listing.result(f"No path matches, among {looked_at:,} {entries}.")


def _expression(pattern: str, root: str) -> re.Pattern[str]:
    glob = pattern
    if os.sep == "\\":
        glob, root = glob.replace("\\", "/"), root.replace("\\", "/")
    # A path from the root of the system is one from the search folder, if it is in there.
    if glob.startswith(f"{root.rstrip('/')}/"):
        glob = glob[len(root.rstrip("/")) :]
    try:
        return path_glob(glob or "*")[0]
    except GlobError as problem:
        raise ToolError(f"The glob {pattern} can't be used: {problem}.") from None
