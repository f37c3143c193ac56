"""A conversation as one text with a label for each role, so that a model sums it up and does not go on with it.

    [User]: What they said
    [Assistant]: What it said
    [Assistant tool calls]: read(path="a.py"); bash(command="make")
    [Tool result]: The beginning of what the tool gave

Thinking is left out. What a tool gave, and each argument of a call, is cut at :data:`MOST_OF_A_RESULT`
characters. Text that looks like a label or like the end of the conversation is marked as text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from cantle_agent.messages import AgentMessage
from cantle_ai.codec import Json, encode_json
from cantle_ai.content import ImageContent, TextContent, ToolCall
from cantle_ai.messages import AssistantMessage, Message, ToolResultMessage
from cantle_session.tokens import shown

__all__ = ["MOST_OF_A_RESULT", "shortened", "transcript", "transcript_part", "without_tags"]

MOST_OF_A_RESULT = 2000
_IMAGE = "(an image)"
_LABEL = re.compile(
    r"(?:^|(?<=[\r\v\f\x85\u2028\u2029]))(?=\[(?:User|Assistant|Assistant tool calls|Tool result)\]:)",
    re.MULTILINE,
)
_TAG = re.compile(r"<(?=\s*+/?+\s*+(?:conversation|previous-summary)\b)", re.IGNORECASE)


def transcript(messages: Iterable[AgentMessage]) -> str:
    """The messages as one text, parted by blank lines."""
    return "\n\n".join(filter(None, map(transcript_part, messages)))


def transcript_part(message: AgentMessage) -> str:
    """One message's part of the text; empty when there is nothing to say of it."""
    sent = shown(message)
    return "" if sent is None else "\n\n".join(_parts(sent))


def shortened(text: str, most: int) -> str:
    """The first `most` characters, and how many more there were."""
    left_out = len(text) - most
    return text if left_out <= 0 else f"{text[:most]}\n({left_out} more characters are left out here)"


def without_tags(text: str) -> str:
    """`text` with nothing in it that could be taken for the tags around a conversation and an earlier summary."""
    return _TAG.sub("&lt;", text) if "<" in text else text


def _parts(message: Message) -> list[str]:
    match message:
        case AssistantMessage():
            said, calls = message.text.strip(), message.tool_calls
            parts = [f"[Assistant]: {_as_text(said)}"] if said else []
            if calls:
                parts.append(f"[Assistant tool calls]: {'; '.join(map(_call, calls))}")
            return parts
        case ToolResultMessage():
            label = "[Tool result]: (failed) " if message.is_error else "[Tool result]: "
            return [label + _as_text(shortened(_said(message.content), MOST_OF_A_RESULT))]
        case _:
            said = _said(message.content)
            return [f"[User]: {_as_text(said)}"] if said else []


def _said(content: str | Iterable[object]) -> str:
    if isinstance(content, str):
        return content.strip()
    texts = (
        block.text if isinstance(block, TextContent) else _IMAGE
        for block in content
        if isinstance(block, TextContent | ImageContent)
    )
    return "\n".join(texts).strip()


def _call(call: ToolCall) -> str:
    if call.invalid_arguments is not None:
        return f"{call.name}({_as_text(shortened(call.invalid_arguments, MOST_OF_A_RESULT))})"
    return f"{call.name}({', '.join(f'{name}={_value(value)}' for name, value in call.arguments.items())})"


def _value(value: Json) -> str:
    return _as_text(shortened(encode_json(value).decode(), MOST_OF_A_RESULT))


def _as_text(text: str) -> str:
    """`text` with nothing in it that could be taken for our own labels and tags."""
    if "]:" in text:
        text = _LABEL.sub(r"\\", text)
    return without_tags(text)
