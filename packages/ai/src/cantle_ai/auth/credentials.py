"""Stored credentials, as `auth.json` has them, and the ports to wherever they are kept.

    {"openai":    {"type": "api_key", "key": "sk-…", "env": {"NAME": "value"}},
     "anthropic": {"type": "oauth", "access": "…", "refresh": "…", "expires": 1767225600000, …}}

`expires` is in milliseconds since 1970. The shape is the reference's. Whatever else an entry holds is kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol, TypeAlias, runtime_checkable

from msgspec import Struct

from cantle_ai.codec import Json, JsonObject
from cantle_ai.errors import ConfigurationError

__all__ = [
    "ApiKeyCredential",
    "Credential",
    "CredentialStore",
    "Credentials",
    "DamagedCredentialError",
    "OAuthCredential",
    "credential_from_json",
    "credential_to_json",
]


class ApiKeyCredential(Struct, frozen=True, kw_only=True):
    """A key, as it was saved: literal, `$NAME`, `${NAME}` or `!command`. Its `repr` shows neither it nor `env`."""

    key: str | None = None
    env: Mapping[str, str] = {}
    """Variables for this provider alone; they count before the process's."""
    extra: JsonObject = {}
    """Other fields of the entry, which are written back."""

    def __repr__(self) -> str:
        return f"ApiKeyCredential(key={_shown(self.key)}, env=<{', '.join(self.env)}>)"


class OAuthCredential(Struct, frozen=True, kw_only=True):
    """What a login gave. Its `repr` shows no token."""

    access: str
    refresh: str = ""
    """Empty for what cannot be renewed."""
    expires: int
    """When `access` ends, in milliseconds since 1970; a margin is already taken off."""
    extra: JsonObject = {}
    """What the login keeps beside the tokens, such as an account's id; names are the reference's."""

    def __repr__(self) -> str:
        return f"OAuthCredential(access={_shown(self.access)}, refresh={_shown(self.refresh)}, expires={self.expires})"

    def is_fresh(self, now: float) -> bool:
        """Whether `access` can still be used at `now`, in seconds since 1970."""
        return self.expires > now * 1000

    def text(self, name: str) -> str | None:
        """The field `name` of `extra`, where it is a text."""
        value = self.extra.get(name)
        return value if isinstance(value, str) and value else None


Credential: TypeAlias = ApiKeyCredential | OAuthCredential


class DamagedCredentialError(ConfigurationError):
    """One provider's entry cannot be used. The others can."""


class Credentials(Protocol):
    """Stored credentials. Asked at each request, so that a new one counts at once."""

    async def get(self, provider_id: str) -> Credential | None:
        """The stored credential of a provider, None without one. Its key is not resolved, its token not renewed.

        May raise; the text of the exception then becomes the answer's error.
        """
        ...

    def peek(self, provider_id: str) -> Credential | None:
        """The same without waiting, for lists of usable models. Where that cannot be had, one without secrets.

        Raises :class:`DamagedCredentialError` for what concerns this provider alone.
        """
        ...


@runtime_checkable
class CredentialStore(Credentials, Protocol):
    """Credentials that can be changed, by several processes at once. All but `get` may block for a moment."""

    @property
    def place(self) -> str:
        """Where they are kept, as a phrase for a person."""
        ...

    def names(self) -> Sequence[str]:
        """The providers that have an entry, in order."""
        ...

    def read(self, provider_id: str) -> Credential | None:
        """What :meth:`get` gives, from any thread."""
        ...

    def check_writable(self) -> None:
        """Raise what :meth:`save` would raise now, before something is asked for that could not be saved."""
        ...

    def save(self, provider_id: str, credential: Credential) -> None:
        """Put a credential in place of the provider's old one. When it returns, a crash does not lose it."""
        ...

    def replace(self, provider_id: str, old: Credential, new: Credential) -> bool:
        """The same, if `old` is still what is saved. False when somebody has saved or removed something meanwhile."""
        ...

    def remove(self, provider_id: str) -> bool:
        """Forget a provider's credential. False when there is none."""
        ...

    def renewing(self, patience: float) -> AbstractContextManager[None]:
        """Hold the lock under which tokens are renewed; one for all processes that use this store.

        Raises TimeoutError when another process has it for longer than `patience` seconds.
        """
        ...


def credential_from_json(raw: Json, path: str) -> Credential | None:
    """The credential in an entry; None for one of a type that is not known.

    `path` names the entry in errors. Raises :class:`cantle_ai.fields.FieldError`, which never
    quotes a value.
    """
    from cantle_ai.fields import FieldError, Fields

    fields = Fields(raw, path)
    assert isinstance(raw, dict)
    kind = fields.text("type") or "api_key"
    if kind == "oauth":
        expires = fields.number("expires")
        if expires is None:
            raise FieldError(fields.where("expires"), "is missing: milliseconds since 1970")
        return OAuthCredential(
            access=fields.string("access"),
            refresh=fields.text("refresh") or "",
            expires=int(expires),
            extra=_rest(raw, "access", "refresh", "expires"),
        )
    if kind == "api_key":
        return ApiKeyCredential(
            key=fields.text("key"), env=fields.texts("env") or {}, extra=_rest(raw, "key", "env")
        )
    return None


def credential_to_json(credential: Credential) -> JsonObject:
    """The entry for a credential."""
    if isinstance(credential, OAuthCredential):
        tokens: JsonObject = {
            "type": "oauth",
            "access": credential.access,
            "refresh": credential.refresh,
            "expires": credential.expires,
        }
        return {**credential.extra, **tokens}
    entry: JsonObject = {**credential.extra, "type": "api_key"}
    if credential.key is not None:
        entry["key"] = credential.key
    if credential.env:
        entry["env"] = dict(credential.env)
    return entry


def _rest(raw: JsonObject, *known: str) -> JsonObject:
    return {name: value for name, value in raw.items() if name != "type" and name not in known}


def _shown(secret: str | None) -> str:
    return "…" if secret else repr(secret)
