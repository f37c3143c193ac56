"""Another model goes on where the first has failed for good."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from cantle.errors import ModelSelectionError
from cantle.hub.events import AutoRetryEnd, ModelFallback, RunEnd
from cantle.sdk import create_agent_session
from cantle.settings import Settings
from cantle_ai.messages import AssistantMessage
from cantle_ai.models import Models
from cantle_ai.testing.scripted import ScriptedModel, scripted_model
from cantle_session import Session

NewStage = Callable[..., Awaitable[Any]]

BUSY = {"error": {"message": "Overloaded, try again later", "status": 503}}
EMPTY = {"error": {"message": "You exceeded your current quota", "status": 429, "code": "insufficient_quota"}}
WRONG = {"error": {"message": "Unsupported parameter", "status": 400}}


def playing(provider: str, responses: list[Any]) -> ScriptedModel:
    return ScriptedModel(responses, model=scripted_model(provider=provider))


def two(*responses: Any) -> tuple[Models, ScriptedModel, ScriptedModel]:
    """A main model without an answer but failures, and another that plays `responses`."""
    models = Models(environ={})
    main, other = playing("main", [BUSY] * 9), playing("other", list(responses))
    main.register(models)
    other.register(models)
    return models, main, other


async def test_another_model_goes_on_when_the_retries_are_spent(stage: NewStage) -> None:
    models, main, other = two("There.", "Again.")
    it = await stage([], models=models, model=main.model, fallback_model=other.model)
    await it.session.prompt("go")
    assert len(main.requests) == 4
    assert it.session.messages[-1].text == "There."
    assert it.session.model == other.model
    fallback = it.kinds.index("model_fallback")
    assert it.kinds[fallback - 2 : fallback + 3] == [
        "agent_end", "auto_retry_end", "model_fallback", "entry_appended", "agent_start",
    ]  # fmt: skip
    assert [e for e in it.events if isinstance(e, ModelFallback | AutoRetryEnd)] == [
        AutoRetryEnd(False, 3, "Overloaded, try again later"),
        ModelFallback("other", other.model.id, "Overloaded, try again later"),
    ]
    assert [e.will_retry for e in it.events if isinstance(e, RunEnd)] == [True, True, True, True, False]
    changes = [(e["provider"], e["modelId"]) for e in it.entries() if e["type"] == "model_change"]
    assert changes == [("main", main.model.id), ("other", other.model.id)]
    # It stays with the other one: whoever comes back to the first says so.
    await it.session.prompt("more")
    assert (it.session.messages[-1].text, len(main.requests)) == ("Again.", 4)
    # No failure is in what the model was told.
    assert [m.role for m in other.requests[-1].messages] == ["user", "assistant", "user"]


async def test_an_empty_account_is_not_asked_again_before(stage: NewStage) -> None:
    models, _, other = two("There.")
    main = playing("main", [EMPTY])
    main.register(models)
    it = await stage([], models=models, model=main.model, fallback_model=f"other/{other.model.id}")
    await it.session.prompt("go")
    assert (len(main.requests), it.waits, it.session.messages[-1].text) == (1, [], "There.")


async def test_a_request_that_is_wrong_goes_to_no_other_model(stage: NewStage) -> None:
    models, _, other = two("There.")
    main = playing("main", [WRONG])
    main.register(models)
    it = await stage([], models=models, model=main.model, fallback_model=other.model)
    await it.session.prompt("go")
    assert it.session.messages[-1].error_message == "Unsupported parameter"
    assert other.requests == []


async def test_a_failure_of_the_other_model_is_the_end(stage: NewStage) -> None:
    models, main, other = two(*[BUSY] * 4)
    it = await stage([], models=models, model=main.model, fallback_model=other.model)
    await it.session.prompt("go")
    assert (len(main.requests), len(other.requests)) == (4, 4)
    assert it.kinds.count("model_fallback") == 1
    assert it.kinds[-1] == "agent_settled"


async def test_a_function_chooses_by_the_failure(stage: NewStage) -> None:
    models, main, other = two("There.")
    seen: list[str | None] = []

    def choose(failed: AssistantMessage) -> Any:
        seen.append(failed.error_message)
        return None if len(seen) == 1 else other.model

    it = await stage([], models=models, model=main.model, fallback_model=choose)
    await it.session.prompt("go")
    assert it.session.messages[-1].failed
    await it.session.prompt("again")
    assert it.session.messages[-1].text == "There."
    assert seen == ["Overloaded, try again later"] * 2


async def test_an_abort_during_a_retry_asks_no_other_model(stage: NewStage) -> None:
    models, main, other = two("There.")
    it = await stage([], models=models, model=main.model, fallback_model=other.model)

    def stop(event: Any) -> None:
        if event.type == "auto_retry_start":
            it.session.request_abort()

    it.session.subscribe(stop)
    await it.session.prompt("go")
    assert other.requests == []


async def test_the_pattern_names_the_level_too(stage: NewStage) -> None:
    models, main, other = two("There.", "Again.")
    settings = Settings({"retry": {"enabled": False}})
    it = await stage(
        [], models=models, model=main.model, fallback_model="other/scripted:low", settings=settings
    )
    await it.session.prompt("go")
    assert (it.session.model, it.session.thinking_level) == (other.model, "low")
    await it.session.set_model("other/scripted:high")
    assert it.session.thinking_level == "high"
    await it.session.prompt("more")
    assert [message.thinking_level for message in it.session.messages if message.role == "assistant"] == [
        "low",
        "high",
    ]


async def test_the_setting_names_it_too_and_a_wrong_one_is_said_at_once(stage: NewStage) -> None:
    models, main, _ = two("There.")
    settings = Settings({"fallbackModel": "other/scripted", "retry": {"enabled": False}})
    it = await stage([], models=models, model=main.model, settings=settings)
    await it.session.prompt("go")
    assert it.session.messages[-1].text == "There."
    with pytest.raises(ModelSelectionError):
        await stage([], models=models, model=main.model, fallback_model="no such model")


async def test_the_user_s_setting_is_left_out_beside_models_of_a_program_s_own(
    tmp_path: Path,
) -> None:
    (tmp_path / "settings.json").write_text('{"fallbackModel": "theirs/never-seen"}')
    models, main, _ = two("There.")
    async with create_agent_session(
        cwd=tmp_path,
        config_dir=tmp_path,
        models=models,
        model=main.model,
        session=Session.in_memory(tmp_path),
    ) as session:
        assert session.model == main.model
    with pytest.raises(ModelSelectionError, match="never-seen"):
        await create_agent_session(cwd=tmp_path, config_dir=tmp_path, model=main.model, api_key="k")
