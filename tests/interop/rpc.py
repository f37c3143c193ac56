"""The reference as a process that is driven over its RPC protocol: what its command line has no words for."""

from __future__ import annotations

import json
import queue
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.interop.programs import MODEL, Program

__all__ = ["EXTENSION", "Record", "Rpc", "kinds"]

Record = dict[str, Any]

_SECONDS = 50.0


class Rpc:
    """One running reference. Everything it says is in `said`, oldest first. Use it with `with`."""

    def __init__(
        self, program: Program, cwd: Path, *words: str, variables: Mapping[str, str] | None = None
    ) -> None:
        self.said: list[Record] = []
        self._lines: queue.Queue[bytes | None] = queue.Queue()
        self._read = 0
        self._number = 0
        self._words = [*program.words, "--mode", "rpc", *MODEL, *words]
        self._cwd = cwd
        self._environment = {**program.environment, **(variables or {})}

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            self._words,
            cwd=self._cwd,
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._reader = threading.Thread(target=self._collect, daemon=True)
        self._reader.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(10)
        self._reader.join(10)
        self._process.stdout.close()

    def send(self, kind: str, **fields: Any) -> str:
        """Send a command without waiting. Returns its id."""
        assert self._process.stdin is not None
        self._number += 1
        line = json.dumps({"id": f"r{self._number}", "type": kind, **fields}) + "\n"
        self._process.stdin.write(line.encode())
        self._process.stdin.flush()
        return f"r{self._number}"

    def ask(self, kind: str, **fields: Any) -> Any:
        """Send a command and return the data of its answer; fails where it was refused."""
        answer = self.answer_to(self.send(kind, **fields))
        assert answer["success"], answer
        return answer.get("data")

    def refused(self, kind: str, **fields: Any) -> str:
        """Send a command that must be refused, and return why it was."""
        answer = self.answer_to(self.send(kind, **fields))
        assert not answer["success"], answer
        return str(answer["error"])

    def answer_to(self, identity: str) -> Record:
        """The answer to a command that was sent."""
        for record in self.said:
            if record["type"] == "response" and record.get("id") == identity:
                return record
        return self.until("response", id=identity)

    def prompt(self, message: str) -> list[Record]:
        """Run a prompt until all is settled. Returns the records of that time."""
        begin = len(self.said)
        self.ask("prompt", message=message)
        self.until("agent_settled")
        return self.said[begin:]

    def until(self, kind: str, **fields: Any) -> Record:
        """Read on until a record of this type with these fields came, and return it."""
        while True:
            record = self._next()
            if record["type"] == kind and all(record.get(name) == value for name, value in fields.items()):
                return record

    def _next(self) -> Record:
        line = self._lines.get(timeout=_SECONDS)
        assert line is not None, f"the reference ended: {self.said[-3:]}"
        record: Record = json.loads(line)
        self.said.append(record)
        return record

    def _collect(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(None)


def kinds(records: Sequence[Record]) -> list[str]:
    """The types of records, in order, without those of which there are as many as the wind blows."""
    return [record["type"] for record in records if record["type"] not in ("message_update", "response")]


EXTENSION = """
export default function (pi) {
  const command = (name, handler) => pi.registerCommand(name, {description: name, handler});
  command("go", async (given, context) => {
    const {id, ...options} = JSON.parse(given);
    pi.appendEntry("went", await context.navigateTree(id, options));
  });
  command("note", async (given) => pi.sendMessage(JSON.parse(given)));
  command("mark", async (given) => {
    const {id, label} = JSON.parse(given);
    pi.setLabel(id, label);
  });
}
"""
"""Commands for what the protocol has none: `/go` moves in the tree, `/note` adds a message, `/mark` labels an entry."""
