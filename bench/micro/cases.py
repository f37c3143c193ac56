"""The cases: a part of Cantle, and what it works on in units that are counted.

Each makes what it needs ahead, and returns a function that does the work once. The work is the same each time.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias

from bench.micro.material import (
    MODEL,
    answers,
    blocks,
    calls,
    chunked,
    conversation,
    long_argument,
    source_text,
    text_answer,
)
from cantle.hub.events import SessionEvent
from cantle.modes.json_events import EventEncoder
from cantle.sdk import create_agent_session
from cantle.tools.edit.file import edit_bytes
from cantle_agent.agent import Agent
from cantle_agent.events import AgentEvent, MessageUpdate
from cantle_agent.schema import ToolSchema
from cantle_agent.tool import Tool, ToolContext, ToolResult
from cantle_ai.apis.openai_completions_answer import decode_chunk
from cantle_ai.apis.openai_completions_compat import compat_of
from cantle_ai.apis.openai_completions_payload import request_body
from cantle_ai.builder import AnswerBuilder
from cantle_ai.codec import JsonObject, decode_object, encode_json
from cantle_ai.context import Context
from cantle_ai.events import TextDelta
from cantle_ai.messages import encode_message, message_from_json
from cantle_ai.model import Provider, StreamOptions
from cantle_ai.models import Models
from cantle_ai.sse import SseParser
from cantle_ai.transport.framing import Chunked
from cantle_session.listing import list_sessions
from cantle_session.session import Session

__all__ = ["CASES", "Case", "Work"]

Work: TypeAlias = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Case:
    """One measurement. `make(size, folder)` gives the work on `size` units; it may keep files in `folder`."""

    name: str
    unit: str
    size: int
    make: Callable[[int, Path], Work]


def _framing(size: int, folder: Path) -> Work:
    body = chunked(text_answer(size))

    def work() -> None:
        framing = Chunked()
        for block in body:
            framing.feed(block)
        assert framing.done

    return work


def _events(size: int, folder: Path) -> Work:
    body = blocks(text_answer(size))

    def work() -> None:
        parser = SseParser()
        assert sum(len(parser.feed(block)) for block in body) == size + 2

    return work


def _chunks(size: int, folder: Path) -> Work:
    data = [event[6:-2] for event in text_answer(size)[:size]]

    def work() -> None:
        for each in data:
            decode_chunk(each)

    return work


def _stream(body: list[bytes]) -> Work:
    async def read() -> int:
        stream = answers(body)(MODEL, Context(), StreamOptions())
        count = 0
        async for _ in stream:
            count += 1
        assert not stream.partial.failed
        return count

    return lambda: asyncio.run(read())


def _agent(size: int, folder: Path) -> Work:
    body = blocks(text_answer(size))

    async def prompt() -> None:
        agent, told = Agent(stream=answers(body), model=MODEL), 0

        def listen(event: AgentEvent) -> None:
            nonlocal told
            told += isinstance(event, MessageUpdate)

        agent.subscribe(listen)
        await agent.prompt("Go on.")
        assert told >= size

    return lambda: asyncio.run(prompt())


def _hub(size: int, folder: Path, *, json_mode: bool) -> Work:
    body = blocks(text_answer(size))

    async def prompt() -> None:
        models = Models()
        models.add_provider(Provider(id="bench", name="Bench", base_url="", api="bench"), [MODEL])
        models.register_stream("bench", answers(body))
        session = await create_agent_session(
            models=models,
            model=MODEL.key,
            session=Session.in_memory(folder),
            cwd=folder,
            config_dir=folder,
            tools=[],
        )
        encoder, told = EventEncoder(), 0

        def listen(event: SessionEvent) -> None:
            nonlocal told
            told += len(encoder.encode(event)) if json_mode else 1

        async with session:
            session.subscribe(listen)
            await session.prompt("Go on.")
        assert told >= size

    return lambda: asyncio.run(prompt())


def _records(size: int, folder: Path) -> Work:
    message = AnswerBuilder.of(MODEL).message
    updates = [MessageUpdate(message, TextDelta(0, f"piece {number} ", message)) for number in range(size)]

    def work() -> None:
        encoder = EventEncoder()
        for update in updates:
            encoder.encode(update)

    return work


def _tool_calls(size: int, folder: Path) -> Work:
    bodies = (blocks(calls(size, "echo")), blocks(text_answer(1)))

    async def execute(arguments: JsonObject, context: ToolContext) -> ToolResult:
        return ToolResult.of("a")

    parameters: JsonObject = {
        "type": "object",
        "properties": {"text": {"type": "string"}},
        "required": ["text"],
    }
    echo = Tool(name="echo", description="Says it again", parameters=parameters, execute=execute)

    async def prompt() -> None:
        agent = Agent(stream=answers(*bodies), model=MODEL, tools=[echo])
        await agent.prompt("Go on.")
        assert len(agent.messages) == size + 3

    return lambda: asyncio.run(prompt())


def _encoded(size: int, folder: Path) -> Work:
    messages = conversation(size)

    def work() -> None:
        for message in messages:
            message.wire.clear()  # what an encoding leaves behind for the next one
            encode_message(message)

    return work


def _decoded(size: int, folder: Path) -> Work:
    lines = [encode_message(message) for message in conversation(size)]

    def work() -> None:
        for line in lines:
            message_from_json(decode_object(line))

    return work


def _request(size: int, folder: Path) -> Work:
    messages = conversation(size)
    compat, options = compat_of(MODEL), StreamOptions()

    def work() -> None:
        for message in messages:
            message.wire.clear()
        shown = [message for message in messages if message.role in ("user", "assistant", "toolResult")]
        request_body(MODEL, Context(messages=shown), options, compat)  # type: ignore[arg-type]

    return work


def _written(size: int, folder: Path) -> Work:
    messages = conversation(size)
    numbers = itertools.count()

    def work() -> None:
        with Session.create(folder, folder / f"sessions-{size}-{next(numbers)}") as session:
            for message in messages:
                message.wire.clear()
                session.append_message(message)

    return work


def _opened(size: int, folder: Path) -> Work:
    with Session.create(folder, folder / f"session-{size}") as session:
        for message in conversation(size):
            session.append_message(message)
        file = session.file
    assert file is not None

    def work() -> None:
        with Session.open(file) as session:
            assert len(session.context().messages) == size

    return work


def _gone_on(size: int, folder: Path) -> Work:
    """A session with a compaction at every 100 messages."""
    with Session.create(folder, folder / f"compacted-{size}") as session:
        for number, message in enumerate(conversation(size)):
            kept = session.append_message(message)
            if number % 100 == 99:
                session.append_compaction("What came before.", kept.id, 90_000)
        file = session.file
    assert file is not None

    def work() -> None:
        with Session.open(file) as session:
            assert 0 < len(session.context().messages) < 110

    return work


def _walked(size: int, folder: Path) -> Work:
    """A branch at every message."""
    session = Session.in_memory(folder)
    for message in conversation(size):
        left = session.append_message(message).id
        session.append_label(left, "here")
        session.branch(left)

    def work() -> None:
        for link in session.links():
            session.children(link.id)
            session.parent(link.id)
        assert len(session.labels()) == size

    return work


def _listed(size: int, folder: Path) -> Work:
    """Sessions of some messages."""
    root = folder / f"sessions-{size}"
    for _ in range(size):
        with Session.create(folder, root) as session:
            for message in conversation(10):
                session.append_message(message)

    def work() -> None:
        assert len(list_sessions(root)) == size

    return work


def _arguments(size: int, folder: Path) -> Work:
    item: JsonObject = {
        "type": "object",
        "properties": {"oldText": {"type": "string"}, "newText": {"type": "string"}},
        "required": ["oldText", "newText"],
    }
    edits: JsonObject = {"type": "array", "items": item}
    schema = ToolSchema({"type": "object", "properties": {"edits": edits}, "required": ["edits"]})
    arguments = decode_object(encode_json({"edits": [{"oldText": "a", "newText": "b"} for _ in range(size)]}))

    def work() -> None:
        assert not schema.fit(arguments)[1]

    return work


def _edited(size: int, folder: Path) -> Work:
    data = source_text(size)
    middle = size // 2
    edits = [(f"value_{middle} = step", f"value_{middle} = leap"), ("step(0,", "leap(0,")]

    def work() -> None:
        edited, details = edit_bytes(data, edits, "a.py")
        assert len(edited) == len(data) and details["firstChangedLine"] == 1

    return work


CASES = (
    Case("transport: chunked coding", "chunk", 20_000, _framing),
    Case("wire: server-sent events", "event", 20_000, _events),
    Case("wire: decode a chunk", "chunk", 20_000, _chunks),
    Case("stream: text", "delta", 5_000, lambda size, _: _stream(blocks(text_answer(size)))),
    Case("stream: tool argument", "delta", 5_000, lambda size, _: _stream(blocks(long_argument(size)))),
    Case("agent: text", "delta", 5_000, _agent),
    Case("hub: text", "delta", 5_000, partial(_hub, json_mode=False)),
    Case("hub: text, as records of JSON mode", "delta", 5_000, partial(_hub, json_mode=True)),
    Case("agent: tool calls in one answer", "call", 200, _tool_calls),
    Case("tools: arguments against a schema", "item", 500, _arguments),
    Case("tools: edit and diff", "line", 20_000, _edited),
    Case("codec: encode a message", "message", 1_000, _encoded),
    Case("codec: decode a message", "message", 1_000, _decoded),
    Case("wire: request of a conversation", "message", 1_000, _request),
    Case("session: append", "entry", 500, _written),
    Case("session: open", "entry", 1_000, _opened),
    Case("session: open behind a compaction", "entry", 1_000, _gone_on),
    Case("session: walk through the tree", "entry", 1_000, _walked),
    Case("sessions: list", "session", 100, _listed),
    Case("JSON mode: record of a delta", "delta", 20_000, _records),
)
