"""What may be shown of the address of a PostgreSQL database: everything but its passwords.

    postgresql://ann:PASSWORD@db.example:5432/notes?sslmode=require&password=PASSWORD#0197a3d2-…

They are looked for where libpq looks for them. An address that libpq could not take apart as its writer meant it,
because of a `/` or an `@` in a password, is shown as `postgresql://…`.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

__all__ = ["NO_ADDRESS", "passwords_in", "without_passwords"]

NO_ADDRESS = "postgresql://…"
"""Shown instead of what cannot be an address."""

_SCHEME = re.compile("postgres(?:ql)?://")
_HOST = r"(?:\[[^\]/?#@]*\]|[^:,/?#@\[\]]*)(?::\d*)?"
_PARTS = re.compile(
    rf"(?:([^:/?#@]*)(?::([^/@]*))?@)?({_HOST}(?:,{_HOST})*(?:/[^?#@]*)?)(?:\?(.*))?", re.DOTALL
)
_ID = re.compile(r"[0-9A-Za-z._-]+")
_SECRET = re.compile("password|secret", re.IGNORECASE)


def without_passwords(location: str) -> str:
    """A location, or the address of a store; what is none of a PostgreSQL database is given back as it is."""
    if (scheme := _SCHEME.match(location)) is None:
        return location
    address, mark, session_id = location.rpartition("#")
    if not mark or not _ID.fullmatch(session_id):
        address, mark, session_id = location, "", ""
    parts = _PARTS.fullmatch(address, scheme.end())
    if parts is None:
        return NO_ADDRESS
    user, _, place, query = parts.groups()
    shown = f"postgresql://{place}" if user is None else f"postgresql://{user}@{place}"
    options = "&".join(option for option in (query or "").split("&") if not _is_secret(option))
    return f"{shown}{'?' if options else ''}{options}{mark}{session_id}"


def passwords_in(address: str) -> list[str]:
    """The passwords in the address of a store, as they are written there."""
    scheme = _SCHEME.match(address)
    parts = None if scheme is None else _PARTS.fullmatch(address, scheme.end())
    if parts is None:
        return []
    _, password, _, query = parts.groups()
    secret = [option.rpartition("=")[2] for option in (query or "").split("&") if _is_secret(option)]
    return [text for text in (password, *secret) if text]


def _is_secret(option: str) -> bool:
    name, mark, _ = option.partition("=")
    # Without a '=' it is the end of a password with a '&' in it.
    return not mark or _SECRET.search(unquote(name)) is not None
