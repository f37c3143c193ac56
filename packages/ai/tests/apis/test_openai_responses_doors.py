"""The doors to the Responses API: Azure, with addresses of one's own, and a subscription to ChatGPT."""

import base64
import json
from typing import Any

import pytest

from cantle_ai.apis.azure_openai_address import azure_base_url, azure_url, deployment_name
from cantle_ai.errors import ConfigurationError
from cantle_ai.model import StreamOptions
from packages.ai.tests.apis.responses import KEY, OK, ask, completed, model
from packages.ai.tests.apis.test_openai_responses_payload import TOOLS

AZURE: dict[str, Any] = {"api": "azure-openai-responses", "provider": "azure"}
CODEX: dict[str, Any] = {"api": "openai-codex-responses", "provider": "openai-codex", "path": "/backend-api"}
ACCOUNT = {"chatgpt-account-id": "account-1"}


def token(claims: object) -> str:
    parts = [
        base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in ({}, claims)
    ]
    return ".".join([*parts, "signature"])


# --- Azure


async def test_azure_has_its_key_in_a_header_of_its_own_and_a_version_in_the_address():
    asked = await ask(OK, **AZURE, reasoning=True, context=TOOLS)
    assert asked.requests[0].line == "POST /v1/responses?api-version=v1 HTTP/1.1"
    assert asked.headers["api-key"] == KEY
    assert "authorization" not in asked.headers
    assert asked.body["input"][0]["role"] == "developer"
    assert [tool["strict"] for tool in asked.body["tools"]] == [True, False]


async def test_azure_takes_tokens_of_entra_id():
    asked = await ask(OK, **AZURE, kind="bearer")
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert "api-key" not in asked.headers


async def test_azure_keeps_prompts_by_key_alone_and_wants_no_session_headers():
    asked = await ask(OK, **AZURE, options=StreamOptions(session_id="s", cache_retention="long"))
    assert asked.body["prompt_cache_key"] == "s"
    assert "prompt_cache_retention" not in asked.body
    assert not {"session-id", "x-client-request-id"} & asked.headers.keys()


async def test_azures_address_version_and_deployments_come_from_variables():
    asked = await ask(
        [completed(model="gpt-5.4")],
        **AZURE,
        base_url="",
        id="gpt-5.4",
        environ={
            "AZURE_OPENAI_BASE_URL": "PEER",
            "AZURE_OPENAI_API_VERSION": "2026-01-01-preview",
            "AZURE_OPENAI_DEPLOYMENT_NAME_MAP": "gpt-5=x, gpt-5.4 = mine ,broken",
        },
    )
    assert asked.requests[0].line == "POST /openai/v1/responses?api-version=2026-01-01-preview HTTP/1.1"
    assert asked.body["model"] == "mine"
    # The deployment is not the model: what served the request is told.
    assert asked.message.response_model == "gpt-5.4"


@pytest.mark.parametrize(("variables", "row", "wanted"), [
    ({}, "https://x.example/openai/v1/", "https://x.example/openai/v1"),
    ({"AZURE_OPENAI_BASE_URL": "https://a.example"}, "https://x.example", "https://a.example/openai/v1"),
    ({"AZURE_OPENAI_BASE_URL": "https://a.example/openai/"}, "", "https://a.example/openai/v1"),
    ({"AZURE_OPENAI_BASE_URL": "https://a.example/openai/v1/responses"}, "", "https://a.example/openai/v1"),
    ({"AZURE_OPENAI_BASE_URL": "https://proxy.example/team/azure"}, "", "https://proxy.example/team/azure"),
    ({"AZURE_OPENAI_RESOURCE_NAME": "res"}, "https://x.example", "https://res.openai.azure.com/openai/v1"),
    ({"AZURE_OPENAI_BASE_URL": "https://a.example/v1", "AZURE_OPENAI_RESOURCE_NAME": "res"}, "", "https://a.example/v1"),
    ({"AZURE_OPENAI_BASE_URL": " "}, "https://x.example", "https://x.example/openai/v1"),
    ({"AZURE_OPENAI_BASE_URL": "a.example"}, "", "https://a.example/openai/v1"),
    ({"AZURE_OPENAI_BASE_URL": "https://a.example//openai//v1//"}, "", "https://a.example/openai/v1"),
    ({"AZURE_OPENAI_BASE_URL": "https://a.example/openai/v1/chat/completions"}, "", "https://a.example/openai/v1"),
    ({"AZURE_OPENAI_RESOURCE_NAME": "res.openai.azure.com"}, "", "https://res.openai.azure.com/openai/v1"),
    ({"AZURE_OPENAI_RESOURCE_NAME": "https://res.openai.azure.com/"}, "", "https://res.openai.azure.com/openai/v1"),
])  # fmt: skip
def test_where_azure_is(variables, row, wanted):
    assert azure_base_url(model(**AZURE, base_url=row), variables) == wanted


def test_an_address_that_is_none_is_told():
    with pytest.raises(
        ConfigurationError, match=r'"http://\[::1" is not the address .* AZURE_OPENAI_BASE_URL'
    ):
        azure_base_url(model(**AZURE), {"AZURE_OPENAI_BASE_URL": "http://[::1"})


def test_an_address_that_says_its_version_keeps_it():
    base = azure_base_url(model(**AZURE, base_url="https://a.example/v1?api-version=2025&x=1"), {})
    assert azure_url(base, "/responses", {}) == "https://a.example/v1/responses?api-version=2025&x=1"
    assert azure_url("https://a.example/v1?x=1", "/r", {}) == "https://a.example/v1/r?x=1&api-version=v1"


def test_a_deployment_has_the_models_name_unless_it_is_mapped():
    assert deployment_name("m", {}) == "m"
    assert deployment_name("m", {"AZURE_OPENAI_DEPLOYMENT_NAME_MAP": "m=,n=x,m"}) == "m"


async def test_azure_without_an_address_says_what_to_set():
    asked = await ask(OK, **AZURE, base_url="")
    assert not asked.requests
    assert "AZURE_OPENAI_BASE_URL" in (asked.message.error_message or "")
    with pytest.raises(ConfigurationError, match="AZURE_OPENAI_RESOURCE_NAME"):
        azure_base_url(model(**AZURE, base_url=""), {})


# --- ChatGPT


async def test_a_subscription_names_its_account_and_sends_some_fields_always():
    asked = await ask(OK, **CODEX, headers=ACCOUNT, kind="oauth", options=StreamOptions(session_id="s"))
    assert asked.requests[0].line == "POST /backend-api/codex/responses HTTP/1.1"
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.headers["chatgpt-account-id"] == "account-1"
    assert asked.headers["openai-beta"] == "responses=experimental"
    assert asked.headers["session-id"] == asked.headers["x-client-request-id"] == "s"
    body = asked.body
    assert (body["store"], body["stream"], body["prompt_cache_key"]) == (False, True, "s")
    assert body["include"] == ["reasoning.encrypted_content"]
    assert (body["text"], body["tool_choice"]) == ({"verbosity": "low"}, "auto")
    assert body["parallel_tool_calls"] is True


async def test_a_subscriptions_fields_can_be_chosen():
    options = StreamOptions(
        sampling={"text": {"verbosity": "high"}}, tool_choice="none", cache_retention="long", session_id="s"
    )
    body = (await ask(OK, **CODEX, headers=ACCOUNT, context=TOOLS, options=options)).body
    assert (body["text"], body["tool_choice"]) == ({"verbosity": "high"}, "none")
    assert "prompt_cache_retention" not in body
    assert body["tools"][0]["strict"] is True


async def test_the_account_is_read_from_the_token_where_no_login_names_it():
    key = token({"https://api.openai.com/auth": {"chatgpt_account_id": "of-token"}})
    assert (await ask(OK, **CODEX, key=key)).headers["chatgpt-account-id"] == "of-token"
    asked = await ask(OK, **CODEX, key=key, headers={"ChatGPT-Account-Id": "of-login"})
    assert asked.headers["chatgpt-account-id"] == "of-login"


@pytest.mark.parametrize("key", [
    None, "sk-plain", "a.b.c", "a.é.c", token([]), token({"https://api.openai.com/auth": 7}),
    token({"https://api.openai.com/auth": {"chatgpt_account_id": ""}}),
])  # fmt: skip
async def test_a_token_that_names_no_account_is_a_message_before_anything_is_sent(key):
    asked = await ask(OK, **CODEX, key=key)
    assert not asked.requests
    assert "chatgpt-account-id" in (asked.message.error_message or "")
    assert key is None or key not in (asked.message.error_message or "")


@pytest.mark.parametrize(
    "path", ["/backend-api", "/backend-api/", "/backend-api/codex", "/backend-api/codex/responses"]
)
async def test_the_address_of_a_subscription_may_be_written_in_several_ways(path):
    asked = await ask(OK, **{**CODEX, "path": path}, headers=ACCOUNT)
    assert asked.requests[0].line == "POST /backend-api/codex/responses HTTP/1.1"
