"""One tool call's way from what the model asked to the result that it reads.

    look up → prepare → validate → before hooks → validate again → gate → execute → after hooks → admission → result

Every failure on it (an unknown tool, arguments that do not fit, a block, an exception, an abort) becomes the
call's result and nothing else: no call harms another, and none leaves the model without an answer.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from msgspec import UNSET, Struct
from msgspec.structs import replace

from cantle_agent.admission import admit_content
from cantle_agent.config import (
    Block,
    ChangeArguments,
    FinishedToolCall,
    LoopConfig,
    RequestedToolCall,
    ResultChange,
)
from cantle_agent.errors import SchemaError, error_text
from cantle_agent.patience import LeftBehindError, patiently
from cantle_agent.schema import copy_object, problem_text, schema_of
from cantle_agent.tool import Tool, ToolContext, ToolError, ToolResult
from cantle_ai.abort import AbortError, AbortSignal
from cantle_ai.codec import JsonObject, encode_json
from cantle_ai.content import ImageContent, TextContent, ToolCall, UnknownContent
from cantle_ai.messages import AssistantMessage

__all__ = ["ReadyCall", "SettledCall", "execute_call", "prepare_call", "refused_call"]

ABORTED = "Operation aborted"
_QUOTED = 200
"""Characters of invalid arguments that are quoted to the model, from each end."""


class SettledCall(Struct, frozen=True):
    """A call with its result. `duration_ms` is how long its tool ran; None when it did not."""

    call: ToolCall
    result: ToolResult
    duration_ms: int | None = None


class ReadyCall(Struct, frozen=True):
    """A call that may run, with the arguments that it runs with."""

    call: ToolCall
    tool: Tool
    arguments: JsonObject
    message: AssistantMessage


class _BlockedError(Exception):
    """A hook or the gate decided that the call does not run."""

    def __init__(self, decision: Block) -> None:
        super().__init__(decision.reason or "The call was blocked.")
        self.terminate = decision.terminate


def _aborted_call(call: ToolCall) -> SettledCall:
    """The result of a call that an abort kept from starting."""
    return SettledCall(call, ToolResult.of(f"{ABORTED}: the call was not run.", is_error=True))


def refused_call(call: ToolCall) -> SettledCall:
    """The result of a call in an answer that was cut at the output limit: its arguments may lack their end."""
    return SettledCall(
        call,
        ToolResult.of(
            f"The call of {call.name} was not run: the answer reached the output limit, so its arguments may be "
            "incomplete. Make the call again with all of its arguments, in smaller parts if they are long.",
            is_error=True,
        ),
    )


async def prepare_call(
    call: ToolCall,
    message: AssistantMessage,
    tools: Sequence[Tool],
    config: LoopConfig,
    signal: AbortSignal,
) -> ReadyCall | SettledCall:
    """Everything before the tool runs."""
    if signal.aborted:
        return _aborted_call(call)
    try:
        tool = _look_up(call, tools)
        arguments = _arguments_of(call)
        if tool.prepare is not None:
            arguments = tool.prepare(arguments)
        arguments = _valid(tool, arguments)

        def request() -> RequestedToolCall:
            return RequestedToolCall(
                call=call, tool=tool, arguments=copy_object(arguments), message=message, signal=signal
            )

        for hook in config.before_tool_call:
            decision = await patiently(hook(request()), signal, config.grace)
            if isinstance(decision, ChangeArguments):
                arguments = _valid(tool, copy_object(decision.arguments))
            elif decision is not None:
                _obey(decision, "hook")
        if config.gate is not None:
            verdict = await patiently(config.gate(request()), signal, config.grace)
            if verdict is not None:
                _obey(verdict, "gate")
        return ReadyCall(call, tool, arguments, message)
    except _BlockedError as block:
        return SettledCall(call, replace(_failure(block), terminate=block.terminate))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a hook's failure is this call's result
        return _stopped(call, error, signal)


async def execute_call(
    ready: ReadyCall,
    context: ToolContext,
    config: LoopConfig,
    signal: AbortSignal,
    *,
    on_settled: Callable[[], None],
) -> SettledCall:
    """Run the tool, call `on_settled`, and run the hooks on its result."""
    if signal.aborted:
        return _aborted_call(ready.call)
    began = time.monotonic()
    try:
        result = _sound(
            ready.tool,
            await patiently(ready.tool.execute(copy_object(ready.arguments), context), signal, config.grace),
        )
    except LeftBehindError as error:
        result = ToolResult.of(f"{ABORTED}, but {ready.tool.name} {error}.", is_error=True)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a tool raises is its result
        result = _failure(error)
    duration = round((time.monotonic() - began) * 1000)
    on_settled()
    for hook in config.after_tool_call:
        finished = FinishedToolCall(
            call=ready.call,
            tool=ready.tool,
            arguments=copy_object(ready.arguments),
            result=result,
            message=ready.message,
            duration_ms=duration,
            signal=signal,
        )
        try:
            change = await patiently(hook(finished), signal, config.grace)
            result = result if change is None else _sound(ready.tool, _changed(result, change))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a hook's failure is this call's result
            text = f"The call ran, but a hook on its result failed: {error_text(error)}"
            result = replace(ToolResult.of(text, is_error=True), usage=result.usage)
    content = await admit_content(result.content, config, signal)
    if content is not result.content:
        result = replace(result, content=content)
    return SettledCall(ready.call, result, duration)


def _stopped(call: ToolCall, error: BaseException, signal: AbortSignal) -> SettledCall:
    return _aborted_call(call) if signal.aborted else SettledCall(call, _failure(error))


def _look_up(call: ToolCall, tools: Sequence[Tool]) -> Tool:
    for tool in tools:
        if tool.name == call.name:
            return tool
    names = ", ".join(tool.name for tool in tools) or "none"
    raise ToolError(f"There is no tool {call.name!r}. Available tools: {names}.")


def _arguments_of(call: ToolCall) -> JsonObject:
    text = call.invalid_arguments
    if text is None:
        return copy_object(call.arguments)
    quoted = text if len(text) <= 2 * _QUOTED else f"{text[:_QUOTED]} … {text[-_QUOTED:]}"
    raise ToolError(
        f"The arguments for {call.name} are not a JSON object ({_json_problem(text)}): {quoted}\n"
        "Make the call again with one complete JSON object."
    )


def _json_problem(text: str) -> str:
    import json

    from cantle_ai.json_mistake import json_mistake

    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        mistake = json_mistake(error)
        return f"{mistake.reason} at character {mistake.position + 1} of {len(text)}"
    except (ValueError, RecursionError) as error:
        return str(error)
    return f"a value of type {type(value).__name__}"


def _valid(tool: Tool, arguments: JsonObject) -> JsonObject:
    if not isinstance(arguments, dict):
        raise TypeError(f"the arguments for {tool.name} became {type(arguments).__name__}, not an object")
    try:
        schema = schema_of(tool.parameters)
    except SchemaError as error:
        raise ToolError(
            f"The tool {tool.name} can't be called: its parameters are not a valid JSON schema ({error})."
        ) from error
    arguments, problems = schema.fit(arguments)
    if problems:
        raise ToolError(problem_text(tool.name, problems))
    return arguments


def _obey(decision: Block, who: str) -> None:
    if not isinstance(decision, Block):
        raise TypeError(f"a {who} returned {type(decision).__name__}, not a decision")
    raise _BlockedError(decision)


def _changed(result: ToolResult, change: ResultChange) -> ToolResult:
    if not isinstance(change, ResultChange):
        raise TypeError(f"a hook returned {type(change).__name__}, not a ResultChange")
    given = {
        name: value for name in change.__struct_fields__ if (value := getattr(change, name)) is not UNSET
    }
    return replace(result, **given)


def _sound(tool: Tool, result: ToolResult) -> ToolResult:
    """`result`, if it can be written and sent; what can't be is replaced by a note that says so."""
    if not isinstance(result, ToolResult):
        raise TypeError(f"{tool.name} returned {type(result).__name__}, not a ToolResult")
    for block in result.content:
        if not isinstance(block, TextContent | ImageContent | UnknownContent):
            raise TypeError(f"a result holds {type(block).__name__}, not text or an image")
    details = result.details
    if details is not None:
        try:
            encode_json(details)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            details = {"lost": f"The details are not JSON: {error_text(error)}"}
    return replace(result, content=list(result.content), details=details)


def _failure(error: BaseException) -> ToolResult:
    if isinstance(error, AbortError):
        return ToolResult.of(str(error) or ABORTED, is_error=True)
    details = error.details if isinstance(error, ToolError) else None
    return ToolResult.of(error_text(error), details=details, is_error=True)
