"""The conversation in the form of Mistral's chat API, each message encoded once.

    {"role": "system", "content": "…"}
    {"role": "user", "content": "…" | [{"type": "text", …}, {"type": "image_url", "image_url": "data:…"}]}
    {"role": "assistant", "content"?: "…" | [{"type": "thinking", …}, {"type": "text", …}], "tool_calls"?: […],
     "prefix"?: true}
    {"role": "tool", "tool_call_id": …, "name": …, "content": "…" | [{"type": "text", …}, …]}

Mistral refuses what others let pass: ids of calls that are not nine letters and digits, a user who speaks directly
after a tool, a last message of the assistant that is not marked as the beginning of the answer (`prefix`), and an
assistant who says nothing and calls nothing.

The bytes of a message depend on the message and the model, never on what comes later; they are kept in the
message's own `wire`. The mark of a last message is the exception, and encoded for its request alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from cantle_ai.apis.encoded_messages import EncodedMessages, kept_bytes
from cantle_ai.call_ids import ALPHANUMERIC, fitting_id, fitting_name
from cantle_ai.codec import Json, JsonObject, wire_json
from cantle_ai.content import ImageContent, TextContent, ThinkingContent, ToolCall
from cantle_ai.context import Context
from cantle_ai.history import ReplayRules, Turn, project
from cantle_ai.messages import AssistantMessage, ToolResultMessage, UserMessage
from cantle_ai.model import Model, StreamOptions

__all__ = ["encode_messages"]

_RULES = ReplayRules(call_id=fitting_id(ALPHANUMERIC, 9, exactly=9))
_AFTER_RESULTS = b'{"role":"assistant","content":"The tool results have been read."}'


def encode_messages(model: Model, context: Context, options: StreamOptions) -> EncodedMessages:
    """The messages of a request in order, the system prompt first."""
    encoded = EncodedMessages()
    if context.system_prompt.strip():
        encoded.parts.append(wire_json({"role": "system", "content": context.system_prompt}))
    key = ("mistral-conversations", model.api, model.provider, model.id)
    last: Turn | None = None
    for turn in project(context.messages, model, options, _RULES).turns:
        if isinstance(turn.message, UserMessage) and last is not None:
            if isinstance(last.message, ToolResultMessage):
                encoded.parts.append(_AFTER_RESULTS)
        encoded.parts.append(kept_bytes(turn, key, _plain))
        encoded.count_images(turn)
        last = turn
    if last is not None and isinstance(last.message, AssistantMessage):
        encoded.parts[-1] = wire_json({**_assistant(last), "prefix": True})
    return encoded


def _plain(turn: Turn) -> list[JsonObject]:
    match turn.message:
        case UserMessage():
            return [{"role": "user", "content": _content(turn.user_blocks())}]
        case AssistantMessage():
            return [_assistant(turn)]
        case ToolResultMessage():
            result: JsonObject = {
                "role": "tool",
                "tool_call_id": turn.call_id,
                "name": fitting_name(turn.tool_name),
                "content": _content(turn.result_blocks()),
            }
            return [result]


def _assistant(turn: Turn) -> JsonObject:
    plain: JsonObject = {"role": "assistant"}
    parts: list[Json] = []
    calls: list[Json] = []
    thinks = False
    for block in turn.assistant_blocks():
        match block:
            case TextContent():
                parts.append({"type": "text", "text": block.text})
            case ThinkingContent():
                thinks = True
                parts.append(_thinking(block))
            case ToolCall():
                calls.append(_call(block))
    if thinks:
        plain["content"] = parts
    elif parts:
        plain["content"] = "".join(str(part["text"]) for part in parts if isinstance(part, dict))
    if calls:
        plain["tool_calls"] = calls
    return plain


def _thinking(block: ThinkingContent) -> JsonObject:
    texts: list[Json] = [{"type": "text", "text": block.thinking}]
    plain: JsonObject = {"type": "thinking", "thinking": texts}
    if block.signature:
        plain["signature"] = block.signature
    return plain


def _call(call: ToolCall) -> JsonObject:
    function: JsonObject = {"name": fitting_name(call.name), "arguments": wire_json(call.arguments).decode()}
    return {"id": call.id, "type": "function", "function": function}


def _content(blocks: Sequence[TextContent | ImageContent]) -> Json:
    """One text by itself, else parts."""
    if len(blocks) == 1 and isinstance(blocks[0], TextContent):
        return blocks[0].text
    return [
        {"type": "image_url", "image_url": f"data:{block.detected_type};base64,{block.data}"}
        if isinstance(block, ImageContent)
        else {"type": "text", "text": block.text}
        for block in blocks
    ]
