"""What OpenRouter calls `reasoning_details`: how a model thought, in a form that the next request has to repeat.

    {"type": "reasoning.text", "text", "signature"?, "id"?, "format"?, "index"?}
    {"type": "reasoning.summary", "summary", …}
    {"type": "reasoning.encrypted", "data", …}

They come in pieces; the pieces of one detail are put together. All of an answer's details are kept as one JSON
list, the signature of its thinking block, and go back as they came, those of kinds that are not known too.
"""

from __future__ import annotations

from collections.abc import Sequence

from cantle_ai.codec import Json, JsonObject, decode_json, encode_json
from cantle_ai.content import TextContent, ThinkingContent, ToolCall

__all__ = ["ReasoningDetails", "details_in", "details_of"]

_TEXTS = {"reasoning.text": "text", "reasoning.summary": "summary"}
"""The kinds that come in pieces, and the field that grows."""


class ReasoningDetails:
    """Puts the details of one answer together."""

    __slots__ = ("_details", "_pieces")

    def __init__(self) -> None:
        self._details: list[JsonObject] = []
        self._pieces: list[str] = []  # of the text of the last detail

    @property
    def empty(self) -> bool:
        return not self._details

    def add(self, raw: Json) -> str:
        """Take the details of one chunk. Returns what of them is text to read."""
        said: list[str] = []
        for detail in raw if isinstance(raw, list) else [raw]:
            if isinstance(detail, dict) and isinstance(detail.get("type"), str):
                said.append(self._add(detail))
        return "".join(said)

    def signature(self) -> str | None:
        """All details as JSON; None when there are none."""
        self._join()
        return encode_json(self._details).decode() if self._details else None

    def _add(self, detail: JsonObject) -> str:
        field = _TEXTS.get(str(detail["type"]))
        text = detail.get(field) if field is not None else None
        piece = text if isinstance(text, str) else ""
        last = self._details[-1] if self._details else None
        if field is not None and last is not None and _continues(last, detail):
            last.update({key: value for key, value in detail.items() if key != field and value is not None})
            self._pieces.append(piece)
        else:
            self._join()
            self._details.append(detail)
            self._pieces = [piece]
        return piece

    def _join(self) -> None:
        """Give the last detail its text. Joined once, so that many pieces cost no more than their length."""
        if len(self._pieces) > 1:
            last = self._details[-1]
            last[_TEXTS[str(last["type"])]] = "".join(self._pieces)
            self._pieces = [str(last[_TEXTS[str(last["type"])]])]


def details_in(signature: str | None) -> list[Json]:
    """The details that a signature holds; empty when it is another kind of signature."""
    if signature is None or signature[:1] not in ("[", "{"):
        return []
    try:
        held = decode_json(signature)
    except ValueError:
        return []
    return held if isinstance(held, list) else [held]


def details_of(blocks: Sequence[TextContent | ThinkingContent | ToolCall]) -> list[Json]:
    """The details of an answer, in order. Older ones stand one by one, also as signatures of calls."""
    details: list[Json] = []
    for block in blocks:
        if isinstance(block, ThinkingContent):
            details += details_in(block.signature)
        elif isinstance(block, ToolCall):
            details += details_in(block.thought_signature)
    return details


def _continues(last: JsonObject, detail: JsonObject) -> bool:
    """Whether `detail` is a further piece of `last`."""
    return last["type"] == detail["type"] and all(
        last.get(key) is None or detail.get(key) is None or last[key] == detail[key]
        for key in ("index", "id")
    )
