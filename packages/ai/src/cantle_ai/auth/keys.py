"""What a configured key or header stands for.

    sk-abc123          itself
    $NAME, ${NAME}     an environment variable, also inside other text: "Bearer $TOKEN"
    $$, $!             a literal `$` and `!`
    !command           what the shell command prints, run each time the value is needed

A `$` that begins none of these stands for itself. Values are resolved at each request and never kept, and no
error quotes a value, a command or what a command printed: errors end in session files.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from cantle_ai.errors import ConfigurationError

if TYPE_CHECKING:
    from asyncio.subprocess import Process

__all__ = ["COMMAND_SECONDS", "filled", "missing_variables", "needed_variables", "resolve_value"]

COMMAND_SECONDS = 30.0
"""How long a key command may take: long enough for a person to unlock a key ring."""

_OUTPUT_LIMIT = 65_536
_PLACEHOLDER = r"\{([A-Za-z_][A-Za-z0-9_]*)\}"
_REFERENCE = r"\$(?:\{(?P<braced>[A-Za-z_][A-Za-z0-9_]*)\}|(?P<plain>[A-Za-z_][A-Za-z0-9_]*)|(?P<sign>[$!]))"


def missing_variables(value: str, environ: Mapping[str, str]) -> list[str]:
    """The variables that `value` refers to and that are unset or empty, each once, in order. Runs nothing."""
    if value.startswith("!") or "$" not in value:
        return []
    names = (found["braced"] or found["plain"] for found in re.finditer(_REFERENCE, value))
    return list(dict.fromkeys(name for name in names if name and not environ.get(name)))


def needed_variables(address: str) -> list[str]:
    """The variables that an address has `{NAME}` placeholders for, in order."""
    return re.findall(_PLACEHOLDER, address) if "{" in address else []


def filled(address: str, environ: Mapping[str, str], *, name: str) -> str:
    """An address with its `{NAME}` placeholders filled from the environment. `name` is the provider's.

    Raises :class:`ConfigurationError` when one of the variables is not set.
    """

    def stands_for(found: re.Match[str]) -> str:
        value = environ.get(found[1], "").strip()
        if not value:
            raise ConfigurationError(
                None, f"The provider {name} needs the environment variable {found[1]}, which is not set"
            )
        return value

    return re.sub(_PLACEHOLDER, stands_for, address)


async def resolve_value(
    value: str, environ: Mapping[str, str], *, name: str, timeout: float = COMMAND_SECONDS
) -> str:
    """What `value` stands for now. `name` says in errors whose value it is; `timeout` bounds a command, in seconds.

    Raises :class:`ConfigurationError` when a variable is not set, or a command fails, prints nothing, more
    than one line or too much, or takes too long.
    """
    if "$" not in value and not value.startswith("!"):
        return value
    if value.startswith("!"):
        return await _command_output(value[1:], environ, name, timeout)
    missing = missing_variables(value, environ)
    if missing:
        raise ConfigurationError(
            None, f"{name} refers to ${missing[0]}, which is not set. Set that environment variable"
        )

    def stands_for(found: re.Match[str]) -> str:
        variable = found["braced"] or found["plain"]
        return environ[variable] if variable else found["sign"]

    return re.sub(_REFERENCE, stands_for, value)


async def _command_output(command: str, environ: Mapping[str, str], name: str, timeout: float) -> str:
    import asyncio

    process = await _started(command, environ)
    try:
        async with asyncio.timeout(timeout):
            output = await _first_bytes(process)
            status = await process.wait() if len(output) <= _OUTPUT_LIMIT else 0
        problem = f"failed with exit status {status}" if status else _unusable(output)
    except TimeoutError:
        output, problem = b"", f"did not end within {timeout:g} s"
    finally:
        await _end(process)
    if problem is not None:
        raise ConfigurationError(None, f"The command for {name} {problem}. Run it in a shell to see why")
    return output.decode("utf-8").strip()


async def _started(command: str, environ: Mapping[str, str]) -> Process:
    """Start it. Cancelled meanwhile, it is stopped: asyncio itself would stop the shell and leave its children."""
    import asyncio
    import subprocess

    starting = asyncio.create_task(
        asyncio.create_subprocess_shell(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=dict(environ),
            start_new_session=True,
        )
    )
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        await _end(await starting)
        raise


async def _first_bytes(process: Process) -> bytes:
    """What it prints, up to a little more than is allowed."""
    assert process.stdout is not None
    parts: list[bytes] = []
    size = 0
    while size <= _OUTPUT_LIMIT and (part := await process.stdout.read(_OUTPUT_LIMIT)):
        parts.append(part)
        size += len(part)
    return b"".join(parts)


def _unusable(output: bytes) -> str | None:
    if len(output) > _OUTPUT_LIMIT:
        return f"printed more than {_OUTPUT_LIMIT // 1024} KB"
    try:
        text = output.decode("utf-8").strip()
    except UnicodeDecodeError:
        return "printed something that is not UTF-8 text"
    if not text:
        return "printed nothing"
    return None if text.isprintable() else "printed more than one line of text"


async def _end(process: Process) -> None:
    """Stop the command with everything that it started. On Windows, the shell alone."""
    import os
    import signal

    try:
        if sys.platform != "win32":
            os.killpg(process.pid, signal.SIGKILL)
        elif process.returncode is None:
            process.kill()
    except (ProcessLookupError, PermissionError):
        pass
    await process.wait()
    # A child in a group of its own may hold the pipe open for ever; only the transport can let go of it.
    process._transport.close()  # type: ignore[attr-defined]
