"""Proof Key for Code Exchange (RFC 7636), and the other random values of one attempt to sign in."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from hashlib import sha256
from secrets import token_urlsafe

from msgspec import Struct

__all__ = ["Attempt", "new_attempt"]


class Attempt(Struct, frozen=True, kw_only=True):
    """One attempt to sign in. Its `repr` shows nothing."""

    verifier: str
    """Never leaves this process but in the request for a token."""
    challenge: str
    state: str
    """What the answer has to repeat: whatever else comes back belongs to somebody else's attempt."""
    nonce: str
    redirect: str = ""
    """Where the browser is sent back to."""

    def __repr__(self) -> str:
        return "Attempt(…)"


def new_attempt() -> Attempt:
    """An attempt with fresh values."""
    verifier = token_urlsafe(32)
    challenge = urlsafe_b64encode(sha256(verifier.encode("ascii")).digest()).rstrip(b"=").decode("ascii")
    return Attempt(verifier=verifier, challenge=challenge, state=token_urlsafe(24), nonce=token_urlsafe(24))
