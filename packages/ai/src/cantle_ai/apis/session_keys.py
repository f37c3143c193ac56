"""A session's id as providers take it, to route the requests of one conversation to one cache."""

from __future__ import annotations

from cantle_ai.model import StreamOptions

__all__ = ["bounded_key", "cache_key"]

_LONGEST_KEY = 64
"""OpenAI's limit for `prompt_cache_key`; nobody is known to take less."""


def cache_key(options: StreamOptions) -> str | None:
    """What the requests of one session are told by; None without a session, or where nothing is to be kept."""
    if options.session_id is None or options.cache_retention == "none":
        return None
    return bounded_key(options.session_id)


def bounded_key(session_id: str) -> str:
    """The id itself, or its hash where it is longer than providers accept (64 characters)."""
    if len(session_id) <= _LONGEST_KEY:
        return session_id
    from hashlib import sha256

    return sha256(session_id.encode("utf-8", "surrogatepass")).hexdigest()
