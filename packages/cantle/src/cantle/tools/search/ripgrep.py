"""ripgrep as the reader of files: where it is, and what it says of the files that it is given.

It gets the names of files from our walk, some hundreds at a time, and the expression in words that it shares
with us. So neither its ignore rules nor its configuration have a say, and any of its versions will do.

    {"type": "begin", "data": {"path": …}}                      path and lines are {"text": …}, or
    {"type": "match", "data": {"lines": …, "line_number": 7}}   {"bytes": …} in base64 where they
    {"type": "context", "data": {"lines": …, …}}                are not UTF-8
    {"type": "end", "data": …}
    {"type": "summary", "data": …}                              when all files were searched
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct, field

from cantle.tools.blocking import Check
from cantle.tools.process_signals import KILL, signal_group
from cantle.tools.search.lines import KEPT, Line
from cantle.tools.search.nodes import Node

if TYPE_CHECKING:
    import subprocess

__all__ = ["ARGUMENT_BYTES", "Halt", "Ripgrep", "RipgrepError", "find_ripgrep"]

_PIECE = 1 << 16
_MESSAGE = 1 << 21
"""Bytes of one message; a longer one is of a line that is not held."""
# Room for the environment and the other arguments is left in what a command line may have.
ARGUMENT_BYTES = 24_000 if sys.platform == "win32" else 100_000
"""Bytes of file names that one call is given."""


class RipgrepError(Exception):
    """It did not search all of the files, for a reason that is not in the files."""


class Halt:
    """Ends the process that runs at the moment, and each that would start later. From any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._halted = False
        self._process: subprocess.Popen[bytes] | None = None

    def __call__(self) -> None:
        with self._lock:
            self._halted = True
            if self._process is not None:
                _end(self._process)

    def watch(self, process: subprocess.Popen[bytes] | None) -> None:
        """Take this process for the one that runs; None when it has ended."""
        with self._lock:
            self._process = process
            if process is not None and self._halted:
                _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill it; and its group, for an `rg` may be a script that starts another, which holds the pipe that we read."""
    if process.returncode is None and not signal_group(process.pid, KILL):
        process.kill()


def find_ripgrep() -> str | None:
    """The program beside the interpreter, where the extra `search` puts it, or on the path."""
    import shutil

    name = "rg.exe" if sys.platform == "win32" else "rg"
    beside = Path(sys.executable).parent / name if sys.executable else None
    if beside is not None and os.access(beside, os.X_OK):
        return str(beside)
    found = shutil.which(name)
    # Never one that lies in the folder that is worked in.
    return found if found is not None and Path(found).is_absolute() else None


class _Text(Struct):
    text: str | None = None
    base64: str | None = field(default=None, name="bytes")

    def data(self) -> bytes:
        if self.text is not None:
            return self.text.encode("utf-8")
        from base64 import b64decode

        return b64decode(self.base64 or "")


class _Data(Struct):
    path: _Text | None = None
    lines: _Text | None = None
    line_number: int | None = None


class _Message(Struct):
    type: str
    data: _Data | None = None


class Ripgrep:
    """The program with an expression, ready to search files of one folder."""

    def __init__(self, program: str, root: str, node: Node, *, context: int, most: int, halt: Halt) -> None:
        """`most` matching lines are reported of each file. Paths are those from `root`."""
        from cantle.tools.search.expressions import ripgrep_source

        self._root = root
        self._halt = halt
        self.failed = False
        # --text: what is text is decided by us, with the same rule for both ways of reading.
        self._words = [
            *(program, "--no-config", "--json", "--text", "--threads=1", "--no-mmap", "--no-messages", "-uu"),
            *(f"--max-count={most}", f"--context={context}", "--regexp", ripgrep_source(node), "--"),
        ]

    def search(self, paths: Sequence[bytes], check: Check) -> Iterator[tuple[bytes, Iterator[Line]]]:
        """The files with matches, in the order of `paths`, each with its lines, which come as they are found.

        Both raise :class:`RipgrepError`, with nothing wrong in what came before; the lines also when one is too
        long to be held, and then the next files come all the same. Afterwards, `failed` says whether there were
        files that could not be read.
        """
        import subprocess

        try:
            process = subprocess.Popen(
                [*self._words, *(os.fsdecode(b"./" + path) for path in paths)],
                cwd=self._root,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={name: value for name, value in os.environ.items() if name != "RIPGREP_CONFIG_PATH"},
                process_group=None if sys.platform == "win32" else 0,
            )
        except (OSError, ValueError) as problem:
            raise RipgrepError(str(problem)) from None
        self._halt.watch(process)
        try:
            yield from _files(_messages(process, check))
            self.failed = process.wait() > 1
        finally:
            _end(process)
            self._halt.watch(None)
            if process.stdout is not None:
                process.stdout.close()
            process.wait()


def _files(messages: Iterator[_Message | None]) -> Iterator[tuple[bytes, Iterator[Line]]]:
    for message in messages:
        # Lines that nobody wanted, and the end of their file, are passed over.
        if message is None:
            continue
        if message.type == "summary":
            return
        if message.type == "begin" and message.data is not None and message.data.path is not None:
            path = message.data.path.data()
            if os.sep == "\\":
                path = path.replace(b"\\", b"/")
            yield path.removeprefix(b"./"), _lines(messages)
    raise RipgrepError("it ended before it was done")


def _lines(messages: Iterator[_Message | None]) -> Iterator[Line]:
    for message in messages:
        if message is None:
            raise RipgrepError("a line is too long to be held")
        if message.type == "end":
            return
        if message.data is not None and message.data.lines is not None:
            line = message.data.lines.data().removesuffix(b"\n")[:KEPT]
            yield Line(message.data.line_number or 0, line, message.type == "match")
    raise RipgrepError("it ended within a file")


def _messages(process: subprocess.Popen[bytes], check: Check) -> Iterator[_Message | None]:
    """The messages one by one; None for one that is too long to be held."""
    assert process.stdout is not None
    decode = msgspec.json.Decoder(_Message).decode
    descriptor = process.stdout.fileno()
    kept: list[bytes] = []
    size = 0
    while piece := os.read(descriptor, _PIECE):
        check()
        first, *others = piece.split(b"\n")
        if size <= _MESSAGE:
            kept.append(first)
        size += len(first)
        for following in others:
            try:
                yield decode(b"".join(kept)) if size <= _MESSAGE else None
            except msgspec.DecodeError as problem:
                raise RipgrepError(str(problem)) from None
            kept, size = [following], len(following)
    check()
