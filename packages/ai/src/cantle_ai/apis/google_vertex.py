"""Google's models at Vertex AI, streamed: the door to what `google_generative_ai` speaks.

    with an API key      POST {root}/v1/publishers/google/models/{id}:streamGenerateContent?alt=sse
    with a token         POST {root}/v1/projects/{project}/locations/{location}/publishers/google/models/{id}:…

The root is the model's base URL; where that is empty, it is Google's own for the location: a region has a host
of its own, `us` and `eu` have theirs, and `global` (or a key) has the plain one. Without a key the token comes
from the Application Default Credentials (:mod:`cantle_ai.auth.google_cloud`), the project from
`GOOGLE_CLOUD_PROJECT` or `GCLOUD_PROJECT`, or from the credentials, and the location from `GOOGLE_CLOUD_LOCATION`.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING
from urllib.parse import quote

from cantle_ai.abort import AbortSignal
from cantle_ai.apis.google_answer import GoogleReader
from cantle_ai.apis.google_compat import compat_of
from cantle_ai.apis.google_payload import request_body
from cantle_ai.apis.google_request import KEY_HEADER, google_request
from cantle_ai.apis.http_headers import key_headers
from cantle_ai.apis.http_stream import stream_answer
from cantle_ai.apis.port import OwningApi
from cantle_ai.auth.request_auth import RequestAuth
from cantle_ai.builder import AnswerBuilder
from cantle_ai.context import Context
from cantle_ai.errors import ConfigurationError, ProviderError
from cantle_ai.events import AssistantMessageEvent
from cantle_ai.model import Model, StreamOptions
from cantle_ai.stream import EventSource
from cantle_ai.transport.port import HttpRequest, Transport

if TYPE_CHECKING:
    from cantle_ai.auth.google_cloud import AccessToken, GoogleCloudTokens

__all__ = ["GoogleVertex"]

_HOST = "aiplatform.googleapis.com"
_MULTI_REGIONS = ("us", "eu")
_GLOBAL = "global"


class GoogleVertex:
    """The wire API. Holds the tokens of cloud credentials while they are good, until it is closed."""

    def __init__(self) -> None:
        self._tokens: GoogleCloudTokens | None = None

    def __call__(
        self,
        model: Model,
        context: Context,
        options: StreamOptions,
        *,
        transport: Transport,
        auth: RequestAuth,
    ) -> EventSource:
        async def events(
            builder: AnswerBuilder, signal: AbortSignal
        ) -> AsyncIterator[Sequence[AssistantMessageEvent]]:
            body = request_body(model, context, options, compat_of(model))
            for last_try in (False, True):
                token = await self._token(transport, auth, options)
                request = _request(model, options, body, auth, token)
                reader = GoogleReader(builder, model.id, context)
                answer = stream_answer(
                    request, reader, builder, options=options, transport=transport, signal=signal
                )
                begun = False
                try:
                    async with aclosing(answer):
                        async for batch in answer:
                            begun = True
                            yield batch
                    return
                except ProviderError as error:
                    if error.status != 401 or token is None or self._tokens is None:
                        raise
                    # A token may end before its time. The next one is asked for at once, but only once.
                    self._tokens.forget(auth.environ, token)
                    if begun or last_try:
                        raise

        return events

    async def aclose(self) -> None:
        self._tokens = None

    async def _token(
        self, transport: Transport, auth: RequestAuth, options: StreamOptions
    ) -> AccessToken | None:
        """The token of the cloud credentials; None where something else authorises the request."""
        if auth.api_key is not None:
            return None
        if any(name.lower() == "authorization" for name in (*auth.headers, *options.headers)):
            return None  # a gateway's own
        if self._tokens is None:
            from cantle_ai.auth.google_cloud import GoogleCloudTokens

            self._tokens = GoogleCloudTokens()
        return await self._tokens.token(auth.environ, transport)


_proof: type[OwningApi] = GoogleVertex


def _request(
    model: Model, options: StreamOptions, body: bytes, auth: RequestAuth, token: AccessToken | None
) -> HttpRequest:
    if auth.api_key is not None and auth.kind == "key":
        address = f"{_root(model.base_url, _GLOBAL)}/{_model_path(model.id)}"
        return google_request(address, body, key_headers(auth, KEY_HEADER), auth, options)
    project = _variable(auth.environ, "GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT")
    credential = key_headers(auth)
    if token is not None:
        credential["authorization"] = f"Bearer {token.value}"
        project = project or token.project
        if token.quota_project:
            credential["x-goog-user-project"] = token.quota_project
    location = _variable(auth.environ, "GOOGLE_CLOUD_LOCATION")
    if project is None or location is None:
        missing = "GOOGLE_CLOUD_PROJECT" if project is None else "GOOGLE_CLOUD_LOCATION"
        raise ConfigurationError(
            None,
            f"Vertex AI needs a project and a location: set {missing}, or give an API key in GOOGLE_CLOUD_API_KEY",
        )
    place = f"projects/{quote(project, safe=':')}/locations/{quote(location, safe='')}"
    address = f"{_root(model.base_url, location)}/{place}/{_model_path(model.id)}"
    return google_request(address, body, credential, auth, options)


def _root(base_url: str, location: str) -> str:
    """The address up to the version of the API."""
    if base_url:
        root = base_url.rstrip("/")
        return root if re.search(r"/v\d\w*$", root) else f"{root}/v1"
    if location == _GLOBAL:
        host = _HOST
    elif location in _MULTI_REGIONS:
        name, _, domain = _HOST.partition(".")
        host = f"{name}.{location}.rep.{domain}"
    else:
        host = f"{quote(location, safe='')}-{_HOST}"
    return f"https://{host}/v1"


def _model_path(model_id: str) -> str:
    """The path of a model: `claude-x` of another publisher is `anthropic/claude-x`."""
    name = quote(model_id, safe="/:@-._~")
    if name.startswith(("publishers/", "endpoints/")):
        return name
    publisher, _, rest = name.rpartition("/")
    return f"publishers/{publisher or 'google'}/models/{rest}"


def _variable(environ: Mapping[str, str], *names: str) -> str | None:
    return next((value for name in names if (value := environ.get(name, "").strip())), None)
