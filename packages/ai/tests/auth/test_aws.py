"""AWS credentials from every place they come from, and signatures that the other side can check."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from cantle_ai.abort import AbortController
from cantle_ai.auth.aws import AwsCredentials
from cantle_ai.errors import ConfigurationError, ProviderError
from cantle_ai.model import StreamOptions
from cantle_ai.transport.port import HttpRequest
from packages.ai.tests.apis.bedrock import END, MEDIA_TYPE, ask
from packages.ai.tests.http_peer import Link, Peer
from tests.support.extras import needs

QUIET = {name: value for name, value in os.environ.items() if name != "PYTHONWARNDEFAULTENCODING"}
"""For processes whose stderr is looked at: botocore leaves encodings to the locale."""
KEY_ID = "AKIAEXAMPLE"
SECRET = "wJalrXUtnFEMI-secret"
TOKEN = "session-token-of-a-role"
BODY = b'{"messages":[]}'
URL = "https://bedrock.example/model/us.anthropic.claude%3A0/converse-stream"
REQUEST = HttpRequest("POST", URL, {"content-type": "application/json", "x-other": "1"}, BODY)
NOWHERE = {
    "AWS_CONFIG_FILE": "/nonexistent/config",
    "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent/credentials",
    "AWS_EC2_METADATA_DISABLED": "true",
}
"""No source but those that a test adds."""
KEYS = {"AWS_ACCESS_KEY_ID": KEY_ID, "AWS_SECRET_ACCESS_KEY": SECRET}

pytestmark = needs("bedrock")


@pytest.fixture(autouse=True)
def no_aws_of_our_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What botocore reads from the process itself is nothing of the machine that the tests run on."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    for name in ("AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", *KEYS, "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)


def check_signature(request: HttpRequest, secret: str, region: str) -> Mapping[str, str]:
    """Work the signature out anew, by AWS's description of version 4; gives the fields of the header."""
    headers = {**request.headers, "host": request.url.split("/")[2]}
    found = re.fullmatch(
        r"AWS4-HMAC-SHA256 Credential=(?P<id>\w+)/(?P<scope>\S+), SignedHeaders=(?P<names>\S+), Signature=(?P<sum>\w+)",
        headers["authorization"],
    )
    assert found is not None
    day = headers["x-amz-date"][:8]
    assert found["scope"] == f"{day}/{region}/bedrock/aws4_request"
    # Every service but S3 has its path encoded once more.
    path = "/" + request.url.split("/", 3)[3].replace("%", "%25")
    lines = "".join(f"{name}:{headers[name]}\n" for name in found["names"].split(";"))
    hashed = hashlib.sha256(request.body).hexdigest()
    canonical = f"POST\n{path}\n\n{lines}\n{found['names']}\n{hashed}"
    to_sign = f"AWS4-HMAC-SHA256\n{headers['x-amz-date']}\n{found['scope']}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    key = f"AWS4{secret}".encode()
    for part in (day, region, "bedrock", "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    assert hmac.new(key, to_sign.encode(), "sha256").hexdigest() == found["sum"]
    return found.groupdict()


async def signed(environ: Mapping[str, str], region: str = "eu-west-1") -> HttpRequest:
    return await AwsCredentials().sign(REQUEST, {**NOWHERE, **environ}, region=region)


def expiry(minutes: float) -> str:
    return (datetime.now(UTC) + timedelta(minutes=minutes)).strftime("%Y-%m-%dT%H:%M:%SZ")


def role_keys(minutes: float = 60, **names: str) -> dict[str, str]:
    """Temporary credentials as AWS's servers give them."""
    return {
        "AccessKeyId": KEY_ID,
        "SecretAccessKey": SECRET,
        names.get("token", "Token"): TOKEN,
        "Expiration": expiry(minutes),
    }


@contextmanager
def serving(answers: Callable[[str], object]) -> Iterator[Peer]:
    """A server of credentials. `answers` gives the JSON, or the text, for a request line."""

    def serve(link: Link) -> None:
        while True:
            request = link.request()
            answer = answers(request.line)
            body = answer if isinstance(answer, str) else json.dumps(answer)
            link.head(f"content-length: {len(body)}", "content-type: application/json")
            link.send(body.encode())

    with Peer(serve) as peer:
        yield peer


# --- sources


async def test_keys_of_the_environment_that_the_request_has():
    request = await signed({**KEYS, "AWS_SESSION_TOKEN": TOKEN})
    fields = check_signature(request, SECRET, "eu-west-1")
    assert fields["id"] == KEY_ID
    assert fields["names"] == "content-type;host;x-amz-date;x-amz-security-token"
    assert request.headers["x-amz-security-token"] == TOKEN
    assert request.headers["x-other"] == "1"
    assert (request.url, request.body) == (URL, BODY)


async def test_keys_of_the_process_are_not_looked_at(monkeypatch: pytest.MonkeyPatch):
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ConfigurationError, match="There are no AWS credentials"):
        await signed({})


@pytest.mark.parity("bedrock.credentials")
async def test_a_profile(tmp_path: Path):
    (tmp_path / "config").write_text("[profile work]\nregion = ap-south-1\n", "utf-8")
    (tmp_path / "credentials").write_text(
        f"[work]\naws_access_key_id = {KEY_ID}\naws_secret_access_key = {SECRET}\n", "utf-8"
    )
    environ = {
        **NOWHERE,
        "AWS_PROFILE": "work",
        "AWS_CONFIG_FILE": str(tmp_path / "config"),
        "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "credentials"),
    }
    credentials = AwsCredentials()
    region = await credentials.region(environ)
    assert region == "ap-south-1"
    check_signature(await credentials.sign(REQUEST, environ, region=region), SECRET, region)
    asked = await ask(END, key=None, environ=environ)
    assert f"{KEY_ID}/" in asked.requests[0].headers["authorization"]
    assert "/ap-south-1/bedrock/" in asked.requests[0].headers["authorization"]


async def test_a_profile_whose_keys_a_command_gives(tmp_path: Path):
    script = tmp_path / "keys.py"
    keys = {"Version": 1, **role_keys(token="SessionToken")}
    script.write_text(f"import json; print(json.dumps({keys!r}))", "utf-8")
    (tmp_path / "config").write_text(f"[default]\ncredential_process = {sys.executable} {script}\n", "utf-8")
    check_signature(await signed({"AWS_CONFIG_FILE": str(tmp_path / "config")}), SECRET, "eu-west-1")


async def test_a_command_that_fails_is_told_without_what_it_said(tmp_path: Path):
    script = tmp_path / "keys.py"
    script.write_text(f"import sys; sys.exit('{SECRET}')", "utf-8")
    (tmp_path / "config").write_text(f"[default]\ncredential_process = {sys.executable} {script}\n", "utf-8")
    with pytest.raises(ConfigurationError, match="custom-process") as failure:
        await signed({"AWS_CONFIG_FILE": str(tmp_path / "config")})
    assert SECRET not in str(failure.value)


@pytest.mark.parity("bedrock.credentials")
async def test_a_container():
    with serving(lambda line: role_keys()) as peer:
        environ = {
            "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{peer.url}/creds",
            "AWS_CONTAINER_AUTHORIZATION_TOKEN": "let me in",
        }
        check_signature(await signed(environ), SECRET, "eu-west-1")
        assert peer.requests[0].line == "GET /creds HTTP/1.1"
        assert peer.requests[0].headers["authorization"] == "let me in"


@pytest.mark.parametrize("profile", [{}, {"AWS_PROFILE": "default"}])
async def test_a_machine_of_ec2(profile):
    def answers(line: str) -> object:
        if line.startswith("PUT /latest/api/token"):
            return "metadata-token"
        return {"Code": "Success", **role_keys()} if line.endswith("/my-role HTTP/1.1") else "my-role"

    with serving(answers) as peer:
        environ = {"AWS_EC2_METADATA_DISABLED": "", "AWS_EC2_METADATA_SERVICE_ENDPOINT": f"{peer.url}/"}
        check_signature(await signed({**environ, **profile}), SECRET, "eu-west-1")
        assert peer.requests[-1].headers["x-aws-ec2-metadata-token"] == "metadata-token"


async def test_a_machine_of_ec2_is_not_asked_where_that_is_forbidden():
    with serving(lambda line: role_keys()) as peer:
        with pytest.raises(ConfigurationError, match="There are no AWS credentials"):
            await signed({"AWS_EC2_METADATA_SERVICE_ENDPOINT": f"{peer.url}/"})
        assert not peer.requests


@pytest.mark.parametrize(
    ("status", "kind"), [("500 Oh", ProviderError), ("403 No", ConfigurationError)], ids=["500", "403"]
)
async def test_a_role_that_is_not_given_may_pass_or_not(tmp_path: Path, status: str, kind: type[Exception]):
    def serve(link: Link) -> None:
        body = b"<ErrorResponse><Error><Code>Odd</Code><Message>said so</Message></Error></ErrorResponse>"
        link.answer(body, "content-type: text/xml", status=status)

    (tmp_path / "token").write_text("identity", "utf-8")
    with Peer(serve) as peer:
        (tmp_path / "config").write_text(f"[default]\nendpoint_url = {peer.url}\n", "utf-8")
        environ = {
            "AWS_CONFIG_FILE": str(tmp_path / "config"),
            "AWS_WEB_IDENTITY_TOKEN_FILE": str(tmp_path / "token"),
            "AWS_ROLE_ARN": "arn:aws:iam::123456789012:role/r",
            "AWS_MAX_ATTEMPTS": "1",
        }
        with pytest.raises(kind, match=r"AWS gave no credentials: .*said so"):
            await signed(environ)


@pytest.mark.parity("bedrock.credentials")
async def test_a_web_identity(tmp_path: Path):
    """As in Kubernetes: a role is assumed with the token of a file."""
    answer = (
        '<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">'
        f"<AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>{KEY_ID}</AccessKeyId>"
        f"<SecretAccessKey>{SECRET}</SecretAccessKey><SessionToken>{TOKEN}</SessionToken>"
        f"<Expiration>{expiry(60)}</Expiration></Credentials></AssumeRoleWithWebIdentityResult>"
        "</AssumeRoleWithWebIdentityResponse>"
    )
    (tmp_path / "token").write_text("identity", "utf-8")
    with serving(lambda line: answer) as peer:
        (tmp_path / "config").write_text(f"[default]\nendpoint_url = {peer.url}\n", "utf-8")
        environ = {
            "AWS_CONFIG_FILE": str(tmp_path / "config"),
            "AWS_WEB_IDENTITY_TOKEN_FILE": str(tmp_path / "token"),
            "AWS_ROLE_ARN": "arn:aws:iam::123456789012:role/r",
        }
        request = await signed(environ)
        check_signature(request, SECRET, "eu-west-1")
        assert request.headers["x-amz-security-token"] == TOKEN
        assert b"WebIdentityToken=identity" in peer.requests[0].body


def sso_profile(tmp_path: Path, minutes: float, url: str = "http://127.0.0.1:1") -> dict[str, str]:
    """A profile of a login by `aws sso login`, whose token ends in so many minutes."""
    cache = tmp_path / ".aws" / "sso" / "cache"
    cache.mkdir(parents=True)
    token = {"accessToken": "sso-token", "expiresAt": expiry(minutes), "region": "eu-west-1"}
    name = hashlib.sha1(b"team").hexdigest()
    (cache / f"{name}.json").write_text(json.dumps(token), "utf-8")
    (tmp_path / "config").write_text(
        f"[default]\nendpoint_url = {url}\nsso_session = team\nsso_account_id = 123456789012\n"
        "sso_role_name = dev\n[sso-session team]\nsso_region = eu-west-1\nsso_start_url = https://team.example\n",
        "utf-8",
    )
    return {"AWS_CONFIG_FILE": str(tmp_path / "config")}


def in_a_process(home: Path, environ: Mapping[str, str]) -> str:
    """Sign in a process whose home that is: botocore looks for logins below the home that it was started with."""
    program = f"""
import asyncio, os
from cantle_ai.auth.aws import AwsCredentials
from cantle_ai.transport.port import HttpRequest
try:
    request = HttpRequest("POST", "https://x.example/", {{}})
    signed = asyncio.run(AwsCredentials().sign(request, {dict(environ)!r}, region="eu-west-1"))
    print(signed.headers["authorization"], signed.headers["x-amz-security-token"])
except Exception as error:
    print(type(error).__name__, error)
"""
    homes = {"HOME": str(home), "USERPROFILE": str(home)}
    run = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**QUIET, **homes},
    )
    assert run.stderr == ""
    return run.stdout


def test_a_login_by_sso(tmp_path: Path):
    role = {
        "accessKeyId": KEY_ID,
        "secretAccessKey": SECRET,
        "sessionToken": TOKEN,
        "expiration": 4_000_000_000_000,
    }
    with serving(lambda line: {"roleCredentials": role}) as peer:
        said = in_a_process(tmp_path, {**NOWHERE, **sso_profile(tmp_path, 60, peer.url)})
        assert said.startswith(f"AWS4-HMAC-SHA256 Credential={KEY_ID}/") and said.endswith(f" {TOKEN}\n")
        assert peer.requests[0].line.startswith("GET /federation/credentials?")
        assert peer.requests[0].headers["x-amz-sso_bearer_token"] == "sso-token"


def test_a_login_that_has_ended_says_how_to_log_in(tmp_path: Path):
    said = in_a_process(tmp_path, {**NOWHERE, **sso_profile(tmp_path, -60)})
    assert said.startswith("ConfigurationError The AWS login has ended: ")
    assert "expired" in said and said.endswith(". Run `aws sso login`\n")


# --- what goes wrong


async def test_without_credentials_the_error_names_the_ways_to_have_them():
    with pytest.raises(ConfigurationError, match=r"set AWS_PROFILE, or AWS_ACCESS_KEY_ID .* `aws sso login`"):
        await signed({})


async def test_a_profile_that_is_not_there_is_named():
    with pytest.raises(ConfigurationError, match=r"\(nobody\) could not be found\. Correct AWS_PROFILE"):
        await signed({"AWS_PROFILE": "nobody"})


async def test_a_server_that_is_not_heard_is_asked_again_later():
    environ = {"AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://127.0.0.1:1/creds"}
    with pytest.raises(ProviderError, match="AWS gave no credentials") as failure:
        await signed(environ)
    assert failure.value.kind == "network"


def test_without_botocore_the_error_says_what_to_install():
    """In a process that has none: what is found there is nothing, and requests with a key go on."""
    program = """
import asyncio, sys

class Without:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("botocore", "boto3"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Without())
from cantle_ai.auth.aws import AwsCredentials
from cantle_ai.transport.port import HttpRequest
from cantle_ai.apis.bedrock_converse_stream import BedrockConverse
request = HttpRequest("POST", "https://x.example/", {})
try:
    asyncio.run(AwsCredentials().sign(request, {}, region="us-east-1"))
except Exception as error:
    print(type(error).__name__, error)
"""
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, encoding="utf-8", env=QUIET
    )
    assert run.stderr == ""
    assert run.stdout.startswith("ConfigurationError AWS credentials need the package botocore")
    assert "pip install 'cantle[bedrock]'" in run.stdout
    assert "AWS_BEARER_TOKEN_BEDROCK" in run.stdout


# --- over time


async def test_credentials_are_kept_and_renewed_before_they_end():
    minutes = iter([60.0, 60.0])
    with serving(lambda line: role_keys(next(minutes))) as peer:
        environ = {**NOWHERE, "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{peer.url}/creds"}
        credentials = AwsCredentials()
        for _ in range(3):
            await credentials.sign(REQUEST, environ, region="eu-west-1")
        assert len(peer.requests) == 1
    minutes = iter([0.5, 60.0])
    with serving(lambda line: role_keys(next(minutes))) as peer:
        environ = {**NOWHERE, "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{peer.url}/creds"}
        for _ in range(3):
            await credentials.sign(REQUEST, environ, region="eu-west-1")
        assert len(peer.requests) == 2


async def test_credentials_that_are_refused_are_looked_for_anew(tmp_path: Path):
    def write(key_id: str) -> None:
        text = f"[default]\naws_access_key_id = {key_id}\naws_secret_access_key = {SECRET}\n"
        (tmp_path / "credentials").write_text(text, "utf-8")

    def serve(link: Link) -> None:
        request = link.request()
        if "AKIAOLD" in request.headers["authorization"]:
            link.head("content-length: 2", "x-amzn-errortype: ExpiredTokenException", status="403 Forbidden")
            link.send(b"{}")
        else:
            body = b"".join(END)
            link.head(f"content-length: {len(body)}", MEDIA_TYPE)
            link.send(body)

    from cantle_ai.apis.bedrock_converse_stream import BedrockConverse

    environ = {**NOWHERE, "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "credentials")}
    api = BedrockConverse()
    write("AKIAOLD")
    first = await ask(serve, key=None, environ=environ, api=api)
    assert first.details["code"] == "ExpiredTokenException"
    write("AKIANEW")
    second = await ask(serve, key=None, environ=environ, api=api)
    assert second.message.text == "ok", second.message.error_message
    await api.aclose()


async def test_credentials_that_end_before_their_time_are_renewed_and_the_request_made_again():
    keys = iter(["AKIAOLD", "AKIANEW", "AKIAOLD", "AKIAOLDER"])

    def serve(link: Link) -> None:
        request = link.request()
        if "AKIAOLD" in request.headers["authorization"]:
            link.head("content-length: 2", "x-amzn-errortype: ExpiredTokenException", status="403 Forbidden")
            link.send(b"{}")
        else:
            body = b"".join(END)
            link.head(f"content-length: {len(body)}", MEDIA_TYPE)
            link.send(body)

    with serving(lambda line: {**role_keys(), "AccessKeyId": next(keys)}) as peer:
        environ = {**NOWHERE, "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{peer.url}/creds"}
        seen: list[int] = []
        options = StreamOptions(
            on_request=lambda request: seen.append(0),
            on_response=lambda response: seen.append(response.status),
        )
        asked = await ask(serve, key=None, environ=environ, options=options)
        assert asked.message.text == "ok", asked.message.error_message
        assert len(asked.requests) == 2
        assert asked.requests[0].body == asked.requests[1].body
        assert seen == [0, 200]
        twice = await ask(serve, key=None, environ=environ)
        assert twice.details["code"] == "ExpiredTokenException"
        assert len(twice.requests) == 2


async def test_a_login_that_has_ended_meanwhile_is_told_instead_of_the_refusal(tmp_path: Path):
    profile = tmp_path / "credentials"
    profile.write_text(
        f"[default]\naws_access_key_id = {KEY_ID}\naws_secret_access_key = {SECRET}\n", "utf-8"
    )

    def serve(link: Link) -> None:
        link.request()
        profile.unlink()
        link.head(
            "content-length: 2", "x-amzn-errortype: ExpiredTokenException:http://x/", status="403 Forbidden"
        )
        link.send(b"{}")

    asked = await ask(serve, key=None, environ={**NOWHERE, "AWS_SHARED_CREDENTIALS_FILE": str(profile)})
    assert str(asked.message.error_message).startswith("There are no AWS credentials")


async def test_who_gave_up_on_a_command_that_hangs_leaves_nobody_waiting_behind_it(tmp_path: Path):
    program = f"""
import json, pathlib, time
asked, go = pathlib.Path({str(tmp_path / "asked")!r}), pathlib.Path({str(tmp_path / "go")!r})
if not asked.exists():
    asked.touch()
    until = time.monotonic() + 30
    while not go.exists() and time.monotonic() < until:
        time.sleep(0.01)
print(json.dumps({dict(Version=1, **role_keys(token="SessionToken"))!r}))
"""
    (tmp_path / "keys.py").write_text(program, "utf-8")
    command = f"credential_process = {sys.executable} {tmp_path / 'keys.py'}"
    (tmp_path / "config").write_text(f"[default]\n{command}\n", "utf-8")
    environ = {**NOWHERE, "AWS_CONFIG_FILE": str(tmp_path / "config")}
    credentials = AwsCredentials()
    hangs = asyncio.create_task(credentials.sign(REQUEST, environ, region="eu-west-1"))
    while not (tmp_path / "asked").exists():
        await asyncio.sleep(0.001)
    hangs.cancel()
    try:
        async with asyncio.timeout(20):
            with pytest.raises(asyncio.CancelledError):
                await hangs
            check_signature(await credentials.sign(REQUEST, environ, region="eu-west-1"), SECRET, "eu-west-1")
    finally:
        (tmp_path / "go").touch()


def test_a_command_that_hangs_keeps_no_program_from_ending(tmp_path: Path):
    asked, go = tmp_path / "asked", tmp_path / "go"
    command = f"""
import pathlib, time
pathlib.Path({str(asked)!r}).touch()
until = time.monotonic() + 30
while not pathlib.Path({str(go)!r}).exists() and time.monotonic() < until:
    time.sleep(0.01)
"""
    (tmp_path / "keys.py").write_text(command, "utf-8")
    (tmp_path / "config").write_text(
        f"[default]\ncredential_process = {sys.executable} {tmp_path / 'keys.py'}\n", "utf-8"
    )
    environ = {**NOWHERE, "AWS_CONFIG_FILE": str(tmp_path / "config")}
    program = f"""
import asyncio, pathlib
from cantle_ai.auth.aws import AwsCredentials
from cantle_ai.transport.port import HttpRequest

async def main():
    request = HttpRequest("POST", "https://x.example/", {{}})
    task = asyncio.create_task(AwsCredentials().sign(request, {environ!r}, region="eu-west-1"))
    while not pathlib.Path({str(asked)!r}).exists():
        await asyncio.sleep(0.001)
    task.cancel()

asyncio.run(main())
print("ended")
"""
    try:
        run = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            encoding="utf-8",
            env=QUIET,
            timeout=20,
        )
    finally:
        go.touch()
    assert (run.stdout, run.stderr, run.returncode) == ("ended\n", "", 0)


async def test_the_event_loop_goes_on_while_credentials_are_fetched():
    asked, go = threading.Event(), threading.Event()

    def answers(line: str) -> object:
        asked.set()
        go.wait(10)
        return role_keys()

    with serving(answers) as peer:
        environ = {"AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{peer.url}/creds"}
        task = asyncio.create_task(signed(environ))
        while not asked.is_set():
            await asyncio.sleep(0.001)  # only an event loop that is free comes back here
        assert not task.done()
        go.set()
        check_signature(await task, SECRET, "eu-west-1")


async def test_an_abort_does_not_wait_for_credentials():
    asked, go = threading.Event(), threading.Event()
    controller = AbortController()

    def answers(line: str) -> object:
        asked.set()
        asyncio.run_coroutine_threadsafe(_abort(controller), loop).result(10)
        go.wait(10)
        return role_keys()

    loop = asyncio.get_running_loop()
    with serving(answers) as peer:
        environ = {**NOWHERE, "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{peer.url}/creds"}
        options = StreamOptions(signal=controller.signal)
        answer = await ask(END, key=None, environ=environ, options=options)
        assert asked.is_set()
        assert answer.message.stop_reason == "aborted"
        assert not answer.requests
        go.set()


async def _abort(controller: AbortController) -> None:
    controller.abort()


async def test_what_a_hook_changes_is_signed_as_it_was_changed():
    import msgspec

    shown: list[Any] = []

    def change(request: HttpRequest) -> HttpRequest:
        shown.append(request)
        return msgspec.structs.replace(request, body=request.body.replace(b"hello", b"howdy"))

    environ = {**NOWHERE, **KEYS, "AWS_REGION": "eu-west-1"}
    asked = await ask(END, key=None, environ=environ, options=StreamOptions(on_request=change))
    (sent,) = asked.requests
    assert b"howdy" in sent.body
    assert "authorization" not in shown[0].headers
    target = sent.line.split(" ")[1]
    check_signature(
        HttpRequest("POST", f"http://{sent.headers['host']}{target}", sent.headers, sent.body),
        SECRET,
        "eu-west-1",
    )


@pytest.mark.parity("bedrock.credentials")
async def test_the_provider_of_the_table_is_not_signed_for_where_a_proxy_does_it():
    from cantle_ai.context import Context
    from cantle_ai.messages import UserMessage
    from cantle_ai.models import Models

    with Peer(lambda link: link.answer(b"".join(END), MEDIA_TYPE)) as peer:
        models = Models(environ={"AWS_BEDROCK_SKIP_AUTH": "1", "AWS_ENDPOINT_URL": peer.url})
        model = models.find("amazon-bedrock", "us.anthropic.claude-sonnet-4-6")
        assert model is not None
        answer = await models.complete(model, Context("", [UserMessage("Hi", timestamp=1)]))
        await models.aclose()
        assert answer.text == "ok", answer.error_message
        assert "authorization" not in peer.requests[0].headers


async def test_nothing_secret_is_kept_with_an_answer():
    def serve(link: Link) -> None:
        request = link.request()
        body = json.dumps({"message": f"The canonical string is {request.headers}"}).encode()
        link.head(f"content-length: {len(body)}", "content-type: application/json", status="403 Forbidden")
        link.send(body)

    environ = {**NOWHERE, **KEYS, "AWS_SESSION_TOKEN": TOKEN}
    kept = str((await ask(serve, key=None, environ=environ)).message.to_json())
    assert "x-amz-security-token" in kept
    assert SECRET not in kept and TOKEN not in kept


async def test_the_provider_of_the_table_is_signed_for_with_what_the_platform_has():
    from cantle_ai.context import Context
    from cantle_ai.messages import UserMessage
    from cantle_ai.models import Models

    with Peer(lambda link: link.answer(b"".join(END), MEDIA_TYPE)) as peer:
        environ = {**NOWHERE, **KEYS, "AWS_REGION": "eu-west-1", "AWS_ENDPOINT_URL": peer.url}
        models = Models(environ=environ)
        assert models.configured("amazon-bedrock")
        model = models.find("amazon-bedrock", "us.anthropic.claude-sonnet-4-6")
        assert model is not None
        answer = await models.complete(model, Context("", [UserMessage("Hi", timestamp=1)]))
        await models.aclose()
        assert answer.text == "ok", answer.error_message
        (sent,) = peer.requests
    target = sent.line.split(" ")[1]
    check_signature(
        HttpRequest("POST", f"http://{sent.headers['host']}{target}", sent.headers, sent.body),
        SECRET,
        "eu-west-1",
    )
