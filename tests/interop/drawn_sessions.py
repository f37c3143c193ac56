"""Sessions drawn by chance, as the lines of a file: all entry types, several roots, branches that come and go."""

from __future__ import annotations

import base64
import itertools
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["Line", "draw_session", "write_session"]

Line = dict[str, Any]

_IMAGE = base64.b64encode(b"no picture, and nobody looks").decode()
_PLAIN = ["milk", "a long road", "```", "x" * 90, "C:\\temp"]
_WORDS = [*_PLAIN, "milk", "a long road", "ä", "\u2028", "```", "</summary>", "x" * 90, "C:\\temp", "\t"]


def draw_session(seed: int, length: int = 40, *, sound: bool = False) -> list[Line]:
    """A header and about `length` entries. The same for the same seed.

    A `sound` one has only what both programs count alike: no failed answers and calls, shell records, branch summaries,
    pictures and letters beside ASCII; and nobody leaves a branch between a call and its result.
    """
    return _Drawing(random.Random(seed), length, sound).lines


def write_session(file: Path, lines: list[Line]) -> Path:
    """Write the lines as a session file."""
    file.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), "utf-8")
    return file


class _Drawing:
    """What is drawn so far. The conversation goes on from `leaf`, which jumps now and then."""

    def __init__(self, chance: random.Random, length: int, sound: bool) -> None:
        self.chance = chance
        self.sound = sound
        self.leaf: str | None = None
        self.lines: list[Line] = [
            {"type": "session", "version": 3, "id": "drawn", "timestamp": _iso(0), "cwd": "/drawn"}
        ]
        steps: list[tuple[int, Callable[[], None]]] = [
            (12, self._turn),
            (6, self._work),
            (0 if sound else 2, self._failure),
            (0 if sound else 2, self._shell),
            (2, self._note),
            (2, self._state),
            (2, self._mark),
            (3, self._edit),
            (2, self._jump),
            (1, self._compaction),
            (0 if sound else 1, self._branch_summary),
            (1, self._unknown),
        ]
        weights = [weight for weight, _ in steps]
        while len(self.lines) <= length:
            (step,) = chance.choices([step for _, step in steps], weights)
            step()

    # --- what is added

    def _turn(self) -> None:
        self._message(role="user", content=self._content())
        if self.chance.random() < 0.8:
            self._answer([{"type": "text", "text": self._text()}])

    def _work(self) -> None:
        calls = [self._call(number) for number in range(self.chance.randint(1, 3))]
        self._answer([{"type": "thinking", "thinking": self._text()}, *calls], stop="toolUse")
        for call in calls:
            self._message(
                role="toolResult",
                toolCallId=call["id"],
                toolName=call["name"],
                content=[{"type": "text", "text": self._text()}],
                isError=not self.sound and self.chance.random() < 0.2,
            )

    def _failure(self) -> None:
        reason = self.chance.choice(["error", "aborted", "length"])
        self._answer([{"type": "text", "text": "Half a"}] * self.chance.randint(0, 1), stop=reason)

    def _shell(self) -> None:
        self._message(
            role="bashExecution",
            command="ls",
            output=self._text(),
            exitCode=self.chance.randint(0, 1),
            cancelled=False,
            truncated=False,
            **({"excludeFromContext": True} if self.chance.random() < 0.3 else {}),
        )

    def _note(self) -> None:
        self._add("custom_message", customType="ext", content=self._content(), display=True)
        self._add("custom", customType="ext", data={"n": self.chance.random()})

    def _state(self) -> None:
        match self.chance.randint(0, 3):
            case 0:
                self._add("model_change", provider="loop", modelId=self.chance.choice(["m", "other"]))
            case 1:
                self._add("thinking_level_change", thinkingLevel=self.chance.choice(["off", "low", "high"]))
            case 2:
                self._add("session_info", name=self.chance.choice(["A name", "Another", ""]))
            case _:
                self._add("usage", kind="cache_warm", provider="loop", model="m", usage=_usage(3))

    def _mark(self) -> None:
        if known := self._known():
            label = self.chance.choice(["here", "there", None])
            self._add("label", targetId=self.chance.choice(known), **({"label": label} if label else {}))

    def _edit(self) -> None:
        """Of a message on this path, now and then of one on another."""
        roles = {"user"} if self.sound else {"user", "assistant", "toolResult", "bashExecution"}
        targets = [line for line in self._path() if line.get("message", {"role": "user"})["role"] in roles]
        targets = [line for line in targets if line["type"] in ("message", "custom_message")]
        if targets:
            content: Any = self.chance.choice(
                [None, "In other words.", [{"type": "text", "text": "In blocks."}]]
            )
            target = self.chance.choice(targets)["id"]
            self._add("context_edit", targetId=target, replacement=content and {"content": content})

    def _jump(self) -> None:
        self.leaf = self.chance.choice([*self._places(self.lines[1:]), None])

    def _compaction(self) -> None:
        kept = self.chance.choice([None, *self._places(self._path(), behind=False)])
        self._add(
            "compaction",
            summary=self._text(),
            firstKeptEntryId=kept or self._next_id(),
            tokensBefore=self.chance.randint(0, 99_999),
            details={"readFiles": ["old.txt"], "modifiedFiles": ["changed.txt"]},
            usage=_usage(7),
        )

    def _branch_summary(self) -> None:
        left = self.leaf
        self._jump()
        if left is not None:
            details = {"readFiles": ["there.txt"], "modifiedFiles": []}
            self._add("branch_summary", fromId=left, summary=self._text(), details=details)

    def _unknown(self) -> None:
        self._add("of_a_later_version", content={"deep": [1, None, {"er": True}]})

    # --- how

    def _message(self, **message: Any) -> None:
        self._add("message", message={**message, "timestamp": 1_700_000_000_000 + len(self.lines)})

    def _answer(self, content: list[Line], stop: str = "stop") -> None:
        self._message(
            role="assistant",
            content=content,
            api="openai-completions",
            provider="loop",
            model=self.chance.choice(["m", "other"]),
            usage=_usage(self.chance.choice([0, 500, 2_000])),
            stopReason=stop,
            **({"errorMessage": "It broke."} if stop in ("error", "aborted") else {}),
        )

    def _call(self, number: int) -> Line:
        name = self.chance.choice(["read", "write", "edit", "bash"])
        path = f"{self.chance.choice('abc')}.txt"
        arguments = {"command": f"cat {path}"} if name == "bash" else {"path": path}
        return {
            "type": "toolCall",
            "id": f"call_{self._next_id()}_{number}",
            "name": name,
            "arguments": arguments,
        }

    def _content(self) -> Any:
        text = self._text()
        blocks = [{"type": "text", "text": text}, {"type": "image", "data": _IMAGE, "mimeType": "image/png"}]
        return self.chance.choice([text, blocks[:1], blocks[:1] if self.sound else blocks])

    def _text(self) -> str:
        return " ".join(self.chance.choices(_PLAIN if self.sound else _WORDS, k=self.chance.randint(1, 30)))

    def _add(self, kind: str, /, **fields: Any) -> None:
        stamp = _iso(len(self.lines))
        line = {"type": kind, "id": self._next_id(), "parentId": self.leaf, "timestamp": stamp, **fields}
        self.lines.append(line)
        self.leaf = line["id"]

    def _next_id(self) -> str:
        return f"{len(self.lines):08x}"

    def _known(self) -> list[str]:
        return [line["id"] for line in self.lines[1:]]

    def _places(self, lines: list[Line], behind: bool = True) -> list[str]:
        """Where a branch can be left, `behind` an entry, or cut before one."""
        found = []
        for line, later in itertools.pairwise([*lines, {}]):
            roles = [one.get("message", {}).get("role") for one in (line, later)]
            if not self.sound or roles[behind] != "toolResult":
                found.append(line["id"])
        return found

    def _path(self) -> list[Line]:
        by_id = {line["id"]: line for line in self.lines[1:]}
        path, place = [], self.leaf
        while place is not None:
            path.append(by_id[place])
            place = by_id[place]["parentId"]
        return path[::-1]


def _usage(tokens: int) -> Line:
    cost = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0}
    return {
        "input": tokens,
        "output": 0,
        "cacheRead": 0,
        "cacheWrite": 0,
        "totalTokens": tokens,
        "cost": cost,
    }


def _iso(second: int) -> str:
    return f"2026-01-02T03:{second // 60 % 60:02}:{second % 60:02}.000Z"
