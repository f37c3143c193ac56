"""A request that the strict server has received: as a test and the control path see it, and as a script does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from msgspec import Struct

from cantle_ai.codec import JsonObject, decode_object
from cantle_ai.testing.script import LastMessage
from cantle_ai.testing.server.exchange import Call

__all__ = ["Received", "last_message"]


class Received(Struct):
    """A request that asked for an answer. `rule` and `text` say what is wrong with it, if anything."""

    number: int
    call: Call
    rule: str | None = None
    text: str | None = None

    @property
    def body(self) -> bytes:
        return self.call.body

    @property
    def json(self) -> JsonObject:
        """The body's value. Raises ValueError when it is not a JSON object."""
        return decode_object(self.call.body)

    def to_json(self) -> JsonObject:
        """As the control path shows it; without the key."""
        headers: JsonObject = {k: v for k, v in self.call.headers.items() if k != "authorization"}
        return {
            "number": self.number,
            "path": self.call.path,
            "headers": headers,
            "body": self.call.body.decode("utf-8", "replace"),
            "rule": self.rule,
            "text": self.text,
        }


def last_message(values: JsonObject) -> LastMessage | None:
    """What a `when` looks at, of a request body."""
    messages = cast("list[JsonObject]", values["messages"])
    message = messages[-1]
    content = message.get("content")
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        content = "\n".join(part for part in parts if isinstance(part, str))
    text = content if isinstance(content, str) else ""
    if message.get("role") != "tool":
        return LastMessage(role=str(message.get("role")), text=text)
    return LastMessage(role="toolResult", text=text, tool=_tool_name(messages, message.get("tool_call_id")))


def _tool_name(messages: list[JsonObject], call_id: object) -> str | None:
    for message in reversed(messages):
        for call in cast("list[JsonObject]", message.get("tool_calls", [])):
            if call.get("id") == call_id:
                return str(cast("Mapping[str, object]", call["function"])["name"])
    return None
