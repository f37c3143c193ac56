"""The conversation in the form of Google's `contents`, each message encoded once.

    {"role": "user", "parts": [{"text"} | {"inlineData": {"mimeType", "data"}}]}
    {"role": "model", "parts": [{"text", "thought"?: true} | {"functionCall": {"name", "args", "id"?}}]},
        each part with a "thoughtSignature" where it has one
    {"role": "user", "parts": [{"functionResponse": {"name", "response": {"output" | "error": …},
                                                     "parts"?: [{"inlineData"}], "id"?}}]}

Messages of one role that follow each other are one content; the responses to the calls of an answer are one of
their own, in the order of the results. Older models know no ids: for them it is the order of the calls, which alone
tells two calls of one function apart. They take no image in a response either: those of a batch follow it in a
user's content.

The bytes of a message's parts depend on the message, the model and its quirks, never on what comes later: so those
of one request begin those of the next, which is what Google's caching of prompts lives on. They are kept in the
message's own `wire`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, TypeAlias

from cantle_ai.apis.encoded_messages import kept_bytes
from cantle_ai.apis.google_compat import GoogleCompat
from cantle_ai.call_ids import NAME_CHARACTERS, fitting_id, fitting_name
from cantle_ai.codec import Json, JsonObject, wire_json
from cantle_ai.content import ImageContent, TextContent, ThinkingContent, ToolCall
from cantle_ai.context import Context
from cantle_ai.history import ReplayRules, Turn, project
from cantle_ai.messages import AssistantMessage, ToolResultMessage, UserMessage
from cantle_ai.model import Model, StreamOptions

__all__ = ["SKIP_SIGNATURE", "encoded_contents"]

SKIP_SIGNATURE = "skip_thought_signature_validator"
"""What Google takes for the signature of a call that it did not make itself, or that has lost its own."""

_IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/webp"})
"""Of those that this package knows; GIF is refused. (ai.google.dev/gemini-api/docs/image-understanding)"""
_NOT_TAKEN = "(an image was left out: this model takes no images of the type {type})"
_IMAGE_FOLLOWS = "(the result is an image, which follows)"
_IMAGE_BESIDE = "(the result is the image beside this text)"
_IMAGES_LEAD = "Images from the tool results above:"
_NO_MESSAGES = "(The conversation has no messages.)"
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")

_OWN_ID = re.compile(r"(?=.*[!-~])[ -~]{1,200}")
_fitting_id = fitting_id(NAME_CHARACTERS, 64)


def _call_id(call_id: str, own: bool, attempt: int) -> str:
    """Ids that the model has given itself go back as they are, if they can be ids at all."""
    kept = own and not attempt and _OWN_ID.fullmatch(call_id) is not None
    return call_id if kept else _fitting_id(call_id, own, attempt)


_RULES = ReplayRules(call_id=_call_id)

_Group: TypeAlias = Literal["user", "model", "responses"]


def encoded_contents(
    model: Model, context: Context, options: StreamOptions, compat: GoogleCompat
) -> list[bytes]:
    """The contents of a request, in order; at least one, the first of the user."""
    return _Encoder(model, compat).contents(project(context.messages, model, options, _RULES).turns)


class _Encoder:
    """Encodes messages for one model."""

    __slots__ = ("_compat", "_key")

    def __init__(self, model: Model, compat: GoogleCompat) -> None:
        self._compat = compat
        self._key = (
            "google-contents",
            model.api,
            model.provider,
            model.id,
            compat.requires_thought_signatures,
            compat.supports_call_ids,
            compat.supports_images_in_function_responses,
        )

    def contents(self, turns: Sequence[Turn]) -> list[bytes]:
        groups: list[tuple[_Group, list[bytes]]] = []

        def add(group: _Group, parts: bytes) -> None:
            if not parts:
                return
            if groups and groups[-1][0] == group:
                groups[-1][1].append(parts)
            else:
                groups.append((group, [parts]))

        images: list[bytes] = []
        for turn in turns if self._compat.supports_call_ids else _in_order_of_calls(turns):
            is_result = isinstance(turn.message, ToolResultMessage)
            if images and not is_result:
                add("user", b",".join([_text(_IMAGES_LEAD), *images]))
                images = []
            add(_group(turn), kept_bytes(turn, self._key, self._plain))
            if is_result and not self._compat.supports_images_in_function_responses:
                shown = kept_bytes(turn, (*self._key, "images"), _images)
                images += [shown] if shown else []
        if images:
            add("user", b",".join([_text(_IMAGES_LEAD), *images]))
        if not groups:
            add("user", _text(_NO_MESSAGES))
        return [_content(group, parts) for group, parts in groups]

    def _plain(self, turn: Turn) -> list[JsonObject]:
        match turn.message:
            case UserMessage():
                return [_user_part(block) for block in turn.user_blocks()]
            case AssistantMessage():
                return self._answer(turn)
            case ToolResultMessage():
                return [self._response(turn, turn.message)]

    def _answer(self, turn: Turn) -> list[JsonObject]:
        parts: list[JsonObject] = []
        first_call = True
        for block in turn.assistant_blocks():
            part, signature = self._part(block)
            if turn.own and signature is not None and _BASE64.fullmatch(signature):
                part["thoughtSignature"] = signature
            elif part.get("text") == "":
                continue  # it stood for its signature alone
            if isinstance(block, ToolCall):
                # Calls that are made at once share the signature of the first.
                if first_call and self._compat.requires_thought_signatures:
                    part.setdefault("thoughtSignature", SKIP_SIGNATURE)
                first_call = False
            parts.append(part)
        return parts

    def _part(self, block: TextContent | ThinkingContent | ToolCall) -> tuple[JsonObject, str | None]:
        """One part of an answer, and the signature that its block has."""
        match block:
            case TextContent():
                return {"text": block.text}, block.signature
            case ThinkingContent():
                return {"text": block.thinking, "thought": True}, block.signature
            case ToolCall():
                return {"functionCall": self._call(block)}, block.thought_signature

    def _call(self, call: ToolCall) -> JsonObject:
        plain: JsonObject = {"name": _function_name(call.name), "args": call.arguments}
        if self._compat.supports_call_ids:
            plain["id"] = call.id
        return plain

    def _response(self, turn: Turn, message: ToolResultMessage) -> JsonObject:
        texts: list[str] = []
        images: list[Json] = []
        for block in turn.result_blocks():
            if isinstance(block, TextContent):
                texts.append(block.text)
            elif _takes(block):
                images.append(_image(block))
            else:
                texts.append(_left_out(block))
        inside = self._compat.supports_images_in_function_responses
        text = "\n".join(texts) or (_IMAGE_BESIDE if inside else _IMAGE_FOLLOWS)
        plain: JsonObject = {
            "name": _function_name(turn.tool_name),
            "response": {"error" if message.is_error else "output": text},
        }
        if images and inside:
            plain["parts"] = images
        if self._compat.supports_call_ids:
            plain["id"] = turn.call_id
        return {"functionResponse": plain}


def _in_order_of_calls(turns: Iterable[Turn]) -> Iterator[Turn]:
    """The turns, the results of each answer in the order of its calls."""
    results: list[Turn] = []
    places: dict[str, int] = {}
    for turn in turns:
        if isinstance(turn.message, ToolResultMessage):
            results.append(turn)
            continue
        yield from sorted(results, key=lambda result: places[result.call_id])
        results = []
        if isinstance(turn.message, AssistantMessage):
            places = {call_id: place for place, call_id in enumerate(turn.ids)}
        yield turn
    yield from sorted(results, key=lambda result: places[result.call_id])


def _group(turn: Turn) -> _Group:
    match turn.message:
        case UserMessage():
            return "user"
        case AssistantMessage():
            return "model"
        case ToolResultMessage():
            return "responses"


def _content(group: _Group, parts: list[bytes]) -> bytes:
    role = b"model" if group == "model" else b"user"
    return b'{"role":"' + role + b'","parts":[' + b",".join(parts) + b"]}"


def _text(text: str) -> bytes:
    return wire_json({"text": text})


def _user_part(block: TextContent | ImageContent) -> JsonObject:
    if isinstance(block, TextContent):
        return {"text": block.text}
    return _image(block) if _takes(block) else {"text": _left_out(block)}


def _takes(block: ImageContent) -> bool:
    return block.detected_type in _IMAGE_TYPES


def _images(turn: Turn) -> list[JsonObject]:
    return [_image(block) for block in turn.images if _takes(block)]


def _image(block: ImageContent) -> JsonObject:
    return {"inlineData": {"mimeType": block.detected_type, "data": block.data}}


def _left_out(block: ImageContent) -> str:
    return _NOT_TAKEN.format(type=block.detected_type)


def _function_name(name: str) -> str:
    """The name as all providers take it, and as Google does, where none begins with a digit or a hyphen.

    (ai.google.dev/api/caching#FunctionDeclaration)
    """
    fitting = fitting_name(name)
    return fitting if fitting[0].isalpha() or fitting[0] == "_" else f"_{fitting[:63]}"
