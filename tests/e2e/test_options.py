"""Options of the command line, seen from the server: which model is asked, how hard, with which key and prompt."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest

from cantle_ai.providers import BUILTIN_PROVIDERS, WIRE_APIS
from cantle_ai.schemas import MODELS_SCHEMA
from cantle_ai.testing.server.server import StrictServer
from cantle_ai.testing.server.strictness import Strictness
from tests.support.cli import Cli

LOOP = ("--provider", "loop", "--model", "m")


def request(cli: Cli, *arguments: str, **model: Any) -> dict[str, Any]:
    """The body of the one request of a run that succeeds; its headers are under the key `headers`."""
    with StrictServer(["ok"]) as server:
        cli.configure(server.base_url, **model)
        done = cli.run(*arguments, "-p", "go")
    assert (done.returncode, done.stdout, done.stderr) == (0, "ok\n", "")
    server.assert_clean()
    (received,) = server.requests
    return {**cast("dict[str, Any]", received.json), "headers": received.call.headers}


def test_a_provider_alone_means_its_first_model(cli: Cli) -> None:
    body = request(cli, "--provider", "loop")
    assert body["model"] == "m"


def test_the_models_of_one_provider_are_listed_with_a_key_for_it(cli: Cli) -> None:
    def providers(*arguments: str) -> set[str]:
        done = cli.run("--list-models", *arguments)
        assert (done.returncode, done.stderr) == (0, "")
        return {line.split()[0] for line in done.stdout.splitlines()[1:]}

    cli.configure("http://127.0.0.1:9/v1")
    here = {"local", *(row.id for row in BUILTIN_PROVIDERS if row.server)}  # what is installed, or runs
    assert providers() - here == {"loop"}
    assert providers("--provider", "loop") == {"loop"}
    assert providers("--provider", "openai", "--api-key", "sk-x") == {"openai"}
    without = cli.run("--list-models", "--provider", "openai")
    assert (without.returncode, "no key for the provider openai" in without.stderr) == (1, True)
    assert 'no provider "nope"' in cli.run("--list-models", "--provider", "nope").stderr


def test_a_variable_that_models_json_names_as_a_key_and_that_is_not_set(cli: Cli) -> None:
    row = {"baseUrl": "http://127.0.0.1:9/v1", "api": "openai-completions", "apiKey": "$NOPE"}
    file = cli.config / "models.json"
    file.write_text(json.dumps({"providers": {"local": {**row, "models": [{"id": "m"}]}}}))
    unset = f"cantle: the variable NOPE, which {file} names as the key of the provider local, is not set"
    for arguments in (
        ("--provider", "local", "-p", "go"),
        ("--model", "local/m", "-p", "go"),
        ("--list-models", "--provider", "local"),
    ):
        done = cli.run(*arguments)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr == f"{unset}. Set that environment variable, or give --api-key.\n"
    for any_model in (("--list-models",), ("-p", "go")):
        done = cli.run(*any_model)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith(f"{unset}, and no other provider has a key. Set NOPE,")


def test_a_search_that_only_models_without_a_key_fit_says_whose_they_are(cli: Cli) -> None:
    row = {"baseUrl": "http://127.0.0.1:9/v1", "api": "openai-completions"}
    keys = {"has": "k", "lacks": "$NOPE"}
    rows = {name: {**row, "apiKey": key, "models": [{"id": f"zzqq-{name}"}]} for name, key in keys.items()}
    (cli.config / "models.json").write_text(json.dumps({"providers": rows}))
    assert cli.run("--list-models", "zzqq").stdout.splitlines()[1].startswith("has ")
    done = cli.run("--list-models", "zzqq-lacks")
    assert (done.returncode, done.stdout) == (1, "")
    said = 'no model that can be used fits "zzqq-lacks"; some of providers without a key do: lacks.'
    assert done.stderr == f"cantle: {said} `cantle auth check lacks` says what is missing.\n"
    assert "those that can be used" in cli.run("--list-models", "zzqq-neither").stderr


def test_a_model_whose_api_does_not_exist_is_left_out_with_a_warning(cli: Cli) -> None:
    row = {"baseUrl": "http://127.0.0.1:9/v1", "api": "openai-completions", "apiKey": "k"}
    models = [{"id": "odd", "api": "smoke"}, {"id": "odder", "api": "smoke"}, {"id": "plain"}]
    file = cli.config / "models.json"
    file.write_text(json.dumps({"providers": {"local": {**row, "models": models}}}))
    done = cli.run("--list-models")
    assert [line.split()[1] for line in done.stdout.splitlines()] == ["model", "plain"]
    known = ", ".join(sorted(WIRE_APIS))
    said = f'the model local/odd speaks the API "smoke", which is not one of {known}. Correct its `api`.'
    assert done.stderr == f"cantle: warning: {said}\n"
    asked = cli.run("--model", "local/odd", "-p", "go")
    assert (asked.returncode, asked.stderr) == (1, f"cantle: {said}\n")
    file.write_text(json.dumps({"providers": {"local": {**row, "models": models[:1]}}}))
    assert cli.run("--list-models").returncode == 1


def system_of(body: dict[str, Any]) -> str:
    return cast("str", body["messages"][0]["content"])


@pytest.mark.parity("cli.model-pattern")
@pytest.mark.parity("cli.thinking-wins")
def test_a_model_is_named_with_its_provider_and_level(cli: Cli) -> None:
    def effort(*arguments: str) -> Any:
        return request(cli, *arguments, reasoning=True).get("reasoning_effort")

    assert effort("--model", "loop/m:high") == "high"
    assert effort("--model", "loop/m:high", "--thinking", "low") == "low"
    assert effort("--model", "loop/m:max") == "high"
    assert request(cli, "--model", "loop/m:high", reasoning=False).get("reasoning_effort") is None


@pytest.mark.parity("cli.api-key")
def test_a_key_of_the_command_line_is_sent_and_not_kept(cli: Cli) -> None:
    body = request(cli, *LOOP, "--api-key", "sk-of-this-run")
    assert body["headers"]["authorization"] == "Bearer sk-of-this-run"
    kept = [path for path in cli.home.rglob("*") if path.is_file()]
    assert kept
    assert [path for path in kept if b"sk-of-this-run" in path.read_bytes()] == []


@pytest.mark.parity("models.key-order")
def test_keys_come_from_four_places_in_this_order(cli: Cli) -> None:
    def key(*arguments: str) -> str:
        with StrictServer(["ok"]) as server:
            providers = {"openai": {"baseUrl": server.base_url, **configured}}
            (cli.config / "models.json").write_text(json.dumps({"providers": providers}), "utf-8")
            done = cli.run("--model", "openai/gpt-5.2", *arguments, "-p", "go")
        assert (done.returncode, done.stderr) == (0, "")
        return server.requests[0].call.headers["authorization"].removeprefix("Bearer ")

    configured: dict[str, str] = {}
    cli.variables["OPENAI_API_KEY"] = "from-the-environment"
    assert key() == "from-the-environment"
    configured = {"apiKey": "from-models-json"}
    assert key() == "from-models-json"
    auth = cli.config / "auth.json"
    auth.write_text('{"openai": {"type": "api_key", "key": "from-auth-json"}}', "utf-8")
    auth.chmod(0o600)
    assert key() == "from-auth-json"
    assert key("--api-key", "from-the-option") == "from-the-option"


@pytest.mark.parity("cli.system-prompt")
def test_texts_are_added_to_the_prompt_in_their_order(cli: Cli) -> None:
    words = ("--append-system-prompt", "First.", "--append-system-prompt", "Second.")
    system = system_of(request(cli, *LOOP, *words))
    assert "\n\nFirst.\n\nSecond.\n\n" in system
    assert system.startswith(system_of(request(cli, *LOOP)).partition("<cwd>")[0].rstrip())


@pytest.mark.parity("cli.approve")
@pytest.mark.parametrize("decision", ["flag", "saved", "default"])
def test_a_project_is_read_only_when_it_is_trusted(cli: Cli, decision: str) -> None:
    project = cli.cwd / ".cantle"
    project.mkdir()
    (project / "settings.json").write_text('{"defaultTools": ["read"]}', "utf-8")
    (project / "APPEND_SYSTEM.md").write_text("Of this project.", "utf-8")

    def read(*arguments: str) -> bool:
        with StrictServer(["ok"]) as server:
            cli.configure(server.base_url)
            assert cli.run(*LOOP, *arguments, "-p", "go").returncode == 0
        body = cast("dict[str, Any]", server.requests[0].json)
        tools = [tool["function"]["name"] for tool in body["tools"]]
        appended = "Of this project." in system_of(body)
        assert (tools == ["read"]) == appended
        return appended

    assert not read()
    if decision == "flag":
        assert read("--approve")
    elif decision == "saved":
        trust = cli.config / "trust.json"
        trust.write_text(json.dumps({str(cli.cwd.parent.resolve()): True}), "utf-8")
        assert read()
        trust.write_text(
            json.dumps({str(cli.cwd.parent.resolve()): True, str(cli.cwd.resolve()): False}), "utf-8"
        )
        assert not read()
    else:
        settings = cli.config / "settings.json"
        settings.write_text('{"defaultProjectTrust": "always"}', "utf-8")
        assert read()
        (project / "settings.json").write_text(
            '{"defaultTools": ["read"], "defaultProjectTrust": "never"}', "utf-8"
        )
        assert read()
    assert not read("--no-approve")


def test_a_model_of_a_session_that_is_gone_is_named_in_a_warning(cli: Cli) -> None:
    with StrictServer(["one", "two"]) as server:
        cli.configure(server.base_url, id="old")
        assert cli.run("--model", "loop/old", "-p", "go").returncode == 0
        cli.configure(server.base_url, id="new")
        done = cli.run("-c", "-p", "go on")
    assert (done.returncode, done.stdout) == (0, "two\n")
    assert done.stderr.startswith("cantle: warning: ")
    assert "loop/old" in done.stderr and "loop/new" in done.stderr
    assert [cast("dict[str, Any]", each.json)["model"] for each in server.requests] == ["old", "new"]


@pytest.mark.parity("cli.piped-stdin")
@pytest.mark.parity("cli.at-file")
def test_files_and_piped_text_and_words_make_one_prompt(cli: Cli) -> None:
    (cli.cwd / "a.md").write_text("A", "utf-8")
    (cli.cwd / "b.md").write_text("B", "utf-8")
    with StrictServer(["ok"]) as server:
        cli.configure(server.base_url)
        done = cli.run(*LOOP, "-p", "@a.md", "@b.md", "compare", stdin="piped\n")
    assert (done.returncode, done.stderr) == (0, "")
    files = "".join(f'<file name="{cli.cwd}/{name}.md">\n{name.upper()}\n</file>\n' for name in "ab")
    assert cast("dict[str, Any]", server.requests[0].json)["messages"][-1]["content"] in (
        f"piped\n\n{files}compare",
        [{"type": "text", "text": f"piped\n\n{files}compare"}],
    )


def test_a_session_that_is_not_there_is_answered_with_a_next_step(cli: Cli) -> None:
    cli.configure("http://127.0.0.1:9/v1")
    done = cli.run(*LOOP, "--session", "0197a000", "-p", "go")
    assert (done.returncode, done.stdout) == (1, "")
    assert "'0197a000'" in done.stderr and "path of a session file" in done.stderr
    assert cli.sessions() == []


@pytest.mark.parametrize("option", ["--session", "--session-dir"])
def test_an_empty_name_of_a_session_is_refused(cli: Cli, option: str) -> None:
    cli.configure("http://127.0.0.1:9/v1")
    done = cli.run(*LOOP, option, "", "-p", "go")
    assert (done.returncode, done.stdout) == (1, "")
    assert "an empty one was given" in done.stderr
    assert cli.sessions() == []


def test_the_models_of_a_gateway_are_listed_with_its_key_and_asked_by_their_whole_ids(cli: Cli) -> None:
    """An id may hold slashes and a colon; a level may follow. Catalogs of providers without a key are left alone."""
    cli.variables["OPENROUTER_API_KEY"] = "k"
    listed = [line.split()[:2] for line in cli.run("--list-models", "gemma:free").stdout.splitlines()[1:]]
    assert ["openrouter", "google/gemma-4-31b-it:free"] in listed
    assert {provider for provider, _ in listed} == {"openrouter"}
    vendor = Strictness(extra_fields=("reasoning",))
    with StrictServer(["ok"] * 2, strictness=vendor) as server:
        file = cli.config / "models.json"
        file.write_text(json.dumps({"providers": {"openrouter": {"baseUrl": server.base_url}}}))
        for name in ("openrouter/google/gemma-4-31b-it:free", "google/gemma-4-31b-it:free:high"):
            done = cli.run("--model", name, "-p", "go")
            assert (done.returncode, done.stdout, done.stderr) == (0, "ok\n", "")
    bodies = [cast("dict[str, Any]", received.json) for received in server.requests]
    assert {body["model"] for body in bodies} == {"google/gemma-4-31b-it:free"}
    assert bodies[1]["reasoning"] == {"effort": "high"}


@pytest.mark.parity("models.editor-schema")
def test_the_schema_of_models_json_is_printed_for_editors(cli: Cli) -> None:
    done = cli.run("--models-schema")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == json.loads(MODELS_SCHEMA.read_text(encoding="utf-8"))
