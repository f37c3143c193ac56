"""Which messages of a conversation a request can carry, and in which order.

A history records what happened; a provider accepts only what is consistent: each tool call followed by its
result, no result without its call, no answer that broke off. This projection makes the one from the other
for each request. The stored messages are never changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cantle_ai.content import TextContent
from cantle_ai.messages import AssistantMessage, Message, ToolResultMessage

__all__ = ["INTERRUPTED", "replayable"]

INTERRUPTED = "The call was interrupted before it gave a result."
"""What a call without a result is answered with."""


def replayable(messages: Iterable[Message]) -> Iterator[Message]:
    """The messages to send.

    Answers that failed or were aborted are left out, and with them the results of their calls. Results come
    directly after the answer that asked for them, ahead of what was said meanwhile; a call without one gets
    an error result that says :data:`INTERRUPTED`; results that no call asked for are left out.
    """
    open_calls: dict[str, str] = {}
    results: list[Message] = []
    said: list[Message] = []
    for message in messages:
        match message:
            case AssistantMessage():
                yield from _batch(open_calls, results, said)
                open_calls, results, said = {}, [], []
                if not message.failed and message.stop_reason != "pending":
                    open_calls = {call.id: call.name for call in message.tool_calls}
                    yield message
            case ToolResultMessage():
                if open_calls.pop(message.tool_call_id, None) is not None:
                    results.append(message)
            case _:
                said.append(message)
    yield from _batch(open_calls, results, said)


def _batch(open_calls: dict[str, str], results: list[Message], said: list[Message]) -> Iterator[Message]:
    yield from results
    for call_id, name in open_calls.items():
        yield ToolResultMessage(call_id, name, [TextContent(INTERRUPTED)], is_error=True, timestamp=0)
    yield from said
