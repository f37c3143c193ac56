"""What a wire API is: a function from one request to the source of its answer."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from cantle_ai.auth.request_auth import RequestAuth
from cantle_ai.context import Context
from cantle_ai.model import Model, StreamOptions
from cantle_ai.stream import EventSource
from cantle_ai.transport.port import Transport

__all__ = ["OwningApi", "WireApi"]


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
