"""`cantle sessions list` and `search`: which sessions there are, and in which something was said."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from cantle.cli.session_places import SessionPlaces
from cantle.console import Results, notice
from cantle.errors import UserError
from cantle.sessions_command.descriptions import spoken_kind
from cantle.sessions_command.table import local_time, one_line, size_of, table
from cantle_ai.codec import JsonObject
from cantle_session.listing import SessionInfo
from cantle_session.stamps import iso_time

if TYPE_CHECKING:
    from cantle_session.storage.search import SearchHit

__all__ = ["list_sessions", "rows_of", "search_sessions", "short_ids"]

_SHORTEST = 8
"""Characters of an id that are shown at least."""

_HITS = 50


def list_sessions(options: argparse.Namespace) -> int:
    """Print the sessions of this folder, or of all."""
    places = SessionPlaces.of(options.session_dir)
    every = places.sessions(everywhere=options.all)
    infos = every[: options.limit]
    results = Results()
    if options.json:
        results.say(json.dumps([_record(info) for info in infos]) + "\n")
    elif infos:
        ids = short_ids(info.id for info in every)
        rows = rows_of(infos, ids, all_folders=options.all)
        results.say(table([_head(all_folders=options.all), *rows], right=(2,)))
    else:
        _say_none(places, everywhere=options.all)
    return results.code


def search_sessions(options: argparse.Namespace) -> int:
    """Print the entries that say all of some words. Returns 1 when there are none, as `grep` does."""
    words = " ".join(options.words)
    if not words.strip():
        raise UserError("Nothing was given to look for.", "Give a word.")
    places = SessionPlaces.of(options.session_dir)
    hits = _found(places, words, options.limit or _HITS, everywhere=options.all)
    results = Results()
    if options.json:
        results.say(json.dumps([_hit_record(hit) for hit in hits]) + "\n")
    elif hits:
        ids = short_ids(info.id for info in places.sessions(everywhere=options.all))
        rows = [
            (
                ids.get(hit.id) or one_line(hit.id),  # it may have come since
                one_line(hit.entry_id),
                local_time(hit.timestamp),
                one_line(spoken_kind(hit.kind)),
                one_line(hit.excerpt),
            )
            for hit in hits
        ]
        results.say(table([("session", "entry", "written", "by", "text"), *rows]))
    else:
        elsewhere = "" if options.all else "; --all looks in those of all folders"
        notice(f"no session says that{elsewhere}.")
    return results.code or (0 if hits else 1)


def rows_of(
    infos: Sequence[SessionInfo], ids: Mapping[str, str], *, all_folders: bool
) -> list[tuple[str, ...]]:
    """A row for each session: its id as `ids` has it, last message, size, folder, name."""
    rows = []
    for info in infos:
        folder = (one_line(_shortened(info.cwd)),) if all_folders else ()
        rows.append(
            (
                ids[info.id],
                local_time(info.last_message_at),
                size_of(info.size),
                *folder,
                one_line(info.name or info.first_message),
            )
        )
    return rows


def short_ids(ids: Iterable[str]) -> dict[str, str]:
    """For each id a beginning of it that fits no other of them."""
    ordered = sorted(set(ids))
    lengths = dict.fromkeys(ordered, _SHORTEST)
    for one, other in pairwise(ordered):
        needed = _common(one, other) + 1
        lengths[one] = max(lengths[one], needed)
        lengths[other] = max(lengths[other], needed)
    return {each: one_line(each[:length]) for each, length in lengths.items()}


def _record(info: SessionInfo) -> JsonObject:
    """What a list says about a session, as JSON."""
    return {
        "id": info.id,
        "location": info.location,
        "cwd": info.cwd,
        "created": iso_time(info.created),
        "lastMessageAt": iso_time(info.last_message_at),
        "name": info.name,
        "firstMessage": info.first_message,
        "size": info.size,
        "parentSession": info.parent_session,
    }


def _found(places: SessionPlaces, words: str, limit: int, *, everywhere: bool) -> list[SearchHit]:
    with places.store(everywhere=everywhere) as store:
        return store.search(words, cwd=None if everywhere else places.cwd, limit=limit)


def _hit_record(hit: SearchHit) -> JsonObject:
    return {
        "id": hit.id,
        "location": hit.location,
        "cwd": hit.cwd,
        "name": hit.name,
        "entryId": hit.entry_id,
        "kind": hit.kind,
        "timestamp": iso_time(hit.timestamp),
        "excerpt": hit.excerpt,
        "marks": [list(mark) for mark in hit.marks],
    }


def _head(*, all_folders: bool) -> tuple[str, ...]:
    folder = ("folder",) if all_folders else ()
    return ("id", "last message", "size", *folder, "name, or first message")


def _say_none(places: SessionPlaces, *, everywhere: bool) -> None:
    if everywhere:
        notice("there is no session yet.")
    else:
        notice(f"there is no session of {places.cwd}; --all lists those of all folders.")


def _shortened(folder: str) -> str:
    """A folder with the home folder as `~`."""
    try:
        return str(Path("~") / Path(folder).relative_to(Path.home()))
    except (RuntimeError, ValueError):
        return folder


def _common(one: str, other: str) -> int:
    """How many characters two texts have in common at their beginning."""
    length = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        length += 1
    return length
