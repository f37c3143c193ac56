"""The conversation in Converse's form, each message's blocks encoded once.

    {"role": "user", "content": [{"text"}, {"image"}, {"toolResult"}, …, {"cachePoint"}?]}
    {"role": "assistant", "content": [{"reasoningContent"}, {"text"}, {"toolUse"}, …]}

Roles alternate: what one side says in several messages, results of tools among it, is one message here. Blank texts
are refused, and so is a conversation that does not end with the user.

The blocks of a message depend on the message, the model and its quirks, never on what comes later; they are kept in
the message's own `wire`. A `cachePoint` is set for its request alone.
"""

from __future__ import annotations

from cantle_ai.apis.bedrock_converse_compat import BedrockConverseCompat
from cantle_ai.apis.encoded_messages import EncodedMessages, kept_bytes
from cantle_ai.call_ids import NAME_CHARACTERS, fitting_id, fitting_name
from cantle_ai.codec import Json, JsonObject, wire_json
from cantle_ai.content import ImageContent, TextContent, ThinkingContent, ToolCall
from cantle_ai.context import Context
from cantle_ai.history import ReplayRules, Turn, project
from cantle_ai.messages import AssistantMessage, ToolResultMessage, UserMessage
from cantle_ai.model import Model, StreamOptions

__all__ = ["ConverseMessages", "encode_messages"]

_RULES = ReplayRules(call_id=fitting_id(NAME_CHARACTERS, 64, prefix="tooluse_"))
_GO_ON = b'{"text":"Go on."}'
"""What the user says where an answer is the last word."""
_IMAGES_FOLLOW = "(images follow the results)"


class ConverseMessages(EncodedMessages):
    """All messages of a request, and the tools that they call."""

    __slots__ = ("tools",)

    def __init__(self) -> None:
        super().__init__()
        self.tools: dict[str, None] = {}
        """The names of the tools that the conversation calls, in order."""


def encode_messages(
    model: Model,
    context: Context,
    options: StreamOptions,
    compat: BedrockConverseCompat,
    cache_point: JsonObject | None,
) -> ConverseMessages:
    """The messages of a request in order. `cache_point` is the block to end the last one with."""
    encoding = _Encoding(model, compat)
    for turn in project(context.messages, model, options, _RULES).turns:
        encoding.add(turn)
    return encoding.end(cache_point)


class _Encoding:
    """One request's messages on their way."""

    def __init__(self, model: Model, compat: BedrockConverseCompat) -> None:
        self._compat = compat
        self._key = (
            "bedrock-converse-stream",
            model.api,
            model.provider,
            model.id,
            compat.requires_thinking_signature,
            compat.supports_images_in_error_results,
        )
        self._encoded = ConverseMessages()
        self._role = ""
        self._blocks: list[bytes] = []
        self._late: list[bytes] = []

    def add(self, turn: Turn) -> None:
        message = turn.message
        role = "assistant" if isinstance(message, AssistantMessage) else "user"
        if not isinstance(message, ToolResultMessage):
            self._close_results()
        if role != self._role:
            self._close()
            self._role = role
        self._blocks.append(kept_bytes(turn, self._key, self._plain))
        if isinstance(message, AssistantMessage):
            self._encoded.tools.update((fitting_name(call.name), None) for call in turn.calls)
            return
        self._encoded.count_images(turn)
        if isinstance(message, ToolResultMessage) and turn.images and self._images_after(message):
            self._late.append(kept_bytes(turn, (*self._key, "images"), _images))

    def end(self, cache_point: JsonObject | None) -> ConverseMessages:
        self._close_results()
        if self._role == "assistant":
            self._close()
            self._role = "user"
            self._blocks.append(_GO_ON)
        if cache_point is not None and self._role:
            self._blocks.append(wire_json(cache_point))
        self._close()
        return self._encoded

    def _close_results(self) -> None:
        """Let the images that results could not hold follow them."""
        self._blocks += self._late
        self._late = []

    def _close(self) -> None:
        if self._blocks:
            head = (
                b'{"role":"assistant","content":['
                if self._role == "assistant"
                else b'{"role":"user","content":['
            )
            self._encoded.parts.append(head + b",".join(self._blocks) + b"]}")
            self._blocks = []

    def _images_after(self, message: ToolResultMessage) -> bool:
        return message.is_error and not self._compat.supports_images_in_error_results

    def _plain(self, turn: Turn) -> list[JsonObject]:
        match turn.message:
            case UserMessage():
                return [_user_block(block) for block in turn.user_blocks()]
            case AssistantMessage():
                return [self._answer_block(block) for block in turn.assistant_blocks()]
            case ToolResultMessage() as message:
                return [self._result(turn, message)]

    def _answer_block(self, block: TextContent | ThinkingContent | ToolCall) -> JsonObject:
        match block:
            case TextContent():
                return {"text": block.text}
            case ToolCall():
                use: JsonObject = {
                    "toolUseId": block.id,
                    "name": fitting_name(block.name),
                    "input": _document(block.arguments),
                }
                return {"toolUse": use}
            case ThinkingContent():
                return self._thinking(block)

    def _thinking(self, block: ThinkingContent) -> JsonObject:
        if block.redacted:
            return {"reasoningContent": {"redactedContent": block.signature}}
        if block.signature:
            return {
                "reasoningContent": {"reasoningText": {"text": block.thinking, "signature": block.signature}}
            }
        if self._compat.requires_thinking_signature:
            return {"text": block.thinking}
        return {"reasoningContent": {"reasoningText": {"text": block.thinking}}}

    def _result(self, turn: Turn, message: ToolResultMessage) -> JsonObject:
        blocks = turn.result_blocks()
        content: list[Json] = []
        if self._images_after(message):
            content += [{"text": block.text} for block in blocks if isinstance(block, TextContent)]
            content = content or [{"text": _IMAGES_FOLLOW}]
        else:
            content += [_user_block(block) for block in blocks]
        status = "error" if message.is_error else "success"
        return {"toolResult": {"toolUseId": turn.call_id, "content": content, "status": status}}


def _document(value: Json) -> Json:
    """`value` as Bedrock takes documents: without members whose name is empty."""
    match value:
        case dict():
            return {name: _document(each) for name, each in value.items() if name}
        case list():
            return [_document(each) for each in value]
        case _:
            return value


def _user_block(block: TextContent | ImageContent) -> JsonObject:
    return _image(block) if isinstance(block, ImageContent) else {"text": block.text}


def _images(turn: Turn) -> list[JsonObject]:
    return [_image(block) for block in turn.images]


def _image(block: ImageContent) -> JsonObject:
    kind = (block.detected_type or "").removeprefix("image/")
    return {"image": {"format": kind, "source": {"bytes": block.data}}}
