"""Vertex AI: the paths, the hosts, and who may ask."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import msgspec
import pytest

from cantle_ai.abort import AbortController
from cantle_ai.apis.google_vertex import GoogleVertex
from cantle_ai.auth.request_auth import RequestAuth
from cantle_ai.context import Context
from cantle_ai.messages import UserMessage
from cantle_ai.model import Model, Provider, StreamOptions
from cantle_ai.models import Models
from cantle_ai.providers import BUILTIN_PROVIDERS, WIRE_APIS
from cantle_ai.testing.server.server import StrictServer
from cantle_ai.transport.port import HttpRequest, HttpResponse
from packages.ai.tests.apis.asking import HELLO, Asked
from packages.ai.tests.apis.google import PRO, ask, chunk, model
from packages.ai.tests.http_peer import Link, Peer
from tests.support.extras import needs

OK = [chunk("ok", finish="STOP")]
PLACE = {"GOOGLE_CLOUD_PROJECT": "proj-1", "GOOGLE_CLOUD_LOCATION": "europe-west4"}


async def asked_of(serve: Any, auth: RequestAuth, *, api: GoogleVertex | None = None) -> Asked:
    return await ask(serve, auth=auth, api=api or GoogleVertex(), root="", provider="google-vertex")


class Addresses:
    """A transport that remembers where requests went, and answers all of them."""

    def __init__(self) -> None:
        self.requests: list[HttpRequest] = []

    async def send(self, request: HttpRequest, *, signal: Any = None) -> HttpResponse:
        self.requests.append(request)

        async def body() -> Any:
            yield OK[0]

        return HttpResponse(200, {"content-type": "text/event-stream"}, body())

    async def aclose(self) -> None:
        pass


async def sent(auth: RequestAuth, options: StreamOptions | None = None, **fields: Any) -> HttpRequest:
    from cantle_ai.builder import AnswerBuilder
    from cantle_ai.stream import AssistantMessageStream

    row = model(**{"base_url": "", "provider": "google-vertex", "api": "google-vertex", **fields})
    transport = Addresses()
    made = GoogleVertex()(row, HELLO, options or StreamOptions(), transport=transport, auth=auth)
    message = await AssistantMessageStream(made, AnswerBuilder.of(row)).result()
    assert message.text == "ok", message.error_message
    return transport.requests[-1]


TOKEN = RequestAuth(api_key="ya29.token", kind="bearer", environ=PLACE)


@pytest.mark.parity("google.vertex-paths")
async def test_a_key_asks_outside_of_any_project():
    request = await sent(RequestAuth(api_key="AQ.key", environ=PLACE))
    assert request.url == (
        f"https://aiplatform.googleapis.com/v1/publishers/google/models/{PRO}:streamGenerateContent?alt=sse"
    )
    assert request.headers["x-goog-api-key"] == "AQ.key"
    assert "authorization" not in request.headers


@pytest.mark.parity("google.vertex-paths")
async def test_a_token_asks_within_a_project_and_a_location():
    request = await sent(TOKEN)
    assert request.url == (
        "https://europe-west4-aiplatform.googleapis.com/v1/projects/proj-1/locations/europe-west4"
        f"/publishers/google/models/{PRO}:streamGenerateContent?alt=sse"
    )
    assert request.headers["authorization"] == "Bearer ya29.token"
    assert "x-goog-api-key" not in request.headers


@pytest.mark.parametrize(
    ("location", "host"),
    [
        ("global", "aiplatform.googleapis.com"),
        ("us-central1", "us-central1-aiplatform.googleapis.com"),
        ("eu", "aiplatform.eu.rep.googleapis.com"),
        ("us", "aiplatform.us.rep.googleapis.com"),
    ],
)
async def test_the_host_follows_from_the_location(location, host):
    auth = msgspec.structs.replace(TOKEN, environ={**PLACE, "GOOGLE_CLOUD_LOCATION": location})
    assert (await sent(auth)).url.startswith(f"https://{host}/v1/projects/proj-1/locations/{location}/")


@pytest.mark.parametrize(
    ("base_url", "root"),
    [
        ("https://proxy.example/google/", "https://proxy.example/google/v1"),
        ("https://proxy.example/v1beta1", "https://proxy.example/v1beta1"),
    ],
)
async def test_a_base_url_of_one_s_own_is_used_as_it_is(base_url, root):
    request = await sent(TOKEN, base_url=base_url)
    assert request.url.startswith(f"{root}/projects/proj-1/")


@pytest.mark.parametrize(
    ("id", "path"),
    [
        ("gemini-3-pro", "publishers/google/models/gemini-3-pro"),
        ("meta/llama", "publishers/meta/models/llama"),
        ("publishers/google/models/x", "publishers/google/models/x"),
    ],
)
async def test_the_path_of_a_model(id, path):
    assert f"/{path}:stream" in (await sent(TOKEN, id=id)).url


async def test_gcloud_project_is_the_other_name_of_the_project():
    auth = msgspec.structs.replace(
        TOKEN, environ={"GCLOUD_PROJECT": "other", "GOOGLE_CLOUD_LOCATION": "global"}
    )
    assert "/projects/other/locations/global/" in (await sent(auth)).url


@pytest.mark.parametrize("missing", list(PLACE))
async def test_a_missing_place_is_named(missing):
    environ = {name: value for name, value in PLACE.items() if name != missing}
    asked = await asked_of(OK, RequestAuth(api_key="t", kind="bearer", environ=environ))
    assert f"set {missing}" in str(asked.message.error_message)
    assert not asked.requests


async def test_a_gateway_that_brings_its_own_authorization_needs_no_credentials():
    auth = RequestAuth(headers={"Authorization": "Basic gateway"}, environ=PLACE)
    assert (await sent(auth)).headers["authorization"] == "Basic gateway"


# --- the metadata server


def metadata(link: Link, tokens: list[str], *, flavor: str = "Google", seconds: int = 3600) -> None:
    line = link.request().line
    if "project-id" in line:
        link.head(f"metadata-flavor: {flavor}", "content-length: 9")
        link.send(b"machine-1")
        return
    tokens.append(f"ya29.secret-{len(tokens)}")
    body = json.dumps({"access_token": tokens[-1], "expires_in": seconds, "token_type": "Bearer"}).encode()
    link.head(f"metadata-flavor: {flavor}", f"content-length: {len(body)}")
    link.send(body)


def machine(peer: Peer, **environ: str) -> RequestAuth:
    """On a machine of Google's, without files of credentials."""
    host = peer.url.removeprefix("http://")
    home = {"HOME": "/nowhere", "APPDATA": "/nowhere", "CLOUDSDK_CONFIG": "/nowhere"}
    return RequestAuth(environ={**home, "GCE_METADATA_HOST": host, **environ})


async def test_the_metadata_server_gives_token_and_project():
    tokens: list[str] = []
    with Peer(lambda link: metadata(link, tokens)) as peer:
        api = GoogleVertex()
        auth = machine(peer, GOOGLE_CLOUD_LOCATION="global")
        for _ in range(2):
            asked = await asked_of(OK, auth, api=api)
            assert asked.message.text == "ok", asked.message.error_message
        assert "/projects/machine-1/locations/global/" in asked.requests[0].line
        assert asked.requests[0].headers["authorization"] == "Bearer ya29.secret-0"
    assert len(tokens) == 1
    assert all(request.headers["metadata-flavor"] == "Google" for request in peer.requests)


async def test_a_token_that_is_about_to_end_is_not_used_again():
    tokens: list[str] = []
    with Peer(lambda link: metadata(link, tokens, seconds=60)) as peer:
        api = GoogleVertex()
        for _ in range(2):
            asked = await asked_of(OK, machine(peer, **PLACE), api=api)
            assert asked.message.text == "ok"
    assert len(tokens) == 2


REFUSED = b'{"error": {"code": 401, "message": "no ya29.secret-%d", "status": "UNAUTHENTICATED"}}'


async def test_a_token_that_was_refused_is_renewed_and_the_request_made_again():
    tokens: list[str] = []

    def serve(link: Link) -> None:
        if len(tokens) == 1:
            link.answer(REFUSED % 0, status="401 Unauthorized")
        else:
            link.events(*OK)

    with Peer(lambda link: metadata(link, tokens)) as peer:
        asked = await asked_of(serve, machine(peer, **PLACE))
    assert asked.message.text == "ok", asked.message.error_message
    sent = [request.headers["authorization"] for request in asked.requests]
    assert sent == ["Bearer ya29.secret-0", "Bearer ya29.secret-1"]


async def test_tokens_that_are_all_refused_are_asked_for_twice_and_not_used_again():
    tokens: list[str] = []
    with Peer(lambda link: metadata(link, tokens)) as peer:
        api = GoogleVertex()

        def serve(link: Link) -> None:
            link.answer(REFUSED % (len(tokens) - 1), status="401 Unauthorized")

        asked = await asked_of(serve, machine(peer, **PLACE), api=api)
        assert (asked.details["status"], len(asked.requests)) == (401, 2)
        assert "ya29" not in str(asked.message.to_json())
        asked = await asked_of(OK, machine(peer, **PLACE), api=api)
        assert asked.requests[0].headers["authorization"] == "Bearer ya29.secret-2"


async def test_an_error_inside_an_answer_is_never_asked_again():
    tokens: list[str] = []
    with Peer(lambda link: metadata(link, tokens)) as peer:
        asked = await asked_of([chunk("par"), b"data: " + REFUSED % 0 + b"\n\n"], machine(peer, **PLACE))
    assert (asked.message.text, asked.message.stop_reason, len(asked.requests)) == ("par", "error", 1)


async def test_a_refused_token_that_was_given_is_not_sent_twice():
    asked = await asked_of(lambda link: link.answer(REFUSED % 0, status="401 Unauthorized"), TOKEN)
    assert (asked.details["status"], len(asked.requests)) == (401, 1)


async def test_something_else_that_answers_there_is_no_metadata_server():
    with Peer(lambda link: metadata(link, [], flavor="Other")) as peer:
        asked = await asked_of(OK, machine(peer, **PLACE))
    assert "There are no Google Cloud credentials" in str(asked.message.error_message)
    assert "gcloud auth application-default login" in str(asked.message.error_message)


async def test_without_any_credentials_the_message_says_what_to_do():
    with Peer(lambda link: link.reset()) as peer:
        asked = await asked_of(OK, machine(peer, **PLACE))
    assert "GOOGLE_CLOUD_API_KEY" in str(asked.message.error_message)


async def test_a_machine_without_a_service_account_is_told_so():
    def serve(link: Link) -> None:
        link.answer(b"", "metadata-flavor: Google", status="404 Not Found")

    with Peer(serve) as peer:
        asked = await asked_of(OK, machine(peer, **PLACE))
    assert "no service account" in str(asked.message.error_message)


async def test_an_abort_while_the_token_is_fetched():
    controller = AbortController()
    waiting = threading.Event()

    def serve(link: Link) -> None:
        link.request()
        waiting.set()
        link.wait_gone()

    with Peer(serve) as peer:
        options = StreamOptions(signal=controller.signal)
        api = GoogleVertex()
        task = asyncio.create_task(
            ask(OK, auth=machine(peer, **PLACE), api=api, root="", options=options, provider="google-vertex")
        )
        await asyncio.to_thread(waiting.wait, 10)
        controller.abort()
        asked = await task
    assert asked.message.stop_reason == "aborted"
    assert not asked.requests


# --- through the runtime, on a server that checks


@needs("vertex")
async def test_the_runtime_asks_with_what_the_environment_supplies(tmp_path):
    from packages.ai.tests.auth.test_google_cloud import TokenServer, service_account, written

    tokens = TokenServer()
    with Peer(tokens) as peer:
        async with StrictServer(["One.", "Two."]) as server:
            key = written(tmp_path, service_account(peer.url))
            models = Models(environ={**PLACE, "GOOGLE_APPLICATION_CREDENTIALS": str(key)})
            base_url = server.base_url_for("google-vertex")
            row = Provider(id="v", name="V", api="google-vertex", base_url=base_url, ambient="google-cloud")
            asked = Model(id=PRO, provider="v", api="google-vertex", base_url=base_url)
            models.add_provider(row, [asked])
            first = await models.complete(asked, HELLO)
            history = [*HELLO.messages, first, UserMessage("more", timestamp=1)]
            second = await models.complete(asked, Context("Be brief.", history))
            assert (first.text, second.text) == ("One.", "Two."), first.error_message
            server.assert_clean()
            sent = server.requests[-1].call
            await models.aclose()
    assert sent.path.startswith("/google-vertex/v1/projects/proj-1/locations/europe-west4/")
    assert sent.headers["authorization"] == "Bearer ya29.0"
    assert len(tokens.asked) == 1


def test_the_built_in_row_leaves_the_address_to_the_location():
    row = next(row for row in BUILTIN_PROVIDERS if row.id == "google-vertex")
    assert (row.base_url, row.ambient) == ("", "google-cloud")
    assert isinstance(WIRE_APIS["google-vertex"](), GoogleVertex)
