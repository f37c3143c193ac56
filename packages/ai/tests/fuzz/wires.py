"""How the events of an API are taken apart for a mutation."""

from __future__ import annotations

from cantle_ai.testing.server.dialects.bedrock_converse_stream_frames import opened, resealed
from packages.ai.tests.fuzz.mutations import Wire, sse_wire

__all__ = ["wire_of"]


def wire_of(api: str) -> Wire:
    """Server-sent events, but for the APIs that have frames of their own."""
    return frame_wire if api == "bedrock-converse-stream" else sse_wire


def _read(message: bytes) -> str | None:
    return opened(message)[1].decode("utf-8", "replace")


def _write(message: bytes, text: str) -> bytes:
    return resealed(opened(message)[0], text.encode("utf-8", "surrogateescape"))


frame_wire = Wire(_read, _write)
"""AWS's event stream: the payload is another, the checksums are right."""
