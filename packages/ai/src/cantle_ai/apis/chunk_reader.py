"""Streams of JSON chunks that end with the word `[DONE]`: how OpenAI's chat completions and Mistral's are read."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeVar

from cantle_ai.sse import ServerSentEvent

if TYPE_CHECKING:
    from cantle_ai.codec import Json

    class _Chunk(Protocol):
        error: Json


__all__ = ["read_chunk"]

_C = TypeVar("_C", bound="_Chunk")


def read_chunk(
    event: ServerSentEvent, decode: Callable[[bytes], _C | None], take: Callable[[_C], None]
) -> bool:
    """Give `take` the chunk in an event, if it holds one. True when it was the last word of the stream.

    `decode` gives None for data that say nothing. Raises :class:`cantle_ai.errors.ProviderError` for a chunk that
    reports an error, and the ValueError that `decode` raises for what is not JSON.
    """
    data, name = event.data, event.event
    if data == b"[DONE]":
        return True
    try:
        chunk = decode(data)
    except ValueError:
        if data.strip() == b"[DONE]":  # with blanks around it
            return True
        if name in (None, "message", "error") and data.strip():
            raise
        return False  # proxies add events of their own, with names
    if chunk is None:
        return False
    if chunk.error:
        from cantle_ai.apis.http_errors import error_from_json

        raise error_from_json(chunk.error)
    if name == "error":
        from cantle_ai.apis.http_errors import unexpected_body

        raise unexpected_body(data)
    take(chunk)
    return False
