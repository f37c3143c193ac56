"""Sessions for tests: short ways to write lines, and to look at what came of them."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cantle_ai.content import TextContent
from cantle_ai.messages import AssistantMessage, ToolResultMessage, UserMessage
from cantle_session.session import Session

HEADER = {
    "type": "session",
    "version": 3,
    "id": "0197a000-0000-7000-8000-000000000001",
    "timestamp": "2026-01-01T00:00:00.000Z",
    "cwd": "/work",
}


def user(text: str, timestamp: int = 1) -> dict[str, Any]:
    return {"role": "user", "content": text, "timestamp": timestamp}


def answer(text: str, model: str = "m1", **fields: Any) -> dict[str, Any]:
    usage: dict[str, Any] = {"input": 1, "output": 1, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 2}
    usage["cost"] = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0}
    return {
        "role": "assistant",
        "content": [{"type": "text", "text": text}],
        "api": "openai-completions",
        "provider": "p",
        "model": model,
        "usage": usage,
        "stopReason": "stop",
        "timestamp": 2,
        **fields,
    }


def said(message: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"type": "message", "message": message, **fields}


def chain(*entries: dict[str, Any]) -> list[dict[str, Any]]:
    """Entries that follow one another, with ids and parents where they have none."""
    linked: list[dict[str, Any]] = []
    for index, entry in enumerate(entries):
        place = {
            "type": entry["type"],
            "id": f"{index:08x}",
            "parentId": linked[-1]["id"] if linked else None,
            "timestamp": f"2026-01-01T00:00:{index % 60:02d}.000Z",
        }
        linked.append({**place, **entry})
    return linked


def encoded(*lines: Any) -> bytes:
    """Lines of a file; strings and bytes as they are."""
    return b"".join(_line(line) + b"\n" for line in lines)


def _line(line: Any) -> bytes:
    if isinstance(line, bytes):
        return line
    return line.encode() if isinstance(line, str) else json.dumps(line, separators=(",", ":")).encode()


def write(path: Path, *lines: Any) -> Path:
    path.write_bytes(encoded(*lines))
    return path


def opened(path: Path, *lines: Any) -> Session:
    return Session.open(write(path, *lines))


def file_of(session: Session) -> Path:
    """The file of a session that is not in memory."""
    assert session.file is not None
    return session.file


def entries_on_disk(path: Path) -> list[dict[str, Any]]:
    """Every entry, read in the plainest way."""
    lines = path.read_bytes().split(b"\n")
    return [json.loads(line) for line in lines[1:] if line.strip()]


def texts(session: Session) -> list[str]:
    """What the messages of the context say."""
    return [text_of(message.to_json()) for message in session.context().messages]


def text_of(raw: Any) -> str:
    if "summary" in raw:
        return f"<{raw['role']}> {raw['summary']}"
    content = raw.get("content", "")
    return content if isinstance(content, str) else "".join(block.get("text", "") for block in content)


def conversation(count: int) -> Iterator[UserMessage | AssistantMessage | ToolResultMessage]:
    """The messages of a plain conversation, without end but for `count`."""
    for index in range(count):
        if index % 3 == 0:
            yield UserMessage(f"question {index}")
        elif index % 3 == 1:
            yield AssistantMessage([TextContent(f"answer {index}")], "openai-completions", "p", "m")
        else:
            yield ToolResultMessage(f"call_{index}", "read", [TextContent(f"result {index}")])
