"""What a strict server asks for beside the rules of an API."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from msgspec import Struct

from cantle_ai.codec import JsonObject
from cantle_ai.testing.estimate import CHARACTERS
from cantle_ai.testing.server.refusal import Refusal

__all__ = ["Strictness", "check_bearer", "check_json", "check_key", "check_streamed"]


class Strictness(Struct, frozen=True, kw_only=True):
    """What a server asks for beside the API's own rules."""

    api_key: str | None = None
    """The one key that is right; None takes any that is not empty."""
    need_key: bool = True
    context_window: int | None = None
    """Tokens, at four characters each, that prompt and answer must fit in together."""
    extra_fields: Collection[str] = ()
    """Names of request fields that this vendor has and the API has not."""

    def check_fits(self, size: int, answer: int) -> None:
        """Refuse a request of `size` bytes that asks for up to `answer` tokens when the window is smaller."""
        if self.context_window is not None and size // CHARACTERS + answer > self.context_window:
            raise Refusal(
                "context_length_exceeded",
                f"the prompt of about {size // CHARACTERS} tokens and an answer of up to {answer} "
                f"exceed this model's maximum context length of {self.context_window} tokens",
            )


def check_json(headers: Mapping[str, str]) -> None:
    """Refuse a body that does not say it is JSON."""
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Refusal(
            "content-type", f"the content type is {kind!r}: it must be application/json", status=415
        )


def check_streamed(values: JsonObject) -> None:
    """Refuse a request for an answer in one piece."""
    if values.get("stream") is not True:
        raise Refusal("stream", "stream must be true: this server only streams")


def check_key(key: str, strictness: Strictness, header: str) -> None:
    """Refuse a key that is blank or not the right one; `header` is where it was looked for."""
    if not strictness.need_key:
        return
    if not key.strip() or key != key.strip():
        raise Refusal("authorization", f"the header {header} must hold a key", status=401)
    if strictness.api_key is not None and key != strictness.api_key:
        raise Refusal("authorization", "the API key is not right", status=401)


def check_bearer(headers: Mapping[str, str], strictness: Strictness) -> None:
    """Refuse a request without a bearer token, or with a wrong one."""
    if not strictness.need_key:
        return
    scheme, _, key = headers.get("authorization", "").partition(" ")
    if scheme != "Bearer" or not key.strip() or key != key.strip():
        raise Refusal("authorization", "the authorization header must be 'Bearer' and a key", status=401)
    check_key(key, strictness, "authorization")
