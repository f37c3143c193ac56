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

from cantle_ai.apis.openai_completions_compat import OpenAICompletionsCompat
from cantle_ai.codec import Json, JsonObject, decode_json, wire_json
from cantle_ai.content import ImageContent, TextContent, ThinkingContent, ToolCall, UserContent
from cantle_ai.context import Context
from cantle_ai.history import images_left_out, replayable, shown_blocks
from cantle_ai.messages import AssistantMessage, Message, ToolResultMessage, UserMessage
from cantle_ai.model import Model, StreamOptions

__all__ = ["REASONING_FIELDS", "EncodedMessages", "MessageEncoder"]

REASONING_FIELDS = ("reasoning_content", "reasoning", "reasoning_text")
"""Where endpoints put thinking. A thinking block's signature is the name of the field that it came in."""

_LONGEST_CALL_ID = 40
_LONGEST_TOOL_NAME = 64
_NAME_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
"""What OpenAI takes in a call's id and a tool's name; no endpoint is known to take less."""

_NO_OUTPUT = "(no output)"
_IMAGES_BELOW = "(the result is an image, which follows)"
_IMAGES_LEAD = "Images from the tool results above:"
_AFTER_RESULTS = b'{"role":"assistant","content":"The tool results have been read."}'


class EncodedMessages:
    """All messages of a request. `image_bytes` counts what of them is image data, `images` how many there are."""

    __slots__ = ("has_tool_history", "image_bytes", "images", "parts")

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.images = 0
        self.image_bytes = 0
        self.has_tool_history = False


class MessageEncoder:
    """Encodes messages for one model."""

    __slots__ = ("_compat", "_images_key", "_key", "_left_out", "_mark", "_model")

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
        self._mark = mark
        self._left_out = images_left_out(model, options)
        self._key = (
            "openai-completions",
            model.api,
            model.provider,
            model.id,
            self._left_out,
            model.reasoning,
            compat.requires_tool_result_name,
            compat.requires_non_null_assistant_content,
            compat.requires_thinking_as_text,
            compat.requires_reasoning_content_on_assistant_messages,
        )
        self._images_key = (*self._key, "images")

    def encode(self, context: Context) -> EncodedMessages:
        """The messages of a request in order, the system prompt first."""
        encoded = EncodedMessages()
        if context.system_prompt:
            encoded.parts.append(self._system(context.system_prompt))
        images: list[bytes] = []
        after_results = False
        last: tuple[int, Message] | None = None
        for message in replayable(context.messages):
            is_result = isinstance(message, ToolResultMessage)
            if images and not is_result:
                self._close_results(encoded, images)
                images, after_results = [], False
            if after_results and isinstance(message, UserMessage):
                if self._compat.requires_assistant_after_tool_result:
                    encoded.parts.append(_AFTER_RESULTS)
            part = self._encoded(message)
            if part:
                last = (len(encoded.parts), message)
                encoded.parts.append(part)
            self._count(message, encoded)
            after_results = is_result
            if is_result:
                encoded.has_tool_history = True
                images.extend(self._images(message))
        if images:
            self._close_results(encoded, images)
        if self._mark is not None and last is not None:
            place, message = last
            encoded.parts[place] = wire_json(_marked(self._plain(message), self._mark))
        return encoded

    def _close_results(self, encoded: EncodedMessages, images: list[bytes]) -> None:
        """The images of a batch of results, which a tool message cannot hold, in a user message after all of them."""
        if self._compat.requires_assistant_after_tool_result:
            encoded.parts.append(_AFTER_RESULTS)
        lead = wire_json({"type": "text", "text": _IMAGES_LEAD})
        encoded.parts.append(b'{"role":"user","content":[' + b",".join([lead, *images]) + b"]}")

    def _system(self, prompt: str) -> bytes:
        developer = self._compat.supports_developer_role and self._model.reasoning
        message: JsonObject = {"role": "developer" if developer else "system", "content": prompt}
        return wire_json(message if self._mark is None else _marked(message, self._mark))

    def _encoded(self, message: Message) -> bytes:
        part = message.wire.get(self._key)
        if part is None:
            plain = self._plain(message)
            part = message.wire[self._key] = wire_json(plain) if plain else b""
        return part

    def _images(self, message: Message) -> list[bytes]:
        """The images of a tool result, encoded. One value in `wire` holds them all."""
        assert isinstance(message, ToolResultMessage)
        if self._left_out or not any(isinstance(block, ImageContent) for block in message.content):
            return []
        part = message.wire.get(self._images_key)
        if part is None:
            blocks = shown_blocks(message.content, self._left_out)
            images = [wire_json(_image(block)) for block in blocks if isinstance(block, ImageContent)]
            part = message.wire[self._images_key] = b",".join(images)
        return [part] if part else []

    def _count(self, message: Message, encoded: EncodedMessages) -> None:
        if isinstance(message, AssistantMessage):
            encoded.has_tool_history = encoded.has_tool_history or bool(message.tool_calls)
        elif not self._left_out and not isinstance(message.content, str):
            for block in message.content:
                if isinstance(block, ImageContent) and block.detected_type:
                    encoded.images += 1
                    encoded.image_bytes += len(block.data)

    def _plain(self, message: Message) -> JsonObject:
        """The message as JSON; empty when there is nothing to send."""
        match message:
            case UserMessage():
                return self._user(message)
            case AssistantMessage():
                return self._assistant(message)
            case ToolResultMessage():
                return self._tool_result(message)

    def _user(self, message: UserMessage) -> JsonObject:
        if isinstance(message.content, str):
            return {"role": "user", "content": message.content}
        parts = self._parts(message.content)
        if len(parts) == 1 and isinstance(parts[0], dict) and parts[0]["type"] == "text":
            return {"role": "user", "content": parts[0]["text"]}
        return {"role": "user", "content": parts if parts else ""}

    def _parts(self, blocks: Sequence[UserContent]) -> list[Json]:
        parts: list[Json] = []
        for block in shown_blocks(blocks, self._left_out):
            if isinstance(block, ImageContent):
                parts.append(_image(block))
            elif block.text.strip():
                parts.append({"type": "text", "text": block.text})
        return parts

    def _assistant(self, message: AssistantMessage) -> JsonObject:
        own = (message.api, message.provider, message.model) == (
            self._model.api,
            self._model.provider,
            self._model.id,
        )
        text = message.text
        reasoning = _reasoning(message) if own else {}
        if self._compat.requires_thinking_as_text and reasoning:
            text = "\n\n".join(f"<thinking>\n{thought}\n</thinking>" for thought in reasoning.values()) + (
                f"\n\n{text}" if text else ""
            )
            reasoning = {}
        if not text.strip():
            text = ""  # the strictest endpoints refuse a text of white space alone
        calls = message.tool_calls
        if not text and not calls:
            return {}
        plain: JsonObject = {"role": "assistant", "content": text or self._no_text}
        plain.update(reasoning)
        if self._compat.requires_reasoning_content_on_assistant_messages and self._model.reasoning:
            plain.setdefault("reasoning_content", "")
        details = _details(message) if own else []
        if details:
            plain["reasoning_details"] = details
        if calls:
            plain["tool_calls"] = [_call(call) for call in calls]
        return plain

    @property
    def _no_text(self) -> str | None:
        return "" if self._compat.requires_non_null_assistant_content else None

    def _tool_result(self, message: ToolResultMessage) -> JsonObject:
        text = message.text
        if any(isinstance(block, ImageContent) for block in message.content):
            shown = shown_blocks(message.content, self._left_out)
            text = "\n".join(b.text for b in shown if isinstance(b, TextContent) and b.text)
            if not text.strip() and shown:
                text = _IMAGES_BELOW
        plain: JsonObject = {
            "role": "tool",
            "tool_call_id": _call_id(message.tool_call_id),
            "content": text if text.strip() else _NO_OUTPUT,
        }
        if self._compat.requires_tool_result_name:
            plain["name"] = _tool_name(message.tool_name)
        return plain


def _image(block: ImageContent) -> JsonObject:
    return {"type": "image_url", "image_url": {"url": f"data:{block.detected_type};base64,{block.data}"}}


def _call(call: ToolCall) -> JsonObject:
    function: JsonObject = {"name": _tool_name(call.name), "arguments": wire_json(call.arguments).decode()}
    return {"id": _call_id(call.id), "type": "function", "function": function}


def _call_id(call_id: str) -> str:
    """The id as every endpoint takes it: an odd or long one becomes one of its own, the same each time."""
    if 0 < len(call_id) <= _LONGEST_CALL_ID and _NAME_CHARACTERS.issuperset(call_id):
        return call_id
    from hashlib import sha256

    return f"call_{sha256(call_id.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


def _tool_name(name: str) -> str:
    """The name as every endpoint takes it. Models invent some that none takes back, such as `functions.bash`."""
    if 0 < len(name) <= _LONGEST_TOOL_NAME and _NAME_CHARACTERS.issuperset(name):
        return name
    fitting = "".join(letter if letter in _NAME_CHARACTERS else "_" for letter in name[:_LONGEST_TOOL_NAME])
    return fitting or "unnamed"


def _reasoning(message: AssistantMessage) -> dict[str, str]:
    """Thinking by the field that it came in."""
    found: dict[str, list[str]] = {}
    for block in message.content:
        if isinstance(block, ThinkingContent) and block.signature in REASONING_FIELDS and block.thinking:
            found.setdefault(block.signature, []).append(block.thinking)
    return {name: "\n".join(thoughts) for name, thoughts in found.items()}


def _details(message: AssistantMessage) -> list[Json]:
    """What OpenRouter calls `reasoning_details`: opaque objects that want to come back."""
    details: list[Json] = []
    for block in message.content:
        signature = None
        if isinstance(block, ToolCall):
            signature = block.thought_signature
        elif isinstance(block, ThinkingContent) and block.redacted:
            signature = block.signature
        if signature is not None and signature.startswith("{"):
            try:
                details.append(decode_json(signature))
            except ValueError:
                continue
    return details


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
