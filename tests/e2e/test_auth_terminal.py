"""`cantle auth login` with a person at a terminal, and with a browser."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from packages.ai.tests.auth.logins import visit
from tests.e2e.test_auth import saved, vendors, vendors_for
from tests.support.authorisation import PATIENCE, busy_port
from tests.support.cli import Cli

if sys.platform == "win32":
    pytest.skip("there is no pseudo-terminal module on Windows", allow_module_level=True)

import pty
import termios


class Screen:
    """A terminal that a program runs on."""

    def __init__(self, descriptor: int, process: subprocess.Popen[bytes]) -> None:
        self.descriptor = descriptor
        self.process = process
        self.text = ""

    def until(self, pattern: str) -> re.Match[str]:
        """Read until the pattern is on the screen."""
        while not (found := re.search(pattern, self.text)):
            assert self._read(), self.text
        return found

    def type(self, line: str) -> None:
        os.write(self.descriptor, line.encode() + b"\n")

    def end(self) -> int:
        while self._read():
            pass
        return self.process.wait(PATIENCE)

    def echoes(self) -> bool:
        return bool(termios.tcgetattr(self.descriptor)[3] & termios.ECHO)

    def _read(self) -> bool:
        try:
            block = os.read(self.descriptor, 4096)
        except OSError:  # Linux says so when the last writer is gone
            return False
        self.text += block.decode("utf-8", "replace").replace("\r\n", "\n")
        return bool(block)


@contextmanager
def at_a_terminal(cli: Cli, *arguments: str) -> Iterator[Screen]:
    ours, theirs = pty.openpty()
    with cli.started(*arguments, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        yield Screen(ours, process)
    os.close(ours)


def test_a_key_is_typed_without_being_shown(cli: Cli) -> None:
    with at_a_terminal(cli, "auth", "login", "groq") as screen:
        screen.until("Key for .*: ")
        while screen.echoes():  # it is switched off right before the question
            pass
        screen.type("gsk-s3cret")
        assert screen.end() == 0
        assert "s3cret" not in screen.text and "Saved the key of groq" in screen.text
    assert saved(cli, "groq") == {"type": "api_key", "key": "gsk-s3cret"}


@pytest.mark.parametrize(
    ("typed", "said"), [(b"\x04", "no key was given"), (b"\xff\xfe\n", "what was given is no key")]
)
def test_what_is_no_key_is_one_sentence(cli: Cli, typed: bytes, said: str) -> None:
    with at_a_terminal(cli, "auth", "login", "groq") as screen:
        screen.until("Key for .*: ")
        while screen.echoes():
            pass
        os.write(screen.descriptor, typed)
        assert screen.end() == 1
        assert said in screen.text and "Traceback" not in screen.text
    assert not (cli.config / "auth.json").exists()


def test_without_a_provider_there_is_a_list_to_choose_from(cli: Cli) -> None:
    with at_a_terminal(cli, "auth", "login") as screen:
        screen.until("Provider: ")
        assert re.search(r"^  anthropic +sign in: Claude Pro or Max$", screen.text, re.MULTILINE)
        assert re.search(r"^  mistral +key: ", screen.text, re.MULTILINE)
        screen.type("mistrl")
        assert screen.end() == 1
        assert "Did you mean mistral" in screen.text


@vendors
@pytest.mark.parametrize("pasted", [False, True])
def test_a_browser_comes_back_or_a_person_pastes(cli: Cli, tmp_path: Path, pasted: bool) -> None:
    """The browser is a script that notes the address; it is told what to open, and on no port but 127.0.0.1's."""
    noted = tmp_path / "noted"
    script = tmp_path / "browser.sh"
    script.write_text(f'#!/bin/sh\nprintf "%s" "$1" > "{noted}.new"\nmv "{noted}.new" "{noted}"\n')
    script.chmod(0o755)
    cli.variables["BROWSER"] = f"{script} %s"
    with vendors_for(cli, tmp_path) as server, at_a_terminal(cli, "auth", "login", "openai-codex") as screen:
        # Another test run on this machine may have the vendor's port; then it is asked for outright.
        address = screen.until(r"(https://auth\.openai\.com/oauth/\S+)\n")[1]
        screen.until(r"[Pp]aste the address that .*: ")
        ended = server.browse(address)
        if pasted or "in use" in screen.text:
            screen.type(ended)
        else:
            while not noted.exists():
                assert screen.process.poll() is None
            assert noted.read_text() == address
            assert visit(ended.replace("localhost", "127.0.0.1")) == 200
        assert screen.end() == 1  # these tokens name no account
        assert "OpenAI's token names no account" in screen.text
        assert len(server.of_path("/oauth/token")) == 1


@vendors
def test_a_browser_login_whose_port_is_taken_asks_for_the_address(cli: Cli, tmp_path: Path) -> None:
    cli.variables["DISPLAY"] = ":99"
    cli.variables["BROWSER"] = "true %s"
    with vendors_for(cli, tmp_path) as server:
        try:
            taken = busy_port(53692)
            taken.__enter__()
        except OSError:
            taken = None
        with at_a_terminal(cli, "auth", "login", "anthropic") as screen:
            address = screen.until(r"(https://claude\.ai/oauth/\S+)\n")[1]
            screen.until("Paste the code that the page shows: ")
            assert "port 53692 of this machine is in use" in screen.text
            screen.type(server.browse(address))
            assert screen.end() == 0
        if taken is not None:
            taken.__exit__(None, None, None)
        assert saved(cli, "anthropic")["access"] in server.issued
        assert "code-" not in json.dumps(saved(cli))
