"""Streams of JSON chunks that end with the word `[DONE]`: how OpenAI's chat completions and Mistral's are read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from cantle_ai.apis.http_errors import error_from_json, unexpected_body
from cantle_ai.codec import Json
from cantle_ai.sse import ServerSentEvent

__all__ = ["ChunkReader"]


class _Chunk(Protocol):
    error: Json


_C = TypeVar("_C", bound=_Chunk)


class ChunkReader(ABC, Generic[_C]):
    """The part of an :class:`cantle_ai.apis.http_stream.AnswerReader` that takes events apart."""

    def __init__(self, decode: Callable[[bytes], _C | None]) -> None:
        """`decode` reads one chunk; None for one that says nothing. It raises ValueError for what is not JSON."""
        self.done = False
        self._decode = decode

    def event(self, event: ServerSentEvent) -> None:
        data, name = event.data, event.event
        if data == b"[DONE]":
            self.done = True
            return
        try:
            chunk = self._decode(data)
        except ValueError:
            if data.strip() == b"[DONE]":  # with blanks around it
                self.done = True
            elif name in (None, "message", "error") and data.strip():
                raise
            return  # proxies add events of their own, with names
        if chunk is None:
            return
        if chunk.error:
            raise error_from_json(chunk.error)
        if name == "error":
            raise unexpected_body(data)
        self._add(chunk)

    def whole(self, body: bytes) -> None:
        self.event(ServerSentEvent(None, body))

    @abstractmethod
    def _add(self, chunk: _C) -> None:
        """Take a chunk that reports no error."""
