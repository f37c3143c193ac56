"""What both programs are asked to do, and what came of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self

__all__ = ["Case", "Run", "Step", "call", "calls", "text"]


@dataclass(frozen=True, kw_only=True)
class Case:
    """One job, given to both programs: each gets its own home and its own copy of the project."""

    name: str
    """Letters, digits and hyphens: the ledger's patterns begin with it."""
    answers: Sequence[Any] = ("Hello.",)
    """What the server plays, as in a scripted-model file. An answer without `usage` gets a fixed one."""
    words: Sequence[str] = ("--mode", "json", "Hi")
    """The command line after the model. `{file}` is the session file, `{id}` the session's id."""
    then: Sequence[Sequence[str]] = ()
    """More command lines, run one after another on the same server."""
    stdin: str = ""
    files: Mapping[str, str | bytes] = field(default_factory=dict)
    """Path in the project -> content, before the first command."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    model: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the model in models.json."""
    provider: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the provider in models.json."""
    apis: Sequence[str] = ("openai-completions",)
    """The wire APIs of the providers `loop`, `loop2` and so on, each with the model `m`."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Environment variables, without the program's own prefix (`OFFLINE` is `CANTLE_OFFLINE`)."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Environment variables of the same name for both."""
    choose_model: bool = True
    """Whether `--provider` and `--model` stand before the words."""
    marks: Sequence[str] = ()
    """Texts to look for in the system prompt, which is each program's own otherwise."""
    volatile: Sequence[str] = ()
    """Patterns of what no two runs have the same, such as the seconds that a test took."""
    without: Sequence[str] = ()
    """Programs that would change what the reference does: where one is on the path, the case is left out."""
    extra_fields: Sequence[str] = ()
    """Fields of requests that the server is to take beside those of the API."""
    prefix: bool = True
    """Whether a request must begin as the one before it."""

    def command_lines(self) -> list[Sequence[str]]:
        return [self.words, *self.then]


@dataclass(frozen=True, kw_only=True)
class Step:
    """How one command ended. `records` are the lines of stdout where all of them are JSON objects."""

    code: int
    stdout: str
    stderr: str
    records: list[dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Run:
    """What one program did with a case. Everything in it is JSON."""

    program: str
    places: dict[str, str]
    """Name of a place -> its path on this machine, longest first."""
    steps: list[Step]
    requests: list[dict[str, Any]]
    """`method`, `path`, `headers`, `body`, and `rule` where the server refused it."""
    sessions: list[list[dict[str, Any]]]
    files: dict[str, str]
    """What lies in the project afterwards: path -> text, bytes as Latin-1."""

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        values = json.loads(text)
        return cls(**{**values, "steps": [Step(**step) for step in values["steps"]]})


def text(words: str) -> dict[str, Any]:
    """A block of text for an answer."""
    return {"type": "text", "text": words}


def call(tool: str, arguments: Any, number: int = 1) -> dict[str, Any]:
    """A block that calls a tool. Calls of one case need numbers of their own."""
    return {"type": "toolCall", "name": tool, "arguments": arguments, "id": f"call_{number}"}


def calls(*blocks: dict[str, Any]) -> dict[str, Any]:
    """An answer that is made of blocks."""
    return {"content": list(blocks)}
