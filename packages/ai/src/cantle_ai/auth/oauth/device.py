"""The device flow (RFC 8628): a code is shown, typed in on another device, and asked after until that is done."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

from cantle_ai.auth.login import Dialogue, LoginError
from cantle_ai.auth.oauth.client import OAuthAnswer, checked_page
from cantle_ai.errors import ProviderError

if TYPE_CHECKING:
    from cantle_ai.auth.oauth.client import OAuthClient

__all__ = ["DEVICE_GRANT", "authorised_device", "polled"]

DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"

_INTERVAL = 5.0
_EXPIRES = 900.0
_LONGEST_EXPIRES = 1800.0
_SLOWER = 5.0
_FAILURES = 3
"""Failures in a row that a login survives."""


async def authorised_device(
    client: OAuthClient,
    dialogue: Dialogue,
    *,
    device_url: str,
    token_url: str,
    client_id: str,
    fields: Mapping[str, str] = {},
    headers: Mapping[str, str] = {},
) -> OAuthAnswer:
    """Show a code and wait until it was typed in; the answer with the tokens.

    Raises :class:`LoginError` when it was denied or not typed in in time.
    """
    started = await client.post_form(device_url, {"client_id": client_id, **fields}, headers)
    if not started.ok:
        raise started.refused("to begin a login")
    device_code = started.text("device_code")
    page = started.data.get("verification_uri_complete")
    if not isinstance(page, str) or not page:
        page = started.text("verification_uri")
    dialogue.show_code(started.text("user_code"), checked_page(page))

    async def ask() -> OAuthAnswer:
        grant = {"grant_type": DEVICE_GRANT, "device_code": device_code, "client_id": client_id}
        return await client.post_form(token_url, grant, headers)

    return await polled(
        client,
        ask,
        interval=started.seconds("interval"),
        expires=started.seconds("expires_in"),
        pending=_pending,
    )


async def polled(
    client: OAuthClient,
    ask: Callable[[], Awaitable[OAuthAnswer]],
    *,
    interval: float | None,
    expires: float | None,
    pending: Callable[[OAuthAnswer], bool],
) -> OAuthAnswer:
    """What `ask` gives at last. `pending` says of an answer that it is not the last one.

    A server that is asked too often makes the interval longer by five seconds, each time that it says so; so does
    one that is busy or not heard, a few times.
    """
    wait = max(1.0, _INTERVAL if interval is None else interval)
    deadline = client.clock() + min(_EXPIRES if expires is None else expires, _LONGEST_EXPIRES)
    patience = _FAILURES
    while True:
        await client.sleep(min(wait, max(0.0, deadline - client.clock())))
        if client.clock() >= deadline:
            raise LoginError("The code was not typed in before it expired. Begin again")
        try:
            answer = await ask()
            if answer.error == "slow_down":
                wait += _SLOWER
            elif not pending(answer):
                return _granted(answer)
            patience = _FAILURES
        except ProviderError:  # the code is good all the while, and may have been typed in
            if patience == 0:
                raise
            patience -= 1
            wait += _SLOWER


def _pending(answer: OAuthAnswer) -> bool:
    return answer.error == "authorization_pending"


def _granted(answer: OAuthAnswer) -> OAuthAnswer:
    if answer.ok and not answer.error:
        return answer
    if answer.error in ("expired_token", "expired"):
        raise LoginError("The code was not typed in before it expired. Begin again")
    if answer.error in ("access_denied", "authorization_declined"):
        raise LoginError("The login was denied in the browser")
    raise answer.refused("the login")
