"""`cantle` with tools that do what no tool should. Run as a program; the tests of print mode do."""

from __future__ import annotations

import asyncio
import atexit
import os
import subprocess
import sys
import threading
from pathlib import Path

import cantle.sdk
from cantle.cli import main
from cantle_agent.function_tool import tool
from cantle_agent.tool import Tool

NOISE = "noise of a tool\n"


@tool
def prints() -> str:
    """Write to stdout in every way."""
    print(NOISE)
    os.write(1, NOISE.encode())
    subprocess.run(["echo", NOISE], check=True)
    threading.Thread(target=print, args=[NOISE]).start()
    return "printed"


@tool
def fails() -> str:
    """Raise an exception with a text that is none."""
    raise ValueError("\x00\ud800\x1b[2J" * 1000)


@tool
def recurses() -> str:
    """Never come to an end."""
    return recurses_again()


def recurses_again() -> str:
    return recurses_again()


@tool
def leaves() -> str:
    """End the program."""
    sys.exit(3)


@tool
async def cancels() -> str:
    """Be cancelled by nobody."""
    raise asyncio.CancelledError


@tool
async def waits() -> str:
    """Wait for what never comes."""
    await asyncio.Event().wait()
    return "unreached"


@tool
async def clings() -> str:
    """Wait for what never comes, and again when cancelled."""
    for _ in range(3):
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            continue
    return "unreached"


@tool
def floods() -> str:
    """Answer with more than anybody reads."""
    return "flood\ud800 " * 300_000


@tool
def answers_nothing() -> object:
    """Answer with something that is no text."""
    return {"a": [object(), b"\xff", float("nan")]}


@tool
def moves() -> str:
    """Change the working directory of the whole program."""
    os.chdir("/")
    return "moved"


@tool
def closes() -> str:
    """Close the standard streams."""
    sys.stdout.close()
    sys.stderr.close()
    return "closed"


@tool
def spoils() -> str:
    """Write into the session file."""
    if file := next(Path(os.environ["CANTLE_DIR"]).glob("sessions/*/*.jsonl"), None):
        with file.open("ab") as session:
            session.write(b'{"type":"message","id":\xff\n\n[]\n')
    return "spoilt"


@tool
async def lingers() -> str:
    """Leave tasks, callbacks and threads behind."""
    asyncio.get_running_loop().call_later(0.01, lambda: None)
    clings_on = asyncio.create_task(asyncio.sleep(3600))
    threading.Thread(target=threading.Event().wait, daemon=True).start()
    return f"lingers: {clings_on.done()}"


HOSTILE: dict[str, Tool] = {
    found.name: found for found in list(globals().values()) if isinstance(found, Tool)
}


def count_descriptors() -> None:
    """Write how many descriptors are open to the file that the caller names."""
    Path(os.environ["DESCRIPTORS"]).write_text(str(len(os.listdir("/proc/self/fd"))))


if __name__ == "__main__":
    create = cantle.sdk.create_agent_session

    def create_hostile(**options: object) -> object:
        return create(**{**options, "tools": ["bash", "read", "write", "edit", *HOSTILE.values()]})  # type: ignore[arg-type]

    cantle.sdk.create_agent_session = create_hostile  # type: ignore[assignment]
    atexit.register(count_descriptors)
    sys.exit(main())
