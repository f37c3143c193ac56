"""A final message reduced to what can be compared, whoever put it together."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import Any

from cantle_ai.content import ThinkingContent
from cantle_ai.messages import AssistantMessage

__all__ = ["Call", "Canonical", "differences", "of_message"]


@dataclass(frozen=True)
class Call:
    """One tool call. `arguments` is JSON text with sorted names, or the text that came when it is no object."""

    id: str | None
    name: str
    arguments: str

    @classmethod
    def of(cls, id: str | None, name: str, arguments: Any) -> Call:
        """From parsed arguments, or their text."""
        if isinstance(arguments, str):
            try:
                arguments = json.loads(arguments) if arguments.strip() else {}
            except ValueError:
                return cls(id, name, arguments)
        return cls(id, name, json.dumps(arguments, sort_keys=True))


@dataclass(frozen=True, kw_only=True)
class Canonical:
    """A field that the vendor's SDK does not tell is None there, and is not compared.

    `text` and `thinking` are all blocks of the kind, joined; `signatures` those of thinking, in order. Of the
    usage, `input` counts neither cache reads nor writes, and `output` includes `reasoning`.
    """

    text: str | None = None
    thinking: str | None = None
    signatures: list[str] | None = None
    calls: list[Call] | None = None
    stop: str | None = None
    """The raw stop reason."""
    model: str | None = None
    """The model that answered, when it says so."""
    response_id: str | None = None
    input: int | None = None
    output: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    reasoning: int | None = None


def of_message(message: AssistantMessage) -> Canonical:
    """Our own side."""
    thoughts = [block for block in message.content if isinstance(block, ThinkingContent)]
    usage = message.usage
    return Canonical(
        text=message.text,
        thinking="".join(thought.thinking for thought in thoughts),
        signatures=[thought.signature for thought in thoughts if thought.signature is not None],
        calls=[
            Call.of(
                call.id,
                call.name,
                call.arguments if call.invalid_arguments is None else call.invalid_arguments,
            )
            for call in message.tool_calls
        ],
        stop=message.raw_stop_reason,
        model=message.response_model or message.model,
        response_id=message.response_id,
        input=usage.input,
        output=usage.output,
        cache_read=usage.cache_read,
        cache_write=usage.cache_write,
        reasoning=usage.reasoning or 0,
    )


def differences(theirs: Canonical, ours: Canonical) -> dict[str, tuple[Any, Any]]:
    """What the two say differently: theirs, then ours, by field."""
    pairs = {each.name: (getattr(theirs, each.name), getattr(ours, each.name)) for each in fields(Canonical)}
    return {name: (his, mine) for name, (his, mine) in pairs.items() if his is not None and his != mine}
