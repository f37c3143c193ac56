"""Each login as its vendor has it, against a stand-in for the vendor that is reached through a proxy."""

from __future__ import annotations

import json
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from cantle_ai.auth.credentials import OAuthCredential
from cantle_ai.auth.login import Login, LoginError, LoginMethod
from cantle_ai.auth.logins import LOGINS, find_login
from cantle_ai.auth.logins.github_copilot import CopilotLogin
from cantle_ai.auth.oauth.client import OAuthClient
from cantle_ai.providers import BUILTIN_PROVIDERS
from cantle_ai.transport.urllib3_thread import Urllib3Transport
from packages.ai.tests.auth.logins import Clock, Person
from tests.support.authorisation import Asked, AuthorisationServer, busy_port, can_stand_for_vendors

pytestmark = pytest.mark.skipif(not can_stand_for_vendors, reason="openssl makes the certificates")

HOSTS = (
    "platform.claude.com",
    "auth.openai.com",
    "openrouter.ai",
    "auth.kimi.com",
    "auth.meta.com",
    "api.meta.ai",
    "auth.x.ai",
    "github.com",
    "api.github.com",
    "company.ghe.com",
    "api.company.ghe.com",
)


@pytest.fixture(scope="module")
def vendors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AuthorisationServer]:
    with AuthorisationServer(vendor_names=HOSTS, folder=tmp_path_factory.mktemp("vendors")) as server:
        yield server


@pytest.fixture
def server(vendors: AuthorisationServer) -> AuthorisationServer:
    vendors.asked.clear()
    vendors.device_answers.clear()
    vendors.other = lambda asked: None
    return vendors


def login(name: str) -> Login:
    found = find_login(name)
    assert found is not None
    return found


async def sign_in(
    server: AuthorisationServer,
    name: str,
    method: LoginMethod,
    person: Person | None = None,
    options: Mapping[str, str] = {},
) -> OAuthCredential:
    transport = Urllib3Transport(environ=server.variables)
    clock = Clock()
    clock.now = time.time()
    client = OAuthClient(transport, clock=clock, sleep=clock.sleep)
    try:
        return await login(name).sign_in(method, person or Person(), client, options)
    finally:
        await transport.aclose()


async def renew(server: AuthorisationServer, name: str, credential: OAuthCredential) -> OAuthCredential:
    transport = Urllib3Transport(environ=server.variables)
    try:
        return await login(name).renew(credential, OAuthClient(transport))
    finally:
        await transport.aclose()


def page_of(person: Person) -> tuple[str, dict[str, str]]:
    parts = urlsplit(person.addresses[0])
    return f"{parts.scheme}://{parts.netloc}{parts.path}", dict(parse_qsl(parts.query))


def pasting(server: AuthorisationServer, **more: str) -> Person:
    """Somebody who signs in elsewhere and pastes where that ended."""
    person = Person()

    def show(url: str) -> None:
        person.addresses.append(url)
        ended = server.browse(url)
        person.pastes.append(ended + "".join(f"&{name}={value}" for name, value in more.items()))

    person.show_address = show  # type: ignore[method-assign]
    return person


def token_with(claims: Mapping[str, Any]) -> str:
    body = urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=").decode()
    return f"e30.{body}.sig"


def test_every_login_is_named_by_a_provider_and_every_named_one_exists() -> None:
    named = {row.login for row in BUILTIN_PROVIDERS if row.login}
    assert named == set(LOGINS)
    assert find_login("nobody") is None


@pytest.mark.fault("B24")
@pytest.mark.parity("auth.anthropic-login")
async def test_anthropic(server: AuthorisationServer) -> None:
    person = pasting(server)
    credential = await sign_in(server, "anthropic", "paste", person)
    address, query = page_of(person)
    assert address == "https://claude.ai/oauth/authorize"
    assert query["client_id"] == "9d1c250a-e61b-44d9-88ed-5944d1962f5e"
    assert query["code"] == "true"
    assert query["redirect_uri"] == "https://platform.claude.com/oauth/code/callback"
    assert "user:inference" in query["scope"].split()
    (asked,) = server.asked
    assert (asked.host, asked.path) == ("platform.claude.com", "/v1/oauth/token")
    assert asked.headers["content-type"] == "application/json"
    assert asked.fields["state"] == query["state"]
    renewed = await renew(server, "anthropic", credential)
    assert server.asked[1].fields == {
        "grant_type": "refresh_token",
        "client_id": query["client_id"],
        "refresh_token": credential.refresh,
    }
    auth = login("anthropic").authorise(renewed)
    assert (auth.api_key, auth.kind, auth.base_url) == (renewed.access, "oauth", None)


async def test_anthropic_by_browser_comes_back_to_its_registered_port(server: AuthorisationServer) -> None:
    person = Person(browse=server.browse)
    with busy_port(53692):
        person.browse = None
        person.pastes = ["nothing"]
        with pytest.raises(LoginError, match=r"no code in what was pasted|another attempt"):
            await sign_in(server, "anthropic", "browser", person)
    assert "53692" in person.told[0]


@pytest.mark.parity("auth.chatgpt-login")
async def test_openai(server: AuthorisationServer) -> None:
    person = pasting(server, client_id="issued-1")
    nonce: list[str] = []
    scope = "openid profile email offline_access resource.invoke chatgpt.tokens.use.direct"
    tokens = server.tokens

    def with_identity(**more: object) -> dict[str, Any]:
        nonce[:] = [page_of(person)[1]["nonce"]]
        return tokens(id_token=token_with({"nonce": nonce[0]}), scope=scope, **more)

    server.tokens = with_identity  # type: ignore[method-assign]
    try:
        credential = await sign_in(server, "openai", "paste", person)
        address, query = page_of(person)
        assert address == "https://auth.openai.com/api/accounts/authorize"
        assert query["client_id"] == "dynamic_agent_client"
        assert query["redirect_uri"] == "http://127.0.0.1:1455/auth/callback"
        assert query["resource"] == "https://api.openai.com/v1"
        assert query["ext_agent_host_id"].startswith("urn:uuid:")
        assert query["agent_name_hint"] == "cantle"
        assert credential.extra == {"clientId": "issued-1", "scopes": scope.split()}
        exchange = server.asked[0]
        assert (exchange.host, exchange.path) == ("auth.openai.com", "/api/accounts/oauth/token")
        assert exchange.fields["client_id"] == "issued-1"
        renewed = await renew(server, "openai", credential)
        assert renewed.extra == credential.extra
        assert server.asked[1].fields["client_id"] == "issued-1"
        assert server.asked[1].fields["resource"] == "https://api.openai.com/v1"
        scope = "openid"
        with pytest.raises(LoginError, match="did not let this login use the API"):
            await sign_in(server, "openai", "paste", (person := pasting(server, client_id="i")))
        with pytest.raises(LoginError, match="without a client"):
            await sign_in(server, "openai", "paste", (person := pasting(server)))
    finally:
        server.tokens = tokens  # type: ignore[method-assign]
    with pytest.raises(LoginError, match="belongs to another attempt"):
        await sign_in(server, "openai", "paste", pasting(server, client_id="i"))


@pytest.mark.parity("auth.codex-login")
@pytest.mark.parametrize("method", ["paste", "device"])
async def test_openai_codex(server: AuthorisationServer, method: LoginMethod) -> None:
    tokens = server.tokens
    access = token_with({"https://api.openai.com/auth": {"chatgpt_account_id": "acc-1"}})
    asked_for: list[Asked] = []

    def device(asked: Asked) -> tuple[int, dict[str, Any]] | None:
        asked_for.append(asked)
        return 200, {"authorization_code": "granted", "code_verifier": "cv-from-the-server"}

    server.tokens = lambda **more: {**tokens(**more), "access_token": access}  # type: ignore[method-assign]
    answer = server.answer

    def answered(asked: Asked) -> tuple[int, dict[str, Any]]:
        if asked.path == "/api/accounts/deviceauth/usercode":
            return 200, {"device_auth_id": "da", "user_code": "CODE-1", "interval": "5"}
        if asked.path == "/api/accounts/deviceauth/token":
            asked_for.append(asked)
            return (
                (403, {}) if len(asked_for) < 3 else (200, {"authorization_code": "g", "code_verifier": "v"})
            )
        if asked.fields.get("code") == "g":
            asked_for.append(asked)
            return 200, server.tokens()
        return answer(asked)

    server.answer = answered  # type: ignore[method-assign]
    try:
        person = pasting(server)
        credential = await sign_in(server, "openai-codex", method, person)
    finally:
        del server.answer, server.tokens
    assert credential.extra == {"accountId": "acc-1"}
    auth = login("openai-codex").authorise(credential)
    assert auth.headers == {"chatgpt-account-id": "acc-1"} and auth.api_key == access
    if method == "paste":
        address, query = page_of(person)
        assert address == "https://auth.openai.com/oauth/authorize"
        assert query["client_id"] == "app_EMoamEEZ73f0CkXaXp7hrann"
        assert query["redirect_uri"] == "http://localhost:1455/auth/callback"
    else:
        assert person.codes == [("CODE-1", "https://auth.openai.com/codex/device")]
        assert asked_for[-1].fields["redirect_uri"] == "https://auth.openai.com/deviceauth/callback"
    with pytest.raises(LoginError, match="names no account"):
        await sign_in(server, "openai-codex", "paste", pasting(server))


@pytest.mark.parity("auth.copilot-login")
@pytest.mark.parametrize("host", ["", "https://company.ghe.com/some/page"])
async def test_github_copilot(server: AuthorisationServer, host: str) -> None:
    ends = round(time.time()) + 1800
    short = "tid=1;exp=2;proxy-ep=proxy.business.githubcopilot.com;st=dotcom"

    def other(asked: Asked) -> tuple[int, dict[str, Any]] | None:
        return (200, {"token": short, "expires_at": ends}) if asked.method == "GET" else None

    server.other = other
    person = Person()
    credential = await sign_in(server, "github-copilot", "device", person, {"host": host} if host else {})
    began, granted, exchanged = server.asked
    web = "company.ghe.com" if host else "github.com"
    assert (began.host, began.path) == (web, "/login/device/code")
    assert began.fields == {"client_id": "Iv1.b507a08c87ecfe98", "scope": "read:user"}
    assert (granted.host, granted.path) == (web, "/login/oauth/access_token")
    assert (exchanged.host, exchanged.path) == (f"api.{web}", "/copilot_internal/v2/token")
    assert exchanged.headers["authorization"] == f"Bearer {credential.refresh}"
    assert exchanged.headers["copilot-integration-id"] == "vscode-chat"
    assert credential.access == short and credential.expires == (ends - 300) * 1000
    assert credential.extra == ({"enterpriseUrl": web} if host else {})
    assert (await renew(server, "github-copilot", credential)).refresh == credential.refresh
    auth = login("github-copilot").authorise(credential)
    assert auth.base_url == "https://api.business.githubcopilot.com"


@pytest.mark.parametrize(
    ("access", "extra", "base_url"),
    [
        ("tid=1", {}, "https://api.individual.githubcopilot.com"),
        ("tid=1", {"enterpriseUrl": "c.ghe.com"}, "https://copilot-api.c.ghe.com"),
        ("proxy-ep=proxy.x.githubcopilot.com", {}, "https://api.x.githubcopilot.com"),
        ("tid=1;proxy-ep=proxy.evil.com/@x;", {}, "https://api.individual.githubcopilot.com"),
    ],
)
def test_copilot_s_token_says_where_it_may_be_used(access: str, extra: Any, base_url: str) -> None:
    credential = OAuthCredential(access=access, expires=1, extra=extra)
    assert CopilotLogin().authorise(credential).base_url == base_url


@pytest.mark.parametrize("host", ["a b", "http://", "-x", "x_y.com", "h:port"])
async def test_an_enterprise_s_host_that_cannot_be_read_is_refused(
    server: AuthorisationServer, host: str
) -> None:
    with pytest.raises(LoginError, match=r"Write it like company\.ghe\.com"):
        await sign_in(server, "github-copilot", "device", options={"host": host})


@pytest.mark.parity("auth.openrouter-login")
async def test_openrouter(server: AuthorisationServer) -> None:
    answer = server.answer

    def answered(asked: Asked) -> tuple[int, dict[str, Any]]:
        status, data = answer(asked)
        return status, {"key": data["access_token"]} if status == 200 else data

    server.answer = answered  # type: ignore[method-assign]
    browsed: list[str] = []

    def browse(url: str) -> str:
        browsed.append(url)
        return server.browse(url)

    # OpenRouter's exchange names no redirect, and so the stand-in must not expect one.
    try:
        person = Person(browse=browse)
        credential = await sign_in(server, "openrouter", "browser", person)
    finally:
        del server.answer
    address, query = page_of(person)
    assert address == "https://openrouter.ai/auth"
    assert set(query) == {"callback_url", "code_challenge", "code_challenge_method"}
    (asked,) = server.asked
    assert (asked.host, asked.path) == ("openrouter.ai", "/api/v1/auth/keys")
    assert set(asked.fields) == {"code", "code_verifier", "code_challenge_method"}
    assert credential.refresh == "" and credential.expires == 2**53 - 1
    assert login("openrouter").authorise(credential).kind == "key"


@pytest.mark.parity("auth.kimi-login")
async def test_kimi_coding(server: AuthorisationServer) -> None:
    credential = await sign_in(server, "kimi-coding", "device")
    began, granted = server.asked
    assert (began.host, began.path) == ("auth.kimi.com", "/api/oauth/device_authorization")
    assert began.fields == {"client_id": "17e5f671-d194-4dfb-9706-5516cb48c098"}
    assert granted.path == "/api/oauth/token"
    assert (await renew(server, "kimi-coding", credential)).refresh != credential.refresh
    assert login("kimi-coding").authorise(credential).kind == "bearer"


@pytest.mark.parity("auth.xai-login")
async def test_xai(server: AuthorisationServer) -> None:
    credential = await sign_in(server, "xai", "device")
    began, granted = server.asked
    assert (began.host, began.path) == ("auth.x.ai", "/oauth2/device/code")
    assert began.fields["client_id"] == "b1a00492-073a-47ea-816f-4c329264a828"
    assert {"offline_access", "api:access"} <= set(began.fields["scope"].split())
    assert granted.path == "/oauth2/token"
    assert (await renew(server, "xai", credential)).refresh != credential.refresh


@pytest.mark.parity("auth.meta-login")
async def test_meta(server: AuthorisationServer) -> None:
    server.other = lambda asked: (200, {"api_key": f"key-{len(server.asked)}"})
    credential = await sign_in(server, "meta", "device")
    began, granted, keyed = server.asked
    assert (began.host, began.path) == ("auth.meta.com", "/oidc/device/authorization/")
    assert granted.path == "/oidc/device/token/"
    assert (keyed.host, keyed.path) == ("api.meta.ai", "/muse-code/key")
    assert keyed.headers["authorization"] == f"Bearer {credential.refresh}"
    assert credential.access == "key-3"
    assert 86_000 < credential.expires / 1000 - time.time() < 87_000
    renewed = await renew(server, "meta", credential)
    assert (renewed.access, renewed.refresh) == ("key-4", credential.refresh)
