"""The rules for `messages` of Mistral's chat API.

From the message types of Mistral's SDK for Python, the validators of its package `mistral-common`, and the error
texts that its users report: `invalid_request_message_order`, `invalid_function_call`, "must have either content or
tool_calls".
"""

from __future__ import annotations

import re

from cantle_ai.codec import Json, JsonObject
from cantle_ai.testing.server.images import check_image_url
from cantle_ai.testing.server.open_calls import OpenCalls
from cantle_ai.testing.server.refusal import (
    Path,
    Refusal,
    arguments_of,
    flag_of,
    known_fields,
    list_of,
    matching,
    object_of,
    text_of,
)

__all__ = ["CALL_ID", "TOOL_NAME", "check_messages"]

TOOL_NAME = r"[a-zA-Z0-9_-]{1,64}"
CALL_ID = r"[a-zA-Z0-9]{9}"

_FIELDS = {
    "system": {"role", "content"},
    "user": {"role", "content"},
    "assistant": {"role", "content", "tool_calls", "prefix"},
    "tool": {"role", "content", "tool_call_id", "name"},
}
_FOLLOWERS = {
    "": {"system", "user"},
    "system": {"system", "user"},
    "user": {"user", "assistant"},
    "assistant": {"user", "assistant", "tool"},
    "tool": {"tool", "assistant"},
}
"""Which roles may follow which."""
_PARTS = {
    "system": {"text"},
    "user": {"text", "image_url"},
    "assistant": {"text", "thinking"},
    "tool": {"text", "image_url"},
}


def check_messages(value: Json) -> None:
    """Refuse a conversation that Mistral would refuse."""
    calls = OpenCalls()
    message: JsonObject = {}
    before = ""
    for index, item in enumerate(list_of(value, "messages")):
        path = f"messages[{index}]"
        message = object_of(item, path)
        role = message.get("role")
        if not isinstance(role, str) or role not in _FIELDS:
            raise Refusal("role", f"{path}.role is {role!r}, which is none of {', '.join(_FIELDS)}")
        known_fields(message, _FIELDS[role], path)
        if role not in _FOLLOWERS[before]:
            raise Refusal("order", f"{path}: unexpected role {role!r} after role {before!r}")
        if role == "tool":
            calls.answer(text_of(message.get("tool_call_id"), f"{path}.tool_call_id"), path)
            matching(message.get("name"), TOOL_NAME, f"{path}.name")
        else:
            calls.all_answered(path)
        _content(role, message, calls, path)
        before = role
    calls.all_answered("the end of messages")
    if before == "assistant" and message.get("prefix") is not True:
        raise Refusal(
            "order", "expected the last role user or tool (or assistant with prefix true), not assistant"
        )


def _content(role: str, message: JsonObject, calls: OpenCalls, path: Path) -> None:
    content = message.get("content")
    if role == "assistant":
        flag_of(message.get("prefix", False), f"{path}.prefix")
        if "tool_calls" in message:
            _ask(message["tool_calls"], calls, f"{path}.tool_calls")
            if content is None:
                return
        elif content is None:
            raise Refusal("empty", f"{path}: an assistant message must have either content or tool_calls")
    if not isinstance(content, list):
        text_of(content, f"{path}.content")
        return
    for index, item in enumerate(list_of(content, f"{path}.content")):
        where = f"{path}.content[{index}]"
        part = object_of(item, where)
        kind = part.get("type")
        if not isinstance(kind, str) or kind not in _PARTS[role]:
            raise Refusal("part", f"{where}.type is {kind!r}, which the role {role!r} cannot have")
        _part(kind, part, where)


def _part(kind: str, part: JsonObject, path: Path) -> None:
    match kind:
        case "text":
            known_fields(part, {"type", "text"}, path)
            text_of(part.get("text"), f"{path}.text")
        case "thinking":
            known_fields(part, {"type", "thinking", "signature", "closed"}, path)
            for index, item in enumerate(list_of(part.get("thinking"), f"{path}.thinking")):
                where = f"{path}.thinking[{index}]"
                piece = object_of(item, where)
                if piece.get("type") != "text":
                    raise Refusal(
                        "part", f"{where}.type is {piece.get('type')!r}, which thinking cannot have"
                    )
                known_fields(piece, {"type", "text"}, where)
                if not isinstance(piece.get("text"), str):
                    raise Refusal("type", f"{where}.text must be a string")
        case _:
            known_fields(part, {"type", "image_url"}, path)
            _image(part.get("image_url"), f"{path}.image_url")


def _image(value: Json, path: Path) -> None:
    if isinstance(value, dict):
        known_fields(value, {"url", "detail"}, path)
        value = value.get("url")
    check_image_url(text_of(value, path), path)


def _ask(value: Json, calls: OpenCalls, path: Path) -> None:
    for index, item in enumerate(list_of(value, path)):
        where = f"{path}[{index}]"
        call = object_of(item, where)
        known_fields(call, {"id", "type", "function", "index"}, where)
        if call.get("type", "function") != "function":
            raise Refusal("type", f"{where}.type must be 'function', not {call.get('type')!r}")
        function = object_of(call.get("function"), f"{where}.function")
        known_fields(function, {"name", "arguments"}, f"{where}.function")
        matching(function.get("name"), TOOL_NAME, f"{where}.function.name")
        if not isinstance(function.get("arguments"), dict):
            arguments_of(function.get("arguments"), f"{where}.function.arguments")
        call_id = call.get("id")
        if not isinstance(call_id, str) or re.fullmatch(CALL_ID, call_id) is None:
            raise Refusal(
                "call-id",
                f"{where}.id: tool call id was {call_id!r} but must be a-z, A-Z, 0-9, with a length of 9",
            )
        calls.ask(call_id, where)
