"""What a request is authorised with: the order, logins, variables of a credential, commands, platforms."""

from __future__ import annotations

import asyncio
import shlex
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cantle_ai.auth.ambient import AMBIENT
from cantle_ai.auth.credentials import ApiKeyCredential, Credential, Credentials, OAuthCredential
from cantle_ai.auth.login import Login, LoginAuth
from cantle_ai.auth.resolution import AuthResolver, AuthSource
from cantle_ai.errors import ConfigurationError
from cantle_ai.model import Provider
from cantle_ai.transport.port import Transport
from cantle_ai.transport.urllib3_thread import Urllib3Transport
from packages.ai.tests.auth.logins import entry, login_at, stored
from tests.support.authorisation import Asked, AuthorisationServer, expired

ROW = Provider(id="p", name="P", base_url="http://h/v1", api="a", key_variables=("P_TOKEN", "P_KEY"))


def resolver(
    environ: Mapping[str, str] = {},
    credentials: Credentials | None = None,
    *,
    login: Login | None = None,
    connect: Callable[[], Transport] = lambda: Urllib3Transport(environ={}),
    clock: Callable[[], float] = time.time,
) -> AuthResolver:
    return AuthResolver(
        environ,
        credentials,
        explain_no_key=lambda provider: f"no key for {provider.id}",
        connect=connect,
        find_login=lambda name: login,
        clock=clock,
    )


def row(**changes: Any) -> Provider:
    return msgspec.structs.replace(ROW, **changes)


def login_entry(**more: Any) -> dict[str, Any]:
    return {"type": "oauth", "access": "at", "refresh": "rt", "expires": 2**53 - 1, **more}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "auth.json"


@pytest.mark.parity("models.key-order")
async def test_the_order_of_sources(path: Path) -> None:
    """A source that is there is taken, or its failure told; the ones behind it are not asked."""
    environ = {"P_KEY": "environment", "AWS_PROFILE": "work"}
    store = stored(path, p={"type": "api_key", "key": "stored"})
    provider = row(api_key="configured", ambient="aws")
    found = resolver(environ, store)
    keys = [(await found.resolve(provider, None, "given")).auth.api_key]
    keys.append((await found.resolve(provider, None, None)).auth.api_key)
    store.remove("p")
    keys.append((await found.resolve(provider, None, " ")).auth.api_key)
    keys.append((await found.resolve(row(ambient="aws"), None, None)).auth.api_key)
    del environ["P_KEY"]
    keys.append((await found.resolve(row(ambient="aws"), None, None)).auth.api_key)
    assert keys == ["given", "stored", "configured", "environment", None]
    del environ["AWS_PROFILE"]
    with pytest.raises(ConfigurationError, match=r"^no key for p$"):
        await found.resolve(row(ambient="aws"), None, None)


async def test_a_stored_credential_that_fails_is_not_passed_over(path: Path) -> None:
    store = stored(path, p={"type": "api_key", "key": "$NOPE"})
    with pytest.raises(ConfigurationError, match=r"the stored key of p refers to \$NOPE, which is not set"):
        await resolver({"P_KEY": "environment"}, store).resolve(ROW, None, None)


@pytest.mark.parametrize(
    ("environ", "key", "kind"),
    [
        ({"P_KEY": "k"}, "k", "key"),
        ({"P_KEY": "k", "P_TOKEN": "t"}, "t", "bearer"),
        ({"P_KEY": "k", "P_TOKEN": " "}, "k", "key"),
    ],
)
async def test_a_variable_says_how_its_value_travels(environ: dict[str, str], key: str, kind: str) -> None:
    auth = (await resolver(environ).resolve(row(key_kinds={"P_TOKEN": "bearer"}), None, None)).auth
    assert (auth.api_key, auth.kind) == (key, kind)


async def test_a_key_travels_as_its_provider_s_keys_do(path: Path) -> None:
    store = stored(path, p={"type": "api_key", "key": "k"})
    for variables, kinds, kind in (
        (("A",), {"A": "bearer"}, "bearer"),
        (("A", "B"), {"A": "bearer"}, "key"),
        ((), {}, "key"),
    ):
        provider = row(key_variables=variables, key_kinds=kinds)
        for given in (None, "given"):
            assert (await resolver({}, store).resolve(provider, None, given)).auth.kind == kind
    auth = (await resolver({}, store).resolve(row(auth_header=True), None, None)).auth
    assert (auth.kind, auth.headers) == ("bearer", {"Authorization": "Bearer k"})


async def test_credentials_that_take_time_are_asked_when_it_matters() -> None:
    class Slow:
        async def get(self, provider_id: str) -> Credential | None:
            return ApiKeyCredential(key="$UNSET" if provider_id == "q" else "k")

        def peek(self, provider_id: str) -> Credential | None:
            return None

    found = resolver({}, Slow())
    assert not found.configured(ROW)
    assert await found.has_auth(ROW) and not await found.has_auth(row(id="q"))


# --- the variables of a credential ---


@pytest.mark.parity("models.credential-variables")
async def test_a_credential_s_variables_lie_over_the_environment_for_its_provider_alone(path: Path) -> None:
    store = stored(path, p={"type": "api_key", "key": "$SECRET", "env": {"SECRET": "s", "ACCOUNT": "mine"}})
    environ = {"SECRET": "of the process", "ACCOUNT": "ours", "OTHER": "o"}
    provider = row(headers={"x-account": "$ACCOUNT"}, base_url="https://h/{ACCOUNT}/v1")
    found = resolver(environ, store)
    auth = (await found.resolve(provider, None, None)).auth
    assert auth.api_key == "s"
    assert auth.headers == {"x-account": "mine"}
    assert auth.environ == {"SECRET": "s", "ACCOUNT": "mine", "OTHER": "o"}
    other = (await found.resolve(row(id="q", key_variables=("SECRET",)), None, None)).auth
    assert (other.api_key, other.environ) == ("of the process", environ)
    assert environ["ACCOUNT"] == "ours"


async def test_a_credential_may_bring_variables_alone(path: Path) -> None:
    store = stored(path, p={"type": "api_key", "env": {"P_KEY": "from the entry"}})
    auth = (await resolver({"P_KEY": "from the process"}, store).resolve(ROW, None, None)).auth
    assert auth.api_key == "from the entry"
    assert resolver({}, store).source(ROW) == AuthSource(kind="environment", name="P_KEY")


async def test_an_address_that_needs_a_variable_is_not_configured_without_it() -> None:
    provider = row(base_url="https://h/{ACCOUNT}/v1")
    assert resolver({"P_KEY": "k"}).source(provider) == AuthSource(
        kind="environment", name="P_KEY", needed=("ACCOUNT",)
    )
    assert not resolver({"P_KEY": "k"}).configured(provider)
    assert resolver({"P_KEY": "k", "ACCOUNT": "a"}).configured(provider)


# --- commands ---


@pytest.mark.parity("auth.key-command")
async def test_a_stored_command_is_run_once_for_all_requests(path: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    store = stored(path, p={"type": "api_key", "key": f"!echo x >> {shlex.quote(str(log))}; echo k1"})
    found = resolver({"PATH": "/usr/bin:/bin"}, store)
    assert found.configured(ROW) and not log.exists()
    resolved = await asyncio.gather(*(found.resolve(ROW, None, None) for _ in range(5)))
    assert {each.auth.api_key for each in resolved} == {"k1"}
    assert log.read_text() == "x\n"
    await resolver({"PATH": "/usr/bin:/bin"}, store).resolve(ROW, None, None)
    assert log.read_text() == "x\nx\n"


@pytest.mark.parity("auth.key-command")
@pytest.mark.parametrize(
    ("command", "problem"), [("exit 3", "failed with exit status 3"), ("true", "printed nothing")]
)
async def test_a_stored_command_that_failed_stays_failed(
    path: Path, tmp_path: Path, command: str, problem: str
) -> None:
    log = tmp_path / "log"
    store = stored(path, p={"type": "api_key", "key": f"!echo x >> {shlex.quote(str(log))}; {command}"})
    found = resolver({"PATH": "/usr/bin:/bin", "P_KEY": "k"}, store)
    for _ in range(2):
        with pytest.raises(ConfigurationError) as caught:
            await found.resolve(ROW, None, None)
        assert problem in str(caught.value) and "when this program is started again" in str(caught.value)
    assert log.read_text() == "x\n"


# --- logins ---


@pytest.mark.parity("models.sign-in")
async def test_a_login_gives_key_headers_and_address(path: Path) -> None:
    class Fixed:
        name = "Fixed"
        methods = ()

        def authorise(self, credential: OAuthCredential) -> LoginAuth:
            return LoginAuth(
                api_key=credential.access, headers={"x-account": "a1"}, base_url="https://elsewhere.example"
            )

    store = stored(path, p=login_entry())
    provider = row(login="fixed", headers={"X-Account": "$UNUSED", "x-more": "m"})
    found = resolver({"UNUSED": "u", "P_KEY": "environment"}, store, login=Fixed())  # type: ignore[arg-type]
    resolved = await found.resolve(provider, None, None)
    assert (resolved.auth.api_key, resolved.auth.kind) == ("at", "oauth")
    assert resolved.auth.headers == {"x-account": "a1", "x-more": "m"}
    assert resolved.base_url == "https://elsewhere.example"
    assert found.source(provider) == AuthSource(kind="login", expires=2**53 - 1)
    assert "'at'" not in repr(resolved)


async def test_an_expired_login_is_renewed_at_the_request(path: Path) -> None:
    with AuthorisationServer() as server:
        store = stored(path, p=expired(server.tokens()))
        found = resolver({}, store, login=login_at(server.url))
        assert found.configured(row(login="test"))
        first = await found.resolve(row(login="test"), None, None)
        second = await found.resolve(row(login="test"), None, None)
        assert first.auth.api_key == second.auth.api_key == entry(path)["access"]
        assert server.renewals == 1


async def test_a_token_that_ends_at_once_is_used_for_the_request_it_was_renewed_for(path: Path) -> None:
    with AuthorisationServer(lifetime=0) as server:
        store = stored(path, p=expired(server.tokens()))
        found = resolver({}, store, login=login_at(server.url))
        assert (await found.resolve(row(login="test"), None, None)).auth.api_key == entry(path)["access"]


async def test_a_login_for_a_provider_without_one_says_what_to_do(path: Path) -> None:
    with pytest.raises(
        ConfigurationError, match=r"cannot be signed in to\. Remove it: `cantle auth logout p`"
    ):
        await resolver({}, stored(path, p=login_entry())).resolve(ROW, None, None)


async def test_a_store_that_cannot_be_written_to_gives_fresh_tokens_only() -> None:
    class ReadOnly:
        expires = 2**53 - 1

        async def get(self, provider_id: str) -> Credential | None:
            return self.peek(provider_id)

        def peek(self, provider_id: str) -> Credential | None:
            return OAuthCredential(access="at", expires=self.expires)

    store = ReadOnly()
    found = resolver({}, store, login=login_at("http://127.0.0.1:1"))
    assert (await found.resolve(row(login="test"), None, None)).auth.api_key == "at"
    store.expires = 1
    with pytest.raises(ConfigurationError, match="has expired, and its store cannot be written to"):
        await found.resolve(row(login="test"), None, None)


# --- headers ---


async def test_a_gateway_s_key_travels_in_its_own_header() -> None:
    provider = row(key_header="cf-aig-authorization")
    auth = (await resolver({"P_KEY": "k"}).resolve(provider, None, None)).auth
    assert (auth.api_key, auth.headers) == (None, {"cf-aig-authorization": "Bearer k"})


# --- what platforms supply ---


@pytest.mark.parity("models.ambient-credentials")
@pytest.mark.parametrize(
    ("name", "environ", "source"),
    [
        ("aws", {}, None),
        ("aws", {"AWS_PROFILE": "work"}, "the AWS profile work"),
        ("aws", {"AWS_ACCESS_KEY_ID": "a"}, None),
        (
            "aws",
            {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "s", "AWS_PROFILE": "work"},
            "AWS_ACCESS_KEY_ID",
        ),
        ("aws", {"AWS_BEDROCK_SKIP_AUTH": "1"}, "AWS_BEDROCK_SKIP_AUTH"),
        ("aws", {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "s"}, "AWS_ACCESS_KEY_ID"),
        ("aws", {"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "/x"}, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"),
        ("aws", {"AWS_CONTAINER_CREDENTIALS_FULL_URI": "/x"}, "AWS_CONTAINER_CREDENTIALS_FULL_URI"),
        ("aws", {"AWS_WEB_IDENTITY_TOKEN_FILE": "/x"}, "AWS_WEB_IDENTITY_TOKEN_FILE"),
        ("google-cloud", {"GOOGLE_CLOUD_PROJECT": "p", "GOOGLE_CLOUD_LOCATION": "l"}, None),
        (
            "google-cloud",
            {"GCLOUD_PROJECT": "p", "GOOGLE_CLOUD_LOCATION": "l", "CLOUDSDK_CONFIG": "{tmp}"},
            "gcloud's application default",
        ),
        (
            "google-cloud",
            {
                "GOOGLE_CLOUD_PROJECT": "p",
                "GOOGLE_CLOUD_LOCATION": "l",
                "GOOGLE_APPLICATION_CREDENTIALS": "{tmp}/application_default_credentials.json",
            },
            "GOOGLE_APPLICATION_CREDENTIALS",
        ),
        (
            "google-cloud",
            {
                "GOOGLE_CLOUD_PROJECT": "p",
                "GOOGLE_CLOUD_LOCATION": "l",
                "GOOGLE_APPLICATION_CREDENTIALS": "{tmp}/gone.json",
                "CLOUDSDK_CONFIG": "{tmp}",
            },
            None,
        ),
        ("google-cloud", {"CLOUDSDK_CONFIG": "{tmp}"}, None),
        ("anthropic-federation", {"ANTHROPIC_FEDERATION_RULE_ID": "r"}, None),
    ],
)
async def test_platforms_are_noticed_without_asking_anybody(
    tmp_path: Path, name: str, environ: dict[str, str], source: str | None
) -> None:
    (tmp_path / "application_default_credentials.json").write_text("{}")
    environ = {"HOME": "/nowhere", **environ}
    environ = {key: value.replace("{tmp}", str(tmp_path)) for key, value in environ.items()}
    assert AMBIENT[name].source(environ) == source
    found = resolver(environ).source(row(ambient=name))
    assert found == (None if source is None else AuthSource(kind="ambient", name=source))


async def test_credentials_that_a_stored_one_names_go_before_those_of_the_process(path: Path) -> None:
    environ = {
        "P_KEY": "of the process",
        "AWS_ACCESS_KEY_ID": "a",
        "AWS_SECRET_ACCESS_KEY": "s",
        "AWS_SESSION_TOKEN": "t",
        "AWS_DEFAULT_PROFILE": "other",
        "AWS_REGION": "eu-west-1",
    }
    provider = row(ambient="aws")
    named = resolver(environ, stored(path, p={"type": "api_key", "env": {"AWS_PROFILE": "work"}}))
    assert named.source(provider) == AuthSource(kind="ambient", name="the AWS profile work")
    auth = (await named.resolve(provider, None, None)).auth
    assert auth.api_key is None
    assert auth.environ == {"AWS_PROFILE": "work", "AWS_REGION": "eu-west-1"}
    # What names no credentials leaves them as they are.
    placed = resolver(environ, stored(path, p={"type": "api_key", "env": {"AWS_REGION": "us-west-2"}}))
    auth = (await placed.resolve(provider, None, None)).auth
    assert (auth.api_key, auth.environ) == ("of the process", {**environ, "AWS_REGION": "us-west-2"})


async def test_a_federated_identity_is_exchanged_for_a_token(tmp_path: Path) -> None:
    identity = tmp_path / "identity"
    identity.write_text("identity-1\n")
    now = [1_000_000.0]

    def other(asked: Asked) -> tuple[int, dict[str, Any]]:
        return 200, {"access_token": f"for {asked.fields['assertion']}", "expires_in": 600}

    with AuthorisationServer(other=other) as server:
        environ = {
            "ANTHROPIC_FEDERATION_RULE_ID": "rule",
            "ANTHROPIC_ORGANIZATION_ID": "org",
            "ANTHROPIC_IDENTITY_TOKEN_FILE": str(identity),
            "ANTHROPIC_WORKSPACE_ID": "ws",
            "ANTHROPIC_BASE_URL": server.url,
        }
        found = resolver(environ, clock=lambda: now[0])
        provider = row(ambient="anthropic-federation")
        assert found.configured(provider)
        auths = await asyncio.gather(*(found.resolve(provider, None, None) for _ in range(5)))
        assert {(each.auth.api_key, each.auth.kind) for each in auths} == {("for identity-1", "oauth")}
        identity.write_text("identity-2")
        now[0] += 500
        assert (await found.resolve(provider, None, None)).auth.api_key == "for identity-1"
        now[0] += 100
        assert (await found.resolve(provider, None, None)).auth.api_key == "for identity-2"
        asked = server.asked[0]
        assert asked.path == "/v1/oauth/token"
        assert asked.headers["anthropic-beta"] == "oauth-2025-04-20,oidc-federation-2026-04-01"
        assert asked.fields == {
            "grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer",
            "assertion": "identity-1",
            "federation_rule_id": "rule",
            "organization_id": "org",
            "workspace_id": "ws",
        }
        server.other = lambda asked: (403, {"error": {"type": "forbidden", "message": "no identity-2 here"}})
        now[0] += 10_000
        with pytest.raises(ConfigurationError, match=r"\(forbidden\)\. Check the federation rule"):
            await found.resolve(provider, None, None)
    identity.unlink()
    with pytest.raises(ConfigurationError, match="the identity token cannot be read: no such file"):
        await found.resolve(provider, None, None)
