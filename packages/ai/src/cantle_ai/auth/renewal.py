"""Renews the tokens of logins: once for all processes, and so that no new token is lost.

A server that rotates refresh tokens takes the old one back in the moment in which it answers. So

- one lock stands for the whole store. Who waited for it looks at the store again, and finds what another process
  got meanwhile;
- a store that cannot be written to is found out before the server is asked, not afterwards;
- the new token is on disk before anybody uses it, and before the connection that it came over is closed;
- the work is done in a thread of its own, with an event loop of its own. Cancelling a request, or closing the
  loop that it runs in, does not touch it, and Python does not exit while it is under way. It takes 30 seconds at
  most. Waiting for another process holds nothing up.

What cannot be helped is a process that is killed outright (SIGKILL, a power cut) after the server has made the new
token and before it is on disk: from the answer's last byte that is the time to write a small file. The next
renewal is then refused, and says how to sign in again.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import TYPE_CHECKING

from cantle_ai.auth.credentials import CredentialStore, OAuthCredential
from cantle_ai.auth.login import Login, LoginError
from cantle_ai.errors import ConfigurationError, ProviderError
from cantle_ai.system_errors import reason_of

if TYPE_CHECKING:
    from cantle_ai.transport.port import Transport

__all__ = ["TokenRenewal", "wait_for_renewals"]

_THREAD = "cantle-token-renewal"
_SECONDS = 30.0
_PATIENCE = 120.0
"""Seconds to wait for other processes, each of which may try and fail."""


def wait_for_renewals() -> bool:
    """Wait until no token is being renewed in this process: for who is about to end it by force. Blocks.

    False when none was.
    """
    running = [thread for thread in threading.enumerate() if thread.name == _THREAD]
    for thread in running:
        thread.join()
    return bool(running)


class TokenRenewal:
    """Renewals for one store. Requests that need the same token at once share one renewal."""

    def __init__(
        self,
        store: CredentialStore,
        connect: Callable[[], Transport],
        *,
        clock: Callable[[], float] = time.time,
        patience: float = _PATIENCE,
    ) -> None:
        """`connect` makes a transport for the event loop that it is called in."""
        self._store = store
        self._connect = connect
        self._clock = clock
        self._patience = patience
        self._running: dict[tuple[str, str | None], Future[OAuthCredential]] = {}
        self._lock = threading.Lock()
        self._unsaved: dict[str, tuple[OAuthCredential, OAuthCredential]] = {}
        """What was stored, and what came for it and could not be saved, such as on a full disk."""

    async def renewed(self, provider_id: str, login: Login, *, refused: str | None = None) -> OAuthCredential:
        """The provider's credential, fresh. Being cancelled ends the waiting, not the renewal.

        `refused` is a token that the provider does not take, though it should still be good.
        Raises :class:`ConfigurationError` when the server refuses, or the store cannot be used, and
        :class:`ProviderError` when the server was not heard or is busy.
        """
        with self._lock:
            running = self._running.get((provider_id, refused))
            if running is None:
                running = self._running[provider_id, refused] = Future()
                threading.Thread(
                    target=self._run, args=(provider_id, login, refused, running), daemon=True
                ).start()
        return await _outcome(running)

    def _run(
        self, provider_id: str, login: Login, refused: str | None, result: Future[OAuthCredential]
    ) -> None:
        try:
            credential = self._renew(provider_id, login, refused)
        except BaseException as error:  # noqa: BLE001 - raised by whoever waits for it
            outcome: OAuthCredential | BaseException = error
        else:
            outcome = credential
        with self._lock:
            del self._running[provider_id, refused]
        if isinstance(outcome, BaseException):
            result.set_exception(outcome)
        else:
            result.set_result(outcome)

    def _renew(self, provider_id: str, login: Login, refused: str | None) -> OAuthCredential:
        try:
            with self._store.renewing(self._patience):
                return _undisturbed(lambda: self._renewed_alone(provider_id, login, refused))
        except LoginError as error:
            raise ConfigurationError(
                None, f"{error}. Sign in again: `cantle auth login {provider_id}`"
            ) from None
        except TimeoutError:
            raise ProviderError(
                f"Another process has been renewing a login for {self._patience:g} seconds", kind="timeout"
            ) from None
        except OSError as error:
            raise ConfigurationError(
                None, f"The lock beside {self._store.place} cannot be had: {reason_of(error)}"
            ) from None

    def _renewed_alone(self, provider_id: str, login: Login, refused: str | None) -> OAuthCredential:
        """What is to be done while nobody else renews."""
        stored = self._stored(provider_id)
        if stored.is_fresh(self._clock()) and stored.access != refused:
            return stored
        before, renewed = self._unsaved.get(provider_id, (None, None))
        if renewed is not None and before == stored:
            return self._saved(provider_id, stored, renewed)
        self._store.check_writable()  # while the old token is still good
        return asyncio.run(self._asked(provider_id, login, stored))

    def _saved(self, provider_id: str, stored: OAuthCredential, renewed: OAuthCredential) -> OAuthCredential:
        self._unsaved[provider_id] = stored, renewed
        saved = self._store.replace(provider_id, stored, renewed)
        del self._unsaved[provider_id]
        # Somebody signed in anew or out meanwhile: what they did counts.
        return renewed if saved else self._stored(provider_id)

    def _stored(self, provider_id: str) -> OAuthCredential:
        stored = self._store.read(provider_id)
        if not isinstance(stored, OAuthCredential):
            raise ConfigurationError(
                None, f"The login to {provider_id} was removed. Run `cantle auth login {provider_id}`"
            )
        return stored

    async def _asked(self, provider_id: str, login: Login, stored: OAuthCredential) -> OAuthCredential:
        from cantle_ai.auth.oauth.client import OAuthClient

        transport = self._connect()
        try:
            try:
                async with asyncio.timeout(_SECONDS):
                    renewed = await login.renew(stored, OAuthClient(transport, clock=self._clock))
            except TimeoutError:
                raise ProviderError(
                    f"The login to {login.name} was not renewed within {_SECONDS:g} seconds", kind="timeout"
                ) from None
            return self._saved(provider_id, stored, renewed)
        finally:
            await transport.aclose()


def _undisturbed(work: Callable[[], OAuthCredential]) -> OAuthCredential:
    """What `work` gives, done in a thread that Python does not exit without."""
    result: Future[OAuthCredential] = Future()

    def run() -> None:
        try:
            result.set_result(work())
        except BaseException as error:  # noqa: BLE001 - raised by whoever waits for it
            result.set_exception(error)

    threading.Thread(target=run, name=_THREAD, daemon=False).start()
    return result.result()


async def _outcome(running: Future[OAuthCredential]) -> OAuthCredential:
    """What the thread ends with, waited for in a loop that may be closed before that."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()

    def wake(_: Future[OAuthCredential]) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(ended.set)

    running.add_done_callback(wake)
    await ended.wait()
    return running.result()
