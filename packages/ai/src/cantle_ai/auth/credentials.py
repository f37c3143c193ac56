"""The port to wherever keys are kept: a file, a key ring, a service that renews them."""

from __future__ import annotations

from typing import Protocol

__all__ = ["Credentials"]


class Credentials(Protocol):
    """Stored keys. Asked at each request, so that a new key counts at once."""

    async def get(self, provider_id: str) -> str | None:
        """The stored key of a provider, None without one.

        It may be a key, or `$NAME`, `${NAME}` or `!command` (:mod:`cantle_ai.auth.keys`), which the caller
        resolves. May raise; the text of the exception then becomes the answer's error.
        """
        ...

    def key(self, provider_id: str) -> str | None:
        """The same without waiting, for lists of usable models: a key that would need renewal counts as one."""
        ...
