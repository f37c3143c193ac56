"""A token that its provider takes back before its time: renewed once, the request made anew once, no more."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from cantle_ai.auth.credentials import Credentials
from cantle_ai.context import Context
from cantle_ai.messages import AssistantMessage, UserMessage
from cantle_ai.model import Provider, StreamOptions
from cantle_ai.model_entries import ModelEntry
from cantle_ai.models import Models
from cantle_ai.transport.port import HttpRequest
from packages.ai.tests.auth.logins import entry, login_at, stored
from tests.support.authorisation import Asked, AuthorisationServer

PATH = "/v1/chat/completions"
REFUSED = 401, {"error": {"message": "token has been revoked", "type": "authentication_error"}}


def events(*data: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    body = "".join(f"data: {json.dumps(each)}\n\n" for each in data) + "data: [DONE]\n\n"
    return 200, {"raw": body.encode(), "type": "text/event-stream"}


ANSWERED = events({"choices": [{"index": 0, "delta": {"content": "Hello."}, "finish_reason": "stop"}]})


class Endpoint:
    """The provider: takes every token but those in `revoked`."""

    def __init__(self) -> None:
        self.revoked: set[str] = set()
        self.asked: list[str] = []
        self.takes_none = False

    def __call__(self, asked: Asked) -> tuple[int, dict[str, Any]] | None:
        if asked.path != PATH:
            return None
        token = asked.headers["authorization"].removeprefix("Bearer ")
        self.asked.append(token)
        return REFUSED if self.takes_none or token in self.revoked else ANSWERED


@pytest.fixture
def endpoint() -> Endpoint:
    return Endpoint()


@pytest.fixture
def server(endpoint: Endpoint) -> Iterator[AuthorisationServer]:
    with AuthorisationServer(other=endpoint) as running:
        yield running


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "auth.json"


def signed_in(path: Path, server: AuthorisationServer, **more: Any) -> Credentials:
    """A store with a login that is good for another hour."""
    tokens = server.tokens()
    expires = round((time.time() + 3600) * 1000)
    return stored(
        path,
        p={
            "type": "oauth",
            "access": tokens["access_token"],
            "refresh": tokens["refresh_token"],
            "expires": expires,
            **more,
        },
    )


@asynccontextmanager
async def models_of(
    server: AuthorisationServer, credentials: Credentials | None, **options: Any
) -> AsyncIterator[Models]:
    models = Models(
        providers=(), credentials=credentials, find_login=lambda _: login_at(server.url), **options
    )
    provider = Provider(
        id="p",
        name="P",
        base_url=f"{server.url}/v1",
        api="openai-completions",
        login="test",
        key_variables=("P_KEY",),
    )
    models.add_provider(provider, [ModelEntry(id="m", context_window=10_000)])
    try:
        yield models
    finally:
        await models.aclose()


async def asked(models: Models, **options: Any) -> AssistantMessage:
    model = models.find("p", "m")
    assert model is not None
    return await models.complete(model, Context(messages=[UserMessage("Hi", 1)]), StreamOptions(**options))


async def test_a_revoked_token_is_renewed_and_the_request_made_anew(
    path: Path, server: AuthorisationServer, endpoint: Endpoint
) -> None:
    seen: list[HttpRequest] = []

    def look(request: HttpRequest) -> None:
        seen.append(request)

    store = signed_in(path, server)
    old = entry(path)["access"]
    endpoint.revoked.add(old)
    async with models_of(server, store) as models:
        message = await asked(models, on_request=look)
        assert (message.stop_reason, message.text) == ("stop", "Hello.")
        assert endpoint.asked == [old, entry(path)["access"]] and len(seen) == 2
        await asked(models)
    assert server.renewals == 1 and len(endpoint.asked) == 3


async def test_an_endpoint_that_takes_no_token_is_asked_twice_and_no_login_renewed_again(
    path: Path, server: AuthorisationServer, endpoint: Endpoint
) -> None:
    endpoint.takes_none = True
    async with models_of(server, signed_in(path, server)) as models:
        for number in (2, 3, 4):
            message = await asked(models)
            assert message.stop_reason == "error"
            assert message.error_message == "401 token has been revoked"
            assert (len(endpoint.asked), server.renewals) == (number, 1)
        endpoint.takes_none = False
        assert (await asked(models)).stop_reason == "stop"


async def test_requests_that_are_refused_at_once_share_a_renewal(
    path: Path, server: AuthorisationServer, endpoint: Endpoint
) -> None:
    store = signed_in(path, server)
    endpoint.revoked.add(entry(path)["access"])
    async with models_of(server, store) as models, models_of(server, store) as others:
        messages = await asyncio.gather(*(asked(each) for each in [models, others] * 4))
    assert {message.stop_reason for message in messages} == {"stop"}
    assert (server.renewals, server.reused) == (1, 0)


async def test_a_token_that_somebody_else_has_renewed_is_taken(
    path: Path, server: AuthorisationServer, endpoint: Endpoint
) -> None:
    """The other program's renewal took the old token back while a request with it was on its way."""
    store = signed_in(path, server)
    old = entry(path)["access"]
    endpoint.revoked.add(old)

    def meanwhile(_: HttpRequest) -> None:
        if entry(path)["access"] == old:
            signed_in(path, server)

    async with models_of(server, store) as models:
        assert (await asked(models, on_request=meanwhile)).stop_reason == "stop"
    assert server.renewals == 0 and endpoint.asked == [old, entry(path)["access"]]


async def test_a_login_that_cannot_be_renewed_any_more_says_so(
    path: Path, server: AuthorisationServer, endpoint: Endpoint
) -> None:
    store = signed_in(path, server)
    endpoint.takes_none = True
    server.refused = (400, {"error": "invalid_grant"})
    async with models_of(server, store) as models:
        message = await asked(models)
    assert message.error_message is not None
    assert message.error_message.endswith("(invalid_grant). Sign in again: `cantle auth login p`")
    assert not any(token in message.error_message for token in server.issued)


@pytest.mark.parametrize("credential", ["key", "environment", "option", "no refresh token"])
async def test_what_cannot_be_renewed_is_refused_once(
    path: Path, server: AuthorisationServer, endpoint: Endpoint, credential: str
) -> None:
    endpoint.takes_none = True
    store: Credentials | None = None
    if credential == "key":
        store = stored(path, p={"type": "api_key", "key": "sk-123456"})
    elif credential == "no refresh token":
        store = signed_in(path, server, refresh="")
    environ = {"P_KEY": "sk-123456"} if credential == "environment" else {}
    async with models_of(server, store, environ=environ) as models:
        message = await asked(models, api_key="sk-123456" if credential == "option" else None)
    assert message.error_message == "401 token has been revoked"
    assert (len(endpoint.asked), server.renewals) == (1, 0)


async def test_an_answer_that_has_begun_is_not_asked_for_again(
    path: Path, server: AuthorisationServer
) -> None:
    count = 0

    def cut(asked: Asked) -> tuple[int, dict[str, Any]] | None:
        nonlocal count
        count += asked.path == PATH
        word = {"choices": [{"index": 0, "delta": {"content": "Hel"}}]}
        return events(word, {"error": {"code": 401, "message": "gone"}})

    server.other = cut
    async with models_of(server, signed_in(path, server)) as models:
        message = await asked(models)
    assert message.stop_reason == "error" and message.text == "Hel"
    assert (count, server.renewals) == (1, 0)


async def test_a_refused_federated_token_is_exchanged_anew(tmp_path: Path) -> None:
    identity = tmp_path / "identity"
    identity.write_text("identity-1", encoding="utf-8")
    given: list[str] = []
    endpoint = Endpoint()
    endpoint.revoked.add("token-1")

    def other(asked: Asked) -> tuple[int, dict[str, Any]] | None:
        if "assertion" in asked.fields:
            given.append(f"token-{len(given) + 1}")
            return 200, {"access_token": given[-1], "expires_in": 600}
        return endpoint(asked)

    with AuthorisationServer(other=other) as server:
        environ = {
            "ANTHROPIC_FEDERATION_RULE_ID": "rule",
            "ANTHROPIC_ORGANIZATION_ID": "org",
            "ANTHROPIC_IDENTITY_TOKEN_FILE": str(identity),
            "ANTHROPIC_BASE_URL": server.url,
        }
        async with models_of(server, None, environ=environ) as models:
            models.add_provider(
                Provider(
                    id="p",
                    name="P",
                    base_url=f"{server.url}/v1",
                    api="openai-completions",
                    ambient="anthropic-federation",
                ),
                [ModelEntry(id="m", context_window=10_000)],
            )
            assert (await asked(models)).stop_reason == "stop"
            endpoint.takes_none = True
            assert (await asked(models)).stop_reason == "error"
    assert given == ["token-1", "token-2"] and endpoint.asked == ["token-1", "token-2", "token-2"]
