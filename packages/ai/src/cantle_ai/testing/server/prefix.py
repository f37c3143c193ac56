"""The prefix rule: a conversation's next request begins, byte for byte, as the one before went."""

from __future__ import annotations

from cantle_ai.codec import JsonObject
from cantle_ai.testing.server.body import Body
from cantle_ai.testing.server.refusal import Refusal

__all__ = ["PrefixRule"]


class PrefixRule:
    """Remembers the last request of each conversation."""

    def __init__(self) -> None:
        self._last: dict[str, Body] = {}

    def forget(self) -> None:
        """Take the next request as the first of its conversation."""
        self._last.clear()

    def check(self, conversation: str, body: Body) -> int:
        """How many characters of `messages` were known already. Raises :class:`Refusal` when the rule is broken."""
        before = self._last.get(conversation)
        if before is None:
            self._last[conversation] = body
            return 0
        if before.raw.get("tools") != body.raw.get("tools"):
            raise Refusal("prefix-tools", "tools are not, byte for byte, those of the request before")
        if _instructions(before.values) != _instructions(body.values):
            raise Refusal("prefix-system", "the system prompt is not that of the request before")
        known, now = before.raw["messages"][:-1], body.raw["messages"]
        if not now.startswith(known):
            place = next((i for i, (a, b) in enumerate(zip(known, now, strict=False)) if a != b), len(now))
            was, found = (text[max(0, place - 30) : place + 50] for text in (known, now))
            raise Refusal(
                "prefix-messages",
                f"messages do not extend those of the request before; at character {place}, …{was!r} became …{found!r}. "
                "If another conversation began, give it a prompt_cache_key of its own, or start the server with "
                "prefix=False (--no-prefix)",
            )
        self._last[conversation] = body
        return len(known)


def _instructions(values: JsonObject) -> object:
    match values.get("messages"):
        case [{"role": "system" | "developer", "content": content}, *_]:
            return content
        case _:
            return None
