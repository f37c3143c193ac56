"""`cantle auth` and runs with a login, against stand-ins for the vendors that are reached through a proxy."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.authorisation import (
    PATIENCE,
    Asked,
    AuthorisationServer,
    can_stand_for_vendors,
    expired,
)
from tests.support.cli import Cli

vendors = pytest.mark.skipif(not can_stand_for_vendors, reason="openssl makes the certificates")
posix = pytest.mark.skipif(sys.platform == "win32", reason="signals and terminals are POSIX's here")

HOSTS = ("platform.claude.com", "api.anthropic.com", "auth.x.ai", "auth.openai.com")
MODEL = ("--model", "anthropic/claude-haiku-4-5", "--no-tools")
ANSWER = b"".join(
    b"event: %s\ndata: %s\n\n" % (str(event["type"]).encode(), json.dumps(event).encode())
    for event in (
        {
            "type": "message_start",
            "message": {
                "id": "m1",
                "type": "message",
                "role": "assistant",
                "model": "claude-haiku-4-5",
                "content": [],
                "stop_reason": None,
                "stop_sequence": None,
                "usage": {"input_tokens": 3, "output_tokens": 1},
            },
        },
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hello."}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
        {"type": "message_stop"},
    )
)


def answered(asked: Asked) -> tuple[int, dict[str, Any]] | None:
    """The model's answer, for whoever asks at all."""
    return (200, {"raw": ANSWER, "type": "text/event-stream"}) if asked.path == "/v1/messages" else None


@contextmanager
def vendors_for(cli: Cli, tmp_path: Path, **options: Any) -> Iterator[AuthorisationServer]:
    with AuthorisationServer(
        vendor_names=HOSTS, folder=tmp_path / "vendors", **{"other": answered, **options}
    ) as server:
        cli.variables.update(server.variables)
        yield server


def saved(cli: Cli, name: str | None = None) -> dict[str, Any]:
    entries: dict[str, Any] = json.loads((cli.config / "auth.json").read_text("utf-8"))
    return entries if name is None else entries[name]


def save(cli: Cli, **entries: Any) -> None:
    path = cli.config / "auth.json"
    path.write_text(json.dumps(entries), "utf-8")
    path.chmod(0o600)


# --- keys ---


@pytest.mark.parity("auth.login-key")
def test_a_key_from_stdin_is_saved_checked_and_forgotten(cli: Cli) -> None:
    done = cli.run("auth", "login", "groq", "--api-key", stdin="gsk-s3cret\n")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"Saved the key of groq in {cli.config / 'auth.json'}\n"
    assert saved(cli) == {"groq": {"type": "api_key", "key": "gsk-s3cret"}}
    if os.name != "nt":
        assert (cli.config / "auth.json").stat().st_mode & 0o777 == 0o600
    done = cli.run("auth", "check", "groq")
    assert (done.returncode, done.stdout) == (0, f"groq  key in {cli.config / 'auth.json'}\n")
    done = cli.run("auth", "logout", "groq")
    assert (done.returncode, done.stdout) == (0, f"Removed groq from {cli.config / 'auth.json'}\n")
    assert saved(cli) == {}
    done = cli.run("auth", "logout", "groq")
    assert (done.returncode, done.stdout) == (0, "Nothing is saved for groq\n")
    assert cli.run("auth", "check", "groq").returncode == 1


@pytest.mark.parity("cli.auth-commands")
def test_a_provider_without_a_login_is_given_a_key(cli: Cli) -> None:
    assert cli.run("auth", "login", "mistral", stdin="k").returncode == 0
    assert saved(cli, "mistral") == {"type": "api_key", "key": "k"}
    variable = ("--env", "CLOUDFLARE_ACCOUNT_ID=acc-1", "--env", "CLOUDFLARE_GATEWAY_ID=gw=1")
    assert cli.run("auth", "login", "cloudflare-ai-gateway", *variable, stdin="k1").returncode == 0
    assert cli.run("auth", "login", "cloudflare-ai-gateway", stdin="k2").returncode == 0
    env = {"CLOUDFLARE_ACCOUNT_ID": "acc-1", "CLOUDFLARE_GATEWAY_ID": "gw=1"}
    assert saved(cli, "cloudflare-ai-gateway") == {"type": "api_key", "key": "k2", "env": env}
    assert cli.run("auth", "check", "cloudflare-ai-gateway").returncode == 0
    without = cli.run("auth", "login", "cloudflare-workers-ai", stdin="k")
    assert without.returncode == 0
    assert "CLOUDFLARE_ACCOUNT_ID is not set. Set it, or save it with the key: --env" in without.stderr
    done = cli.run("auth", "check", "cloudflare-workers-ai")
    assert done.returncode == 1 and done.stdout.endswith("but CLOUDFLARE_ACCOUNT_ID is not set\n")


@pytest.mark.parametrize(
    ("arguments", "stdin", "code", "text"),
    [
        ((), "", 2, "the following arguments are required: login|logout|check"),
        (("signin",), "", 2, "invalid choice: 'signin'"),
        (("login",), "", 1, "no provider was named. Run `cantle auth login PROVIDER`, such as"),
        (("login", "openia"), "", 1, 'there is no provider "openia". Did you mean openai'),
        (("login", "qqqq"), "", 1, 'there is no provider "qqqq". Add it in'),
        (("login", "groq"), "", 1, "no key was given. Pipe it in: cantle auth login groq --api-key < FILE"),
        (("login", "groq"), "two words", 1, "what was given is no key"),
        (("login", "groq"), "two\nlines", 1, "what was given is no key"),
        (("login", "groq"), "gsk-cut…off", 1, "it holds a character that no key has. Copy it anew."),
        (("login", "groq", "--method", "device"), "k", 1, "groq has no login, only a key"),
        (("login", "groq", "--env", "A"), "k", 1, "--env A has no value. Write it as --env NAME=VALUE."),
        (("login", "xai", "--env", "A=b"), "", 1, "--env is saved with a key"),
        (
            ("login", "xai", "--method", "browser"),
            "",
            1,
            "is not signed in to by browser. It is by --method device.",
        ),
        (("login", "xai", "--method", "smoke"), "", 2, "invalid choice: 'smoke'"),
        (("logout",), "", 1, "no provider was named. Nothing is saved."),
        (("logout", "qqqq"), "", 1, 'there is no provider "qqqq"'),
        (("check", "qqqq"), "", 1, 'there is no provider "qqqq"'),
        (("check", "groq", "--model", "openai/gpt-5"), "", 1, "is not one of groq"),
    ],
)
def test_a_wrong_call_is_one_sentence(
    cli: Cli, arguments: tuple[str, ...], stdin: str, code: int, text: str
) -> None:
    done = cli.run("auth", *arguments, stdin=stdin)
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.startswith("cantle: ") and done.stderr.count("\n") == 1 and text in done.stderr
    assert not (cli.config / "auth.json").exists()


@posix
@pytest.mark.parametrize("arguments", [("groq",), (), ("anthropic", "--method", "paste")])
def test_without_stdin_nothing_is_asked(cli: Cli, arguments: tuple[str, ...]) -> None:
    with cli.started(
        "auth", "login", *arguments, stdin=None, stderr=subprocess.PIPE, preexec_fn=lambda: os.close(0)
    ) as process:
        _, err = process.communicate(timeout=PATIENCE)
    text = err.decode()
    assert process.returncode == 1 and "Traceback" not in text
    assert re.search("no key was given|no provider was named|there is no stdin", text)


def test_an_entry_that_is_damaged_is_mended_by_what_its_error_names(cli: Cli) -> None:
    save(cli, groq="gsk-s3cret", other={"type": "api_key", "key": "k"})
    done = cli.run("auth", "check", "groq")
    assert done.returncode == 1 and "run `cantle auth login groq`" in done.stdout
    done = cli.run("--model", "groq/llama-3.3-70b-versatile", "-p", "hi")
    assert done.returncode == 1 and "run `cantle auth login groq`" in done.stderr
    assert done.stderr.count("\n") == 1 and "s3cret" not in done.stderr + done.stdout
    assert cli.run("auth", "login", "groq", stdin="gsk-2").returncode == 0
    assert saved(cli, "groq") == {"type": "api_key", "key": "gsk-2"} and "other" in saved(cli)


def test_a_damaged_entry_is_no_matter_of_other_providers(cli: Cli) -> None:
    save(cli, groq="gsk-s3cret", xai={"type": "oauth", "access": "at-s3cret"}, mistral={"key": "k"})
    done = cli.run("--list-models")
    assert done.returncode == 0 and "mistral" in done.stdout and "groq" not in done.stdout
    done = cli.run("auth", "check")
    assert done.returncode == 0 and done.stderr == "" and "s3cret" not in done.stdout
    assert re.search(
        r"^xai .*xai\.expires is missing.* Run `cantle auth login xai`$", done.stdout, re.MULTILINE
    )
    found = {row["provider"]: row for row in json.loads(cli.run("auth", "check", "--json").stdout)}
    assert found["mistral"]["status"] == "ready" and "problem" not in found["mistral"]
    assert found["groq"]["status"] == "not_ready" and "must be an object" in found["groq"]["problem"]
    save(cli, groq="gsk-s3cret")
    done = cli.run("-p", "hi")
    assert done.returncode == 1 and "must be an object" in done.stderr and "s3cret" not in done.stderr


@vendors
def test_nobody_signs_in_where_it_could_not_be_saved(cli: Cli, tmp_path: Path) -> None:
    (cli.config / "auth.json").mkdir(mode=0o700)
    with vendors_for(cli, tmp_path) as server:
        done = cli.run("auth", "login", "xai")
    assert done.returncode == 1 and "auth.json cannot be read: is a directory" in done.stderr
    assert done.stderr.count("\n") == 1 and server.asked == []


def test_a_broken_file_is_one_sentence_and_is_left_as_it_was(cli: Cli) -> None:
    path = cli.config / "auth.json"
    path.write_text('{"openai": {"key": "sk-s3cret"', "utf-8")
    path.chmod(0o600)
    for arguments in (("check",), ("login", "groq"), ("logout", "openai"), ("logout", "--all")):
        done = cli.run("auth", *arguments, stdin="k")
        assert done.returncode == 1 and done.stderr.count("\n") == 1, done.stderr
        assert f"{path}, line 1, column" in done.stderr and "s3cret" not in done.stderr + done.stdout
    assert path.read_text("utf-8") == '{"openai": {"key": "sk-s3cret"'


@pytest.mark.parity("auth.check")
def test_check_says_where_each_key_comes_from(cli: Cli) -> None:
    models = {
        "mine": {
            "baseUrl": "http://h/v1",
            "api": "openai-completions",
            "apiKey": "$MINE",
            "models": [{"id": "m"}],
        }
    }
    (cli.config / "models.json").write_text(json.dumps({"providers": models}), "utf-8")
    save(
        cli,
        openai={"type": "api_key", "key": "sk-s3cret"},
        anthropic={
            "type": "oauth",
            "access": "at-s3cret",
            "refresh": "rt-s3cret",
            "expires": round((time.time() + 7200.5) * 1000),
        },
        xai={"type": "oauth", "access": "at-s3cret", "refresh": "rt-s3cret", "expires": 1},
    )
    cli.variables.update(GROQ_API_KEY="gsk-s3cret", OPENAI_API_KEY="sk-2-s3cret", AWS_PROFILE="work")
    done = cli.run("auth", "check")
    lines = dict(re.split(r"  +", line, maxsplit=1) for line in done.stdout.splitlines()[:-1])
    auth = cli.config / "auth.json"
    assert lines == {
        "openai": f"key in {auth}",
        "anthropic": f"login in {auth}, good for 2 hours",
        "xai": f"login in {auth}, expired; it is renewed at the next request",
        "groq": "variable GROQ_API_KEY",
        "amazon-bedrock": "the AWS profile work",
        "mine": f"apiKey in {cli.config / 'models.json'}, but MINE is not set",
        **{name: text for name, text in lines.items() if text == "needs no key"},
    }
    assert re.fullmatch(r"\d+ others have no key", done.stdout.splitlines()[-1])
    listed = json.loads(cli.run("auth", "check", "--json").stdout)
    assert {row["provider"] for row in listed} == set(lines)
    one = json.loads(cli.run("auth", "check", "--provider", "anthropic", "--json").stdout)
    assert one["status"] == "ready" and one["authType"] == "oauth" and one["source"] == "login"
    assert one["expires"] == saved(cli, "anthropic")["expires"]
    none = cli.run("auth", "check", "mine", "--json")
    assert none.returncode == 1
    assert json.loads(none.stdout)["missing"] == ["MINE"]
    by_model = json.loads(cli.run("auth", "check", "--model", "mine/m", "--json").stdout)
    assert by_model["provider"] == "mine"
    assert "s3cret" not in done.stdout + json.dumps(listed)
    done = cli.run("auth", "logout", "openai")
    assert done.stdout == f"Removed openai from {auth}; OPENAI_API_KEY is still set\n"
    assert cli.run("auth", "logout", "--all").stdout.count("Removed") == 2


def test_a_live_check_asks_one_model_once(cli: Cli, tmp_path: Path) -> None:
    if not can_stand_for_vendors:
        pytest.skip("openssl makes the certificates")
    with vendors_for(cli, tmp_path) as server:
        cli.variables["ANTHROPIC_API_KEY"] = "sk-ant-s3cret"
        assert cli.run("auth", "check", "anthropic").returncode == 0
        assert server.asked == []
        done = cli.run("auth", "check", "anthropic", "--live")
        assert (done.returncode, done.stdout) == (0, "anthropic  variable ANTHROPIC_API_KEY; answered\n")
        assert [asked.headers["x-api-key"] for asked in server.asked] == ["sk-ant-s3cret"]
        server.other = lambda asked: (
            401,
            {"type": "error", "error": {"type": "authentication_error", "message": "invalid x-api-key"}},
        )
        done = cli.run("auth", "check", "anthropic", "--live", "--json")
        assert done.returncode == 1
        found = json.loads(done.stdout)
        assert found["status"] == "not_ready" and "invalid x-api-key" in found["live"]["error"]
        assert "s3cret" not in done.stdout + done.stderr


def test_a_missing_key_names_the_login(cli: Cli) -> None:
    done = cli.run("--provider", "xai", "-p", "hi")
    assert done.returncode == 1 and "Set XAI_API_KEY, run `cantle auth login xai`," in done.stderr


# --- logins ---


@vendors
@pytest.mark.fault("B24")
@pytest.mark.parity("auth.login")
def test_b24_a_login_by_paste_works_without_browser_and_terminal(cli: Cli, tmp_path: Path) -> None:
    """Everything goes through the proxy, and the request after it carries the token."""
    with vendors_for(cli, tmp_path) as server:
        with cli.started("auth", "login", "anthropic", stdin=subprocess.PIPE) as process:
            assert process.stdin is not None and process.stderr is not None and process.stdout is not None
            err = b""
            while not (found := re.search(rb"https://\S+", err)):
                err += process.stderr.read1(4096)  # type: ignore[attr-defined]
            process.stdin.write(server.browse(found[0].decode()).encode() + b"\n")
            process.stdin.close()
            out, rest = process.stdout.read().decode(), process.stderr.read()
            assert process.wait(PATIENCE) == 0, rest
        assert out == f"Signed in to Claude Pro or Max; saved in {cli.config / 'auth.json'}\n"
        entry = saved(cli, "anthropic")
        assert entry["type"] == "oauth" and {entry["access"], entry["refresh"]} <= server.issued
        done = cli.run(*MODEL, "-p", "hi")
        assert (done.returncode, done.stdout, done.stderr) == (0, "Hello.\n", "")
        assert server.of_path("/v1/messages")[0].headers["authorization"] == f"Bearer {entry['access']}"
        shown = out + (err + rest).decode()
        assert not any(secret in shown for secret in server.issued)


@vendors
def test_a_login_by_device_code(cli: Cli, tmp_path: Path) -> None:
    with vendors_for(cli, tmp_path) as server:
        server.device_answers = [(400, {"error": "authorization_pending"})]
        done = cli.run("auth", "login", "xai")
        assert done.returncode == 0, done.stderr
        assert "code: ABCD-1234" in done.stderr and "https://login.example/device" in done.stderr
        assert done.stdout.startswith("Signed in to SuperGrok or X Premium; saved in ")
        assert saved(cli, "xai")["access"] in server.issued
        server.device_answers = [(400, {"error": "access_denied"})]
        done = cli.run("auth", "login", "xai")
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.endswith("cantle: the login was denied in the browser.\n")


@vendors
def test_what_a_server_sends_cannot_drive_the_terminal_or_the_browser(cli: Cli, tmp_path: Path) -> None:
    page = "https://x.example/"

    def answer(asked: Asked) -> tuple[int, dict[str, Any]]:
        if "device_code" in asked.fields:
            return 400, {"error": "access_denied"}
        return 200, {
            "device_code": "d",
            "user_code": "\x1b[2JA",
            "verification_uri": page,
            "interval": 1,
            "expires_in": 5,
        }

    with vendors_for(cli, tmp_path) as server:
        server.answer = answer  # type: ignore[method-assign]
        done = cli.run("auth", "login", "xai")
        assert "\x1b" not in done.stderr and "\\x1b[2JA" in done.stderr
        page = "file:///etc/passwd"
        done = cli.run("auth", "login", "xai")
        assert done.returncode == 1
        assert (
            done.stderr == "cantle: the server named a page that is not on https://, and it is not opened.\n"
        )


def test_a_login_without_a_network_is_one_sentence(cli: Cli) -> None:
    cli.variables["HTTPS_PROXY"] = "http://127.0.0.1:9"
    done = cli.run("auth", "login", "xai")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("cantle: ") and done.stderr.count("\n") == 1


@posix
def test_an_interrupted_login_says_nothing_and_saves_nothing(cli: Cli) -> None:
    with cli.started("auth", "login", "anthropic", stdin=subprocess.PIPE) as process:
        assert process.stderr is not None
        err = b""
        while b"Paste the code" not in err:
            err += process.stderr.read1(4096)  # type: ignore[attr-defined]
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
        assert process.wait(PATIENCE) == 130
    assert b"Traceback" not in rest
    assert not (cli.config / "auth.json").exists()


# --- renewal in a run ---


@vendors
def test_an_expired_login_is_renewed_in_a_run_and_saved_before_it_is_used(cli: Cli, tmp_path: Path) -> None:
    found: list[bool] = []

    def other(asked: Asked) -> tuple[int, dict[str, Any]] | None:
        entry = saved(cli, "anthropic")
        found.append(asked.headers["authorization"] == f"Bearer {entry['access']}")
        return answered(asked)

    with vendors_for(cli, tmp_path, other=other) as server:
        save(cli, anthropic=expired(server.tokens()))
        done = cli.run(*MODEL, "-p", "hi")
        assert (done.returncode, done.stdout, done.stderr) == (0, "Hello.\n", "")
        assert (server.renewals, server.reused, found) == (1, 0, [True])


@vendors
@posix
@pytest.mark.parametrize("names", ["SIGTERM", "SIGINT SIGINT", "SIGHUP"])
def test_a_run_that_is_ended_while_it_renews_saves_the_token(cli: Cli, tmp_path: Path, names: str) -> None:
    """The server has rotated the token, and answers when the program has heard the signals."""
    with vendors_for(cli, tmp_path, held=threading.Event()) as server:
        save(cli, anthropic=expired(server.tokens()))
        with cli.started(*MODEL, "-p", "hi") as process:
            assert server.renewal_began.wait(PATIENCE)
            signals = [getattr(signal, name) for name in names.split()]
            for number in signals:
                process.send_signal(number)
            assert process.stderr is not None
            assert b"stopped by" in process.stderr.readline()
            assert server.held is not None
            server.held.set()
            rest = process.stderr.read().decode()
            assert process.wait(PATIENCE) == 128 + signals[0]
        assert rest == ""
        entry = saved(cli, "anthropic")
        assert entry["access"] in server.issued and entry["expires"] > time.time() * 1000
        assert cli.run(*MODEL, "-p", "hi").stdout == "Hello.\n"
        assert (server.renewals, server.reused) == (1, 0)


@vendors
@posix
@pytest.mark.slow
def test_a_slow_renewal_is_finished_though_the_run_is_over(cli: Cli, tmp_path: Path) -> None:
    """Longer than the program waits for anything else that was left running."""
    with vendors_for(cli, tmp_path, held=threading.Event()) as server:
        save(cli, anthropic=expired(server.tokens()))
        with cli.started(*MODEL, "-p", "hi") as process:
            assert server.renewal_began.wait(PATIENCE)
            process.send_signal(signal.SIGTERM)
            assert process.stderr is not None
            assert b"stopped by" in process.stderr.readline()
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(3.5)
            assert server.held is not None
            server.held.set()
            assert process.stderr.read() == b""
            assert process.wait(PATIENCE) == 143
        assert saved(cli, "anthropic")["access"] in server.issued


@vendors
@pytest.mark.parity("auth.refused-refresh")
def test_no_token_is_in_anything_that_a_failing_run_writes(cli: Cli, tmp_path: Path) -> None:
    """A refused renewal, and a request that fails with its token in the provider's own words."""
    with vendors_for(cli, tmp_path) as server:
        tokens = server.tokens()
        save(cli, anthropic=expired(tokens))
        server.refused = (
            400,
            {"error": "invalid_grant", "error_description": f"bad {tokens['refresh_token']}"},
        )
        runs = [cli.run(*MODEL, "-p", "hi"), cli.run(*MODEL, "--mode", "json", "hi")]
        assert "Sign in again: `cantle auth login anthropic`" in runs[0].stderr
        server.refused = None

        def refuse(asked: Asked) -> tuple[int, dict[str, Any]]:
            message = f"no such token: {asked.headers['authorization']}"
            return 401, {"type": "error", "error": {"type": "authentication_error", "message": message}}

        server.other = refuse
        save(cli, anthropic=expired(server.tokens()))
        runs += [cli.run(*MODEL, "-p", "hi"), cli.run(*MODEL, "--mode", "json", "hi")]
        runs += [cli.run("auth", "check", "anthropic", "--live"), cli.run("auth", "check", "--json")]
        assert [run.returncode for run in runs] == [1, 1, 1, 1, 1, 0]
        assert not any("Traceback" in run.stderr for run in runs)
        shown = "".join(run.stdout + run.stderr for run in runs)
        kept = "".join(
            path.read_text("utf-8", "replace")
            for folder in (cli.home, cli.cwd)
            for path in folder.rglob("*")
            if path.is_file() and path.name != "auth.json"
        )
        assert "hi" in kept and "no such token" in kept and "no such token" in shown
        for secret in server.issued:
            assert secret not in shown and secret not in kept
