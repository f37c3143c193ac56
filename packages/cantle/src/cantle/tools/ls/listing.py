"""One call of `ls`: the entries of a folder as a model reads them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from heapq import nsmallest
from pathlib import Path

from cantle.tools.blocking import Check
from cantle.tools.paths import existing_path
from cantle.tools.search.results import Listing, folder_at, shown_name
from cantle.tools.truncation import MAX_BYTES
from cantle_agent.tool import ToolError, ToolResult
from cantle_ai.system_errors import reason_of

__all__ = ["list_folder"]


def list_folder(cwd: Path, name: str, limit: int, check: Check) -> ToolResult:
    """The first `limit` entries of the folder that a model calls `name`. Raises :class:`ToolError`."""
    folder = folder_at(existing_path(cwd, name), name)
    listing = Listing()
    try:
        # Of a folder with a million entries, no more than are shown are held.
        first = nsmallest(
            min(limit, MAX_BYTES) + 1, _names(folder, check), key=lambda entry: (entry[0].lower(), entry[0])
        )
    except OSError as problem:
        raise ToolError(f"{name} can't be listed: {reason_of(problem)}.") from None
    for entry, is_folder in first[:limit]:
        if not listing.add(shown_name(os.fsencode(entry)) + "/" * is_folder):
            break
    if len(first) > limit or listing.full:
        advice = (
            "Look for some of them with find." if listing.full else "Raise limit, or look for some with find."
        )
        listing.note_limit("entries", "entryLimitReached", limit, advice=advice)
    return listing.result("The folder is empty.")


def _names(folder: str, check: Check) -> Iterator[tuple[str, bool]]:
    with os.scandir(folder) as entries:
        for number, entry in enumerate(entries):
            if number % 1_000 == 0:
                check()
            try:
                is_folder = entry.is_dir()
            except OSError:
                # A link that leads around in a circle.
                is_folder = False
            yield entry.name, is_folder
