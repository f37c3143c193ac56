"""One-line help for a person at a prompt.

    >>> import cantle_ai
    >>> cantle_ai.ask("openai/gpt-5", "Name a river.")
    >>> message = await cantle_ai.complete("openai/gpt-5", "Name a river.")

Programs that ask more than once keep a :class:`cantle_ai.models.Models`, which keeps its connections.
"""

from __future__ import annotations

import msgspec

from cantle_ai.context import Context
from cantle_ai.errors import CantleAIError, ProviderError
from cantle_ai.messages import AssistantMessage, UserMessage
from cantle_ai.model import Model, StreamOptions
from cantle_ai.model_patterns import resolve_model
from cantle_ai.models import Models

__all__ = ["ask", "complete"]


def ask(
    model: str | Model,
    prompt: str | Context,
    options: StreamOptions | None = None,
    *,
    models: Models | None = None,
) -> str:
    """The text of a model's answer to `prompt`. `model` may be part of a name, with `:level` behind it.

    `models` is where it is looked up and asked; the built-in providers, with keys from the environment, by
    default. Raises :class:`cantle_ai.errors.ProviderError` when the request fails, and
    :class:`cantle_ai.errors.CantleAIError` for a model that does not exist or when an event loop is running.
    """
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass
    else:
        raise CantleAIError("An event loop is running here. Write: message = await cantle_ai.complete(…)")
    message = asyncio.run(complete(model, prompt, options, models=models))
    if message.failed:
        raise ProviderError(message.error_message or f"The request ended with {message.stop_reason}")
    return message.text


async def complete(
    model: str | Model,
    prompt: str | Context,
    options: StreamOptions | None = None,
    *,
    models: Models | None = None,
) -> AssistantMessage:
    """A model's whole answer to `prompt`. A request that fails is an answer whose `stop_reason` is `error`.

    The other parameters are those of :func:`ask`. Raises :class:`cantle_ai.errors.CantleAIError` for a model
    that does not exist.
    """
    runtime = Models() if models is None else models
    try:
        options = options or StreamOptions()
        if isinstance(model, str):
            found = resolve_model(model, runtime.list(), has_auth=runtime.configured)
            model = found.model
            if found.thinking_level is not None:
                options = msgspec.structs.replace(options, thinking=found.thinking_level)
        context = Context(messages=[UserMessage(prompt)]) if isinstance(prompt, str) else prompt
        return await runtime.complete(model, context, options)
    finally:
        if models is None:
            await runtime.aclose()
