"""What a request is authorised with, worked out just before it is made. The first of these that there is:

1. the options' `api_key`
2. the stored credential: a key, or a login, which is renewed when its token has expired
3. `apiKey` in models.json
4. the provider's environment variables, among them the stored credential's own
5. what the platform supplies (:mod:`cantle_ai.auth.ambient`)

A provider whose headers authorise requests, or that asks for nothing, needs none of them. The variables that a
stored credential brings lie over the process's wherever that provider's values are looked up; where they name a
platform's credentials, such as `AWS_PROFILE`, the process's keys do not come between.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec
from msgspec import Struct

from cantle_ai.auth.credentials import (
    ApiKeyCredential,
    Credential,
    Credentials,
    CredentialStore,
    DamagedCredentialError,
    OAuthCredential,
)
from cantle_ai.auth.keys import missing_variables, needed_variables, resolve_value
from cantle_ai.errors import ConfigurationError
from cantle_ai.model import AuthKind, Model, Provider

if TYPE_CHECKING:
    from cantle_ai.auth.login import Login
    from cantle_ai.auth.renewal import TokenRenewal
    from cantle_ai.auth.request_auth import RequestAuth
    from cantle_ai.transport.port import Transport

__all__ = ["AuthResolver", "AuthSource", "ResolvedAuth", "SourceKind"]

SourceKind: TypeAlias = Literal[
    "option", "stored-key", "login", "models.json", "environment", "ambient", "headers", "not-needed"
]

_AUTH_HEADERS = frozenset({"authorization", "x-api-key", "api-key", "x-goog-api-key"})


class AuthSource(Struct, frozen=True, kw_only=True):
    """Where a provider's authorisation comes from. Holds no secret."""

    kind: SourceKind
    name: str = ""
    """Which of its kind: the variable, the platform's source."""
    expires: int | None = None
    """Of a login: when its token ends, in milliseconds since 1970."""
    missing: tuple[str, ...] = ()
    """Variables that the key refers to and that are not set."""
    needed: tuple[str, ...] = ()
    """Variables that the provider's address has places for and that are not set."""
    problem: str = ""
    """Why what is stored cannot be used, and what to do about it."""

    @property
    def usable(self) -> bool:
        """Whether a request can be made with it."""
        return not self.missing and not self.needed and not self.problem


class ResolvedAuth(Struct, frozen=True, kw_only=True):
    """What one request carries, and the address that it goes to when the account decides about that."""

    auth: RequestAuth
    base_url: str | None = None
    token: str | None = None
    """A token in place of which another one can be had, should the provider refuse it."""

    def __repr__(self) -> str:
        return f"ResolvedAuth(auth={self.auth!r}, base_url={self.base_url!r})"


class _Found(Struct, frozen=True, kw_only=True):
    """A key, in what way it travels, and what comes with it."""

    key: str | None = None
    kind: AuthKind = "key"
    headers: Mapping[str, str] = {}
    base_url: str | None = None
    token: str | None = None
    """What it comes from, where another one of that can be had."""


class AuthResolver:
    """Finds what providers' requests are authorised with. One event loop."""

    def __init__(
        self,
        environ: Mapping[str, str],
        credentials: Credentials | None = None,
        *,
        explain_no_key: Callable[[Provider], str],
        connect: Callable[[], Transport],
        find_login: Callable[[str], Login | None] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`explain_no_key` words the error for a provider without anything. `connect` makes a transport for the
        event loop in which it is called; `find_login` gives a login by its name, the built-in ones by default.
        """
        self._environ = environ
        self._credentials = credentials
        self._explain_no_key = explain_no_key
        self._connect = connect
        self._find_login = find_login
        self._clock = clock
        self._renewal: TokenRenewal | None = None
        self._printed: dict[tuple[str, str], str | ConfigurationError] = {}
        self._printing: dict[tuple[str, str], asyncio.Lock] = {}
        self._exchanged: dict[tuple[str | None, ...], tuple[str, float]] = {}
        self._exchanging = asyncio.Lock()
        self._last: dict[str, str] = {}
        """By provider, the token that came in the place of a refused one. There is none in its own place."""

    async def resolve(
        self, provider: Provider, model: Model | None, given: str | None, *, refused: str | None = None
    ) -> ResolvedAuth:
        """What a request to `model` of `provider` is made with; `given` is a key that goes before all others.

        `refused` is the `token` that the provider has just refused, though it should still be good: it is renewed.
        Raises :class:`ConfigurationError` when there is nothing, or it cannot be had, and
        :class:`cantle_ai.errors.ProviderError` when a login could not be renewed for a reason that may pass.
        """
        from cantle_ai.auth.request_auth import RequestAuth

        stored = None
        given = (given or "").strip()
        if not given and self._credentials is not None:
            stored = await self._credentials.get(provider.id)
        environ = self._environ_with(stored, provider)
        if given:
            found: _Found | None = _key(given, provider)
        else:
            found = await self._found(provider, stored, environ, refused)
        if found is None:
            if not provider.key_optional and not _carries_auth(provider, model):
                raise ConfigurationError(None, self._explain_no_key(provider))
            found = _Found()
        headers = await self._headers(provider, model, environ, found.headers)
        key, kind = found.key, found.kind
        token = found.token
        if token is not None and refused is not None:
            self._last[provider.id] = token
        if token == self._last.get(provider.id):
            token = None
        if key is not None and provider.key_header is not None:
            headers.setdefault(provider.key_header, f"Bearer {key}")
            key = None
        elif key is not None and provider.auth_header and "authorization" not in map(str.lower, headers):
            headers["Authorization"] = f"Bearer {key}"
            kind = "bearer" if kind == "key" else kind
        auth = RequestAuth(api_key=key, kind=kind, headers=headers, environ=environ)
        return ResolvedAuth(auth=auth, base_url=found.base_url, token=token)

    def source(self, provider: Provider) -> AuthSource | None:
        """Where a request's authorisation would come from; None from nowhere. Runs no command, asks no network."""
        try:
            stored = None if self._credentials is None else self._credentials.peek(provider.id)
        except DamagedCredentialError as error:
            return AuthSource(kind="stored-key", problem=str(error))
        return self._source(provider, stored)

    def configured(self, provider: Provider) -> bool:
        """Whether a request would be authorised, as far as can be told without running or asking anything."""
        source = self.source(provider)
        return source is not None and source.usable

    async def has_auth(self, provider: Provider) -> bool:
        """The same, with credentials that take time to ask."""
        if self.configured(provider):
            return True
        if self._credentials is None:
            return False
        source = self._source(provider, await self._credentials.get(provider.id))
        return source is not None and source.usable

    def _source(self, provider: Provider, stored: Credential | None) -> AuthSource | None:
        environ = self._environ_with(stored, provider)
        source = _stored_source(stored, environ) or _own_source(provider, environ)
        unset = tuple(name for name in needed_variables(provider.base_url) if not environ.get(name))
        return source if source is None or not unset else msgspec.structs.replace(source, needed=unset)

    def _environ_with(self, stored: Credential | None, provider: Provider) -> Mapping[str, str]:
        if not isinstance(stored, ApiKeyCredential) or not stored.env:
            return self._environ
        hidden = _hidden(provider, stored.env)
        shown = {name: value for name, value in self._environ.items() if name not in hidden}
        return {**shown, **stored.env}

    async def _found(
        self,
        provider: Provider,
        stored: Credential | None,
        environ: Mapping[str, str],
        refused: str | None,
    ) -> _Found | None:
        if isinstance(stored, OAuthCredential):
            return await self._logged_in(provider, stored, refused)
        if stored is not None and stored.key:
            return _key(await self._stored_value(stored.key, environ, provider.id), provider)
        if provider.api_key:
            where = f"providers.{provider.id}.apiKey in models.json"
            return _key(await resolve_value(provider.api_key, environ, name=where), provider)
        for name in provider.key_variables:
            if key := environ.get(name, "").strip():
                return _Found(key=key, kind=provider.key_kinds.get(name, "key"))
        return await self._ambient(provider, environ, refused)

    async def _logged_in(self, provider: Provider, stored: OAuthCredential, refused: str | None) -> _Found:
        login = self._login(provider)
        if login is None:
            raise ConfigurationError(
                None,
                f"A login is stored for {provider.id}, which cannot be signed in to. Remove it: "
                f"`cantle auth logout {provider.id}`",
            )
        if not stored.is_fresh(self._clock()) or stored.access == refused:
            stored = await self._renewed(provider.id, login, refused)
        auth = login.authorise(stored)
        renewable = stored.refresh and isinstance(self._credentials, CredentialStore)
        return _Found(
            key=auth.api_key,
            kind=auth.kind,
            headers=auth.headers,
            base_url=auth.base_url,
            token=stored.access if renewable else None,
        )

    def _login(self, provider: Provider) -> Login | None:
        if provider.login is None:
            return None
        if self._find_login is None:
            from cantle_ai.auth.logins import find_login

            self._find_login = find_login
        return self._find_login(provider.login)

    async def _renewed(self, provider_id: str, login: Login, refused: str | None) -> OAuthCredential:
        if self._renewal is None:
            if not isinstance(self._credentials, CredentialStore):
                raise ConfigurationError(
                    None, f"The token of {provider_id} has expired, and its store cannot be written to"
                )
            from cantle_ai.auth.renewal import TokenRenewal

            self._renewal = TokenRenewal(self._credentials, self._connect, clock=self._clock)
        return await self._renewal.renewed(provider_id, login, refused=refused)

    async def _ambient(
        self, provider: Provider, environ: Mapping[str, str], refused: str | None
    ) -> _Found | None:
        if provider.ambient is None:
            return None
        from cantle_ai.auth.ambient import AMBIENT

        ambient = AMBIENT[provider.ambient]
        if ambient.source(environ) is None:
            return None
        if ambient.token is None:
            return _Found()
        from cantle_ai.auth.oauth.client import OAuthClient

        async with self._exchanging:
            told = (provider.ambient, *(environ.get(name) for name in ambient.variables))
            token, ends = self._exchanged.get(told, ("", 0.0))
            if ends <= self._clock() or token == refused:
                transport = self._connect()
                try:
                    client = OAuthClient(transport, clock=self._clock)
                    token, ends = await ambient.token()(environ, client)
                finally:
                    await transport.aclose()
                self._exchanged[told] = token, ends
        return _Found(key=token, kind="oauth", token=token)

    async def _stored_value(self, value: str, environ: Mapping[str, str], provider_id: str) -> str:
        """What a stored key stands for. A command is run once, whether it works or not."""
        name = f"the stored key of {provider_id}"
        if not value.startswith("!"):
            return await resolve_value(value, environ, name=name)
        command = provider_id, value
        async with self._printing.setdefault(command, asyncio.Lock()):
            if command not in self._printed:
                try:
                    self._printed[command] = await resolve_value(value, environ, name=name)
                except ConfigurationError as error:
                    self._printed[command] = ConfigurationError(
                        None, f"{error}; it is run again when this program is started again"
                    )
            outcome = self._printed[command]
        if isinstance(outcome, ConfigurationError):
            raise ConfigurationError(None, str(outcome))
        return outcome

    async def _headers(
        self,
        provider: Provider,
        model: Model | None,
        environ: Mapping[str, str],
        of_login: Mapping[str, str],
    ) -> dict[str, str]:
        """The configured headers with their values resolved, the model's over the provider's; the login's over all."""
        configured = (*provider.headers.items(), *(model.headers.items() if model else ()))
        values = {name.lower(): (name, value) for name, value in configured}
        taken = {name.lower() for name in of_login}
        resolved = {
            name: await resolve_value(value, environ, name=f"the header {name} of {provider.id}")
            for lowered, (name, value) in values.items()
            if lowered not in taken
        }
        return {**resolved, **of_login}


def _key(text: str, provider: Provider) -> _Found | None:
    """A key that comes from no variable: it travels as the provider's keys do, where all travel in one way.

    What resolved to nothing but blanks is no key.
    """
    if not text.strip():
        return None
    kinds = {provider.key_kinds.get(name, "key") for name in provider.key_variables}
    return _Found(key=text.strip(), kind=kinds.pop() if len(kinds) == 1 else "key")


def _hidden(provider: Provider, env: Mapping[str, str]) -> Collection[str]:
    """What of the process's variables does not count beside those that a stored credential brings."""
    if provider.ambient is None:
        return ()
    from cantle_ai.auth.ambient import AMBIENT

    rivals = AMBIENT[provider.ambient].rivals
    return {*rivals, *provider.key_variables} if any(env.get(name) for name in rivals) else ()


def _stored_source(stored: Credential | None, environ: Mapping[str, str]) -> AuthSource | None:
    if isinstance(stored, OAuthCredential):
        return AuthSource(kind="login", expires=stored.expires)
    if stored is None or not stored.key:
        return None
    return AuthSource(kind="stored-key", missing=tuple(missing_variables(stored.key, environ)))


def _own_source(provider: Provider, environ: Mapping[str, str]) -> AuthSource | None:
    """What the provider has without a stored credential."""
    if provider.api_key:
        return AuthSource(kind="models.json", missing=tuple(missing_variables(provider.api_key, environ)))
    for name in provider.key_variables:
        if environ.get(name, "").strip():
            return AuthSource(kind="environment", name=name)
    if provider.ambient is not None:
        from cantle_ai.auth.ambient import AMBIENT

        if (where := AMBIENT[provider.ambient].source(environ)) is not None:
            return AuthSource(kind="ambient", name=where)
    if _carries_auth(provider, None):
        return AuthSource(kind="headers")
    return AuthSource(kind="not-needed") if provider.key_optional else None


def _carries_auth(provider: Provider, model: Model | None) -> bool:
    """Whether configured headers authorise requests, so that no key is needed."""
    headers = (*provider.headers, *(model.headers if model is not None else ()))
    return any(name.lower() in _AUTH_HEADERS for name in headers)
