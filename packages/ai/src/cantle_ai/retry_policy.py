"""How often a failed answer is asked for again. Apart from the tables of :mod:`cantle_ai.retry`, which few runs need."""

from __future__ import annotations

from msgspec import Struct

__all__ = ["RetryPolicy"]


class RetryPolicy(Struct, frozen=True, kw_only=True):
    """How often and how patiently. 2 s, 4 s, 8 s by default."""

    max_retries: int = 3
    """0 tries nothing again."""
    base_delay_ms: int = 2000
    """The first wait; each following one is twice as long."""
    max_delay_ms: int = 60_000
    """No wait is longer, whatever a server asks for. 0 sets no limit."""
