"""`create_agent_session`: what it finds by itself, what can be given instead, and what it refuses."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import cantle
from cantle.errors import (
    ConfigurationFileError,
    ModelSelectionError,
    SessionError,
    ToolSelectionError,
    UserError,
    WorkingDirectoryError,
)
from cantle.hub.opening import Opening
from cantle.paths import ConfigPaths
from cantle.sdk import create_agent_session
from cantle.session_place import sessions_directory
from cantle.settings import Settings
from cantle.tools.builtin import DEFAULT_TOOLS
from cantle_agent.tool import Tool, ToolContext, ToolResult
from cantle_ai.codec import JsonObject
from cantle_ai.context import Context
from cantle_ai.model import Model, StreamOptions
from cantle_ai.models import Models
from cantle_ai.stream import AssistantMessageStream
from cantle_ai.testing.scripted import ScriptedModel

NewStage = Callable[..., Awaitable[Any]]


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "CANTLE_DIR", "CANTLE_SESSION_DIR"):
        monkeypatch.delenv(name, raising=False)


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


async def nothing(arguments: JsonObject, context: ToolContext) -> ToolResult:
    return ToolResult.of("")


def own(name: str) -> Tool:
    return Tool(name=name, description=name, parameters={"type": "object"}, execute=nothing)


def everything_in(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_public_names_are_what_they_say() -> None:
    for name in cantle.__all__:
        assert getattr(cantle, name) is not None
    assert set(cantle.__all__) <= set(dir(cantle))
    with pytest.raises(AttributeError, match="no attribute 'nope'"):
        cantle.nope  # noqa: B018


# --- what is wrong is said in one sentence, and nothing is changed ----------------------------------


@pytest.mark.parametrize(
    ("files", "options", "error", "text"),
    [
        (
            {},
            {},
            ModelSelectionError,
            "no provider has a key.* OPENAI_API_KEY.*cantle auth login.*models.json.* --api-key",
        ),
        ({}, {"model": "nope"}, ModelSelectionError, 'No model matches "nope"'),
        ({}, {"model": "nope", "provider": "nowhere"}, ModelSelectionError, 'No provider "nowhere"'),
        ({}, {"provider": "nowhere"}, ModelSelectionError, 'no provider "nowhere"'),
        ({"settings.json": "{"}, {}, ConfigurationFileError, "settings.json, line 1, column 2"),
        ({"settings.json": '{"retry": 1}'}, {}, ConfigurationFileError, "retry must be an object"),
        ({"models.json": "{,"}, {}, ConfigurationFileError, "models.json"),
        ({"models.json": '{"providers": 3}'}, {}, ConfigurationFileError, "models.json.*providers"),
        ({"auth.json": "{"}, {}, ConfigurationFileError, "auth.json, line 1"),
        ({"auth.json": '{"openai": 3}'}, {}, ModelSelectionError, "auth.json: the entry 'openai'"),
        ({}, {"cwd": "gone"}, WorkingDirectoryError, "gone does not exist"),
    ],
)
async def test_bad_input_is_one_sentence_and_changes_no_file(
    tmp_path: Path, files: dict[str, str], options: dict[str, Any], error: type[UserError], text: str
) -> None:
    for name, content in files.items():
        write(tmp_path / "config" / name, content)
    (tmp_path / "work").mkdir()
    if "cwd" in options:
        options = {**options, "cwd": tmp_path / options["cwd"]}
    before = everything_in(tmp_path)
    with pytest.raises(error, match=text) as caught:
        await create_agent_session(**{"cwd": tmp_path / "work", "config_dir": tmp_path / "config", **options})
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith(".")
    assert caught.value.exit_code != 0
    assert everything_in(tmp_path) == before


async def test_an_explicit_model_without_a_key_names_its_variable(tmp_path: Path) -> None:
    key = Models(environ={}).list("openai")[0].key
    with pytest.raises(ModelSelectionError, match=r"no key for the provider openai.*OPENAI_API_KEY"):
        await create_agent_session(cwd=tmp_path, config_dir=tmp_path / "config", model=key)


async def test_unknown_tools_are_refused(stage: NewStage) -> None:
    with pytest.raises(ToolSelectionError, match='no tool "nope"'):
        await stage([], tools=["read", "nope"])


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"tools": [print]}, "print is not a tool.*@tool"),
        ({"tools": ["read", 3]}, "3 is not a tool"),
        ({"tools": own("own")}, "Give a list"),
        ({"exclude_tools": 3}, "Give a list, with 3 in it"),
    ],
)
async def test_what_is_no_tool_is_refused(stage: NewStage, options: dict[str, Any], text: str) -> None:
    with pytest.raises(TypeError, match=text):
        await stage([], **options)


async def test_a_session_says_what_it_is(stage: NewStage) -> None:
    session = (await stage(["hello"])).session
    id_, file = session.session.id, session.session.file
    assert repr(session) == f"<AgentSession {id_}, {session.model.key}, 0 messages, {file}>"
    await session.prompt("go")
    assert repr(session) == f"<AgentSession {id_}, {session.model.key}, 2 messages, {file}>"


async def test_an_unknown_thinking_level_is_refused_with_the_levels(stage: NewStage) -> None:
    with pytest.raises(
        ModelSelectionError, match=r'no thinking level "deep"\. There are off, minimal, .*max'
    ):
        await stage([], thinking_level="deep")


async def test_a_session_is_opened_by_await_by_async_with_and_by_both(tmp_path: Path) -> None:
    def opening() -> Opening:
        models = Models(environ={})
        model = ScriptedModel(["hello"]).register(models)
        return create_agent_session(cwd=tmp_path, config_dir=tmp_path / "config", models=models, model=model)

    async with opening() as session:
        await session.prompt("go")
        assert session.last_answer is not None and session.last_answer.text == "hello"
    with pytest.raises(RuntimeError, match="closed"):
        await session.prompt("go")
    async with await opening() as session:
        await session.prompt("go")
    task = asyncio.create_task(opening())
    await (await task).close()
    with pytest.raises(WorkingDirectoryError):
        async with create_agent_session(cwd=tmp_path / "gone"):
            pass


async def test_a_tool_whose_schema_is_none_is_refused(stage: NewStage) -> None:
    wrong = Tool(name="own", description="", parameters={"type": "strange"}, execute=nothing)
    with pytest.raises(ToolSelectionError, match="'own' has no valid schema"):
        await stage([], tools=[wrong])


# --- models and keys ---------------------------------------------------------------------------------


class Listening(ScriptedModel):
    """Keeps the options that it is asked with."""

    def __init__(self, *responses: str) -> None:
        super().__init__(responses)
        self.options: list[StreamOptions] = []

    def stream(self, model: Model, context: Context, options: StreamOptions) -> AssistantMessageStream:
        self.options.append(options)
        return super().stream(model, context, options)


async def test_requests_carry_session_level_time_out_and_the_given_key(tmp_path: Path) -> None:
    listening = Listening("One.", "Two.")
    models = Models(environ={})
    first = listening.register(models)
    other = Listening("Three.")
    from msgspec.structs import replace

    other.model = replace(first, provider="other")
    second = other.register(models)
    settings = Settings({"httpIdleTimeoutMs": 1500})
    async with await create_agent_session(
        cwd=tmp_path, config_dir=tmp_path / "c", models=models, model=first, api_key="sk-1",
        thinking_level="low", settings=settings,
    ) as session:  # fmt: skip
        await session.prompt("a")
        await session.set_thinking_level("high")
        await session.prompt("b")
        await session.set_model(second)
        await session.prompt("c")
        assert [(o.thinking, o.api_key) for o in listening.options] == [("low", "sk-1"), ("high", "sk-1")]
        assert [o.api_key for o in other.options] == [None]  # the key was for the first provider
        assert {o.session_id for o in (*listening.options, *other.options)} == {session.session.id}
        assert {o.timeout for o in listening.options} == {1.5}
        assert b"sk-1" not in b"".join(everything_in(tmp_path).values())


async def test_a_saved_key_makes_a_provider_usable(tmp_path: Path) -> None:
    write(tmp_path / "auth.json", '{"openai": {"type": "api_key", "key": "sk-1"}}').chmod(0o600)
    async with await create_agent_session(cwd=tmp_path, config_dir=tmp_path) as session:
        assert session.model.provider == "openai"
        assert session.warnings == []
    (tmp_path / "auth.json").chmod(0o644)
    async with await create_agent_session(cwd=tmp_path, config_dir=tmp_path) as session:
        if os.name != "nt":
            assert "chmod 600" in session.warnings[0]
            assert "sk-1" not in session.warnings[0]


async def test_a_key_that_is_gone_in_the_middle_of_a_session_is_said_as_at_its_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    options: dict[str, Any] = {"cwd": tmp_path, "config_dir": tmp_path, "model": "openai/gpt-5"}
    write(tmp_path / "auth.json", '{"openai": {"type": "api_key", "key": "sk-1"}}').chmod(0o600)
    async with await create_agent_session(**options) as session:
        (tmp_path / "auth.json").unlink()
        await session.prompt("hello")
        assert session.last_answer is not None
        assert session.last_answer.stop_reason == "error"
    with pytest.raises(ModelSelectionError) as refused:
        await create_agent_session(**options)
    assert f"{session.last_answer.error_message}." == str(refused.value)
    assert "OPENAI_API_KEY" in str(refused.value) and "--api-key" in str(refused.value)


async def test_models_json_and_the_level_behind_a_name(tmp_path: Path) -> None:
    provider = {
        "baseUrl": "http://127.0.0.1:9/v1",
        "api": "openai-completions",
        "apiKey": "k",
        "models": [{"id": "thinker", "reasoning": True}, {"id": "plain"}],
    }
    write(tmp_path / "models.json", json.dumps({"providers": {"mine": provider}}))
    options: dict[str, Any] = {"cwd": tmp_path, "config_dir": tmp_path}
    async with await create_agent_session(**options) as session:
        assert (session.model.key, session.thinking_level) == ("mine/thinker", "medium")
    async with await create_agent_session(model="thinker:high", **options) as session:
        assert (session.model.key, session.thinking_level) == ("mine/thinker", "high")
    async with await create_agent_session(model="thinker:high", thinking_level="low", **options) as session:
        assert session.thinking_level == "low"
    async with await create_agent_session(model="plain:high", **options) as session:
        assert session.thinking_level == "off"
    write(tmp_path / "settings.json", '{"defaultProvider": "mine", "defaultModel": "gone"}')
    async with await create_agent_session(**options) as session:
        assert session.warnings == [
            "The model mine/gone of the settings does not exist any more; using mine/thinker."
        ]


# --- tools and prompt --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({}, ["read", "bash", "edit", "write"]),
        ({"tools": []}, []),
        ({"tools": ["bash", "read"]}, ["bash", "read"]),
        ({"tools": ["-write"]}, ["read", "bash", "edit"]),
        ({"exclude_tools": ["e*"]}, ["read", "bash", "write"]),
        ({"tools": [own("own")]}, ["own"]),
        ({"tools": [*DEFAULT_TOOLS, own("own")]}, ["read", "bash", "edit", "write", "own"]),
        ({"tools": ["read", own("bash")]}, ["read", "bash"]),
        ({"settings": Settings({"defaultTools": ["+nope", "-read"]})}, ["bash", "edit", "write"]),
    ],
)
async def test_tools_are_chosen(stage: NewStage, options: dict[str, Any], names: list[str]) -> None:
    it = await stage(["Hello."], **options)
    assert [tool.name for tool in it.session.agent.tools] == names
    await it.session.prompt("go")
    assert [tool.name for tool in it.scripted.requests[0].tools] == names


async def test_a_tool_of_ones_own_stands_for_a_built_in_one(stage: NewStage) -> None:
    mine = own("bash")
    it = await stage([], tools=["read", mine])
    assert it.session.agent.tools[1] is mine


async def test_the_prompt_can_be_replaced_and_added_to(stage: NewStage, tmp_path: Path) -> None:
    write(tmp_path / "config/SYSTEM.md", "From a file.")
    write(tmp_path / "config/APPEND_SYSTEM.md", "And more.")
    write(tmp_path / "work/AGENTS.md", "Use tabs.")
    it = await stage([])
    assert it.session.system_prompt.startswith("From a file.\n\nAnd more.\n\n<context>")
    assert "Use tabs." in it.session.system_prompt
    it = await stage([], system_prompt="Mine.", append_system_prompt=["One.", "Two."], context_files=False)
    assert it.session.system_prompt == f"Mine.\n\nOne.\n\nTwo.\n\n<cwd>{(tmp_path / 'work').as_posix()}</cwd>"


# --- trust ---------------------------------------------------------------------------------------


async def test_a_project_is_read_only_with_trust(stage: NewStage, tmp_path: Path) -> None:
    write(tmp_path / "work/.cantle/SYSTEM.md", "From the project.")
    write(
        tmp_path / "work/.cantle/settings.json", '{"defaultTools": ["read"], "defaultThinkingLevel": "high"}'
    )
    it = await stage([])
    assert len(it.session.agent.tools) == 4
    assert "From the project." not in it.session.system_prompt
    assert len(it.session.warnings) == 1
    assert "--approve" in it.session.warnings[0]
    it = await stage([], project_trusted=False)
    assert (it.session.warnings, len(it.session.agent.tools)) == ([], 4)
    it = await stage([], project_trusted=True)
    assert it.session.system_prompt.startswith("From the project.")
    assert [tool.name for tool in it.session.agent.tools] == ["read"]
    assert it.session.thinking_level == "high"
    write(tmp_path / "config/settings.json", '{"defaultProjectTrust": "always"}')
    it = await stage([])
    assert it.session.system_prompt.startswith("From the project.")
    write(tmp_path / "config/trust.json", json.dumps({os.path.realpath(tmp_path): False}))
    it = await stage([])
    assert "From the project." not in it.session.system_prompt
    assert it.session.warnings == []


async def test_a_broken_file_of_an_untrusted_project_does_not_matter(stage: NewStage, tmp_path: Path) -> None:
    write(tmp_path / "work/.cantle/settings.json", "{")
    await stage([], project_trusted=False)
    with pytest.raises(ConfigurationFileError, match=r"\.cantle/settings\.json, line 1"):
        await stage([], project_trusted=True)


# --- where sessions lie ------------------------------------------------------------------------------


@pytest.mark.parity("sessions.directory-order")
def test_the_session_folder_is_the_flag_the_variable_the_project_the_user_or_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths, cwd = ConfigPaths(tmp_path / "config"), tmp_path / "work"
    default = sessions_directory(cwd, paths, Settings())
    assert isinstance(default, Path)
    assert default.parent == paths.sessions
    settings = Settings({"sessionDir": "user"})
    assert sessions_directory(cwd, paths, settings) == cwd / "user"
    write(cwd / ".cantle/settings.json", '{"sessionDir": "project"}')
    assert sessions_directory(cwd, paths, settings) == cwd / "project"
    monkeypatch.setenv("CANTLE_SESSION_DIR", str(tmp_path / "variable"))
    assert sessions_directory(cwd, paths, settings) == tmp_path / "variable"
    assert sessions_directory(cwd, paths, settings, explicit="~/flag") == Path.home() / "flag"


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("sqlite:s.db", "sqlite:{cwd}/s.db"),
        ("sqlite:/x/s.db", "sqlite:/x/s.db"),
        ("sqlite:~/s.db", "sqlite:{home}/s.db"),
        ("sqlite:", "sqlite:"),
        ("postgresql://ann@db.example/notes", "postgresql://ann@db.example/notes"),
        ("postgres://db.example", "postgres://db.example"),
    ],
)
def test_sessions_may_lie_in_a_database(tmp_path: Path, given: str, found: str) -> None:
    paths, cwd = ConfigPaths(tmp_path / "config"), tmp_path / "work"
    expected = found.format(cwd=cwd, home=Path.home())
    assert sessions_directory(cwd, paths, Settings(), explicit=given) == expected
    assert sessions_directory(cwd, paths, Settings({"sessionDir": given})) == expected


@pytest.mark.parametrize("given", ["mysql://ann:secret@db.example/notes", "s3://bucket", "postgresql:notes"])
def test_an_address_of_something_else_is_refused_and_not_repeated(tmp_path: Path, given: str) -> None:
    paths, cwd = ConfigPaths(tmp_path / "config"), tmp_path / "work"
    with pytest.raises(SessionError, match="sqlite:FILE or postgresql://HOST/NAME") as refused:
        sessions_directory(cwd, paths, Settings(), explicit=given)
    assert given.partition(":")[0] in str(refused.value)
    assert given.partition(":")[2] not in str(refused.value)


def test_listing_sessions_loads_no_agent() -> None:
    code = "import sys, cantle.sessions_command.lists; print('cantle.sdk' in sys.modules, 'asyncio' in sys.modules)"
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert shown.stdout == "False False\n"


def test_a_project_may_name_a_file_and_never_a_server(tmp_path: Path) -> None:
    paths, cwd = ConfigPaths(tmp_path / "config"), tmp_path / "work"
    user = Settings({"sessionDir": "user"})
    for server in ("postgresql://theirs.example/x", "postgres://theirs.example/x"):
        write(cwd / ".cantle/settings.json", json.dumps({"sessionDir": server}))
        for settings in (user, user.with_project(cwd)):
            assert sessions_directory(cwd, paths, settings) == cwd / "user"
    write(cwd / ".cantle/settings.json", '{"sessionDir": "sqlite:.cantle/s.db"}')
    assert sessions_directory(cwd, paths, user) == f"sqlite:{cwd}/.cantle/s.db"
