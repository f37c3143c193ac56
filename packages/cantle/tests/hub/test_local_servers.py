"""Sessions and servers of this machine: who is asked, and when."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from cantle.errors import ModelSelectionError
from cantle.hub.model_selection import server_of
from cantle.sdk import create_agent_session
from cantle.settings import Settings
from cantle_ai.context import Context
from cantle_ai.model import LocalServer, Model, Provider, StreamOptions
from cantle_ai.model_entries import ModelEntry
from cantle_ai.models import Models
from cantle_ai.stream import AssistantMessageStream
from cantle_ai.testing.scripted import ScriptedModel
from packages.ai.tests.http_peer import refused_port
from packages.ai.tests.server_programs import OLLAMA, Program


def models_with(address: str) -> Models:
    models = Models(environ={"OLLAMA_HOST": address})
    ScriptedModel(["ok"]).register(models)
    return models


def options(tmp_path: Path, models: Models, **more: Any) -> dict[str, Any]:
    return {"cwd": tmp_path, "config_dir": tmp_path / "config", "models": models, **more}


def test_whose_server_is_meant() -> None:
    models = Models(environ={})
    assert server_of(models, "ollama/qwen3:4b") == "ollama"
    assert server_of(models, "qwen3", provider="ollama") == "ollama"
    assert server_of(models, None, provider="ollama") == "ollama"
    assert server_of(models, "qwen3:4b") is None
    assert server_of(models, "openai/gpt-5") is None
    assert server_of(models, "nobody/m") is None
    assert server_of(models, None) is None
    assert server_of(models, "Ollama/qwen3:4b") == "ollama"


def proxied(models: Models, name: str = "ollama/qwen3:4b") -> Models:
    """With a proxy that has a model of that id."""
    row = Provider(
        id="proxy", name="Proxy", base_url="http://127.0.0.1:1", api="openai-completions", api_key="k"
    )
    models.add_provider(row, [ModelEntry(id=name)])
    return models


async def test_an_id_that_begins_like_a_server_s_may_be_another_provider_s(tmp_path: Path) -> None:
    with refused_port() as port:
        models = proxied(models_with(f"127.0.0.1:{port}"))
        for named in ("ollama/qwen3:4b", "OLLAMA/qwen3:4b", "ollama/qwen3:4b:high"):
            async with create_agent_session(**options(tmp_path, models, model=named)) as session:
                assert session.model.key == "proxy/ollama/qwen3:4b"
                await session.set_model("ollama/qwen3:4b")
        with pytest.raises(ModelSelectionError, match="nothing listens there"):
            await create_agent_session(**options(tmp_path, models, model="ollama/qwen3"))
        with pytest.raises(ModelSelectionError, match="nothing listens there"):
            await create_agent_session(
                **options(tmp_path, models, model="ollama/qwen3:4b", provider="ollama")
            )
    with Program(OLLAMA) as ollama:
        models = proxied(models_with(ollama.address))
        async with create_agent_session(**options(tmp_path, models, model="ollama/qwen3:4b")) as session:
            assert session.model.provider == "ollama"


@pytest.mark.parametrize(
    ("settings", "server", "expected"),
    [({}, None, 300.0), ({}, "openai", None), ({"httpIdleTimeoutMs": 1500}, "openai", 1.5)],
)
async def test_a_server_may_be_silent_for_as_long_as_no_setting_says_otherwise(
    tmp_path: Path, settings: dict[str, Any], server: LocalServer | None, expected: float | None
) -> None:
    asked: list[float | None] = []

    class Listening(ScriptedModel):
        def stream(self, model: Model, context: Context, options: StreamOptions) -> AssistantMessageStream:
            asked.append(options.timeout)
            return super().stream(model, context, options)

    models = Models(environ={})
    model = Listening(["ok"]).register(models)
    row = models.provider(model.provider)
    assert row is not None
    models.add_provider(replace(row, server=server), [model])
    given = options(tmp_path, models, model=model, settings=Settings(settings))
    async with create_agent_session(**given) as session:
        await session.prompt("hi")
    assert asked == [expected]


async def test_a_session_can_change_to_a_model_of_a_server(tmp_path: Path) -> None:
    with Program(OLLAMA) as ollama:
        models = models_with(ollama.address)
        async with create_agent_session(**options(tmp_path, models, provider="scripted")) as session:
            assert ollama.asked == []
            await session.set_model("ollama/qwen3:4b")
            assert session.agent.model.context_window == 32768
            await session.set_model(session.agent.model)


async def test_changing_to_a_server_that_does_not_run_leaves_the_model(tmp_path: Path) -> None:
    with refused_port() as port:
        models = models_with(f"127.0.0.1:{port}")
        async with create_agent_session(**options(tmp_path, models, provider="scripted")) as session:
            before = session.agent.model
            with pytest.raises(ModelSelectionError, match="nothing listens there"):
                await session.set_model("ollama/qwen3:4b")
            assert session.agent.model is before


async def test_a_default_of_the_settings_is_asked_for_and_passed_over_when_it_is_gone(tmp_path: Path) -> None:
    settings = Settings({"defaultProvider": "ollama", "defaultModel": "qwen3:4b"})
    with Program(OLLAMA) as ollama:
        models = models_with(ollama.address)
        async with create_agent_session(**options(tmp_path, models, settings=settings)) as session:
            assert session.agent.model.key == "ollama/qwen3:4b"
        asked = len(ollama.asked)
        named = options(tmp_path, models, settings=settings, provider="scripted")
        async with create_agent_session(**named) as session:
            assert session.agent.model.provider == "scripted"
        assert len(ollama.asked) == asked
    with refused_port() as port:
        models = models_with(f"127.0.0.1:{port}")
        async with create_agent_session(**options(tmp_path, models, settings=settings)) as session:
            assert session.agent.model.provider == "scripted"
            assert any("ollama/qwen3:4b" in warning for warning in session.warnings)


async def test_a_model_to_fall_back_to_is_asked_for_before_it_is_needed(tmp_path: Path) -> None:
    with Program(OLLAMA) as ollama:
        models = models_with(ollama.address)
        named = options(tmp_path, models, provider="scripted", fallback_model="ollama/qwen3:4b")
        async with create_agent_session(**named):
            assert "/api/tags" in ollama.asked
    with refused_port() as port:
        named = options(
            tmp_path, models_with(f"127.0.0.1:{port}"), provider="scripted", fallback_model="ollama/qwen3:4b"
        )
        with pytest.raises(ModelSelectionError, match="nothing listens there"):
            await create_agent_session(**named)
