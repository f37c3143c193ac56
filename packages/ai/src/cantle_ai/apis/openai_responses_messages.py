"""The conversation as a list of items of the Responses API, each message encoded once.

    {"role": "system" | "developer", "content": "…"}
    {"role": "user", "content": [{"type": "input_text", …}, {"type": "input_image", …}]}
    {"type": "reasoning", "id", "summary", "encrypted_content"}                      as it came
    {"type": "message", "role": "assistant", "id", "status", "content": […], "phase"?}  or {"role", "content": "…"}
    {"type": "function_call", "id"?, "call_id", "name", "arguments"}
    {"type": "function_call_output", "call_id", "output": "…" | […]}

One message may be several items. Their bytes depend on the message and on what stands before it, never on what
comes later, and are kept in the message's own `wire`: those of one request begin those of the next.

The service checks that reasoning stands before the very item that it led to, and knows items by their ids. So
an answer of the model that is asked goes back with its ids, and any other without; and where one of its
reasoning items cannot go back, none of its items has an id.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from cantle_ai.apis.encoded_messages import EncodedMessages, kept_bytes
from cantle_ai.call_ids import NAME_CHARACTERS, fitting_id, fitting_name
from cantle_ai.codec import Json, JsonObject, decode_json, wire_json
from cantle_ai.content import ImageContent, TextContent, ThinkingContent, ToolCall
from cantle_ai.context import Context
from cantle_ai.history import ReplayRules, Turn, project
from cantle_ai.messages import ToolResultMessage, UserMessage
from cantle_ai.model import Model, StreamOptions

__all__ = ["encode_input"]

_LONGEST_ID = 64
_LONGEST_OPAQUE_ID = 2048
"""GitHub Copilot's items have ids of several hundred characters, which it wants back for reasoning."""
_STATUSES = ("in_progress", "completed", "incomplete")
_OF_THE_SERVICE = frozenset({"compaction", "program"})
_OTHER = re.compile(r"[a-z]+(?:_[a-z]+)+")
"""How the service names its items, also those that nobody knows yet."""
_NEED_AN_OUTPUT = frozenset(
    {"computer_call", "local_shell_call", "shell_call", "apply_patch_call", "mcp_approval_request"}
)
"""Items that ask the client for something, which nothing here can give: a request with one of them is refused."""
_KEY = "openai-responses"


def encode_input(model: Model, context: Context, options: StreamOptions, *, role: str) -> EncodedMessages:
    """The items of a request in order, the system prompt first, in the given role."""
    encoded = EncodedMessages()
    if context.system_prompt.strip():
        encoded.parts.append(wire_json({"role": role, "content": context.system_prompt}))
    rules = ReplayRules(call_id=_CallIds())
    for turn in project(context.messages, model, options, rules).turns:
        part = kept_bytes(turn, _KEY, _items)
        if part:
            encoded.parts.append(part)
        encoded.count_images(turn)
    return encoded


class _CallIds:
    """The rule for the ids of calls, `call_id|item_id`. Only own ones keep the item's, where it looks like one.

    The service matches calls and outputs by the first part, so that is what has to fit and to be there once.
    """

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._attempts: dict[str, int] = {}
        """Where to go on with a first part that comes again, with whatever item."""

    def __call__(self, call_id: str, own: bool, attempt: int) -> str:
        wanted, _, item_id = call_id.partition("|")
        attempt = max(attempt, self._attempts.get(wanted, 0))
        while (made := _fitting(wanted, own, attempt)) in self._taken:
            attempt += 1
        self._taken.add(made)
        self._attempts[wanted] = attempt + 1
        return call_id if own and made == wanted and _is_id(item_id, ("fc_", "ctc_")) else made


_fitting = fitting_id(NAME_CHARACTERS, _LONGEST_ID, prefix="call_")


def _items(turn: Turn) -> list[JsonObject]:
    match turn.message:
        case UserMessage():
            return [{"role": "user", "content": _content(turn.user_blocks())}]
        case ToolResultMessage():
            return [_output(turn)]
        case _:
            return _answer(turn)


def _content(blocks: Sequence[TextContent | ImageContent]) -> list[Json]:
    return [
        {
            "type": "input_image",
            "detail": "auto",
            "image_url": f"data:{block.detected_type};base64,{block.data}",
        }
        if isinstance(block, ImageContent)
        else {"type": "input_text", "text": block.text}
        for block in blocks
    ]


def _output(turn: Turn) -> JsonObject:
    blocks = turn.result_blocks()
    call_id, _, item_id = turn.call_id.partition("|")
    kind = "custom_tool_call_output" if item_id.startswith("ctc_") else "function_call_output"
    texts = [block.text for block in blocks if isinstance(block, TextContent)]
    output: Json = "\n".join(texts) if len(texts) == len(blocks) else _content(blocks)
    return {"type": kind, "call_id": call_id, "output": output}


# --- answers


def _answer(turn: Turn) -> list[JsonObject]:
    items: list[JsonObject] = []
    whole = True
    for block in turn.assistant_blocks():
        match block:
            case ThinkingContent():
                item = _opaque(block.signature)
                whole = whole and item is not None
                if item is not None:
                    items.append(item)
            case TextContent() if block.text.strip():
                _add_message(items, _message(block))
            case ToolCall():
                items.append(_call(block))
    items = _without_dangling(items)
    return items if whole else [_anonymous(item) for item in items]


def _opaque(signature: str | None) -> JsonObject | None:
    """The item that a thinking block holds; None where it cannot be sent."""
    if signature is None or not signature.startswith("{"):
        return None
    try:
        raw = decode_json(signature)
    except ValueError:
        return None
    if not isinstance(raw, dict):
        return None
    item: JsonObject = {key: value for key, value in raw.items() if value is not None}
    kind, id = item.get("type"), item.get("id")
    if not isinstance(kind, str) or not isinstance(id, str):
        return None
    if kind == "reasoning":
        return _reasoning(item, id)
    known = kind in _OF_THE_SERVICE or _OTHER.fullmatch(kind)
    return item if known and kind not in _NEED_AN_OUTPUT and _is_id(id) else None


def _reasoning(item: JsonObject, id: str) -> JsonObject | None:
    """A reasoning item. Nothing is stored by the service, so it has to bring its content along, as a rule encrypted."""
    encrypted = item.get("encrypted_content")
    content = _parts(item.get("content"), "reasoning_text")
    if not (isinstance(encrypted, str) and encrypted):
        item.pop("encrypted_content", None)
        if not content:
            return None
    if not (_is_id(id, ("rs_",)) or _LONGEST_ID < len(id) <= _LONGEST_OPAQUE_ID):
        return None
    item["summary"] = _parts(item.get("summary"), "summary_text")
    if "content" in item:
        item["content"] = content
    if item.get("status", "completed") not in _STATUSES:
        del item["status"]
    return item


def _parts(raw: Json, kind: str) -> list[Json]:
    """The parts of a reasoning item that are what they should be."""
    return [
        part
        for part in (raw if isinstance(raw, list) else [])
        if isinstance(part, dict) and part.get("type") == kind and isinstance(part.get("text"), str)
    ]


def _message(block: TextContent) -> JsonObject:
    id, phase = _signed(block.signature)
    if id is None:
        plain: JsonObject = {"role": "assistant", "content": block.text}
        return plain if phase is None else {**plain, "phase": phase}
    message: JsonObject = {
        "type": "message",
        "role": "assistant",
        "id": id,
        "status": "completed",
        "content": [{"type": "output_text", "text": block.text, "annotations": []}],
    }
    return message if phase is None else {**message, "phase": phase}


def _add_message(items: list[JsonObject], message: JsonObject) -> None:
    """Texts without anything that tells them apart are one message, as what another model thought and said is."""
    last = items[-1] if items else {}
    said, more = last.get("content"), message["content"]
    if last.keys() == message.keys() == _PLAIN and isinstance(said, str) and isinstance(more, str):
        last["content"] = said + more
    else:
        items.append(message)


_PLAIN = {"role", "content"}


def _signed(signature: str | None) -> tuple[str | None, str | None]:
    """Id and phase of a message, from a text's signature: JSON, or the id alone. None for what cannot be sent."""
    if signature is None:
        return None, None
    id: Json = signature
    phase: Json = None
    if signature.startswith("{"):
        try:
            raw = decode_json(signature)
        except ValueError:
            return None, None
        if isinstance(raw, dict):
            id, phase = raw.get("id"), raw.get("phase")
    return (
        id if isinstance(id, str) and _is_id(id, ("msg_",)) else None,
        phase if isinstance(phase, str) and phase else None,
    )


def _call(call: ToolCall) -> JsonObject:
    call_id, _, item_id = call.id.partition("|")
    item: JsonObject = {"type": "function_call", "call_id": call_id, "name": fitting_name(call.name)}
    if item_id:
        item["id"] = item_id
    if call.namespace is not None:
        item["namespace"] = call.namespace
    if item_id.startswith("ctc_"):
        given = call.arguments.get("input")
        item["type"] = "custom_tool_call"
        item["input"] = given if isinstance(given, str) else wire_json(call.arguments).decode()
    else:
        item["arguments"] = wire_json(call.arguments).decode()
    return item


def _without_dangling(items: list[JsonObject]) -> list[JsonObject]:
    """The items without reasoning that no item of another kind follows, which the service refuses."""
    kept: list[JsonObject] = []
    led_to = False
    for item in reversed(items):
        led_to = led_to or item.get("type") != "reasoning"
        if led_to:
            kept.append(item)
    kept.reverse()
    return kept


def _anonymous(item: JsonObject) -> JsonObject:
    """The item without its id, where it can be without: the service would look for the reasoning before it."""
    match item.get("type"):
        case "message":
            content = item["content"]
            assert isinstance(content, list) and isinstance(content[0], dict)
            plain: JsonObject = {"role": "assistant", "content": content[0]["text"]}
            return {**plain, "phase": item["phase"]} if "phase" in item else plain
        case "function_call" | "custom_tool_call":
            return {key: value for key, value in item.items() if key != "id"}
        case _:
            return item


def _is_id(id: str, prefixes: tuple[str, ...] = ("",)) -> bool:
    return id.startswith(prefixes) and 0 < len(id) <= _LONGEST_ID and _ID_CHARACTERS.issuperset(id)


_ID_CHARACTERS = frozenset(NAME_CHARACTERS)
