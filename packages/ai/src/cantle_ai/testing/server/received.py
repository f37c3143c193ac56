"""A request that the strict server has received, as a test and the control path see it."""

from __future__ import annotations

from msgspec import Struct

from cantle_ai.codec import JsonObject, decode_object
from cantle_ai.testing.server.exchange import Call

__all__ = ["Received"]

_SECRET = ("authorization", "x-api-key", "api-key", "x-goog-api-key", "x-amz-security-token", "cookie")


class Received(Struct):
    """A request that asked for an answer. `rule` and `text` say what is wrong with it, if anything."""

    number: int
    call: Call
    api: str
    rule: str | None = None
    text: str | None = None

    @property
    def body(self) -> bytes:
        return self.call.body

    @property
    def json(self) -> JsonObject:
        """The body's value. Raises ValueError when it is not a JSON object."""
        return decode_object(self.call.body)

    def to_json(self) -> JsonObject:
        """As the control path shows it; without the key."""
        headers: JsonObject = {k: v for k, v in self.call.headers.items() if k not in _SECRET}
        return {
            "number": self.number,
            "api": self.api,
            "path": self.call.path,
            "headers": headers,
            "body": self.call.body.decode("utf-8", "replace"),
            "rule": self.rule,
            "text": self.text,
        }
