"""Sessions over all wire APIs in one process: several at once, and one after another on one history."""

from __future__ import annotations

import asyncio
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cantle.sdk import create_agent_session
from cantle_ai.codec import JsonObject, encode_json
from cantle_ai.messages import AssistantMessage
from cantle_ai.model import Model, Provider
from cantle_ai.models import Models
from cantle_ai.testing.server.server import StrictServer
from cantle_session.session import Session
from packages.ai.tests.conformance.cases import call, text, thinking
from packages.ai.tests.conformance.column import Column, columns
from packages.ai.tests.leaks import http_threads, open_sockets
from packages.cantle.tests.images.pictures import PNG
from tests.support.samples import full_run

COLUMNS = columns()


def runtime(server: StrictServer) -> Models:
    """One runtime with a provider for each API, all at `server`."""
    models = Models(environ={name: value for column in COLUMNS for name, value in column.environ.items()})
    for column in COLUMNS:
        name = f"on-{column.api}"
        url = server.base_url_for(column.api)
        model = Model(**{"id": "m", "provider": name, "api": column.api, "base_url": url, **column.model})
        row = {"id": name, "name": name, "api": column.api, "base_url": url, "api_key": column.api_key}
        models.add_provider(Provider(**{**row, **column.provider}), [model])
    return models


def session_of(column: Column, models: Models, folder: Path, session: Session) -> Any:
    """A session before the model of one API, which thinks a little."""
    return create_agent_session(
        models=models,
        model=f"on-{column.api}/m",
        session=session,
        cwd=folder,
        config_dir=folder / "config",
        tools=["read"],
        thinking_level="low",
    )


def last_prompt(body: JsonObject) -> str:
    """The name and the round in the last prompt that a request holds."""
    return re.findall(rb"<[a-z-]+ [0-9]+>", encode_json(body))[-1].decode()


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "note.txt").write_text("A note.\n", encoding="utf-8")
    (tmp_path / "dot.png").write_bytes(PNG)
    yield tmp_path
    assert http_threads() == []


async def test_sessions_at_once_over_all_apis_keep_apart_and_leave_nothing_open(project: Path) -> None:
    before = open_sockets()

    def answer(body: JsonObject) -> dict[str, Any]:
        said = last_prompt(body)
        stalls = int(said.strip("<>").split()[1]) % 3 == 1
        return {"content": [thinking("hm"), text(f"{said} ") if stalls else text(said)], "stall": stalls}

    async with StrictServer(answer, chunk=(1, 4)) as server:
        models = runtime(server)

        async def talk(column: Column) -> None:
            async with session_of(column, models, project, Session.in_memory(project)) as session:
                for number in range(6):
                    said = f"<{column.api} {number}>"
                    asked = asyncio.create_task(session.prompt(said))
                    if number % 3 == 1:
                        heard = asyncio.Event()
                        unsubscribe = session.subscribe(
                            lambda event, heard=heard: heard.set() if event.type == "message_update" else None
                        )
                        await heard.wait()
                        unsubscribe()
                        await session.abort()
                    await asked
                    last = session.last_answer
                    assert last is not None
                    aborted = number % 3 == 1
                    assert last.stop_reason == ("aborted" if aborted else "stop"), last.error_message
                    assert said.startswith(last.text.strip()) if aborted else last.text == said

        async with asyncio.TaskGroup() as talks:
            for column in COLUMNS:
                talks.create_task(talk(column))
        server.assert_clean()
        assert len(server.requests) == 6 * len(COLUMNS)
        await models.aclose()
    assert open_sockets() == before


@pytest.mark.parametrize("writer", COLUMNS, ids=lambda column: column.api)
async def test_what_one_api_wrote_every_other_continues(project: Path, writer: Column) -> None:
    calls = [call("note.txt"), call("dot.png"), call("missing.txt"), call(arguments='{"path": ')]
    script: list[Any] = [
        {"content": [thinking("first"), text("I look."), *calls]},
        {"content": [thinking("half"), text("half an answer")], "rawStopReason": writer.refusal},
        {"content": [thinking("last"), text("Seen.")]},
    ]
    async with StrictServer(script) as server:
        models = runtime(server)
        kept = Session.create(project, project / "sessions")
        async with session_of(writer, models, project, kept) as session:
            await session.prompt("Look.")
            assert session.last_answer.stop_reason == "error"
            await session.prompt("Again.")
            assert session.last_answer.text == "Seen.", session.last_answer.error_message
        server.assert_clean()
        await models.aclose()
    assert kept.file is not None
    number = COLUMNS.index(writer)
    for reader in COLUMNS if full_run() else COLUMNS[number % 3 :: 3]:
        file = project / "sessions" / f"{reader.api}.jsonl"
        shutil.copy(kept.file, file)
        was = file.read_bytes()
        more: list[Any] = [{"content": [thinking("on"), call("note.txt")]}, "Going on.", "Further."]
        async with StrictServer(more) as server:
            models = runtime(server)
            async with session_of(reader, models, project, Session.open(file)) as session:
                await session.prompt("And?")
                await session.prompt("And then?")
                last = session.last_answer
                assert last.text == "Further.", (reader.api, last.error_message)
            server.assert_clean()
            await models.aclose()
        assert file.read_bytes().startswith(was)
        with Session.open(file) as stored:
            answers = [one for one in stored.context().messages if isinstance(one, AssistantMessage)]
        assert [one.api for one in answers] == [writer.api] * 3 + [reader.api] * 3
