"""Content blocks: text, thinking, images and tool calls, in the session file's JSON shapes.

    {"type": "text", "text": …, "textSignature"?: …}
    {"type": "thinking", "thinking": …, "thinkingSignature"?: …, "redacted"?: true}
    {"type": "image", "data": <base64>, "mimeType": …}
    {"type": "toolCall", "id": …, "name": …, "arguments": {…}, "thoughtSignature"?: …, "namespace"?: …}

Text, thinking and tool-call blocks grow while they stream: what arrives is appended to a list of parts
and joined when it is read, so that a long answer costs as much as it is long. A block that is not one
of these is an :class:`UnknownContent`, which keeps the JSON as it was; an optional field of another type is
kept in `extra`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Literal, TypeAlias, cast

from cantle_ai.codec import Json, JsonObject, decode_json, kept_fields

__all__ = [
    "AssistantContent",
    "Content",
    "ImageContent",
    "TextContent",
    "ThinkingContent",
    "ToolCall",
    "UnknownContent",
    "UserContent",
    "content_from_json",
]

_SMALL = 4096
"""Unfinished arguments up to this many characters are parsed at every access, longer ones at each doubling."""


class _Block:
    """Equality and repr by the block's JSON."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]

    def to_json(self) -> JsonObject:
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.to_json() == self.to_json()

    def __repr__(self) -> str:
        fields = ", ".join(f"{key}={value!r}" for key, value in self.to_json().items() if key != "type")
        return f"{type(self).__name__}({fields})"


class _Growing(_Block):
    """A block whose main string arrives in parts."""

    __slots__ = ("_parts",)

    def __init__(self, text: str) -> None:
        self._parts: list[str] = [text] if text else []

    def append(self, delta: str) -> None:
        """Add `delta` at the end. For the stream that owns the block; a finished message never changes."""
        self._parts.append(delta)

    def _joined(self) -> str:
        parts = self._parts
        if len(parts) > 1:
            parts[:] = ["".join(parts)]
        return parts[0] if parts else ""


class TextContent(_Growing):
    """Text. `signature` is the provider's own metadata about it, opaque."""

    __slots__ = ("extra", "signature")
    type: ClassVar[Literal["text"]] = "text"

    def __init__(
        self, text: str = "", *, signature: str | None = None, extra: JsonObject | None = None
    ) -> None:
        super().__init__(text)
        self.signature = signature
        self.extra = extra

    @property
    def text(self) -> str:
        return self._joined()

    def to_json(self) -> JsonObject:
        raw: JsonObject = {"type": "text", "text": self._joined()}
        if self.signature is not None:
            raw["textSignature"] = self.signature
        return raw if self.extra is None else {**raw, **self.extra}


class ThinkingContent(_Growing):
    """Reasoning. `signature` is what the provider wants back on replay, opaque.

    A redacted block may have no text and still a signature, which must be kept.
    """

    __slots__ = ("extra", "redacted", "signature")
    type: ClassVar[Literal["thinking"]] = "thinking"

    def __init__(
        self,
        thinking: str = "",
        *,
        signature: str | None = None,
        redacted: bool = False,
        extra: JsonObject | None = None,
    ) -> None:
        super().__init__(thinking)
        self.signature = signature
        self.redacted = redacted
        self.extra = extra

    @property
    def thinking(self) -> str:
        return self._joined()

    def to_json(self) -> JsonObject:
        raw: JsonObject = {"type": "thinking", "thinking": self._joined()}
        if self.signature is not None:
            raw["thinkingSignature"] = self.signature
        if self.redacted:
            raw["redacted"] = True
        return raw if self.extra is None else {**raw, **self.extra}


class ImageContent(_Block):
    """An image: base64 `data` and its media type, such as `image/png`."""

    __slots__ = ("_detected", "data", "extra", "mime_type")
    type: ClassVar[Literal["image"]] = "image"

    def __init__(self, data: str, mime_type: str, *, extra: JsonObject | None = None) -> None:
        self.data = data
        self.mime_type = mime_type
        self.extra = extra
        self._detected: str | None = None

    @property
    def detected_type(self) -> str | None:
        """The media type that the data themselves show: PNG, JPEG, GIF or WebP.

        None for any other data, and for what is no base64. Found out once.
        """
        if self._detected is None:
            from cantle_ai.image_types import base64_image_type

            self._detected = base64_image_type(self.data) or ""
        return self._detected or None

    def to_json(self) -> JsonObject:
        raw: JsonObject = {"type": "image", "data": self.data, "mimeType": self.mime_type}
        return raw if self.extra is None else {**raw, **self.extra}

    def __repr__(self) -> str:
        return f"ImageContent({self.mime_type!r}, {len(self.data)} base64 characters)"


class ToolCall(_Growing):
    """A call that the model asks for.

    While it streams, `arguments` is a view of what has arrived, parsed when it is read: at every access
    while it is short, at each doubling after that. Once finished (`finish`), it is the parsed object.
    `invalid_arguments` holds the text when what arrived is not a JSON object; `arguments` is then empty,
    and the tool pipeline answers such a call with an error instead of running it.
    """

    __slots__ = (
        "_arguments",
        "_seen",
        "_size",
        "extra",
        "id",
        "invalid_arguments",
        "name",
        "namespace",
        "thought_signature",
    )
    type: ClassVar[Literal["toolCall"]] = "toolCall"

    def __init__(
        self,
        id: str,
        name: str,
        arguments: JsonObject | None = None,
        *,
        thought_signature: str | None = None,
        namespace: str | None = None,
        invalid_arguments: str | None = None,
        extra: JsonObject | None = None,
    ) -> None:
        super().__init__("")
        self.id = id
        self.name = name
        self.thought_signature = thought_signature
        self.namespace = namespace
        self.invalid_arguments = invalid_arguments
        self.extra = extra
        self._arguments: JsonObject = {} if arguments is None else arguments
        self._size = 0
        self._seen = 0

    def append(self, delta: str) -> None:
        self._parts.append(delta)
        self._size += len(delta)

    @property
    def arguments(self) -> JsonObject:
        size, seen = self._size, self._seen
        if size > seen and (size <= _SMALL or size >= 2 * seen):
            self._seen = size
            self._arguments = _partial_object(self._joined(), self._arguments)
        return self._arguments

    @property
    def arguments_text(self) -> str:
        """The text received so far, while the call streams; empty before and after."""
        return self._joined()

    def finish(self, mend: Callable[[str, JsonObject], JsonObject] | None = None) -> None:
        """Parse what has arrived, once. No text at all means no arguments.

        `mend` makes of the tool's name and what the model has said what the tool is to get.
        """
        text = self._joined()
        self._parts, self._size, self._seen = [], 0, 0
        if not text.strip():
            return
        try:
            value = decode_json(text)
        except ValueError:
            value = None
        if isinstance(value, dict):
            self._arguments = value if mend is None else mend(self.name, value)
        else:
            self._arguments = {}
            self.invalid_arguments = text

    def to_json(self) -> JsonObject:
        raw: JsonObject = {"type": "toolCall", "id": self.id, "name": self.name, "arguments": self.arguments}
        if self.thought_signature is not None:
            raw["thoughtSignature"] = self.thought_signature
        if self.namespace is not None:
            raw["namespace"] = self.namespace
        if self.invalid_arguments is not None:
            raw["invalidArguments"] = self.invalid_arguments
        return raw if self.extra is None else {**raw, **self.extra}


class UnknownContent(_Block):
    """A block of a kind this version does not know, kept as it was."""

    __slots__ = ("raw",)
    type: ClassVar[Literal["unknown"]] = "unknown"

    def __init__(self, raw: Json) -> None:
        self.raw = raw

    def to_json(self) -> JsonObject:
        return cast("JsonObject", self.raw)

    def __repr__(self) -> str:
        return f"UnknownContent({self.raw!r})"


UserContent: TypeAlias = TextContent | ImageContent | UnknownContent
AssistantContent: TypeAlias = TextContent | ThinkingContent | ToolCall | UnknownContent
Content: TypeAlias = TextContent | ThinkingContent | ImageContent | ToolCall | UnknownContent


def content_from_json(raw: Json) -> Content:
    """One block from its JSON. Never raises: what does not fit becomes an :class:`UnknownContent`."""
    if not isinstance(raw, dict):
        return UnknownContent(raw)
    match raw.get("type"):
        case "text":
            block: Content | None = _text(raw)
        case "toolCall":
            block = _call(raw)
        case "thinking":
            block = _thinking(raw)
        case "image":
            block = _image(raw)
        case _:
            block = None
    return UnknownContent(raw) if block is None else block


def _text(raw: JsonObject) -> TextContent | None:
    text = raw.get("text")
    if not isinstance(text, str):
        return None
    if len(raw) == 2:
        return TextContent(text)
    return TextContent(text, signature=_optional(raw, "textSignature"), extra=kept_fields(raw, _TEXT))


def _thinking(raw: JsonObject) -> ThinkingContent | None:
    thinking = raw.get("thinking")
    if not isinstance(thinking, str):
        return None
    return ThinkingContent(
        thinking,
        signature=_optional(raw, "thinkingSignature"),
        redacted=raw.get("redacted") is True,
        extra=kept_fields(raw, _THINKING),
    )


def _image(raw: JsonObject) -> ImageContent | None:
    data, mime_type = raw.get("data"), raw.get("mimeType")
    if not (isinstance(data, str) and isinstance(mime_type, str)):
        return None
    return ImageContent(data, mime_type, extra=kept_fields(raw, _IMAGE))


def _call(raw: JsonObject) -> ToolCall | None:
    id, name, arguments = raw.get("id"), raw.get("name"), raw.get("arguments")
    if not (isinstance(id, str) and isinstance(name, str) and isinstance(arguments, dict)):
        return None
    if len(raw) == 4:
        return ToolCall(id, name, arguments)
    return ToolCall(
        id,
        name,
        arguments,
        thought_signature=_optional(raw, "thoughtSignature"),
        namespace=_optional(raw, "namespace"),
        invalid_arguments=_optional(raw, "invalidArguments"),
        extra=kept_fields(raw, _CALL),
    )


_TEXT = dict.fromkeys(("type", "text", "textSignature"), str)
_THINKING = {"type": str, "thinking": str, "thinkingSignature": str, "redacted": bool}
_IMAGE = dict.fromkeys(("type", "data", "mimeType"), str)
_CALL: dict[str, type] = {
    **dict.fromkeys(("type", "id", "name", "thoughtSignature", "namespace", "invalidArguments"), str),
    "arguments": dict,
}


def _optional(raw: JsonObject, key: str) -> str | None:
    value = raw.get(key)
    return value if isinstance(value, str) else None


def _partial_object(text: str, previous: JsonObject) -> JsonObject:
    import jiter

    try:
        value = jiter.from_json(text.encode("utf-8", "surrogatepass"), partial_mode="trailing-strings")
    except ValueError:
        return previous
    return value if isinstance(value, dict) else previous
