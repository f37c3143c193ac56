"""A request to either door of Google's models."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote

from cantle_ai.apis.http_headers import request_headers
from cantle_ai.auth.request_auth import RequestAuth
from cantle_ai.model import StreamOptions
from cantle_ai.transport.port import HttpRequest

__all__ = ["KEY_HEADER", "google_request", "model_path"]

KEY_HEADER = "x-goog-api-key"


def google_request(
    address: str, body: bytes, credential: Mapping[str, str], auth: RequestAuth, options: StreamOptions
) -> HttpRequest:
    """The request for a stream of `address`, which ends with the model. `credential` are the headers of the key."""
    url = f"{address}:streamGenerateContent?alt=sse"
    return HttpRequest("POST", url, request_headers(credential, auth, options), body, options.timeout)


def model_path(model_id: str) -> str:
    """The path of a model at Gemini's API: an id that names its collection (`tunedModels/…`) keeps it."""
    name = quote(model_id, safe="/:@-._~")
    return name if name.startswith(("models/", "tunedModels/")) else f"models/{name}"
