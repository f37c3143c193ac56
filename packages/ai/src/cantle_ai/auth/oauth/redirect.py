"""What a browser comes back with, by itself or through a person's clipboard."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from urllib.parse import parse_qsl, urlsplit

from msgspec import Struct

from cantle_ai.auth.login import LoginError

__all__ = ["Redirect", "read_pasted", "read_query"]


class Redirect(Struct, frozen=True):
    """A code, and whatever else came with it. Its `repr` shows nothing."""

    code: str
    fields: Mapping[str, str] = {}

    def __repr__(self) -> str:
        return "Redirect(…)"


def read_query(query: str, state: str | None) -> Redirect | None:
    """The code in a redirect's query; None when it belongs to another attempt, or to none.

    `state` is what it must repeat; None where the address itself is the secret. Raises :class:`LoginError` when
    the server says that there is no code, and why.
    """
    fields = dict(parse_qsl(query))
    if state is not None and not hmac.compare_digest(fields.get("state", "").encode(), state.encode()):
        return None
    if error := fields.get("error"):
        raise LoginError(_denied(error))
    code = fields.get("code")
    return Redirect(code, fields) if code else None


def read_pasted(text: str, state: str | None, *, bare: bool) -> Redirect:
    """The code in what a person pasted: the address that the browser ended at, `code#state`, or, with `bare`, a
    code alone.

    Raises :class:`LoginError` when there is none, or it belongs to another attempt.
    """
    text = text.strip().strip("'\"")
    if "code=" in text or "error=" in text:
        parts = urlsplit(text)
        found = read_query(parts.query or parts.fragment or text, state)
        if found is None:
            raise LoginError("What was pasted belongs to another attempt to sign in. Begin again")
        return found
    code, separator, repeated = text.partition("#")
    if not code or any(char.isspace() for char in code) or "/" in code:
        raise LoginError(
            "There is no code in what was pasted. Paste the whole address that the browser ends at"
        )
    if (separator and repeated != state) or (not separator and state is not None and not bare):
        raise LoginError("What was pasted belongs to another attempt to sign in. Begin again")
    return Redirect(code)


def _denied(error: str) -> str:
    if error == "access_denied":
        return "The login was denied in the browser"
    shown = error if error.isprintable() and len(error) <= 64 else "an error that cannot be shown"
    return f"The login failed in the browser ({shown})"
