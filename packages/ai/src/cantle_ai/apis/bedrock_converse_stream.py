"""Amazon Bedrock's Converse API, streamed: `POST {address}/model/{id}/converse-stream`.

One API for the models of many vendors; what differs between them is named in `bedrock_converse_compat`. An answer
comes as AWS's binary event stream. A request is authorised with an API key of Bedrock, which travels as a bearer
token, or else with a signature by AWS credentials (the extra `bedrock`), made when the request is sent: what an
inspection hook changes is signed as it was changed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence

from cantle_ai.abort import AbortSignal
from cantle_ai.apis.bedrock_converse_answer import ConverseReader
from cantle_ai.apis.bedrock_converse_endpoint import DEFAULT_REGION, converse_url, named_region
from cantle_ai.apis.bedrock_converse_payload import request_body
from cantle_ai.apis.bedrock_event_stream import EventStreamParser
from cantle_ai.apis.http_stream import Framer, stream_answer
from cantle_ai.apis.port import OwningApi, RequestAuth
from cantle_ai.auth.aws import AwsCredentials
from cantle_ai.builder import AnswerBuilder
from cantle_ai.context import Context
from cantle_ai.errors import ProviderError
from cantle_ai.events import AssistantMessageEvent
from cantle_ai.model import Model, StreamOptions
from cantle_ai.stream import EventSource
from cantle_ai.transport.port import HttpRequest, HttpResponse, Transport

__all__ = ["BedrockConverse"]

_MEDIA_TYPE = "application/vnd.amazon.eventstream"
_STALE = frozenset(
    {
        "ExpiredTokenException",
        "ExpiredToken",
        "UnrecognizedClientException",
        "InvalidSignatureException",
        "InvalidClientTokenId",
    }
)
"""What Bedrock calls credentials that it does not take: they are looked for anew at the next request."""


class BedrockConverse:
    """The wire API; see :class:`cantle_ai.apis.port.WireApi`. Keeps the credentials it has found between requests."""

    def __init__(self) -> None:
        self._credentials = AwsCredentials()

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
            request, sender = await self._request(model, context, options, transport, auth)
            answer = stream_answer(
                request,
                ConverseReader(builder),
                builder,
                options=options,
                transport=sender,
                signal=signal,
                framer=EventStreamParser(),
                media_type=_MEDIA_TYPE,
            )
            try:
                async for batch in answer:
                    yield batch
            except ProviderError as error:
                if error.code in _STALE:
                    self._credentials.forget(auth.environ)
                raise
            finally:
                await answer.aclose()

        return events

    async def aclose(self) -> None:
        self._credentials = AwsCredentials()

    async def _request(
        self,
        model: Model,
        context: Context,
        options: StreamOptions,
        transport: Transport,
        auth: RequestAuth,
    ) -> tuple[HttpRequest, Transport]:
        """The request, and what sends it: signed on its way out where no key goes with it."""
        environ = auth.environ
        key = auth.api_key or environ.get("AWS_BEARER_TOKEN_BEDROCK", "").strip() or None
        headers = {"content-type": "application/json", "accept": _MEDIA_TYPE, "user-agent": "cantle"}
        if key is not None:
            headers["authorization"] = f"Bearer {key}"
        for more in (auth.headers, options.headers):
            headers.update({name.lower(): value for name, value in more.items()})
        authorised = "authorization" in headers
        region = named_region(model, environ)
        if region is None and not authorised:
            region = await self._credentials.region(environ)
        region = region or DEFAULT_REGION
        url = converse_url(model, environ, region)
        request = HttpRequest("POST", url, headers, request_body(model, context, options), options.timeout)
        if authorised:
            return request, transport
        return request, _Signing(transport, self._credentials, environ, region)


_proof: type[OwningApi] = BedrockConverse
_frames: type[Framer] = EventStreamParser


class _Signing:
    """A transport that signs what it sends."""

    def __init__(
        self, transport: Transport, credentials: AwsCredentials, environ: Mapping[str, str], region: str
    ) -> None:
        self._transport = transport
        self._credentials = credentials
        self._environ = environ
        self._region = region

    async def send(self, request: HttpRequest, *, signal: AbortSignal | None = None) -> HttpResponse:
        signed = await self._credentials.sign(request, self._environ, region=self._region)
        return await self._transport.send(signed, signal=signal)

    async def aclose(self) -> None:
        """The transport below is not its own."""


_sends: type[Transport] = _Signing
