"""What stands in the way of a measurement."""

from __future__ import annotations

__all__ = ["Unable"]


class Unable(Exception):
    """What is missing or went wrong, and what to do about it, in words for the person at the keyboard."""
