"""The rules for `contents`: what Gemini's API or Vertex AI is known to refuse of a conversation.

From the reference of the API (ai.google.dev/api/caching#Content), its guides to function calling and thought
signatures, and the refusals that users have reported.
"""

from __future__ import annotations

import re
from typing import cast

from cantle_ai.codec import Json, JsonObject
from cantle_ai.testing.server.images import check_image
from cantle_ai.testing.server.refusal import (
    Path,
    Refusal,
    known_fields,
    list_of,
    matching,
    object_of,
    text_of,
)

__all__ = ["FUNCTION_NAME", "ModelRules", "check_contents", "response_text", "rules_of"]

FUNCTION_NAME = r"[A-Za-z_][A-Za-z0-9_.:-]{0,127}"
_CALL_ID = r"[\x20-\x7e]{1,200}"
"""Google names no alphabet and no length."""
_SIGNATURE = r"[A-Za-z0-9+/_-]+={0,2}"
_IMAGES = ("image/png", "image/jpeg", "image/webp")
_DATA = ("text", "inlineData", "functionCall", "functionResponse")
_PART = frozenset({*_DATA, "thought", "thoughtSignature"})


class ModelRules:
    """What a model takes, by the generation in its id; what names none is one of the newest."""

    def __init__(self, model: str) -> None:
        name = model.rpartition("/")[2]
        found = re.match(r"gemini-(\d+)", name)
        self.name = name
        self.modern = found is None or int(found[1]) >= 3


def rules_of(model: str) -> ModelRules:
    """The rules for a model's id."""
    return ModelRules(model)


def check_contents(value: Json, rules: ModelRules) -> None:
    """Refuse a conversation that would be refused."""
    conversation = _Conversation(rules)
    for index, item in enumerate(list_of(value, "contents")):
        conversation.take(object_of(item, f"contents[{index}]"), f"contents[{index}]")
    conversation.end()


def response_text(part: JsonObject) -> str:
    """What a function's response says, in its `output` or `error`."""
    response = cast("JsonObject", cast("JsonObject", part["functionResponse"])["response"])
    return next((str(value) for value in response.values()), "")


class _Conversation:
    def __init__(self, rules: ModelRules) -> None:
        self._rules = rules
        self._before = ""  # user, model, calls (of a model) or responses (of a user)
        self._open: list[JsonObject] = []

    def take(self, content: JsonObject, path: Path) -> None:
        known_fields(content, {"role", "parts"}, path)
        role = content.get("role")
        if role not in ("user", "model"):
            raise Refusal("role", f"{path}.role is {role!r}: please use a valid role: user, model")
        parts = [
            object_of(part, f"{path}.parts[{i}]")
            for i, part in enumerate(list_of(content.get("parts"), f"{path}.parts"))
        ]
        for index, part in enumerate(parts):
            self._part(part, role, f"{path}.parts[{index}]")
        kinds = {next(name for name in _DATA if name in part) for part in parts}
        if role == "model":
            self._model(parts, kinds, path)
        else:
            self._user(parts, kinds, path)

    def end(self) -> None:
        if self._before not in ("user", "responses"):
            raise Refusal("order", "the last content must be of the role user")

    def _model(self, parts: list[JsonObject], kinds: set[str], path: Path) -> None:
        if self._before in ("", "model", "calls"):
            raise Refusal(
                "order",
                f"{path}: a turn of the model comes immediately after one of the user or of a function",
            )
        calls = [cast("JsonObject", part["functionCall"]) for part in parts if "functionCall" in part]
        first = next((part for part in parts if "functionCall" in part), None)
        if self._rules.modern and first is not None and "thoughtSignature" not in first:
            raise Refusal("signature", f"{path}: the function call is missing a thought_signature")
        if kinds == {"text"} and not any(_says(part) for part in parts):
            raise Refusal("empty", f"{path}: nothing but thoughts")
        self._open = calls
        self._before = "calls" if calls else "model"

    def _user(self, parts: list[JsonObject], kinds: set[str], path: Path) -> None:
        if "functionResponse" in kinds:
            if kinds != {"functionResponse"}:
                raise Refusal("part", f"{path}: function responses stand in a content of their own")
            self._responses(parts, path)
            self._before = "responses"
            return
        if self._before == "calls":
            raise Refusal("unanswered", f"{path}: the function calls before it have no responses")
        if self._before == "user":
            raise Refusal("order", f"{path}: a user's content follows another one: make one of them")
        self._before = "user"

    def _responses(self, parts: list[JsonObject], path: Path) -> None:
        if self._before != "calls":
            raise Refusal("orphan", f"{path}: function responses come immediately after a function call turn")
        if len(parts) != len(self._open):
            raise Refusal(
                "unanswered",
                f"{path}: the number of function response parts ({len(parts)}) must be equal to that of the "
                f"function call parts of the function call turn ({len(self._open)})",
            )
        left = list(self._open)
        for index, part in enumerate(parts):
            response = cast("JsonObject", part["functionResponse"])
            asked = (response.get("name"), response.get("id"))
            match = next((call for call in left if (call.get("name"), call.get("id")) == asked), None)
            if match is None:
                raise Refusal("orphan", f"{path}.parts[{index}] answers {asked}, which was not called")
            left.remove(match)

    def _part(self, part: JsonObject, role: str, path: Path) -> None:
        known_fields(part, _PART, path)
        data = [name for name in _DATA if name in part]
        if len(data) != 1:
            raise Refusal("part", f"{path} must have exactly one of {', '.join(_DATA)}, not {data}")
        if role == "user" and part.keys() & {"thought", "thoughtSignature", "functionCall"}:
            raise Refusal("part", f"{path}: a user neither thinks nor calls functions")
        if role == "model" and data[0] in ("functionResponse", "inlineData"):
            raise Refusal("part", f"{path}: a model gives no {data[0]}")
        if "thoughtSignature" in part:
            matching(part["thoughtSignature"], _SIGNATURE, f"{path}.thoughtSignature")
        if "thought" in part and (part["thought"] is not True or data != ["text"]):
            raise Refusal("type", f"{path}.thought must be true, on a text")
        match data[0]:
            case "text" if "thoughtSignature" in part:
                if not isinstance(part["text"], str):
                    raise Refusal("type", f"{path}.text must be a string")
            case "text":
                text_of(part["text"], f"{path}.text")
            case "inlineData":
                _image(part["inlineData"], f"{path}.inlineData")
            case "functionCall":
                self._call(object_of(part["functionCall"], f"{path}.functionCall"), f"{path}.functionCall")
            case _:
                where = f"{path}.functionResponse"
                self._response(object_of(part["functionResponse"], where), where)

    def _call(self, call: JsonObject, path: Path) -> None:
        known_fields(call, {"name", "args", "id"}, path)
        matching(call.get("name"), FUNCTION_NAME, f"{path}.name")
        object_of(call.get("args", {}), f"{path}.args")
        self._id(call, path)

    def _response(self, response: JsonObject, path: Path) -> None:
        known_fields(response, {"name", "response", "parts", "id"}, path)
        matching(response.get("name"), FUNCTION_NAME, f"{path}.name")
        said = object_of(response.get("response"), f"{path}.response")
        if len(said) != 1 or not said.keys() <= {"output", "error"}:
            raise Refusal("response", f"{path}.response must have either an output or an error")
        for name, value in said.items():
            text_of(value, f"{path}.response.{name}")
        self._id(response, path)
        if "parts" in response:
            if not self._rules.modern:
                raise Refusal("unknown-field", f"{path}.parts: this model takes no media in a response")
            for index, item in enumerate(list_of(response["parts"], f"{path}.parts")):
                where = f"{path}.parts[{index}]"
                part = object_of(item, where)
                known_fields(part, {"inlineData"}, where)
                _image(part.get("inlineData"), f"{where}.inlineData")

    def _id(self, value: JsonObject, path: Path) -> None:
        if self._rules.modern or "id" in value:
            matching(value.get("id"), _CALL_ID, f"{path}.id")


def _says(part: JsonObject) -> bool:
    return "thought" not in part


def _image(value: Json, path: Path) -> None:
    image = object_of(value, path)
    known_fields(image, {"mimeType", "data"}, path)
    mime_type = text_of(image.get("mimeType"), f"{path}.mimeType")
    if mime_type not in _IMAGES:
        raise Refusal("image", f"{path}.mimeType: unsupported MIME type: {mime_type}")
    check_image(mime_type, text_of(image.get("data"), f"{path}.data"), path)
