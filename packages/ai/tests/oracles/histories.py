"""Conversations of every kind, by seed: what a request may have to carry."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from cantle_ai.content import (
    AssistantContent,
    ImageContent,
    TextContent,
    ThinkingContent,
    ToolCall,
    UserContent,
)
from cantle_ai.context import Context, ToolDefinition
from cantle_ai.messages import AssistantMessage, Message, StopReason, ToolResultMessage, UserMessage
from packages.ai.tests.conformance.lab import PIXEL
from packages.ai.tests.oracles.answers import arguments, text

__all__ = ["TOOLS", "Author", "histories", "history"]

Author = tuple[str, str, str]
"""API, provider and model of an answer."""

TOOLS: Sequence[ToolDefinition] = (
    ToolDefinition("read", "Reads a file.", {"type": "object", "properties": {"path": {"type": "string"}}}),
    ToolDefinition(
        "edit",
        "Edits a file.\n\nÜnïcödé.",
        {
            "type": "object",
            "properties": {
                "edits": {
                    "type": "array",
                    "items": {"type": "object", "properties": {"old": {"type": ["string", "null"]}}},
                },
                "mode": {"enum": ["fast", "safe"], "type": "string"},
                "limit": {"type": "integer", "minimum": 1},
            },
            "required": ["edits"],
            "additionalProperties": False,
        },
    ),
)
_STOPS: tuple[StopReason, ...] = ("stop", "stop", "stop", "length", "error", "aborted")


def history(random: Random, authors: Sequence[Author], *, images: bool = True) -> list[Message]:
    """One conversation, which ends with the user or a tool. The answers are by any of `authors`."""
    messages: list[Message] = [_user(random, images)]
    for number in range(random.randint(0, 6)):
        author = random.choice(authors)
        calls = random.choice([0, 0, 1, 2, 3])
        answer = _answer(random, author, number, calls)
        messages.append(answer)
        for call in answer.tool_calls:
            if random.random() > 0.1:  # else it was lost in a crash
                messages.append(
                    ToolResultMessage(
                        call.id,
                        call.name,
                        _result(random, images),
                        is_error=random.random() < 0.3,
                        timestamp=1,
                    )
                )
        if not calls or random.random() < 0.3:
            messages.append(_user(random, images))
    messages.append(_user(random, images))
    return messages


def histories(count: int, authors: Sequence[Author], *, seed: str = "histories") -> list[Context]:
    """So many contexts, the same for one seed; some without instructions, some without tools."""
    random = Random(seed)
    return [
        Context(
            random.choice(["", "Be brief.", text(random)]),
            history(random, authors),
            random.choice([TOOLS, TOOLS, ()]),
        )
        for _ in range(count)
    ]


def _user(random: Random, images: bool) -> UserMessage:
    blocks: list[UserContent] = [TextContent(text(random)) for _ in range(random.randint(1, 2))]
    if images and random.random() < 0.2:
        blocks[random.randint(0, 1) :] = [PIXEL]
    return UserMessage(blocks, timestamp=1)


def _result(random: Random, images: bool) -> list[UserContent]:
    image: list[ImageContent] = [PIXEL] if images else []
    choices: list[list[UserContent]] = [
        [TextContent(text(random))],
        [TextContent(text(random)), TextContent(text(random))],
        [TextContent(" ")],
        [],
        [TextContent(text(random)), *image],
        [*image],
    ]
    return random.choice(choices)


def _answer(random: Random, author: Author, number: int, calls: int) -> AssistantMessage:
    content: list[AssistantContent] = []
    if random.random() < 0.5:
        content.append(ThinkingContent(text(random)))
    if random.random() < 0.7:
        content.append(TextContent(random.choice(["", text(random), text(random)])))
    for place in range(calls):
        call_id = random.choice(["call_{}_{}", "toolu_{}_{}|fc_" + "x" * 70, "a:b/{}.{}", "{}{}"])
        call = ToolCall(call_id.format(number, place), random.choice(["read", "edit"]), arguments(random))
        content.append(call)
    stop: StopReason = "toolUse" if calls else random.choice(_STOPS)
    return AssistantMessage(content, *author, stop_reason=stop, timestamp=1)
