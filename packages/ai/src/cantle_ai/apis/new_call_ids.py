"""Ids of the tool calls in an answer that is being received. Shared by the readers of answers.

Some endpoints number their calls from 0 in each answer, repeat an id, or give none; a result must find its call.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from cantle_ai.context import Context
from cantle_ai.messages import AssistantMessage

__all__ = ["NewCallIds", "random_id"]


def random_id(prefix: str = "call_") -> str:
    """An id that no other call has, in the form that OpenAI gave it."""
    return f"{prefix}{os.urandom(12).hex()}"


class NewCallIds:
    """The ids of one answer's calls, each unlike those of the conversation and of the calls before it."""

    __slots__ = ("_context", "_make", "_separator", "_taken")

    def __init__(
        self, context: Context, make: Callable[[], str] = random_id, *, separator: str | None = None
    ) -> None:
        """`context` is what was asked. Kept ids are compared up to the `separator`, where an API has one."""
        self._context = context
        self._make = make
        self._separator = separator
        self._taken: set[str] | None = None  # most answers have no call, and never ask

    def of(self, said: str | None) -> str:
        """The id of the next call: what the endpoint `said`, or a new one. Asked once for each call."""
        if self._taken is None:
            answers = (each for each in self._context.messages if isinstance(each, AssistantMessage))
            self._taken = {self._bare(call.id) for answer in answers for call in answer.tool_calls}
        while not said or said in self._taken:
            said = self._make()
        self._taken.add(said)
        return said

    def _bare(self, kept: str) -> str:
        return kept if self._separator is None else kept.partition(self._separator)[0]
