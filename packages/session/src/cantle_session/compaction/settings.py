"""When a context is too full, and how much of it stays when it is compacted."""

from __future__ import annotations

from msgspec import Struct

__all__ = ["CompactionSettings", "compaction_needed"]

_ROOM = 16_384
"""Tokens of a large window that no setting takes from the conversation."""


class CompactionSettings(Struct, frozen=True, kw_only=True):
    """In tokens. Meant for windows of 64k and more; :meth:`within` makes them fit smaller ones."""

    enabled: bool = True
    """Whether it happens by itself."""
    reserve_tokens: int = 16_384
    """The room that is left for an answer: with less of it, the context is too full."""
    keep_recent_tokens: int = 20_000
    """About how much of the end stays as it was said."""

    def within(self, window: int) -> CompactionSettings:
        """The same, with half of the window or 16,384 tokens left unreserved, and no more than half of that kept."""
        reserve = min(self.reserve_tokens, max(window // 2, window - _ROOM))
        keep = min(self.keep_recent_tokens, (window - reserve) // 2)
        return CompactionSettings(enabled=self.enabled, reserve_tokens=reserve, keep_recent_tokens=keep)


def compaction_needed(tokens: int, window: int, settings: CompactionSettings) -> bool:
    """Whether a context of so many tokens leaves less than the reserve free. Never when switched off."""
    if not settings.enabled or window <= 0:
        return False
    return tokens > window - settings.within(window).reserve_tokens
