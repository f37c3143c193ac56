"""Chat completions at a resource of Azure's: its address and its deployments are in variables."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from cantle_ai.context import Context
from cantle_ai.messages import UserMessage
from cantle_ai.models import Models
from cantle_ai.transport.port import HttpRequest
from packages.ai.tests.wall import Wall


async def asked(environ: Mapping[str, str]) -> tuple[HttpRequest | None, str]:
    """How `azure/deepseek-v4-pro` is asked, if it is, and the error that ends that."""
    wall = Wall()
    models = Models(environ={"AZURE_OPENAI_API_KEY": "k", **environ}, transport=wall)
    model = models.find("azure", "deepseek-v4-pro")
    assert model is not None and model.api == "openai-completions"
    message = await models.complete(model, Context(messages=[UserMessage("hi")]))
    return next(iter(wall.requests), None), message.error_message or ""


@pytest.mark.parametrize(
    ("environ", "url"),
    [
        (
            {"AZURE_OPENAI_BASE_URL": "https://r.ai.azure.com"},
            "https://r.ai.azure.com/openai/v1/chat/completions",
        ),
        ({"AZURE_OPENAI_RESOURCE_NAME": "r"}, "https://r.openai.azure.com/openai/v1/chat/completions"),
        ({"AZURE_OPENAI_BASE_URL": "https://p/own/v1/"}, "https://p/own/v1/chat/completions"),
        (
            {"AZURE_OPENAI_BASE_URL": "https://p/openai/deployments/d?api-version=2024-10-21"},
            "https://p/openai/deployments/d/chat/completions?api-version=2024-10-21",
        ),
    ],
)
async def test_the_address_is_the_resources(environ: dict[str, str], url: str) -> None:
    request, _ = await asked(environ)
    assert request is not None and request.url == url
    assert (request.headers["authorization"], json.loads(request.body)["model"]) == (
        "Bearer k",
        "deepseek-v4-pro",
    )


async def test_a_deployment_may_have_another_name() -> None:
    names = "gpt-5.4=mine,deepseek-v4-pro=my-deepseek"
    request, _ = await asked({"AZURE_OPENAI_RESOURCE_NAME": "r", "AZURE_OPENAI_DEPLOYMENT_NAME_MAP": names})
    assert request is not None and json.loads(request.body)["model"] == "my-deepseek"


async def test_without_an_address_the_answer_says_what_to_set() -> None:
    request, error = await asked({})
    assert request is None and "Set AZURE_OPENAI_BASE_URL" in error
