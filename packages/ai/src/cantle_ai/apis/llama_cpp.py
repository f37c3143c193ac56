"""A model in this process, run by llama.cpp: the wire API of the provider `local`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence

from cantle_ai.abort import AbortSignal
from cantle_ai.apis.port import WireApi
from cantle_ai.builder import AnswerBuilder
from cantle_ai.context import Context
from cantle_ai.errors import ConfigurationError
from cantle_ai.events import AssistantMessageEvent
from cantle_ai.model import Model, StreamOptions
from cantle_ai.stream import EventSource
from cantle_ai.transport.port import Transport

__all__ = ["source"]


def source(
    model: Model,
    context: Context,
    options: StreamOptions,
    *,
    transport: Transport,
    api_key: str | None,
    headers: Mapping[str, str],
) -> EventSource:
    """The answer of a local model; see :class:`cantle_ai.apis.port.WireApi`."""

    async def events(
        builder: AnswerBuilder, signal: AbortSignal
    ) -> AsyncIterator[Sequence[AssistantMessageEvent]]:
        yield builder.take()
        raise ConfigurationError(None, "Local models cannot be run yet")

    return events


_proof: WireApi = source
