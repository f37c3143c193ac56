"""`cantle sessions show`: what a session holds, what a model is told of it, and what is added to it."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence

from cantle.cli.session_places import SessionPlaces, warn_of
from cantle.console import Results
from cantle.sessions_command.descriptions import describe
from cantle.sessions_command.table import cut, edge, local_time, one_line, quantity
from cantle_ai.codec import JsonObject, encode_json
from cantle_session.entries import Entry
from cantle_session.session import Session
from cantle_session.stamps import milliseconds

__all__ = ["show"]

_KIND_WIDTH = 14
_NARROWEST = 40
"""Columns that a line has at least, behind what moves it to the right."""
_DEEPEST = 24
"""Branches of branches that are still moved to the right, in a tree."""


def show(options: argparse.Namespace) -> int:
    """Print the session's entries, the branch where it stands or all, and with `follow` those that come."""
    places = SessionPlaces.of(options.session_dir)
    with places.open(options.session) as session:
        entries = session.walk(whole=options.tree)
        warn_of(session, options.session)  # all was read, so all is known
        results = Results()
        if options.json:
            _say_records(results, session, entries, context=options.context)
        else:
            _say_head(results, session)
            if options.context:
                from cantle.sessions_command.context_table import context_table

                results.say(context_table(session))
            elif options.tree:
                _say_tree(results, session, list(entries))
            else:
                _say_entries(results, session, entries)
        if options.follow:
            _follow(results, session, as_json=options.json)
        return results.code


def _say_head(results: Results, session: Session) -> None:
    """What the session is, and an empty line."""
    rows = [("session", session.id), ("name", session.name or ""), ("folder", session.header.cwd)]
    started = milliseconds(session.header.timestamp)
    rows += [
        ("kept in", session.location),
        ("started", "" if started is None else local_time(started)),
        ("copied from", session.header.parent_session or ""),
    ]
    results.say("".join(f"{name:<13}{one_line(value)}\n" for name, value in rows if value) + "\n")


def _say_tree(results: Results, session: Session, entries: Sequence[Entry]) -> None:
    labels, width = session.labels(), edge()
    for entry, depth in _tree(session, entries):
        results.say(_line(entry, labels, width, here=entry.id == session.leaf_id, depth=depth))


def _say_entries(results: Results, session: Session, entries: Iterable[Entry]) -> None:
    labels, width = session.labels(), edge()
    elsewhere = sum(1 for _ in session.links())
    for entry in entries:
        results.say(_line(entry, labels, width))
        if results.code:
            return
        elsewhere -= 1
    if elsewhere > 0:
        are = "is" if elsewhere == 1 else "are"
        results.say(f"\n{quantity(elsewhere, 'entry')} more {are} on other branches: --tree shows them.\n")


def _line(entry: Entry, labels: dict[str, str], width: int, *, here: bool = False, depth: int = 0) -> str:
    """An entry in at most `width` columns, or a few more where it is moved far to the right."""
    kind, text = describe(entry)
    label = f"[{one_line(labels[entry.id])}] " if entry.id in labels else ""
    mark = "* " if here else ""
    indent = "  " * min(depth, _DEEPEST)
    line = f"{indent}{one_line(entry.id):<8}  {kind:<{_KIND_WIDTH}}  {mark}{label}{text}".rstrip()
    return cut(line, max(width, len(indent) + _NARROWEST)) + "\n"


def _tree(session: Session, entries: Sequence[Entry]) -> Iterator[tuple[Entry, int]]:
    """All entries, each branch whole before the next, with the number of branchings that led to them.

    In a damaged file several entries can have one id. Those that no way leads to come last.
    """
    places = {entry.id: place for place, entry in enumerate(entries)}
    shown = bytearray(len(entries))
    waiting = [(entry_id, 0) for entry_id in reversed(session.roots())]
    while waiting:
        entry_id, depth = waiting.pop()
        place = places[entry_id]
        if shown[place]:
            continue
        shown[place] = True
        yield entries[place], depth
        children = session.children(entry_id)
        deeper = depth + (len(children) > 1)
        waiting.extend((child, deeper) for child in reversed(children))
    for place, entry in enumerate(entries):
        if not shown[place]:
            yield entry, 0


def _say_records(results: Results, session: Session, entries: Iterable[Entry], *, context: bool) -> None:
    """The header and the entries, or what becomes of them, one JSON object a line."""
    if context:
        from cantle.sessions_command.context_table import context_records

        _say_lines(results, context_records(session))
        return
    _say_lines(results, [session.header.to_json()])
    _say_lines(results, (entry.to_json() for entry in entries))


def _say_lines(results: Results, records: Iterable[JsonObject]) -> None:
    for record in records:
        results.say(encode_json(record).decode("utf-8", "replace") + "\n")
        if results.code:
            return


def _follow(results: Results, session: Session, *, as_json: bool) -> None:
    """Print what is added to the session until nobody reads, or the user has enough."""
    code = results.code
    while not code:
        for entry in session.follow(_PATIENCE):
            if as_json:
                _say_lines(results, [entry.to_json()])
            else:
                results.say(_line(entry, {}, edge()))
            if code := results.code:
                break


_PATIENCE = 60.0
"""Seconds that one wait for more takes at most."""
