"""The conversation in chat completions' form, each message encoded once.

    {"role": "system" | "developer", "content": …}
    {"role": "user", "content": "…" | [{"type": "text", …}, {"type": "image_url", …}]}
    {"role": "assistant", "content": "…" | null, "tool_calls"?: […], <reasoning field>?: "…"}
    {"role": "tool", "tool_call_id": …, "content": "…"}

The bytes of a message depend on the message, the model and its quirks, never on what comes later: so those of
one request begin those of the next, which is what prompt caches live on. They are kept in the message's own
`wire`, under a key that holds everything they depend on. Cache marks (`cache_control_format`) are the exception;
a marked message is encoded for its request alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from cantle_ai.apis.encoded_messages import EncodedMessages, kept_bytes
from cantle_ai.apis.openai_completions_compat import OpenAICompletionsCompat
from cantle_ai.call_ids import NAME_CHARACTERS, fitting_id, fitting_name
from cantle_ai.codec import Json, JsonObject, wire_json
from cantle_ai.content import ImageContent, TextContent, ThinkingContent, ToolCall
from cantle_ai.context import Context
from cantle_ai.history import ReplayRules, Turn, project
from cantle_ai.messages import AssistantMessage, ToolResultMessage, UserMessage
from cantle_ai.model import Model, StreamOptions

__all__ = ["REASONING_FIELDS", "ChatMessages", "MessageEncoder"]

REASONING_FIELDS = ("reasoning_content", "reasoning", "reasoning_text")
"""Where endpoints put thinking. A thinking block's signature is the name of the field that it came in."""

_RULES = ReplayRules(call_id=fitting_id(NAME_CHARACTERS, 40, prefix="call_"), thinking_may_end=True)
"""OpenAI takes 40 characters."""
_IMAGES_BELOW = "(the result is an image, which follows)"
_IMAGES_LEAD = "Images from the tool results above:"
_AFTER_RESULTS = b'{"role":"assistant","content":"The tool results have been read."}'
_BETWEEN_ANSWERS = b'{"role":"user","content":"(What was said here has been taken out of the conversation.)"}'
"""Where an edit left two answers behind one another, which servers that want the roles to alternate refuse."""


class ChatMessages(EncodedMessages):
    """All messages of a request, and whether tools were called in them."""

    __slots__ = ("has_tool_history",)

    def __init__(self) -> None:
        super().__init__()
        self.has_tool_history = False


class MessageEncoder:
    """Encodes messages for one model."""

    __slots__ = ("_compat", "_images_key", "_key", "_mark", "_model", "_options")

    def __init__(
        self,
        model: Model,
        compat: OpenAICompletionsCompat,
        options: StreamOptions,
        *,
        mark: JsonObject | None = None,
    ) -> None:
        """`mark` is the cache mark to set, if the endpoint takes such."""
        self._model = model
        self._compat = compat
        self._options = options
        self._mark = mark
        # A text, because it keeps its hash, which a tuple works out each time.
        self._key = repr(
            (
                "openai-completions",
                model.api,
                model.provider,
                model.id,
                model.reasoning,
                compat.requires_tool_result_name,
                compat.requires_non_null_assistant_content,
                compat.requires_thinking_as_text,
                compat.requires_reasoning_content_on_assistant_messages,
            )
        )
        self._images_key = f"images {self._key}"

    def encode(self, context: Context) -> ChatMessages:
        """The messages of a request in order, the system prompt first."""
        encoded = ChatMessages()
        if context.system_prompt.strip():
            encoded.parts.append(self._system(context.system_prompt))
        images: list[bytes] = []
        after_results = False
        last: tuple[int, Turn] | None = None
        for turn in project(context.messages, self._model, self._options, _RULES).turns:
            message = turn.message
            is_result = isinstance(message, ToolResultMessage)
            if images and not is_result:
                self._close_results(encoded, images)
                images, after_results = [], False
            if after_results and isinstance(message, UserMessage):
                if self._compat.requires_assistant_after_tool_result:
                    encoded.parts.append(_AFTER_RESULTS)
            if last is not None and _is_answer(turn) and _is_answer(last[1]):
                encoded.parts.append(_BETWEEN_ANSWERS)
            last = (len(encoded.parts), turn)
            encoded.parts.append(kept_bytes(turn, self._key, self._plain))
            if turn.ids:
                encoded.has_tool_history = True
            after_results = is_result
            if encoded.count_images(turn) and is_result:
                images.append(kept_bytes(turn, self._images_key, _images))
        if images:
            self._close_results(encoded, images)
        if self._mark is not None and last is not None:
            place, turn = last
            encoded.parts[place] = wire_json(_marked(self._plain(turn)[0], self._mark))
        return encoded

    def _close_results(self, encoded: ChatMessages, images: list[bytes]) -> None:
        """The images of a batch of results, which a tool message cannot hold, in a user message after all of them."""
        if self._compat.requires_assistant_after_tool_result:
            encoded.parts.append(_AFTER_RESULTS)
        lead = wire_json({"type": "text", "text": _IMAGES_LEAD})
        encoded.parts.append(b'{"role":"user","content":[' + b",".join([lead, *images]) + b"]}")

    def _system(self, prompt: str) -> bytes:
        developer = self._compat.supports_developer_role and self._model.reasoning
        message: JsonObject = {"role": "developer" if developer else "system", "content": prompt}
        return wire_json(message if self._mark is None else _marked(message, self._mark))

    def _plain(self, turn: Turn) -> list[JsonObject]:
        match turn.message:
            case UserMessage():
                return [{"role": "user", "content": _content(turn.user_blocks())}]
            case AssistantMessage():
                return [self._assistant(turn)]
            case ToolResultMessage():
                return [self._tool_result(turn, turn.message)]

    def _assistant(self, turn: Turn) -> JsonObject:
        blocks = turn.assistant_blocks()
        text = "".join(block.text for block in blocks if isinstance(block, TextContent))
        reasoning = _reasoning(blocks)
        if self._compat.requires_thinking_as_text:
            text = "\n\n".join([*_thoughts(blocks), *([text] if text else [])])
            reasoning = {}
        plain: JsonObject = {"role": "assistant", "content": text or self._no_text}
        plain.update(reasoning)
        if self._compat.requires_reasoning_content_on_assistant_messages and self._model.reasoning:
            plain.setdefault("reasoning_content", "")
        if any(map(_may_hold_details, blocks)):
            from cantle_ai.apis.openai_completions_details import details_of

            if details := details_of(blocks):
                plain["reasoning_details"] = details
        calls = [block for block in blocks if isinstance(block, ToolCall)]
        if calls:
            plain["tool_calls"] = [_call(call) for call in calls]
        return plain

    @property
    def _no_text(self) -> str | None:
        return "" if self._compat.requires_non_null_assistant_content else None

    def _tool_result(self, turn: Turn, message: ToolResultMessage) -> JsonObject:
        blocks = turn.result_blocks()
        text = "\n".join(block.text for block in blocks if isinstance(block, TextContent))
        plain: JsonObject = {"role": "tool", "tool_call_id": turn.call_id, "content": text or _IMAGES_BELOW}
        if self._compat.requires_tool_result_name:
            plain["name"] = fitting_name(turn.tool_name)
        return plain


def _is_answer(turn: Turn) -> bool:
    return isinstance(turn.message, AssistantMessage)


def _content(blocks: Sequence[TextContent | ImageContent]) -> Json:
    """One text by itself, else parts."""
    if len(blocks) == 1 and isinstance(blocks[0], TextContent):
        return blocks[0].text
    return [
        _image(block) if isinstance(block, ImageContent) else {"type": "text", "text": block.text}
        for block in blocks
    ]


def _images(turn: Turn) -> list[JsonObject]:
    return [_image(block) for block in turn.images]


def _image(block: ImageContent) -> JsonObject:
    return {"type": "image_url", "image_url": {"url": f"data:{block.detected_type};base64,{block.data}"}}


def _call(call: ToolCall) -> JsonObject:
    function: JsonObject = {"name": fitting_name(call.name), "arguments": wire_json(call.arguments).decode()}
    return {"id": call.id, "type": "function", "function": function}


def _may_hold_details(block: TextContent | ThinkingContent | ToolCall) -> bool:
    """Whether the block has a signature that may be OpenRouter's. Few have, so its module waits until one comes."""
    match block:
        case ThinkingContent():
            return block.signature is not None and block.signature not in REASONING_FIELDS
        case ToolCall():
            return block.thought_signature is not None
        case _:
            return False


def _reasoning(blocks: Sequence[TextContent | ThinkingContent | ToolCall]) -> dict[str, str]:
    """Thinking by the field that it came in."""
    found: dict[str, list[str]] = {}
    for block in blocks:
        if isinstance(block, ThinkingContent) and block.signature in REASONING_FIELDS and block.thinking:
            found.setdefault(block.signature, []).append(block.thinking)
    return {name: "\n".join(thoughts) for name, thoughts in found.items()}


def _thoughts(blocks: Sequence[TextContent | ThinkingContent | ToolCall]) -> list[str]:
    """Thinking as text that a model can tell from its answer."""
    return [
        f"<thinking>\n{block.thinking}\n</thinking>"
        for block in blocks
        if isinstance(block, ThinkingContent) and block.thinking
    ]


def _marked(plain: JsonObject, mark: JsonObject) -> JsonObject:
    """The message with a cache mark on its last text; unchanged when it has none."""
    content = plain.get("content")
    if isinstance(content, str) and content:
        return {**plain, "content": [{"type": "text", "text": content, "cache_control": mark}]}
    if isinstance(content, list):
        for place in range(len(content) - 1, -1, -1):
            part = content[place]
            if isinstance(part, dict) and part.get("type") == "text":
                marked: Json = {**part, "cache_control": mark}
                return {**plain, "content": [*content[:place], marked, *content[place + 1 :]]}
    return plain
