"""The rules for `messages`: each is one that at least one vendor of the chat-completions API enforces."""

from __future__ import annotations

from cantle_ai.codec import Json, JsonObject
from cantle_ai.testing.server.images import check_image_url
from cantle_ai.testing.server.open_calls import OpenCalls
from cantle_ai.testing.server.refusal import (
    Path,
    Refusal,
    arguments_of,
    known_fields,
    list_of,
    matching,
    object_of,
    text_of,
)

__all__ = ["CALL_ID", "TOOL_NAME", "check_messages"]

TOOL_NAME = r"[A-Za-z0-9_-]{1,64}"
CALL_ID = r"[A-Za-z0-9_-]{1,40}"

_FIELDS = {
    "system": {"role", "content", "name"},
    "developer": {"role", "content", "name"},
    "user": {"role", "content", "name"},
    "assistant": {
        "role",
        "content",
        "name",
        "tool_calls",
        "refusal",
        "reasoning",
        "reasoning_content",
        "reasoning_details",
    },
    "tool": {"role", "content", "tool_call_id", "name"},
}


def check_messages(value: Json) -> None:
    """Refuse a conversation that some vendor would refuse."""
    messages = [object_of(message, f"messages[{i}]") for i, message in enumerate(list_of(value, "messages"))]
    calls = OpenCalls()
    before = ""
    for index, message in enumerate(messages):
        path = f"messages[{index}]"
        role = message.get("role")
        if not isinstance(role, str) or role not in _FIELDS:
            raise Refusal("role", f"{path}.role is {role!r}, which is none of {', '.join(_FIELDS)}")
        known_fields(message, _FIELDS[role], path)
        _order(role, before, index, path)
        if role != "tool":
            calls.all_answered(path)
        _content(role, message, calls, path)
        before = role
    calls.all_answered("the end of messages")
    if before not in ("user", "tool"):
        raise Refusal("order", f"the last message is of the role {before!r}: it must be user or tool")


def _order(role: str, before: str, index: int, path: Path) -> None:
    if role in ("system", "developer") and index > 0:
        raise Refusal("order", f"{path}: a {role} message must be the first one, and the only one")
    if before in ("", "system", "developer") and role in ("assistant", "tool"):
        raise Refusal("order", f"{path}: a conversation begins with a user message, not {role}")
    if role == "assistant" and before == "assistant":
        raise Refusal("order", f"{path}: an assistant message follows another one")


def _content(role: str, message: JsonObject, calls: OpenCalls, path: Path) -> None:
    content = message.get("content")
    match role:
        case "user":
            _parts(content, f"{path}.content", images=True)
        case "tool":
            calls.answer(text_of(message.get("tool_call_id"), f"{path}.tool_call_id"), path)
            _parts(content, f"{path}.content", images=False)
        case "assistant":
            if "tool_calls" in message:
                _ask(message["tool_calls"], calls, f"{path}.tool_calls")
            if content is not None or "tool_calls" not in message:
                _parts(content, f"{path}.content", images=False)
        case _:
            _parts(content, f"{path}.content", images=False)


def _parts(content: Json, path: Path, *, images: bool) -> None:
    if not isinstance(content, list):
        text_of(content, path)
        return
    for index, part in enumerate(list_of(content, path)):
        where = f"{path}[{index}]"
        block = object_of(part, where)
        match block.get("type"):
            case "text":
                known_fields(block, {"type", "text", "cache_control"}, where)
                text_of(block.get("text"), f"{where}.text")
            case "image_url" if images:
                known_fields(block, {"type", "image_url"}, where)
                _image(object_of(block.get("image_url"), f"{where}.image_url"), f"{where}.image_url")
            case kind:
                raise Refusal("part", f"{where}.type is {kind!r}, which this role cannot have")


def _image(image: JsonObject, path: Path) -> None:
    known_fields(image, {"url", "detail"}, path)
    check_image_url(text_of(image.get("url"), f"{path}.url"), f"{path}.url")


def _ask(value: Json, calls: OpenCalls, path: Path) -> None:
    for index, item in enumerate(list_of(value, path)):
        where = f"{path}[{index}]"
        call = object_of(item, where)
        known_fields(call, {"id", "type", "function"}, where)
        if call.get("type") != "function":
            raise Refusal("type", f"{where}.type must be 'function', not {call.get('type')!r}")
        function = object_of(call.get("function"), f"{where}.function")
        known_fields(function, {"name", "arguments"}, f"{where}.function")
        matching(function.get("name"), TOOL_NAME, f"{where}.function.name")
        arguments_of(function.get("arguments"), f"{where}.function.arguments")
        calls.ask(matching(call.get("id"), CALL_ID, f"{where}.id"), where)
