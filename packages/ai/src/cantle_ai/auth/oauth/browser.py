"""The flow of a browser: a page is opened, and it comes back with a code, by itself or pasted by a person."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from secrets import token_urlsafe

import msgspec

from cantle_ai.auth.login import Dialogue, LoginError, LoginMethod
from cantle_ai.auth.oauth.callback import CallbackServer, PortBusyError
from cantle_ai.auth.oauth.pkce import Attempt, new_attempt
from cantle_ai.auth.oauth.redirect import Redirect, read_pasted

__all__ = ["CodePage", "code_from_browser"]

_WAIT = 300.0
"""Seconds that a person has in order to sign in."""


class CodePage(msgspec.Struct, frozen=True, kw_only=True):
    """Where a login's browser comes back to."""

    host: str = "localhost"
    """As the vendor has it registered; only the loopback interface is listened on, whatever it says."""
    port: int
    """0 for any."""
    path: str
    secret_path: bool = False
    """Whether a secret part is put behind the path, for a vendor that repeats no state."""
    copied: str | None = None
    """A page of the vendor's that shows the code for pasting."""
    timeout: float = _WAIT


async def code_from_browser(
    page: CodePage, method: LoginMethod, dialogue: Dialogue, address: Callable[[Attempt], str]
) -> tuple[Attempt, Redirect]:
    """The attempt and what it came back with. `address` makes the page that is opened.

    Where the port is taken, the browser's last address is asked for instead. Raises :class:`LoginError`.
    """
    path = f"{page.path}/{token_urlsafe(24)}" if page.secret_path else page.path
    attempt = new_attempt()
    state = None if page.secret_path else attempt.state
    if method == "browser":
        try:
            async with CallbackServer(port=page.port, path=path, state=state) as server:
                attempt = _returning(attempt, f"http://{page.host}:{server.port}{path}")
                dialogue.show_address(address(attempt))
                return attempt, await _first(server, dialogue, state, page.timeout)
        except PortBusyError as error:
            dialogue.tell(f"{error}, so the browser cannot come back by itself.")
    # Nothing need listen there: the address that the browser fails to open is what is pasted.
    attempt = _returning(attempt, page.copied or f"http://{page.host}:{page.port or 1}{path}")
    dialogue.show_address(address(attempt))
    pasted = await dialogue.ask(
        "Paste the code that the page shows: "
        if page.copied
        else "Paste the address that the browser ends at (it may fail to open it): "
    )
    return attempt, read_pasted(pasted, state, bare=page.secret_path)


def _returning(attempt: Attempt, redirect: str) -> Attempt:
    return msgspec.structs.replace(attempt, redirect=redirect)


async def _first(server: CallbackServer, dialogue: Dialogue, state: str | None, timeout: float) -> Redirect:
    """Whatever comes first: the browser, or a person who pastes where it ended."""
    waiting = {asyncio.create_task(server.wait())}
    if dialogue.can_paste:
        waiting.add(asyncio.create_task(_pasted(dialogue, state)))
    try:
        done, _ = await asyncio.wait(waiting, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        if not done:
            raise LoginError(f"Nobody signed in within {timeout / 60:g} minutes. Begin again")
        return next(iter(done)).result()
    finally:
        for task in waiting:
            task.cancel()
        for task in waiting:
            with suppress(asyncio.CancelledError, LoginError):
                await task


async def _pasted(dialogue: Dialogue, state: str | None) -> Redirect:
    while True:
        try:
            text = await dialogue.ask("Or paste the address that it ends at, if it runs elsewhere: ")
        except LoginError:  # nobody pastes any more, but the browser may still come back
            await asyncio.get_running_loop().create_future()
            raise
        try:
            return read_pasted(text, state, bare=state is None)
        except LoginError as error:
            dialogue.tell(f"{error}.")
