"""What a wire API is: a function from one request to the source of its answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from msgspec import Struct

from cantle_ai.context import Context
from cantle_ai.model import AuthKind, Model, StreamOptions
from cantle_ai.stream import EventSource
from cantle_ai.transport.port import Transport

__all__ = ["OwningApi", "RequestAuth", "WireApi"]


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


class WireApi(Protocol):
    """Speaks one protocol. Any callable of this shape can be registered under an API's name."""

    def __call__(
        self,
        model: Model,
        context: Context,
        options: StreamOptions,
        *,
        transport: Transport,
        auth: RequestAuth,
    ) -> EventSource:
        """The source of one answer. Nothing is sent before it is first asked for events.

        `model.compat` holds the provider's quirks under the model's own, and `model.base_url` is the address
        that counts. Sampling fields are merged here, where the API has a place for them: the model's, then those
        of the thinking level, then those of `options`.
        """
        ...


@runtime_checkable
class OwningApi(WireApi, Protocol):
    """A wire API that holds something between requests, such as a model that is loaded."""

    async def aclose(self) -> None:
        """Let go of it. Returns when that is done; a later request may take hold again."""
        ...
