"""Google Cloud's Application Default Credentials: files that others have written become access tokens."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import msgspec
import pytest

from cantle_ai.auth.ambient import AMBIENT
from cantle_ai.auth.google_cloud import AccessToken, GoogleCloudTokens
from cantle_ai.errors import ConfigurationError, ProviderError
from cantle_ai.transport.port import HttpRequest, HttpResponse
from cantle_ai.transport.urllib3_thread import Urllib3Transport
from packages.ai.tests.http_peer import Link, Peer, Request
from tests.support.extras import needs

with_google_auth = needs("vertex")

USER = {
    "type": "authorized_user",
    "client_id": "id-1",
    "client_secret": "client-secret",
    "refresh_token": "refresh-secret",
    "quota_project_id": "quota-1",
}


class Rerouted:
    """The real transport, but that the address of Google's token server leads to a peer."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._inner = Urllib3Transport(environ={})
        self.addresses: list[str] = []

    async def send(self, request: HttpRequest, *, signal: Any = None) -> HttpResponse:
        self.addresses.append(request.url)
        url = request.url.replace("https://oauth2.googleapis.com", self._url)
        return await self._inner.send(msgspec.structs.replace(request, url=url), signal=signal)

    async def aclose(self) -> None:
        await self._inner.aclose()


class TokenServer:
    """Gives `ya29.0`, `ya29.1` … and remembers who asked."""

    def __init__(self, *, seconds: int = 3600) -> None:
        self.seconds = seconds
        self.asked: list[Request] = []
        self.open = threading.Event()
        self.open.set()
        self.waiting = threading.Event()

    def __call__(self, link: Link) -> None:
        self.asked.append(link.request())
        self.waiting.set()
        assert self.open.wait(10)
        number = len(self.asked) - 1
        answer = {"access_token": f"ya29.{number}", "expires_in": self.seconds, "token_type": "Bearer"}
        body = json.dumps(answer).encode()
        link.head("content-type: application/json", f"content-length: {len(body)}")
        link.send(body)


def written(folder: Path, content: object, name: str = "key.json") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def environ(path: Path | None = None, **more: str) -> dict[str, str]:
    named = {} if path is None else {"GOOGLE_APPLICATION_CREDENTIALS": str(path)}
    return {"HOME": "/nowhere", "APPDATA": "/nowhere", **named, **more}


@with_google_auth
@pytest.mark.fault("B24")
async def test_a_user_of_gcloud_gets_a_token_with_the_project_that_is_charged(tmp_path):
    server = TokenServer()
    path = written(tmp_path, USER)
    with Peer(server) as peer:
        transport = Rerouted(peer.url)
        token = await GoogleCloudTokens().token(environ(path), transport)
        await transport.aclose()
    assert token == AccessToken(value="ya29.0", quota_project="quota-1")
    assert transport.addresses == ["https://oauth2.googleapis.com/token"]
    form = parse_qs(server.asked[0].body.decode())
    assert (form["grant_type"], form["refresh_token"]) == (["refresh_token"], ["refresh-secret"])


@with_google_auth
@pytest.mark.parametrize("place", ["CLOUDSDK_CONFIG", "HOME"])
async def test_what_gcloud_has_left_is_found(tmp_path, place):
    if place == "HOME" and sys.platform == "win32":
        pytest.skip("gcloud keeps it elsewhere there")
    folder = tmp_path if place == "CLOUDSDK_CONFIG" else tmp_path / ".config" / "gcloud"
    written(folder, USER, "application_default_credentials.json")
    with Peer(TokenServer()) as peer:
        transport = Rerouted(peer.url)
        token = await GoogleCloudTokens().token(environ(None, **{place: str(tmp_path)}), transport)
        await transport.aclose()
    assert token.value == "ya29.0"


def service_account(url: str) -> dict[str, str]:
    from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    key = generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    return {
        "type": "service_account",
        "project_id": "proj-of-the-account",
        "private_key_id": "k",
        "private_key": pem,
        "client_email": "me@proj.iam.gserviceaccount.com",
        "token_uri": f"{url}/token",
    }


@with_google_auth
async def test_a_service_account_signs_for_its_token_and_names_its_project(tmp_path):
    server = TokenServer()
    with Peer(server) as peer:
        path = written(tmp_path, service_account(peer.url))
        transport = Urllib3Transport(environ={})
        token = await GoogleCloudTokens().token(environ(path), transport)
        await transport.aclose()
    assert (token.value, token.project, token.quota_project) == ("ya29.0", "proj-of-the-account", None)
    form = parse_qs(server.asked[0].body.decode())
    assert form["grant_type"] == ["urn:ietf:params:oauth:grant-type:jwt-bearer"]
    assert form["assertion"][0].count(".") == 2


@with_google_auth
async def test_federation_exchanges_the_token_of_another_platform(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "requests", None)  # the extra does not bring it
    server = TokenServer()
    with Peer(server) as peer:
        subject = written(tmp_path, "token-of-the-platform", "subject")
        path = written(
            tmp_path,
            {
                "type": "external_account",
                "audience": "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/q",
                "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
                "token_url": "https://oauth2.googleapis.com/v1/token",
                "credential_source": {"file": str(subject)},
            },
        )
        transport = Rerouted(peer.url)
        token = await GoogleCloudTokens().token(environ(path), transport)
        await transport.aclose()
    assert token.value == "ya29.0"
    form = parse_qs(server.asked[0].body.decode())
    assert form["subject_token"] == ["token-of-the-platform"]
    assert form["scope"] == ["https://www.googleapis.com/auth/cloud-platform"]


@with_google_auth
async def test_a_token_is_kept_and_eight_at_once_make_one_request(tmp_path):
    server = TokenServer()
    path = written(tmp_path, USER)
    with Peer(server) as peer:
        transport = Rerouted(peer.url)
        tokens = GoogleCloudTokens()
        server.open.clear()
        waiting = [asyncio.create_task(tokens.token(environ(path), transport)) for _ in range(8)]
        await asyncio.to_thread(server.waiting.wait, 10)
        server.open.set()
        got = await asyncio.gather(*waiting)
        got.append(await tokens.token(environ(path), transport))
        await transport.aclose()
    assert {token.value for token in got} == {"ya29.0"}
    assert len(server.asked) == 1


@with_google_auth
async def test_the_event_loop_runs_while_a_token_is_fetched(tmp_path):
    server = TokenServer()
    path = written(tmp_path, USER)
    with Peer(server) as peer:
        transport = Rerouted(peer.url)
        server.open.clear()
        task = asyncio.create_task(GoogleCloudTokens().token(environ(path), transport))
        await asyncio.to_thread(server.waiting.wait, 10)
        turns = 0
        while turns < 1000:  # were the loop blocked, it would not come to this, nor to the next line
            await asyncio.sleep(0)
            turns += 1
        assert not task.done()
        server.open.set()
        assert (await task).value == "ya29.0"
        await transport.aclose()


@with_google_auth
async def test_a_short_token_is_renewed_and_a_refused_one_forgotten(tmp_path):
    path = written(tmp_path, USER)
    for seconds, forgets, requests in ((60, False, 2), (3600, True, 2), (3600, False, 1)):
        server = TokenServer(seconds=seconds)
        with Peer(server) as peer:
            transport = Rerouted(peer.url)
            tokens = GoogleCloudTokens()
            first = await tokens.token(environ(path), transport)
            if forgets:
                tokens.forget(environ(path), first)
            await tokens.token(environ(path), transport)
            await transport.aclose()
        assert len(server.asked) == requests


@with_google_auth
async def test_a_token_is_not_lost_when_its_predecessor_is_refused_to_several(tmp_path):
    server = TokenServer()
    path = written(tmp_path, USER)
    with Peer(server) as peer:
        transport = Rerouted(peer.url)
        tokens = GoogleCloudTokens()
        old = await tokens.token(environ(path), transport)

        async def refused():
            tokens.forget(environ(path), old)
            return await tokens.token(environ(path), transport)

        got = [refused() for _ in range(8)]
        assert {token.value for token in await asyncio.gather(*got)} == {"ya29.1"}
        tokens.forget(environ(path), old)
        assert (await tokens.token(environ(path), transport)).value == "ya29.1"
        await transport.aclose()
    assert len(server.asked) == 2


@with_google_auth
async def test_who_gives_up_leaves_the_token_to_the_others(tmp_path):
    server = TokenServer()
    path = written(tmp_path, USER)
    with Peer(server) as peer:
        transport = Rerouted(peer.url)
        tokens = GoogleCloudTokens()
        server.open.clear()
        tasks = [asyncio.create_task(tokens.token(environ(path), transport)) for _ in range(8)]
        await asyncio.to_thread(server.waiting.wait, 10)
        tasks[0].cancel()
        server.open.set()
        got = await asyncio.gather(*tasks, return_exceptions=True)
        await transport.aclose()
    assert isinstance(got[0], asyncio.CancelledError)
    assert {token.value for token in got[1:] if isinstance(token, AccessToken)} == {"ya29.1"}, got
    assert len(got[1:]) == 7


@with_google_auth
async def test_a_file_that_has_changed_is_read_again(tmp_path):
    server = TokenServer()
    with Peer(server) as peer:
        transport = Rerouted(peer.url)
        tokens = GoogleCloudTokens()
        for secret in ("one", "another"):
            path = written(tmp_path, {**USER, "refresh_token": secret})
            await tokens.token(environ(path), transport)
        await transport.aclose()
    assert [parse_qs(each.body.decode())["refresh_token"] for each in server.asked] == [["one"], ["another"]]


@with_google_auth
async def test_giving_up_lets_go_of_the_request(tmp_path):
    gone = threading.Event()
    waiting = threading.Event()

    def serve(link: Link) -> None:
        link.request()
        waiting.set()
        link.wait_gone()
        gone.set()

    path = written(tmp_path, USER)
    with Peer(serve) as peer:
        transport = Rerouted(peer.url)
        task = asyncio.create_task(GoogleCloudTokens().token(environ(path), transport))
        await asyncio.to_thread(waiting.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(gone.wait, 10)
        await transport.aclose()


@with_google_auth
async def test_a_refused_login_says_what_to_do_and_shows_no_secret(tmp_path):
    body = b'{"error": "invalid_grant", "error_description": "Token has been expired or revoked."}'
    path = written(tmp_path, USER)
    with Peer(lambda link: link.answer(body, "content-type: application/json", status="400 Bad")) as peer:
        transport = Rerouted(peer.url)
        with pytest.raises(ConfigurationError) as caught:
            await GoogleCloudTokens().token(environ(path), transport)
        await transport.aclose()
    text = str(caught.value)
    assert "expired or revoked" in text and "gcloud auth application-default login" in text
    assert str(path) in text
    assert "secret" not in text and "secret" not in repr(caught.value)


@with_google_auth
async def test_a_token_server_that_is_not_heard_is_a_matter_of_the_network(tmp_path):
    path = written(tmp_path, USER)
    with Peer(lambda link: link.reset()) as peer:
        transport = Rerouted(peer.url)
        with pytest.raises(ProviderError) as caught:
            await GoogleCloudTokens().token(environ(path), transport)
        await transport.aclose()
    assert caught.value.kind == "network"


@with_google_auth
@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "cannot be read"),
        ("[]", "cannot be read"),
        ({"type": "authorized_user"}, "incomplete"),
        ({"type": "service_account", "private_key": "x"}, "incomplete"),
        ({"type": "unheard-of"}, "type"),
        ({}, "type"),
    ],
)
async def test_a_file_that_is_no_credential_is_named(tmp_path, content, said):
    path = written(tmp_path, content)
    transport = Urllib3Transport(environ={})
    with pytest.raises(ConfigurationError, match=said) as caught:
        await GoogleCloudTokens().token(environ(path), transport)
    assert str(path) in str(caught.value)
    await transport.aclose()


async def test_a_file_that_is_not_there_is_named(tmp_path):
    transport = Urllib3Transport(environ={})
    with pytest.raises(ConfigurationError, match="GOOGLE_APPLICATION_CREDENTIALS"):
        await GoogleCloudTokens().token(environ(tmp_path / "gone.json"), transport)


def test_without_the_library_the_message_says_what_to_install(tmp_path):
    """In a process of its own, in which it cannot be imported whether it is there or not."""
    path = written(tmp_path, USER)
    program = f"""
import asyncio, sys
sys.modules["google"] = sys.modules["google.auth"] = None
from cantle_ai.auth.google_cloud import GoogleCloudTokens
from cantle_ai.transport.urllib3_thread import Urllib3Transport
environ = {{"GOOGLE_APPLICATION_CREDENTIALS": {str(path)!r}}}
try:
    asyncio.run(GoogleCloudTokens().token(environ, Urllib3Transport(environ={{}})))
except Exception as error:
    print(type(error).__name__, error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, encoding="utf-8")
    assert done.stdout.startswith("ConfigurationError"), done.stderr
    assert "pip install 'cantle[vertex]'" in done.stdout


@pytest.mark.parametrize(
    ("variables", "source"),
    [
        ({"GCE_METADATA_HOST": "127.0.0.1:1"}, "the metadata server"),
        ({"K_SERVICE": "on Cloud Run"}, "the metadata server"),
        ({"GOOGLE_APPLICATION_CREDENTIALS": __file__}, "GOOGLE_APPLICATION_CREDENTIALS"),
        ({"GOOGLE_APPLICATION_CREDENTIALS": "/nowhere/key.json"}, None),
        ({"GOOGLE_CLOUD_LOCATION": "", "K_SERVICE": "x"}, None),
    ],
)
def test_credentials_are_noticed_without_a_look_at_the_network(variables, source):
    place = {"GOOGLE_CLOUD_PROJECT": "p", "GOOGLE_CLOUD_LOCATION": "global"}
    assert AMBIENT["google-cloud"].source(environ(None, **{**place, **variables})) == source


def test_a_token_does_not_show_itself():
    assert "ya29" not in repr(AccessToken(value="ya29.secret", project="p"))
