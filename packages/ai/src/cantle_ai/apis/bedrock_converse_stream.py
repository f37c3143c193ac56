"""Amazon Bedrock's Converse API, streamed: `POST {address}/model/{id}/converse-stream`.

One API for the models of many vendors; what differs between them is named in `bedrock_converse_compat`. An answer
comes as AWS's binary event stream. A request is authorised with an API key of Bedrock, which travels as a bearer
token, or else with a signature by AWS credentials (the extra `bedrock`), made when the request is sent: what an
inspection hook changes is signed as it was changed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from functools import partial
from typing import TypeAlias

from cantle_ai.abort import AbortSignal
from cantle_ai.apis.bedrock_converse_answer import ConverseReader
from cantle_ai.apis.bedrock_converse_endpoint import DEFAULT_REGION, converse_url, named_region
from cantle_ai.apis.bedrock_converse_payload import request_body
from cantle_ai.apis.bedrock_event_stream import EventStreamParser
from cantle_ai.apis.http_errors import amazon_word, redact, secrets_of
from cantle_ai.apis.http_headers import request_headers
from cantle_ai.apis.http_stream import Framer, stream_answer
from cantle_ai.apis.port import OwningApi
from cantle_ai.auth.aws import AwsCredentials
from cantle_ai.auth.request_auth import RequestAuth
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
"""What Bedrock calls credentials that it does not take: they are looked for anew."""


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
            request, region = await self._request(model, context, options, auth)
            sign = None
            if region is not None:
                sign = partial(self._credentials.sign, environ=auth.environ, region=region)
            sender = _Sender(transport, builder, sign, partial(self._credentials.forget, auth.environ))
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
                async with aclosing(answer):
                    async for batch in answer:
                        yield batch
            except ProviderError as error:
                redact(error, sender.secrets)  # AWS quotes the headers of a request whose signature is wrong
                raise

        return events

    async def aclose(self) -> None:
        self._credentials = AwsCredentials()

    async def _request(
        self, model: Model, context: Context, options: StreamOptions, auth: RequestAuth
    ) -> tuple[HttpRequest, str | None]:
        """The request, and the region to sign it for on its way out; None where a key goes with it."""
        environ = auth.environ
        key = auth.api_key or environ.get("AWS_BEARER_TOKEN_BEDROCK", "").strip() or None
        own = {} if key is None else {"authorization": f"Bearer {key}"}
        headers = request_headers(own, auth, options, accept=_MEDIA_TYPE)
        # For a proxy that authorises requests itself; the name is the reference's.
        authorised = "authorization" in headers or environ.get("AWS_BEDROCK_SKIP_AUTH") == "1"
        region = named_region(model, environ)
        if region is None and not authorised:
            region = await self._credentials.region(environ)
        region = region or DEFAULT_REGION
        url = converse_url(model, environ, region)
        request = HttpRequest("POST", url, headers, request_body(model, context, options), options.timeout)
        return request, None if authorised else region


_proof: type[OwningApi] = BedrockConverse
_frames: type[Framer] = EventStreamParser

_Sign: TypeAlias = Callable[[HttpRequest], Awaitable[HttpRequest]]


class _Sender:
    """The transport of one request: signs what it sends, and keeps the id that Bedrock gives the request.

    Credentials that are refused are looked for anew. Where others are found, the request is sent again, once:
    temporary ones may end before their time.
    """

    def __init__(
        self, transport: Transport, builder: AnswerBuilder, sign: _Sign | None, forget: Callable[[], None]
    ) -> None:
        self._transport = transport
        self._builder = builder
        self._sign = sign
        self._forget = forget
        self.secrets: list[str] = []
        """What of a signature must not be shown."""

    async def send(self, request: HttpRequest, *, signal: AbortSignal | None = None) -> HttpResponse:
        if self._sign is None:
            return await self._sent(request, signal)
        signed = await self._sign(request)
        response = await self._sent(signed, signal)
        if response.status < 400 or amazon_word(response.headers.get("x-amzn-errortype")) not in _STALE:
            return response
        self._forget()
        try:
            again = await self._sign(request)
        except BaseException:  # raised again, a cancellation too: the refused answer is let go of
            await response.aclose()
            raise
        if _signer(again) == _signer(signed):
            return response
        await response.aclose()
        return await self._sent(again, signal)

    async def _sent(self, request: HttpRequest, signal: AbortSignal | None) -> HttpResponse:
        self.secrets = [] if self._sign is None else secrets_of(request.headers)
        response = await self._transport.send(request, signal=signal)
        self._builder.message.response_id = response.headers.get("x-amzn-requestid")
        return response

    async def aclose(self) -> None:
        """The transport below is not its own."""


_sends: type[Transport] = _Sender


def _signer(request: HttpRequest) -> tuple[str, str | None]:
    """Whose signature a request has: the key's id, and the token of temporary credentials."""
    headers = request.headers
    return headers["authorization"].partition("/")[0], headers.get("x-amz-security-token")
