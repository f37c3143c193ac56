"""How the events of an API are taken apart for a mutation."""

from __future__ import annotations

from packages.ai.tests.fuzz.mutations import Wire, sse_wire

__all__ = ["wire_of"]


def wire_of(api: str) -> Wire:
    """Server-sent events, but for the APIs that have frames of their own."""
    return sse_wire
