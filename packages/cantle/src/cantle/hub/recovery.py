"""What an answer says of the room that its request had."""

from __future__ import annotations

from typing import Literal, TypeAlias

from cantle_ai.messages import AssistantMessage
from cantle_ai.model import Model
from cantle_ai.overflow import is_overflow
from cantle_session.tokens import usage_tokens

__all__ = ["Overflow", "overflow_of"]

Overflow: TypeAlias = Literal["refused", "cut", "crossed"]
"""The request was too long and was refused; the answer was cut before its own limit; it is whole, and nothing more fits."""


def overflow_of(answer: AssistantMessage, model: Model, most_output: int) -> Overflow | None:
    """How `answer` shows that the window of `model` is full; None where it does not, or another model gave it.

    `most_output` is how much the answer might have had; of one without figures nobody knows whether it was cut early.
    An answer with calls that was cut is none of these: its calls have got results that say so, and the run goes on.
    """
    if (answer.provider, answer.model) != (model.provider, model.id):
        return None
    if answer.stop_reason == "length":
        early = usage_tokens(answer.usage) > 0 and answer.usage.output < most_output
        return "cut" if early and not answer.tool_calls else None
    if not is_overflow(answer, model.context_window):
        return None
    return "refused" if answer.stop_reason == "error" else "crossed"
