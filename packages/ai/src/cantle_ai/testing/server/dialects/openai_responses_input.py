"""The rules for `input`: the items that a request may hold, and how they must follow each other."""

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

__all__ = ["TOOL_NAME", "check_input"]

TOOL_NAME = r"[A-Za-z0-9_-]{1,64}"
_CALL_ID = r"[A-Za-z0-9_-]{1,64}"
_ID_REST = r"[A-Za-z0-9_-]{1,60}"
_STATUS = ("in_progress", "completed", "incomplete")
_CALLS = {"function_call": "fc_", "custom_tool_call": "ctc_"}
_OUTPUTS = {"function_call_output": "function_call", "custom_tool_call_output": "custom_tool_call"}
_FIELDS = {
    "reasoning": {"type", "id", "summary", "content", "encrypted_content", "status"},
    "function_call": {"type", "id", "call_id", "name", "arguments", "status", "namespace"},
    "custom_tool_call": {"type", "id", "call_id", "name", "input", "namespace"},
    "function_call_output": {"type", "id", "call_id", "output", "status"},
    "custom_tool_call_output": {"type", "id", "call_id", "output"},
}
_OF_THE_SERVICE = frozenset(
    {
        "web_search_call",
        "file_search_call",
        "code_interpreter_call",
        "image_generation_call",
        "mcp_call",
        "mcp_list_tools",
        "compaction",
        "program",
        "program_output",
        "tool_search_call",
        "tool_search_output",
        "additional_tools",
    }
)
"""Items of tools that the service runs itself; only their ids are looked at."""


def check_input(value: Json, *, stored: bool) -> None:
    """Refuse a conversation that the service would refuse. `stored` says that it knows items by their ids."""
    items = [object_of(item, f"input[{index}]") for index, item in enumerate(list_of(value, "input"))]
    conversation = _Conversation(stored=stored)
    for index, item in enumerate(items):
        conversation.take(item, f"input[{index}]", first=index == 0)
    conversation.end()


class _Conversation:
    """Takes the items in order."""

    def __init__(self, *, stored: bool) -> None:
        self._stored = stored
        self._ids: set[str] = set()
        self._calls = OpenCalls()
        self._kinds: dict[str, str] = {}
        self._reasoning: Path | None = None
        self._said = False

    def take(self, item: JsonObject, path: Path, *, first: bool) -> None:
        kind = item.get("type", "message")
        self._id(item, path)
        self._follows_reasoning(item, kind)
        match kind:
            case "message":
                self._message(item, path, first)
            case "reasoning":
                self._thought(item, path)
            case "function_call" | "custom_tool_call":
                self._call(item, str(kind), path)
            case "function_call_output" | "custom_tool_call_output":
                self._output(item, str(kind), path)
            case str() if kind in _OF_THE_SERVICE:
                matching(item.get("id"), r"\w{1,64}", f"{path}.id")
            case _:
                raise Refusal("type", f"{path}.type is {kind!r}, which is no item")

    def end(self) -> None:
        if self._reasoning is not None:
            raise Refusal("reasoning", f"{self._reasoning}: reasoning without the item that must follow it")
        self._calls.all_answered("the end of input")
        if not self._said:
            raise Refusal("empty", "input holds nothing that was said")

    def _id(self, item: JsonObject, path: Path) -> None:
        id = item.get("id")
        if id is None:
            return
        text = text_of(id, f"{path}.id")
        if text in self._ids:
            raise Refusal("item-id", f"{path}.id is {text!r}, which an earlier item has")
        self._ids.add(text)

    def _follows_reasoning(self, item: JsonObject, kind: Json) -> None:
        led = kind in _CALLS or kind in _OF_THE_SERVICE or item.get("role") == "assistant"
        if self._reasoning is not None and not led and kind != "reasoning":
            raise Refusal("reasoning", f"{self._reasoning}: reasoning without the item that must follow it")
        if kind != "reasoning":
            self._reasoning = None

    def _message(self, item: JsonObject, path: Path, first: bool) -> None:
        role = item.get("role")
        if role not in ("user", "assistant", "system", "developer"):
            raise Refusal("role", f"{path}.role is {role!r}")
        if role in ("system", "developer") and not first:
            raise Refusal("order", f"{path}: instructions must be the first item, and the only ones")
        if role != "assistant":  # an answer may go on after its calls
            self._calls.all_answered(path)
        self._said = self._said or role in ("user", "assistant")
        if role == "assistant" and isinstance(item.get("content"), list):
            _output_message(item, path)
            return
        known_fields(
            item, {"type", "role", "content", "phase"} - ({"phase"} if role != "assistant" else set()), path
        )
        _phase(item, path)
        content = item.get("content")
        if isinstance(content, list):
            _parts(content, f"{path}.content")
        else:
            text_of(content, f"{path}.content")

    def _thought(self, item: JsonObject, path: Path) -> None:
        known_fields(item, _FIELDS["reasoning"], path)
        matching(item.get("id"), rf"rs_{_ID_REST}", f"{path}.id")
        for name in ("summary", "content"):
            parts = item.get(name, [])
            if not isinstance(parts, list) or (name == "summary" and "summary" not in item):
                raise Refusal("type", f"{path}.{name} must be a list")
            for index, part in enumerate(parts):
                wanted = "summary_text" if name == "summary" else "reasoning_text"
                where = f"{path}.{name}[{index}]"
                if object_of(part, where).get("type") != wanted:
                    raise Refusal("part", f"{where}.type must be {wanted}")
        if not self._stored and not item.get("encrypted_content") and not item.get("content"):
            raise Refusal("reasoning", f"{path}: the item is not stored and brings no content", status=404)
        self._reasoning = path

    def _call(self, item: JsonObject, kind: str, path: Path) -> None:
        known_fields(item, _FIELDS[kind], path)
        if "id" in item:
            matching(item["id"], _CALLS[kind] + _ID_REST, f"{path}.id")
        matching(item.get("name"), TOOL_NAME, f"{path}.name")
        call_id = matching(item.get("call_id"), _CALL_ID, f"{path}.call_id")
        self._calls.ask(call_id, path)
        if kind == "function_call":
            arguments_of(item.get("arguments"), f"{path}.arguments")
        elif not isinstance(item.get("input"), str):
            raise Refusal("type", f"{path}.input must be a string")
        self._kinds[call_id] = kind

    def _output(self, item: JsonObject, kind: str, path: Path) -> None:
        known_fields(item, _FIELDS[kind], path)
        call_id = text_of(item.get("call_id"), f"{path}.call_id")
        self._calls.answer(call_id, path)
        if self._kinds[call_id] != _OUTPUTS[kind]:
            raise Refusal("call-id", f"{path} is a {kind}, but {call_id!r} is a {self._kinds[call_id]}")
        output = item.get("output")
        if isinstance(output, list):
            _parts(output, f"{path}.output")
        else:
            text_of(output, f"{path}.output")


def _output_message(item: JsonObject, path: Path) -> None:
    known_fields(item, {"type", "role", "id", "status", "content", "phase"}, path)
    matching(item.get("id"), rf"msg_{_ID_REST}", f"{path}.id")
    if item.get("status") not in _STATUS:
        raise Refusal("value", f"{path}.status is {item.get('status')!r}: it must be {', '.join(_STATUS)}")
    _phase(item, path)
    for index, value in enumerate(list_of(item.get("content"), f"{path}.content")):
        where = f"{path}.content[{index}]"
        part = object_of(value, where)
        match part.get("type"):
            case "output_text":
                known_fields(part, {"type", "text", "annotations", "logprobs"}, where)
                text_of(part.get("text"), f"{where}.text")
                if not isinstance(part.get("annotations"), list):
                    raise Refusal("type", f"{where}.annotations must be a list")
            case "refusal":
                known_fields(part, {"type", "refusal"}, where)
                text_of(part.get("refusal"), f"{where}.refusal")
            case kind:
                raise Refusal("part", f"{where}.type is {kind!r}, which an answer cannot have")


def _phase(item: JsonObject, path: Path) -> None:
    if item.get("phase", "commentary") not in ("commentary", "final_answer"):
        raise Refusal("value", f"{path}.phase is {item['phase']!r}")


def _parts(content: list[Json], path: Path) -> None:
    for index, value in enumerate(list_of(content, path)):
        where = f"{path}[{index}]"
        part = object_of(value, where)
        match part.get("type"):
            case "input_text":
                known_fields(part, {"type", "text"}, where)
                text_of(part.get("text"), f"{where}.text")
            case "input_image":
                known_fields(part, {"type", "detail", "image_url"}, where)
                _image(part, where)
            case kind:
                raise Refusal("part", f"{where}.type is {kind!r}, which cannot stand here")


def _image(part: JsonObject, path: Path) -> None:
    if part.get("detail", "auto") not in ("auto", "low", "high", "original"):
        raise Refusal("value", f"{path}.detail is {part['detail']!r}")
    check_image_url(text_of(part.get("image_url"), f"{path}.image_url"), f"{path}.image_url")
