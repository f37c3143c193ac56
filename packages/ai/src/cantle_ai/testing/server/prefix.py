"""The prefix rule: a conversation's next request begins, byte for byte, as the one before went."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from cantle_ai.testing.server.refusal import Refusal

if TYPE_CHECKING:
    from cantle_ai.testing.server.dialects.port import Asked

__all__ = ["PrefixRule", "elements", "without_marks"]


def elements(raw: str) -> list[str]:
    """The texts of a JSON array's elements, each as it was sent. Nothing for another value."""
    place, texts = 1, list[str]()
    if not raw.startswith("["):
        return texts
    while (place := _skip(raw, place)) < len(raw) and raw[place] != "]":
        _, end = _DECODER.raw_decode(raw, place)
        texts.append(raw[place:end])
        place = end
    return texts


def without_marks(text: str, marks: re.Pattern[str]) -> str:
    """`text` without its marks for a cache. `marks` finds a mark as it stands in JSON, its comma with it.

    A mark cannot be confused with text that was said: inside a string its quotes would be escaped.
    """
    return marks.sub("", text)


_ANOTHER = (
    "If another conversation began, give it a prompt_cache_key of its own (session_id in Cantle), or start the server "
    "with prefix=False (--no-prefix)"
)


class PrefixRule:
    """Remembers the last request of each conversation."""

    def __init__(self) -> None:
        self._last: dict[str, Asked] = {}

    def forget(self) -> None:
        """Take the next request as the first of its conversation."""
        self._last.clear()

    def check(self, asked: Asked) -> int:
        """How many characters of the prompt were known already. Raises :class:`Refusal` when the rule is broken."""
        before = self._last.get(asked.conversation)
        if before is None:
            self._last[asked.conversation] = asked
            return 0
        for name in sorted({*before.head, *asked.head}):
            if before.head.get(name, "") != asked.head.get(name, ""):
                raise Refusal(
                    f"prefix-{name}", f"{name} is not, byte for byte, what the request before had: "
                    f"{_difference(before.head.get(name, ''), asked.head.get(name, ''))}. {_ANOTHER}"
                )  # fmt: skip
        known = before.pieces
        if list(asked.pieces[: len(known)]) != list(known):
            raise Refusal(
                "prefix-messages",
                f"messages do not extend those of the request before; "
                f"{_difference(','.join(known), ','.join(asked.pieces))}. {_ANOTHER}",
            )
        self._last[asked.conversation] = asked
        return before.prompt


def _difference(was: str, now: str) -> str:
    pairs = enumerate(zip(was, now, strict=False))
    place = next((i for i, (a, b) in pairs if a != b), min(len(was), len(now)))
    before, after = (text[max(0, place - 30) : place + 50] for text in (was, now))
    return f"at character {place}, …{before!r} became …{after!r}"


def _skip(text: str, place: int) -> int:
    while place < len(text) and text[place] in " \t\r\n,":
        place += 1
    return place


_DECODER = json.JSONDecoder()
