"""The rules for `messages` and what stands in them: Converse's own, and those of Claude, the strictest behind it.

From the service's model in botocore (names, unions, patterns), "Carry out a conversation" and "Tool use" of AWS's
documentation, and the error texts that its users report.
"""

from __future__ import annotations

import base64
import binascii

from cantle_ai.codec import Json, JsonObject
from cantle_ai.testing.server.images import check_image
from cantle_ai.testing.server.open_calls import OpenCalls
from cantle_ai.testing.server.refusal import (
    Path,
    Refusal,
    known_fields,
    list_of,
    matching,
    object_of,
    text_of,
)

__all__ = ["CALL_ID", "TOOL_NAME", "check_cache_point", "check_messages", "only_member"]

TOOL_NAME = r"[a-zA-Z0-9_-]{1,64}"
CALL_ID = r"[a-zA-Z0-9_-]{1,64}"

_MEMBERS = {
    "user": {"text", "image", "toolResult", "cachePoint"},
    "assistant": {"text", "reasoningContent", "toolUse", "cachePoint"},
}


def check_messages(value: Json) -> bool:
    """Refuse a conversation that somebody would refuse. Whether it calls tools."""
    calls = OpenCalls()
    role = ""
    for index, item in enumerate(list_of(value, "messages")):
        path = f"messages.{index}"
        message = object_of(item, path)
        known_fields(message, {"role", "content"}, path)
        before, role = role, str(message.get("role"))
        if role not in _MEMBERS:
            raise Refusal("role", f"{path}.role is {role!r}, which is none of {', '.join(_MEMBERS)}")
        if index == 0 and role != "user":
            raise Refusal("order", "a conversation must start with a user message")
        if role == before:
            raise Refusal("order", f"{path}: roles must alternate between user and assistant")
        blocks = [
            _block(item, role, f"{path}.content.{place}")
            for place, item in enumerate(list_of(message.get("content"), f"{path}.content"))
        ]
        if blocks[0][0] == "cachePoint":
            raise Refusal("cache-point", f"{path}.content.0: a cachePoint must follow what it caches")
        if role == "user":
            _answers(blocks, calls, path)
        else:
            for name, block in blocks:
                if name == "toolUse":
                    calls.ask(str(block["toolUseId"]), path)
            if blocks[-1][0] == "reasoningContent":
                raise Refusal(
                    "thinking", f"{path}: the final block in an assistant message cannot be thinking"
                )
    if role != "user":
        raise Refusal("order", "the conversation must end with a user message")
    return calls.any


def only_member(value: Json, known: set[str], path: Path) -> tuple[str, Json]:
    """The one member of a union, and its value."""
    union = object_of(value, path)
    known_fields(union, known, path)
    if len(union) != 1:
        raise Refusal("union", f"{path} must have exactly one of {', '.join(sorted(known))}")
    return next(iter(union.items()))


def check_cache_point(value: Json, path: Path) -> str:
    """Refuse a cache point that is none. Its time to live."""
    point = object_of(value, path)
    known_fields(point, {"type", "ttl"}, path)
    ttl = point.get("ttl", "5m")
    if point.get("type") != "default" or ttl not in ("5m", "1h"):
        raise Refusal("cache-point", f"{path} is {point!r}: type must be default, ttl 5m or 1h")
    return str(ttl)


def _block(value: Json, role: str, path: Path) -> tuple[str, JsonObject]:
    name, inner = only_member(value, _MEMBERS[role], path)
    match name:
        case "text":
            _text(inner, path)
            return name, {}
        case "image":
            _image(inner, f"{path}.image")
        case "toolUse":
            use = object_of(inner, f"{path}.toolUse")
            known_fields(use, {"toolUseId", "name", "input"}, f"{path}.toolUse")
            matching(use.get("toolUseId"), CALL_ID, f"{path}.toolUse.toolUseId")
            matching(use.get("name"), TOOL_NAME, f"{path}.toolUse.name")
            _document(object_of(use.get("input"), f"{path}.toolUse.input"), f"{path}.toolUse.input")
        case "toolResult":
            _result(object_of(inner, f"{path}.toolResult"), f"{path}.toolResult")
        case "reasoningContent":
            _reasoning(inner, f"{path}.reasoningContent")
        case "cachePoint":
            check_cache_point(inner, f"{path}.cachePoint")
    return name, object_of(inner, path)


def _document(value: Json, path: Path) -> None:
    """Refuse members without a name, which AWS's type for documents does not have."""
    if isinstance(value, dict):
        if "" in value:
            raise Refusal("document", f"{path} has a member whose name is empty")
        for name, each in value.items():
            _document(each, f"{path}.{name}")
    elif isinstance(value, list):
        for index, each in enumerate(value):
            _document(each, f"{path}.{index}")


def _text(value: Json, path: Path) -> None:
    if not isinstance(value, str) or not value.strip():
        raise Refusal("empty", f"the text field in the ContentBlock object at {path} is blank")


def _image(value: Json, path: Path) -> None:
    image = object_of(value, path)
    known_fields(image, {"format", "source"}, path)
    kind = image.get("format")
    if kind not in ("png", "jpeg", "gif", "webp"):
        raise Refusal("image", f"{path}.format is {kind!r}: it must be png, jpeg, gif or webp")
    _, data = only_member(image.get("source"), {"bytes"}, f"{path}.source")
    check_image(f"image/{kind}", text_of(data, f"{path}.source.bytes"), f"{path}.source.bytes")


def _result(result: JsonObject, path: Path) -> None:
    known_fields(result, {"toolUseId", "content", "status"}, path)
    matching(result.get("toolUseId"), CALL_ID, f"{path}.toolUseId")
    status = result.get("status", "success")
    if status not in ("success", "error"):
        raise Refusal("status", f"{path}.status is {status!r}: it must be success or error")
    for index, item in enumerate(list_of(result.get("content"), f"{path}.content")):
        where = f"{path}.content.{index}"
        name, inner = only_member(item, {"text", "image", "json"}, where)
        match name:
            case "text":
                _text(inner, where)
            case "json":
                object_of(inner, f"{where}.json")
            case _ if status == "error":
                raise Refusal("block", f"{where}: all content must be text if the status is error")
            case _:
                _image(inner, f"{where}.image")


def _reasoning(value: Json, path: Path) -> None:
    name, inner = only_member(value, {"reasoningText", "redactedContent"}, path)
    if name == "redactedContent":
        data = text_of(inner, f"{path}.redactedContent")
        try:
            base64.b64decode(data, validate=True)
        except binascii.Error:
            raise Refusal("blob", f"{path}.redactedContent is no Base64") from None
        return
    text = object_of(inner, f"{path}.reasoningText")
    known_fields(text, {"text", "signature"}, f"{path}.reasoningText")
    if not isinstance(text.get("text"), str):
        raise Refusal("type", f"{path}.reasoningText.text must be a string")
    text_of(text.get("signature"), f"{path}.reasoningText.signature")


def _answers(blocks: list[tuple[str, JsonObject]], calls: OpenCalls, path: Path) -> None:
    """The results of all calls of the message before stand at the start of this one."""
    others = False
    for name, block in blocks:
        if name != "toolResult":
            others = True
            continue
        if others:
            raise Refusal("order", f"{path}: toolResult blocks must come before all other content")
        calls.answer(str(block["toolUseId"]), path)
    calls.all_answered(path)
