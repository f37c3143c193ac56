"""Keys: what a configured value stands for, and that it is never shown."""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cantle_ai.auth.keys import missing_variables, resolve_value
from cantle_ai.errors import ConfigurationError

ENVIRON = {"SEC": "abc", "EMPTY": "", "PATH": os.environ.get("PATH", "")}
posix = pytest.mark.skipif(os.name == "nt", reason="the commands are written for a POSIX shell")


async def resolve(value: str, timeout: float = 20) -> str:
    return await resolve_value(value, ENVIRON, name="the key of p", timeout=timeout)


@pytest.mark.parity("models.key-values")
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("sk-123", "sk-123"),
        ("$SEC", "abc"),
        ("${SEC}", "abc"),
        ("Bearer $SEC!", "Bearer abc!"),
        ("a${SEC}b$SEC", "aabcbabc"),
        ("$$SEC", "$SEC"),
        ("$!echo", "!echo"),
        ("x!y", "x!y"),
        ("$5-$-${-${}end$", "$5-$-${-${}end$"),
        ("", ""),
    ],
)
async def test_a_value_stands_for(value: str, expected: str) -> None:
    assert await resolve(value) == expected


@given(st.text().filter(lambda text: "$" not in text and not text.startswith("!")))
def test_other_text_stands_for_itself(value: str) -> None:
    assert asyncio.run(resolve(value)) == value


@pytest.mark.parametrize("value", ["$NOPE", "a-${NOPE}", "$EMPTY"])
async def test_a_variable_that_is_not_set_is_named(value: str) -> None:
    assert missing_variables(value, ENVIRON) == [value.strip("a-${}")]
    with pytest.raises(ConfigurationError, match=r"the key of p refers to \$\w+, which is not set"):
        await resolve(value)


def test_missing_variables_runs_nothing(tmp_path: Path) -> None:
    assert missing_variables(f"!touch {tmp_path}/ran $NOPE", ENVIRON) == []
    assert missing_variables("$A $SEC ${B} $A", ENVIRON) == ["A", "B"]
    assert list(tmp_path.iterdir()) == []


@posix
async def test_a_command_gives_what_it_prints_each_time_anew(tmp_path: Path) -> None:
    log = tmp_path / "log"
    command = (
        f"!echo x >> {shlex.quote(str(log))}; echo \"  $SEC-$(wc -l < {shlex.quote(str(log))} | tr -d ' ')\""
    )
    assert [await resolve(command) for _ in range(3)] == ["abc-1", "abc-2", "abc-3"]


@posix
@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("echo s3cret; exit 3", "failed with exit status 3"),
        ("true", "printed nothing"),
        ("echo s3cret >&2", "printed nothing"),
        ("echo s3cret; echo second", "printed more than one line"),
        (r"printf 's3cret\377'", "not UTF-8"),
        ("no-such-command-s3cret", "failed with exit status 127"),
        (f"{shlex.quote(sys.executable)} -c 'print(\"s3cret\" * 100000)'", "printed more than 64 KB"),
    ],
)
async def test_a_command_that_fails_is_an_error_that_shows_no_secret(
    command: str, problem: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        await resolve(f"!{command}")
    text = str(caught.value)
    assert problem in text and "the key of p" in text
    assert "s3cret" not in text
    assert "s3cret" not in "".join(capfd.readouterr())


def group_ended(process_group: int) -> bool:
    try:
        os.killpg(process_group, 0)
    except ProcessLookupError:
        return True
    return False


@posix
@pytest.mark.parametrize("how", ["timeout", "cancelled"])
async def test_a_command_that_does_not_end_is_stopped_with_its_children(how: str, tmp_path: Path) -> None:
    pipe = tmp_path / "pid"
    os.mkfifo(pipe)
    command = f"!echo $$ > {shlex.quote(str(pipe))}; sleep 600 & sleep 600"
    loop = asyncio.get_running_loop()
    task = asyncio.create_task(resolve(command, timeout=0.5 if how == "timeout" else 60))
    group = int(await loop.run_in_executor(None, pipe.read_text, "ascii"))
    if how == "cancelled":
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    else:
        with pytest.raises(ConfigurationError, match=r"did not end within 0\.5 s"):
            await task
    deadline = time.monotonic() + 10
    while not group_ended(group):
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)


@posix
async def test_a_child_that_keeps_the_output_open_does_not_outlive_the_command() -> None:
    with pytest.raises(ConfigurationError, match="did not end"):
        await resolve("!echo key; sleep 600 &", timeout=0.5)
