"""`cantle auth login`: a sign-in to an account, or a key that is saved."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Sequence

from cantle.auth.providers import Runtime, runtime
from cantle.console import Results, say_aside, warn
from cantle.credentials import SavedCredentials
from cantle.errors import UserError
from cantle_ai.auth.credentials import ApiKeyCredential, OAuthCredential
from cantle_ai.auth.login import Login, LoginError, LoginMethod
from cantle_ai.errors import ProviderError
from cantle_ai.model import Provider

__all__ = ["log_in"]

_KEY_LIMIT = 100_000


def log_in(options: argparse.Namespace) -> int:
    """Sign in or save a key, and return the exit code. Raises :class:`UserError`."""
    known = runtime()
    row = known.row(options.provider) if options.provider else _asked_row(known)
    login = known.login(row)
    if options.api_key or login is None:
        if options.method or options.host:
            raise UserError(f"{row.id} has no login, only a key.", "Leave --method and --host out.")
        credential = _key(row, known.store, options.env)
        known.store.save(row.id, credential)
        _tell_what_is_missing(known, row)
        return _done(f"Saved the key of {row.id} in {known.store.place}")
    if options.env:
        raise UserError("--env is saved with a key.", "Give --api-key as well.")
    known.store.check_writable()  # before somebody has signed in for nothing
    signed_in = asyncio.run(_sign_in(login, options))
    known.store.save(row.id, signed_in)
    return _done(f"Signed in to {login.name}; saved in {known.store.place}")


def _tell_what_is_missing(known: Runtime, row: Provider) -> None:
    """Say which variables the key does not do without, such as an account's id in the address."""
    source = known.models.auth_source(row.id)
    for name in (*source.missing, *source.needed) if source is not None else ():
        warn(f"{name} is not set. Set it, or save it with the key: --env {name}=VALUE.")


def _done(text: str) -> int:
    results = Results()
    results.say(f"{text}\n")
    return results.code


async def _sign_in(login: Login, options: argparse.Namespace) -> OAuthCredential:
    from cantle.auth.terminal import TerminalDialogue, browser_at_hand
    from cantle_ai.auth.oauth.client import OAuthClient
    from cantle_ai.transport.urllib3_thread import Urllib3Transport

    at_hand = not options.no_browser and browser_at_hand(os.environ)
    method = _method(login, options.method, at_hand)
    transport = Urllib3Transport()
    extra = {"host": options.host} if options.host else {}
    dialogue = TerminalDialogue(open_browser=at_hand)
    try:
        return await login.sign_in(method, dialogue, OAuthClient(transport), extra)
    except LoginError as error:
        raise UserError(f"{error}.") from None
    except ProviderError as error:
        raise UserError(f"{str(error).rstrip('.')}.", "Try again later.") from None
    finally:
        await transport.aclose()


def _method(login: Login, wanted: LoginMethod | None, at_hand: bool) -> LoginMethod:
    if wanted is not None:
        if wanted not in login.methods:
            ways = " or ".join(f"--method {method}" for method in login.methods)
            raise UserError(f"{login.name} is not signed in to by {wanted}.", f"It is by {ways}.")
        return wanted
    if at_hand:
        return login.methods[0]
    away = [method for method in ("device", "paste") if method in login.methods]
    return away[0] if away else login.methods[0]


def _asked_row(known: Runtime) -> Provider:
    """The provider that a person chooses from a list. Raises :class:`UserError` where nobody is there."""
    with_login = [row for row in known.rows if row.login]
    others = [row for row in known.rows if not row.login and row.key_variables]
    if sys.stdin is None or not sys.stdin.isatty():
        names = ", ".join(row.id for row in with_login[:8])
        raise UserError("No provider was named.", f"Run `cantle auth login PROVIDER`, such as {names}.")
    width = max((len(row.id) for row in (*with_login, *others)), default=0)
    for row in with_login:
        login = known.login(row)
        say_aside(f"  {row.id:<{width}}  sign in: {row.name if login is None else login.name}")
    for row in others:
        say_aside(f"  {row.id:<{width}}  key: {row.name}")
    say_aside("Provider: ", end="")
    return known.row(_line())


def _line() -> str:
    return sys.stdin.readline(_KEY_LIMIT).strip()


def _key(row: Provider, store: SavedCredentials, variables: Sequence[str]) -> ApiKeyCredential:
    """The key that is given, with what was saved beside an earlier one."""
    store.names()  # raises for a file that is not in order
    try:
        old = store.read(row.id)
    except UserError:  # an entry that is not is written anew
        old = None
    if not isinstance(old, ApiKeyCredential):
        old = ApiKeyCredential()
    env = {**old.env, **dict(_variable(text) for text in variables)}
    return ApiKeyCredential(key=_given_key(row), env=env, extra=old.extra)


def _given_key(row: Provider) -> str:
    try:
        key = _read_key(row).strip()
    except EOFError:
        key = ""
    except UnicodeDecodeError:
        raise UserError("What was given is no key: it is not text.", "Give the key alone.") from None
    if not key:
        raise UserError("No key was given.", f"Pipe it in: cantle auth login {row.id} --api-key < FILE")
    if not key.isprintable() or (not key.startswith("!") and " " in key):
        raise UserError("What was given is no key: it is more than one word.", "Give the key alone.")
    if not key.startswith("!") and not key.isascii():
        raise UserError("What was given is no key: it holds a character that no key has.", "Copy it anew.")
    return key


def _read_key(row: Provider) -> str:
    if sys.stdin is None:
        return ""
    if not sys.stdin.isatty():
        return sys.stdin.read(_KEY_LIMIT)
    from getpass import getpass

    return getpass(f"Key for {row.name} (it is not shown): ", sys.stderr)


def _variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name or not value:
        raise UserError(f"--env {name} has no value.", "Write it as --env NAME=VALUE.")
    return name, value
