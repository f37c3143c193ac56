"""Reads the body of a response, streamed or whole. Shared by the doors to the Responses API."""

from __future__ import annotations

from cantle_ai.apis.http_errors import cut_off, error_from_json
from cantle_ai.apis.http_stream import AnswerReader
from cantle_ai.apis.openai_responses_answer import Answer
from cantle_ai.apis.openai_responses_compat import OpenAIResponsesCompat
from cantle_ai.apis.openai_responses_events import decode_event
from cantle_ai.builder import AnswerBuilder
from cantle_ai.codec import Json, decode_json
from cantle_ai.context import Context
from cantle_ai.errors import ProviderError
from cantle_ai.model import Model
from cantle_ai.sse import ServerSentEvent

__all__ = ["ResponseReader", "reader_of"]


def reader_of(
    builder: AnswerBuilder,
    model: Model,
    context: Context,
    compat: OpenAIResponsesCompat,
    name: str | None = None,
) -> ResponseReader:
    """The reader of the answer to `context`. `name` is what the endpoint calls the model, if not by its id."""
    if context.tools and compat.supports_strict_mode:
        from cantle_ai.apis.null_arguments import null_remover

        builder.mend_arguments = null_remover(context.tools)
    prices = compat.service_tier_prices
    return ResponseReader(Answer(builder, name or model.id, context, price=model.price, tier_prices=prices))


class ResponseReader:
    """Takes events until one says how the response ended; a stream without one was cut off."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    @property
    def done(self) -> bool:
        return self._answer.ended

    @property
    def complete(self) -> bool:
        return self._answer.ended

    @property
    def empty(self) -> bool:
        return self._answer.empty

    def event(self, event: ServerSentEvent) -> None:
        data, name = event.data, event.event
        try:
            read = decode_event(data)
        except ValueError:
            if not data.strip() or data.strip() == b"[DONE]" or not _speaks_of_the_answer(name):
                return  # proxies add events of their own, with names
            raise
        if read is None:
            return
        if read.type == "error" or (read.type is None and name == "error") or read.error:
            raise _reported(decode_json(data), read.error)
        self._answer.add(read)

    def whole(self, body: bytes) -> None:
        value = decode_json(body)
        if not isinstance(value, dict):
            raise ValueError("not a response")
        if value.get("object") == "response" or "output" in value:
            self._answer.end_with(value)
        elif value.get("error"):
            raise error_from_json(value["error"])
        else:
            raise ValueError("not a response")

    def end(self) -> None:
        if not self._answer.ended:
            raise cut_off("its closing event")
        self._answer.finish()


_reads: type[AnswerReader] = ResponseReader


def _speaks_of_the_answer(name: str | None) -> bool:
    return name is None or name in ("message", "error") or name.startswith("response.")


def _reported(raw: Json, error: Json) -> ProviderError:
    """The failure in an event: an object in `error`, or the fields of the event itself."""
    if error:
        return error_from_json(error)
    if isinstance(raw, dict) and (raw.get("message") or raw.get("code")):
        return error_from_json({key: value for key, value in raw.items() if key != "type"})
    return ProviderError("The provider reported an error, and did not say which", code="server_error")
