"""Where a conversation can be cut, and where it is: the end of it stays, the rest is summed up.

A cut is in front of a message. It is never between a call and its result, so never in front of a result, and
never in front of an earlier compaction's summary, which is summed up with what it stands for.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from cantle_agent.messages import AgentMessage
from cantle_ai.messages import AssistantMessage, ToolResultMessage, UserMessage
from cantle_session.messages import CompactionSummaryMessage
from cantle_session.tokens import estimate_tokens, shown

__all__ = ["Cut", "all_but_the_question", "choose_cut", "everything", "possible_cuts"]


class Cut(Struct, frozen=True):
    """`messages[kept:]` stay. Of the rest, `messages[turn:kept]` begin the turn that the cut goes through."""

    kept: int
    turn: int
    """As much as `kept` where no turn is cut, or its beginning is not there."""


def choose_cut(messages: Sequence[AgentMessage], keep: int) -> Cut | None:
    """The cut that leaves about `keep` tokens at the end; None when all of it is less, or nothing can be cut off."""
    full, kept = len(messages), 0
    while full > 0 and (kept < keep or full == len(messages)):
        full -= 1
        kept += estimate_tokens(messages[full])
    cuts = possible_cuts(messages)
    if kept < keep or not cuts:
        return None
    at = next((cut for cut in cuts if cut >= full), cuts[-1])
    return Cut(at, _turn_of(messages, at)) if at > 0 else None


def everything(messages: Sequence[AgentMessage]) -> Cut:
    """The cut that leaves nothing. The turn that it ends is still summed up apart, if it had begun to be answered."""
    last = len(messages) - 1
    answered = isinstance(messages[last], AssistantMessage | ToolResultMessage)
    turn = _beginning_of_turn(messages, last) if answered else None
    return Cut(len(messages), len(messages) if turn is None else turn)


def all_but_the_question(messages: Sequence[AgentMessage]) -> Cut | None:
    """The cut that leaves nothing but what the user said last and is not answered; None when that is all there is."""
    for place in range(len(messages) - 1, -1, -1):
        match messages[place]:
            case UserMessage():
                return Cut(place, place) if place > 0 else None
            case AssistantMessage() | ToolResultMessage() | CompactionSummaryMessage():
                break
    return everything(messages)


def possible_cuts(messages: Sequence[AgentMessage]) -> list[int]:
    """The places where a cut takes no result from its call, in order."""
    cuts = []
    closed = _last_results(messages)
    open_until = -1
    for place, message in enumerate(messages):
        if place > open_until and not isinstance(message, ToolResultMessage | CompactionSummaryMessage):
            cuts.append(place)
        open_until = max(open_until, closed.get(place, -1))
    return cuts


def _last_results(messages: Sequence[AgentMessage]) -> dict[int, int]:
    """For each answer whose calls have results, where the last of them is."""
    found = {}
    answer = -1
    for place, message in enumerate(messages):
        if isinstance(message, AssistantMessage):
            answer = place
        elif isinstance(message, ToolResultMessage) and answer >= 0:
            found[answer] = place
    return found


def _turn_of(messages: Sequence[AgentMessage], cut: int) -> int:
    """Where the turn begins that a cut in front of an answer goes through."""
    turn = _beginning_of_turn(messages, cut) if isinstance(messages[cut], AssistantMessage) else None
    return cut if turn is None else turn


def _beginning_of_turn(messages: Sequence[AgentMessage], before: int) -> int | None:
    for place in range(before - 1, -1, -1):
        message = messages[place]
        if not isinstance(message, CompactionSummaryMessage) and isinstance(shown(message), UserMessage):
            return place
    return None
