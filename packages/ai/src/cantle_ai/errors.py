"""What can go wrong in the model runtime and is an exception.

    CantleAIError
    ├── ProviderError         a request failed: the endpoint said no, or was not heard
    │   └── TransportError    … and the reason lies below HTTP (cantle_ai.transport.port)
    └── ConfigurationError    a file or setting cannot be used as it is

Inside an answer's stream a :class:`ProviderError` becomes an `error` event and a final message; it never
reaches a reader as an exception. Cancellation is not an error: :class:`cantle_ai.abort.AbortError`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct

from cantle_ai.codec import Json, JsonObject

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["CantleAIError", "ConfigurationError", "ErrorDetails", "ErrorKind", "ProviderError"]

ErrorKind: TypeAlias = Literal["http", "network", "timeout", "protocol"]
"""Where a request failed: the endpoint refused it (`http`, also inside a stream), the connection broke
(`network`), nothing came in time (`timeout`), or what came is not what the API speaks (`protocol`)."""


class ErrorDetails(Struct, frozen=True, kw_only=True):
    """The facts of a failure, as a message keeps them: a :class:`ProviderError`'s. None for what is not known."""

    status: int | None = None
    code: str | None = None
    retry_after_ms: int | None = None
    kind: str | None = None
    """An :data:`ErrorKind`, or what another program wrote."""

    @classmethod
    def from_json(cls, raw: Json) -> ErrorDetails | None:
        """What of `raw` can be used; None when it is no object. Never raises."""
        if not isinstance(raw, dict):
            return None
        status, code, wait, kind = (raw.get(key) for key in ("status", "code", "retryAfterMs", "kind"))
        return cls(
            status=_whole(status),
            code=code if isinstance(code, str) else None,
            retry_after_ms=_whole(wait),
            kind=kind if isinstance(kind, str) else None,
        )

    @property
    def word(self) -> str:
        """The code as tables have it: `ResourceExhausted` and `RESOURCE-EXHAUSTED` are `resource_exhausted`."""
        import re

        return re.sub("(?<=[a-z0-9])(?=[A-Z])", "_", self.code or "").replace("-", "_").lower()


class CantleAIError(Exception):
    """The root of this package's errors. `str()` is one sentence for a person."""


class ProviderError(CantleAIError):
    """A request failed. `str()` is the text for a person, without any key.

    `status` is the HTTP status when there was one, `code` the provider's own word for the failure (such as
    `rate_limit_exceeded`), `retry_after` the seconds that the provider asked to wait.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        code: str | None = None,
        retry_after: float | None = None,
        kind: ErrorKind = "http",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.code = code
        self.retry_after = retry_after
        self.kind: ErrorKind = kind

    def details(self) -> JsonObject:
        """The facts as they are kept in a message's `errorDetails`: status, code, retryAfterMs and kind."""
        wait = self.retry_after
        return {
            "status": self.status,
            "code": self.code,
            "retryAfterMs": None if wait is None else round(wait * 1000),
            "kind": self.kind,
        }


class ConfigurationError(CantleAIError):
    """A file or setting cannot be used. `str()` names it, says what is wrong and what to do.

    The text ends without a full stop, which the door that prints it adds.
    """

    def __init__(self, path: Path | str | None, text: str) -> None:
        """`path` is the file at fault; None when it is no file's fault."""
        super().__init__(text if path is None else f"{path}: {text}")
        self.path = path
        self.text = text


def _whole(value: Json) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if math.isfinite(value) else None
