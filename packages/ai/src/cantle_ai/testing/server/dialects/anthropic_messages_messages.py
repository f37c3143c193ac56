"""The rules for `messages` and what stands in them: each is one that somebody who speaks the API enforces."""

from __future__ import annotations

from cantle_ai.codec import Json, JsonObject
from cantle_ai.testing.server.images import check_image
from cantle_ai.testing.server.open_calls import OpenCalls
from cantle_ai.testing.server.refusal import (
    Path,
    Refusal,
    flag_of,
    known_fields,
    list_of,
    matching,
    object_of,
    text_of,
)

__all__ = ["CALL_ID", "TOOL_NAME", "check_mark", "check_messages", "check_text_blocks"]

TOOL_NAME = r"[a-zA-Z0-9_-]{1,64}"
CALL_ID = r"[a-zA-Z0-9_-]{1,64}"

_BLOCKS = {
    "user": {"text", "image", "tool_result"},
    "assistant": {"text", "thinking", "redacted_thinking", "tool_use"},
}
_FIELDS = {
    "text": {"type", "text", "cache_control", "citations"},
    "image": {"type", "source", "cache_control"},
    "tool_result": {"type", "tool_use_id", "content", "is_error", "cache_control"},
    "thinking": {"type", "thinking", "signature"},
    "redacted_thinking": {"type", "data"},
    "tool_use": {"type", "id", "name", "input", "cache_control", "caller"},
}


def check_messages(value: Json) -> None:
    """Refuse a conversation that somebody would refuse."""
    calls = OpenCalls()
    role = ""
    for index, item in enumerate(list_of(value, "messages")):
        path = f"messages[{index}]"
        message = object_of(item, path)
        known_fields(message, {"role", "content"}, path)
        before, role = role, _role(message, path)
        if role == before:
            raise Refusal(
                "order", f"{path}: roles must alternate, but two messages of {role!r} follow each other"
            )
        if index == 0 and role != "user":
            raise Refusal("order", f"{path}: the first message must be of the user")
        blocks = _blocks(message.get("content"), role, f"{path}.content")
        if role == "user":
            _answers(blocks, calls, path)
        else:
            for block in blocks:
                if block.get("type") == "tool_use":
                    calls.ask(str(block["id"]), path)
            if blocks[-1].get("type") in ("thinking", "redacted_thinking"):
                raise Refusal("thinking", f"{path}: the last block of an answer cannot be thinking")
    if role != "user":
        raise Refusal("order", "the conversation must end with a user message: prefill is not supported")


def check_text_blocks(value: Json, path: Path) -> None:
    """Refuse what is neither a text nor a list of blocks of text."""
    if isinstance(value, str):
        text_of(value, path)
        return
    for index, item in enumerate(list_of(value, path)):
        block = object_of(item, f"{path}[{index}]")
        if block.get("type") != "text":
            raise Refusal("block", f"{path}[{index}].type must be 'text', not {block.get('type')!r}")
        _block(block, f"{path}[{index}]")


def check_mark(value: Json) -> JsonObject:
    """Refuse a cache mark that is none."""
    mark = object_of(value, "cache_control")
    known_fields(mark, {"type", "ttl"}, "cache_control")
    if mark.get("type") != "ephemeral" or mark.get("ttl", "5m") not in ("5m", "1h"):
        raise Refusal("cache-control", f"cache_control is {mark!r}: type must be ephemeral, ttl 5m or 1h")
    return mark


def _role(message: JsonObject, path: Path) -> str:
    role = message.get("role")
    if not isinstance(role, str) or role not in _BLOCKS:
        raise Refusal("role", f"{path}.role is {role!r}, which is none of {', '.join(_BLOCKS)}")
    return role


def _blocks(content: Json, role: str, path: Path) -> list[JsonObject]:
    if isinstance(content, str):
        return [{"type": "text", "text": text_of(content, path)}]
    blocks = [object_of(item, f"{path}[{index}]") for index, item in enumerate(list_of(content, path))]
    for index, block in enumerate(blocks):
        kind = block.get("type")
        if not isinstance(kind, str) or kind not in _BLOCKS[role]:
            raise Refusal("block", f"{path}[{index}].type is {kind!r}, which the role {role!r} cannot have")
        _block(block, f"{path}[{index}]")
    return blocks


def _block(block: JsonObject, path: Path) -> None:
    kind = str(block["type"])
    known_fields(block, _FIELDS[kind], path)
    match kind:
        case "text":
            text_of(block.get("text"), f"{path}.text")
        case "image":
            _image(object_of(block.get("source"), f"{path}.source"), f"{path}.source")
        case "thinking":
            text_of(block.get("signature"), f"{path}.signature")
            if not isinstance(block.get("thinking"), str):
                raise Refusal("type", f"{path}.thinking must be a string")
        case "redacted_thinking":
            text_of(block.get("data"), f"{path}.data")
        case "tool_use":
            matching(block.get("id"), CALL_ID, f"{path}.id")
            matching(block.get("name"), TOOL_NAME, f"{path}.name")
            object_of(block.get("input"), f"{path}.input")
        case "tool_result":
            _result(block, path)


def _image(source: JsonObject, path: Path) -> None:
    if source.get("type") == "url":
        known_fields(source, {"type", "url"}, path)
        matching(source.get("url"), r"https://.+", f"{path}.url")
        return
    known_fields(source, {"type", "media_type", "data"}, path)
    if source.get("type") != "base64":
        raise Refusal("image", f"{path}.type is {source.get('type')!r}: it must be base64 or url")
    check_image(text_of(source.get("media_type"), path), text_of(source.get("data"), path), path)


def _result(block: JsonObject, path: Path) -> None:
    matching(block.get("tool_use_id"), CALL_ID, f"{path}.tool_use_id")
    is_error = flag_of(block.get("is_error", False), f"{path}.is_error")
    content = block.get("content")
    if isinstance(content, str):
        text_of(content, f"{path}.content")
        return
    for index, item in enumerate(list_of(content, f"{path}.content")):
        where = f"{path}.content[{index}]"
        inner = object_of(item, where)
        if inner.get("type") not in ("text", "image"):
            raise Refusal("block", f"{where}.type is {inner.get('type')!r}, which a result cannot have")
        if is_error and inner["type"] != "text":
            raise Refusal("block", f"{where}: all content must be type 'text' if is_error is true")
        _block(inner, where)


def _answers(blocks: list[JsonObject], calls: OpenCalls, path: Path) -> None:
    """The results of all calls of the message before stand at the start of this one."""
    others = False
    for block in blocks:
        if block.get("type") != "tool_result":
            others = True
            continue
        call_id = str(block["tool_use_id"])
        if others:
            raise Refusal(
                "order", f"{path}: tool_result blocks come before all else, but {call_id!r} does not"
            )
        calls.answer(call_id, path)
    calls.all_answered(path)
