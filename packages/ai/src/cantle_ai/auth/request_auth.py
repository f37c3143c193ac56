"""What one request is authorised with: the value that the resolution of keys makes and a wire API uses."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from cantle_ai.model import AuthKind

__all__ = ["RequestAuth"]


class RequestAuth(Struct, frozen=True, kw_only=True):
    """What one request is authorised with, resolved just before it is made. Never shown, never stored."""

    api_key: str | None = None
    """None sends none."""
    kind: AuthKind = "key"
    """How the key wants to travel. An API whose keys are bearer tokens anyway need not look."""
    headers: Mapping[str, str] = {}
    """The provider's, the model's and the login's, their values resolved. They go over the API's own, and the
    options' over them."""
    environ: Mapping[str, str] = {}
    """The process's environment under the credential's own variables. Wire APIs read variables here only."""

    def __repr__(self) -> str:
        names = ", ".join(sorted(self.headers))
        return f"RequestAuth(api_key={'…' if self.api_key else None}, kind={self.kind!r}, headers=<{names}>)"
