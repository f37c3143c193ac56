"""Writers that the system kills at a byte that is chosen: `python -m packages.session.tests.proof.doomed_writer`.

Each line of stdin is a :class:`Task`, in JSON. A child carries it out, and says on stdout what was kept: the JSON
of each entry, as soon as the append has returned. Then comes `{"died": <signal, or 0>}`.

A process may not let a file grow beyond its limit: the write that would is cut there, and the one behind it kills
the process. So the child dies with any number of bytes of a line on the disk.
"""

from __future__ import annotations

import os
import signal
import sys
from random import Random
from typing import Any

import msgspec
from msgspec import Struct

from cantle_ai.codec import JsonObject
from cantle_ai.content import TextContent, ToolCall
from cantle_ai.messages import AssistantMessage, ToolResultMessage, UserMessage
from cantle_session.errors import SessionFileError
from cantle_session.moves import move_session
from cantle_session.session import Session
from cantle_session.storage.store import open_store

__all__ = ["Task", "operate", "tell"]


class Task(Struct):
    """What a child does: go on with the session `location`, or begin one in the store of that location."""

    location: str
    seed: int
    steps: int
    limit: int | None = None
    """The size at which no file grows any more; None lets the child live."""
    create: bool = False
    move_to: str | None = None
    """The store to move the session to, in place of writing."""


def operate(session: Session, random: Random, number: int) -> Any:
    """Move about and append one entry, whose kind and size are drawn; gives the entry."""
    ids = [link.id for link in session.links()]
    if ids and random.random() < 0.3:
        session.branch(random.choice(ids))
    text = f"{number} " + "größe\n" * random.choice([0, 1, 10, 100, 1500])
    match random.randrange(8) if ids else 0:
        case 1:
            call = ToolCall(f"call_{number}", "read", {"path": text})
            return session.append_message(
                AssistantMessage([TextContent(text), call], "openai-completions", "p", "m")
            )
        case 2:
            return session.append_message(ToolResultMessage(f"call_{number}", "read", [TextContent(text)]))
        case 3:
            return session.append_compaction(text, random.choice([None, session.leaf_id]), 90_000)
        case 4:
            edits: list[JsonObject | None] = [None, {"content": text}]
            return session.append_context_edit(random.choice(ids), random.choice(edits))
        case 5:
            return session.append_label(random.choice(ids), text)
        case 6:
            left = session.leaf_id
            session.branch(random.choice(ids))
            return session.append_branch_summary(left, text)
        case _:
            return session.append_message(UserMessage(text))


def _carry_out(task: Task) -> None:
    if task.move_to is not None:
        if task.limit is not None:
            _die_at(task.limit)
        move_session(task.location, open_store(task.move_to))
        return
    if task.create:
        session = Session.create("/work", open_store(task.location))
    else:
        session = Session.open(task.location)
    if task.limit is not None:
        _die_at(task.limit)
    random = Random(task.seed)
    for number in range(task.steps):
        try:
            entry = operate(session, random, number)
        except SessionFileError as problem:
            tell({"refused": str(problem)})
        else:
            tell(entry.to_json())
    session.close()


def _die_at(size: int) -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, most))


def tell(what: Any) -> None:
    """Say it on stdout, in one line of JSON."""
    os.write(1, msgspec.json.encode(what) + b"\n")  # at once: whoever is killed flushes nothing


def main() -> None:
    for line in sys.stdin.buffer:
        pid = os.fork()
        if pid == 0:
            _carry_out(msgspec.json.decode(line, type=Task))
            os._exit(0)
        _, status = os.waitpid(pid, 0)
        tell({"died": os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)})


if __name__ == "__main__":
    main()
