"""What the operating system says, as part of a sentence."""

from __future__ import annotations

__all__ = ["reason_of"]


def reason_of(error: OSError) -> str:
    """Why the system refused, in its own words, to stand inside a sentence: `permission denied`."""
    return (error.strerror or str(error)).lower()
