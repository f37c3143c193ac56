"""What tests of logins share: a login at a loopback server, a person who answers, a place to keep credentials."""

from __future__ import annotations

import asyncio
import json
import threading
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from cantle_ai.auth.credential_file import CredentialFile
from cantle_ai.auth.login import Dialogue, LoginError
from cantle_ai.auth.oauth.browser import CodePage
from cantle_ai.auth.oauth.client import OAuthClient
from cantle_ai.auth.oauth.tokens import TokenLogin
from cantle_ai.transport.urllib3_thread import Urllib3Transport


def login_at(url: str, *, port: int = 0, timeout: float = 20.0) -> TokenLogin:
    """A login by all three ways whose vendor is at `url`."""
    return TokenLogin(
        name="Test",
        client_id="client-1",
        authorize_url=f"{url}/authorize",
        token_url=f"{url}/token",
        device_url=f"{url}/device",
        scopes=("all", "of:it"),
        page=CodePage(port=port, path="/callback", timeout=timeout),
    )


def stored(path: Path, **entries: dict[str, Any]) -> CredentialFile:
    """A file that holds `entries`."""
    path.write_text(json.dumps(entries), encoding="utf-8")
    path.chmod(0o600)
    return CredentialFile(path)


def entry(path: Path, name: str = "p") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))[name]
    return found


class Person:
    """Somebody at the keyboard. `browse` is what their browser does with an address."""

    def __init__(
        self,
        *,
        browse: Callable[[str], str] | None = None,
        pastes: tuple[str, ...] = (),
        can_paste: bool = False,
    ) -> None:
        self.browse = browse
        self.pastes = list(pastes)
        self.can_paste = can_paste
        self.addresses: list[str] = []
        self.codes: list[tuple[str, str]] = []
        self.told: list[str] = []
        self.questions: list[str] = []
        self.ended_at: list[str] = []

    def show_address(self, url: str) -> None:
        self.addresses.append(url)
        if self.browse is not None:
            self.ended_at.append(self.browse(url))
            threading.Thread(target=visit, args=(self.ended_at[-1],), daemon=True).start()

    def show_code(self, code: str, url: str) -> None:
        self.codes.append((code, url))

    def tell(self, text: str) -> None:
        self.told.append(text)

    async def ask(self, question: str) -> str:
        self.questions.append(question)
        if not self.pastes:
            raise LoginError("Nobody is there")
        return self.pastes.pop(0)


_proof: type[Dialogue] = Person


def visit(url: str) -> int:
    """The status that a browser gets from a page of this machine."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=10) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        return int(error.code)


class Clock:
    """Seconds that pass only while somebody sleeps."""

    def __init__(self) -> None:
        self.now = 1_000_000.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)


async def with_client(work: Callable[[OAuthClient], Awaitable[Any]], clock: Clock | None = None) -> Any:
    """What `work` gives with a client over the real transport."""
    transport = Urllib3Transport(environ={})
    client = (
        OAuthClient(transport) if clock is None else OAuthClient(transport, clock=clock, sleep=clock.sleep)
    )
    try:
        return await work(client)
    finally:
        await transport.aclose()
