"""What a person types at a prompt."""

from __future__ import annotations

import pytest

import cantle_ai
from cantle_ai.context import Context
from cantle_ai.errors import CantleAIError, ProviderError
from cantle_ai.messages import UserMessage
from cantle_ai.model import StreamOptions
from cantle_ai.models import Models
from cantle_ai.testing.scripted import ScriptedModel


def scripted(*responses: str) -> tuple[Models, ScriptedModel]:
    models = Models(environ={})
    model = ScriptedModel(list(responses))
    model.register(models)
    return models, model


def test_ask_gives_the_text_of_the_answer() -> None:
    models, model = scripted("The Rhine.", "The Elbe.", "The Oder.")
    assert cantle_ai.ask("scripted/scripted", "Name a river.", models=models) == "The Rhine."
    assert cantle_ai.ask("scripted:low", "Another.", models=models) == "The Elbe."
    context = Context("Be brief.", [UserMessage("A third.")])
    assert cantle_ai.ask(model.model, context, models=models) == "The Oder."
    assert [request.messages[0].text for request in model.requests] == [
        "Name a river.",
        "Another.",
        "A third.",
    ]
    assert model.requests[2].system_prompt == "Be brief."


async def test_complete_gives_the_whole_message() -> None:
    models, _ = scripted("hi")
    message = await cantle_ai.complete("scripted:high", "hello", models=models)
    assert (message.text, message.stop_reason, message.thinking_level) == ("hi", "stop", "high")


async def test_a_failed_request_is_an_answer_for_complete() -> None:
    message = await cantle_ai.complete("openai/gpt-5", "hello", models=Models(environ={}))
    assert message.stop_reason == "error"
    assert "Set OPENAI_API_KEY" in (message.error_message or "")


def test_a_failed_request_is_an_exception_for_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ProviderError, match="Set OPENAI_API_KEY"):
        cantle_ai.ask("openai/gpt-5", "hello")


def test_a_model_that_does_not_exist_is_an_exception() -> None:
    with pytest.raises(CantleAIError, match="No model matches"):
        cantle_ai.ask("no-such-model", "hello", StreamOptions(), models=Models(environ={}))


async def test_ask_inside_an_event_loop_says_what_to_write() -> None:
    with pytest.raises(CantleAIError, match=r"await cantle_ai\.complete"):
        cantle_ai.ask("gpt-5", "hello", models=Models(environ={}))
