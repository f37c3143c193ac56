"""A model in this process, run by llama.cpp from a GGUF file: the wire API of the provider `local`.

A model's `base_url` is the path of its file. It is loaded when it is first asked, and answers one request after
the other, in a thread; see :mod:`cantle_ai.local`. With tools, a grammar holds the model to words or a call of
one of them (`llama_cpp_grammar`).

A model's `compat` may say `threads` and `promptThreads`. `samplingParams` are llama.cpp's: `temperature`, `seed`,
`top_p`, `repeat_penalty`, `stop` and so on.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from cantle_ai.abort import AbortSignal
from cantle_ai.apis.llama_cpp_answer import Answer
from cantle_ai.apis.llama_cpp_grammar import grammar_of
from cantle_ai.apis.llama_cpp_messages import chat_messages
from cantle_ai.apis.port import OwningApi
from cantle_ai.auth.request_auth import RequestAuth
from cantle_ai.builder import AnswerBuilder
from cantle_ai.codec import Json, JsonObject, wire_json
from cantle_ai.context import Context
from cantle_ai.errors import ConfigurationError
from cantle_ai.events import AssistantMessageEvent
from cantle_ai.history_images import images_left_out
from cantle_ai.local.engine import Engine
from cantle_ai.local.rows import NO_ENGINE, NO_WEIGHTS, file_path
from cantle_ai.local.weights import engine_installed
from cantle_ai.model import Model, StreamOptions
from cantle_ai.stream import EventSource
from cantle_ai.transport.port import Transport

if TYPE_CHECKING:
    from cantle_ai.local.llama_server import LoadOptions

__all__ = ["LlamaCpp"]

_MOST_THREADS = 512
_OURS = frozenset(
    {
        "messages",
        "stream",
        "stream_options",
        "return_progress",
        "tools",
        "tool_choice",
        "grammar",
        "json_schema",
        "response_format",
        "n",
        "model",
    }
)
"""Fields that sampling options cannot replace: an answer would be read wrongly, or not at all."""


class LlamaCpp:
    """The wire API. Holds the models that it loaded, until it is closed."""

    def __init__(self) -> None:
        self._engines: dict[LoadOptions, Engine] = {}

    def __call__(
        self,
        model: Model,
        context: Context,
        options: StreamOptions,
        *,
        transport: Transport,
        auth: RequestAuth,
    ) -> EventSource:
        """The answer of a local model; see :class:`cantle_ai.apis.port.WireApi`."""

        async def events(
            builder: AnswerBuilder, signal: AbortSignal
        ) -> AsyncIterator[Sequence[AssistantMessageEvent]]:
            job = self._engine(_load_options(model)).ask(_request(model, context, options))
            answer = Answer(builder, context.tools)
            try:
                yield builder.take()
                async for chunk in job:
                    answer.add(chunk)
                    yield builder.take()
                answer.finish()
                yield builder.take()
            finally:
                job.cancel()

        return events

    async def aclose(self) -> None:
        """Forget the models. Returns when their threads have ended and their memory is free."""
        engines = list(self._engines.values())
        self._engines.clear()
        for engine in engines:
            engine.close()
        for engine in engines:
            await engine.aclose()

    def _engine(self, load: LoadOptions) -> Engine:
        engine = self._engines.get(load)
        if engine is None:
            engine = self._engines[load] = Engine(load)
        return engine


_proof: OwningApi = LlamaCpp()


def _load_options(model: Model) -> LoadOptions:
    """How to load the model's file. Raises :class:`ConfigurationError` where there is nothing to load, or to load with."""
    from cantle_ai.local.llama_server import LoadOptions

    if not engine_installed():
        raise ConfigurationError(None, NO_ENGINE)
    if not model.base_url:
        raise ConfigurationError(None, NO_WEIGHTS)
    if "://" in model.base_url:
        raise ConfigurationError(
            None,
            f"{model.base_url} is an address, and a local model is a file. Give its provider the `api` of a server, "
            "such as openai-completions",
        )
    return LoadOptions(
        path=file_path(model.base_url),
        context=model.context_window,
        threads=_threads(model.compat.get("threads")) or 1,
        prompt_threads=_threads(model.compat.get("promptThreads")),
    )


def _threads(value: Json) -> int | None:
    return value if type(value) is int and 1 <= value <= _MOST_THREADS else None


def _request(model: Model, context: Context, options: StreamOptions) -> bytes:
    blind = msgspec.structs.replace(model, input=("text",))
    fields: JsonObject = {
        "max_tokens": model.max_tokens if options.max_tokens is None else options.max_tokens,
        "chat_template_kwargs": {"enable_thinking": False},
    }
    by_level = model.sampling_by_level.get(model.clamp(options.thinking), {})
    # What a caller asks for by name goes before what a model's makers advise.
    asked: JsonObject = {} if options.temperature is None else {"temperature": options.temperature}
    for sampling in (model.sampling, by_level, asked, options.sampling):
        fields.update({key: value for key, value in sampling.items() if key not in _OURS})
    return wire_json(
        {
            **fields,
            "messages": chat_messages(context, images_left_out(blind, options) or ""),
            **({"grammar": grammar_of(context.tools)} if context.tools else {}),
            "cache_prompt": True,
            "stream": True,
            "stream_options": {"include_usage": True},
            "return_progress": True,  # so that an abort is noticed while the prompt is read
        }
    )
