"""One generation: the transcript projected to a request, the request's stream told as events, its final message.

Projection is late and one-way: agent messages, `transform_context`, `convert_to_llm`, a context for this
request alone (the wire API leaves out what a provider can't take). Whatever goes wrong on the way is the
answer, as the model's own failures are.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from msgspec.structs import replace

from cantle_agent.config import AgentContext, LoopConfig
from cantle_agent.errors import HookError, error_text
from cantle_agent.events import Emit, MessageStart, MessageUpdate
from cantle_agent.messages import AgentMessage
from cantle_agent.patience import patiently
from cantle_ai.abort import AbortError, AbortSignal
from cantle_ai.context import Context
from cantle_ai.events import Done, Error, Start
from cantle_ai.messages import AssistantMessage
from cantle_ai.stream import AssistantMessageStream

__all__ = ["ask_hook", "generate"]

_T = TypeVar("_T")


async def generate(
    context: AgentContext,
    config: LoopConfig,
    emit: Emit,
    signal: AbortSignal,
    *,
    trouble: HookError | None = None,
) -> AssistantMessage:
    """Ask the model of `config`. Tells `message_start` and each `message_update`; the end is the caller's to tell.

    Raises nothing but what `emit` raises: the final message says how it went. With `trouble`, no model is asked
    and that is the failure.
    """
    partial: AssistantMessage | None = None
    final: AssistantMessage | None = None
    problem: Exception = RuntimeError("The answer ended before it was complete")
    try:
        if trouble is not None:
            raise trouble
        async for event in await _request(context, config, signal):
            if not isinstance(event, (Start, Done, Error)):
                await emit(MessageUpdate(event.partial, event))
            elif isinstance(event, Start):
                partial = event.partial
                await emit(MessageStart(partial))
            else:
                final = event.message if isinstance(event, Done) else event.error
    except Exception as error:  # noqa: BLE001 - the contract: no failure on the way to an answer is loose
        problem = error
    if final is None:
        final = _failed(config, signal, problem, partial)
    if partial is None:
        await emit(MessageStart(final))
    return final


async def ask_hook(
    name: str,
    config: LoopConfig,
    signal: AbortSignal,
    hook: Callable[..., _T | Awaitable[_T]],
    *arguments: object,
) -> _T:
    """A hook's answer. Raises HookError for its failure, AbortError when it had to be ended after an abort."""
    try:
        return await patiently(hook(*arguments), signal, config.grace)
    except AbortError:
        raise
    except (Exception, SystemExit) as error:  # a hook is foreign code, and may raise anything
        raise HookError(name, error) from error


async def _request(context: AgentContext, config: LoopConfig, signal: AbortSignal) -> AssistantMessageStream:
    signal.raise_if_aborted()
    messages: Sequence[AgentMessage] = list(context.messages)
    if config.transform_context is not None:
        messages = await ask_hook(
            "transform_context", config, signal, config.transform_context, messages, signal
        )
    shown = await ask_hook("convert_to_llm", config, signal, config.convert_to_llm, messages)
    options = config.options() if callable(config.options) else config.options
    key = options.api_key
    if config.get_api_key is not None:
        key = await ask_hook("get_api_key", config, signal, config.get_api_key, config.model.provider) or key
    options = replace(options, thinking=config.thinking_level, signal=signal, api_key=key)
    tools = [tool.definition() for tool in context.tools]
    return config.stream(config.model, Context(context.system_prompt, list(shown), tools), options)


def _failed(
    config: LoopConfig, signal: AbortSignal, problem: Exception, partial: AssistantMessage | None
) -> AssistantMessage:
    model = config.model
    return AssistantMessage(
        [] if partial is None else list(partial.content),
        model.api,
        model.provider,
        model.id,
        stop_reason="aborted" if signal.aborted else "error",
        error_message=signal.reason if signal.aborted else error_text(problem),
    )
