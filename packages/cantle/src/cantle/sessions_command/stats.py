"""`cantle sessions stats`: what a session, or all of them, came to."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping

from cantle.cli.session_places import SessionPlaces, warn_of
from cantle.console import Results, notice, warn
from cantle.sessions_command.descriptions import spoken_kind
from cantle.sessions_command.table import cost_of, local_time, one_line, quantity, table
from cantle_ai.codec import JsonObject
from cantle_ai.usage import Usage
from cantle_session.errors import SessionFileError
from cantle_session.session import Session
from cantle_session.stamps import iso_time
from cantle_session.stats import SessionStats, session_stats, total_stats

__all__ = ["show_stats"]


def show_stats(options: argparse.Namespace) -> int:
    """Print the counts of one session, or of those of this folder or all folders together."""
    places = SessionPlaces.of(options.session_dir)
    if options.session is not None:
        with places.open(options.session) as session:
            stats = session_stats(session)
            warn_of(session, options.session)
    else:
        locations = [info.location for info in places.sessions(everywhere=options.all)]
        if not locations and not options.json:
            notice(f"there is no session{'' if options.all else f' of {places.cwd}'}.")
            return 0
        stats = total_stats(_each(locations))
    results = Results()
    results.say(json.dumps(_record(stats)) + "\n" if options.json else _shown(stats))
    return results.code


def _each(locations: list[str]) -> Iterator[SessionStats]:
    """The counts of each session that can be read, one after the other."""
    for location in locations:
        try:
            with Session.open(location, reading=True) as session:
                yield session_stats(session)
        except SessionFileError as error:
            warn(f"left out: {error}.")


def _shown(stats: SessionStats) -> str:
    facts = [
        ("sessions", f"{stats.sessions:,}" if stats.sessions != 1 else ""),
        ("from", "" if stats.first is None else local_time(stats.first)),
        ("to", "" if stats.last is None else local_time(stats.last)),
        ("entries", f"{sum(stats.entries.values()):,} on {quantity(stats.branches, 'branch')}"),
        ("messages", _counts({spoken_kind(role): count for role, count in stats.messages.items()})),
        ("tool calls", _counts(stats.tool_calls)),
        ("tool errors", _counts(stats.tool_errors)),
        ("tokens", _tokens(stats.usage)),
        ("cost", cost_of(stats.usage.cost)),
    ]
    shown = "".join(f"{name:<13}{value}\n" for name, value in facts if value)
    shares = [(one_line(name), f"{share.answers:,}", share.usage) for name, share in stats.models.items()]
    shares += [(name, "", usage) for name, usage in stats.others.items()]
    if not shares:
        return shown
    rows = [("model", "answers", "tokens", "cost")]
    for name, answers, usage in sorted(shares, key=lambda share: -share[2].total_tokens):
        rows.append((name, answers, f"{usage.total_tokens:,}", cost_of(usage.cost)))
    return f"{shown}\n{table(rows, right=(1, 2))}"


def _tokens(usage: Usage) -> str:
    parts = (
        ("input", usage.input),
        ("output", usage.output),
        ("cache read", usage.cache_read),
        ("cache written", usage.cache_write),
    )
    listed = ", ".join(f"{name} {count:,}" for name, count in parts if count)
    return f"{usage.total_tokens:,}{f' ({listed})' if listed else ''}"


def _counts(counts: Mapping[str, int]) -> str:
    """`12 (bash 8, read 4)`: the most frequent first."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    listed = ", ".join(f"{one_line(name)} {count:,}" for name, count in ordered)
    return f"{sum(counts.values()):,} ({listed})" if ordered else ""


def _record(stats: SessionStats) -> JsonObject:
    return {
        "sessions": stats.sessions,
        "first": None if stats.first is None else iso_time(stats.first),
        "last": None if stats.last is None else iso_time(stats.last),
        "entries": dict(stats.entries),
        "branches": stats.branches,
        "messages": dict(stats.messages),
        "toolCalls": dict(stats.tool_calls),
        "toolErrors": dict(stats.tool_errors),
        "usage": stats.usage.to_json(),
        "models": {
            name: {"answers": share.answers, "usage": share.usage.to_json()}
            for name, share in stats.models.items()
        },
        "others": {name: usage.to_json() for name, usage in stats.others.items()},
    }
