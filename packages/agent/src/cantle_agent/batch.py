"""The tool calls of one answer: which run together, and in what order what happens is told and recorded.

Preparation goes in the order of the calls. Then the calls run together, their ends are told as they finish,
and the results are recorded in the order of the calls. A sequential batch takes each call from its start
to its recorded result before the next.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from cantle_agent.config import LoopConfig
from cantle_agent.events import Emit, ToolExecutionEnd, ToolExecutionStart, ToolExecutionUpdate
from cantle_agent.pipeline import ReadyCall, SettledCall, execute_call, prepare_call, refused_call
from cantle_agent.tool import Tool, ToolContext, ToolResult
from cantle_ai.abort import AbortSignal
from cantle_ai.content import ToolCall
from cantle_ai.messages import AssistantMessage, ToolResultMessage

__all__ = ["Batch"]

_Record: TypeAlias = Callable[[ToolResultMessage], Awaitable[None]]
_Channel: TypeAlias = "asyncio.Queue[ToolExecutionUpdate | SettledCall]"


class Batch:
    """One answer's calls on their way. `settled` holds what has a result so far, by call id."""

    def __init__(
        self,
        message: AssistantMessage,
        tools: Sequence[Tool],
        config: LoopConfig,
        *,
        emit: Emit,
        record: _Record,
        signal: AbortSignal,
    ) -> None:
        """`record` puts a result into the transcript and tells of it."""
        self._message = message
        self._tools = tools
        self._config = config
        self._emit = emit
        self._record = record
        self._signal = signal
        self.calls = message.tool_calls
        self.settled: dict[str, ToolResultMessage] = {}
        self.results: list[ToolResultMessage] = []
        self._terminating = 0

    @property
    def wants_answer(self) -> bool:
        """Whether a model is to see the results now: there are some, and not every one asks to end the run."""
        return self._terminating < len(self.results)

    async def run(self) -> None:
        """Give every call its result."""
        if self._message.stop_reason == "length":
            for call in self.calls:
                await self._start(call)
                await self._finish([await self._end(refused_call(call))])
        elif self._sequential:
            for call in self.calls:
                await self._finish(await self._run([call]))
        else:
            await self._finish(await self._run(self.calls))

    @property
    def _sequential(self) -> bool:
        called = {call.name for call in self.calls}
        return self._config.tool_execution == "sequential" or any(
            tool.execution_mode == "sequential" for tool in self._tools if tool.name in called
        )

    async def _run(self, calls: Sequence[ToolCall]) -> list[ToolResultMessage]:
        """Prepare all, then run together those that may. Results in the order of `calls`."""
        ready: list[ReadyCall] = []
        results: dict[int, ToolResultMessage] = {}
        for call in calls:
            await self._start(call)
            prepared = await prepare_call(call, self._message, self._tools, self._config, self._signal)
            if isinstance(prepared, ReadyCall):
                ready.append(prepared)
            else:
                results[id(call)] = await self._end(prepared)
        channel: _Channel = asyncio.Queue()
        async with asyncio.TaskGroup() as group:
            for one in ready:
                group.create_task(self._execute(one, channel), name=f"cantle-tool-{one.call.name}")
            running = len(ready)
            while running:
                news = await channel.get()
                if isinstance(news, SettledCall):
                    running -= 1
                    results[id(news.call)] = await self._end(news)
                else:
                    await self._emit(news)
        return [results[id(call)] for call in calls]

    async def _execute(self, ready: ReadyCall, channel: _Channel) -> None:
        context = _RunningCall(ready.call, self._signal, channel)
        channel.put_nowait(
            await execute_call(ready, context, self._config, self._signal, on_settled=context.close)
        )

    async def _start(self, call: ToolCall) -> None:
        await self._emit(ToolExecutionStart(call.id, call.name, call.arguments))

    async def _end(self, settled: SettledCall) -> ToolResultMessage:
        call, result = settled.call, settled.result
        message = ToolResultMessage(
            call.id,
            call.name,
            result.content,
            is_error=result.is_error,
            details=result.details,
            usage=result.usage,
            duration_ms=settled.duration_ms,
        )
        self.settled[call.id] = message
        self._terminating += result.terminate
        await self._emit(ToolExecutionEnd(call.id, call.name, result, result.is_error, settled.duration_ms))
        return message

    async def _finish(self, results: Sequence[ToolResultMessage]) -> None:
        for message in results:
            self.results.append(message)
            await self._record(message)


class _RunningCall:
    """What a tool gets beside its arguments. Progress may come from any thread."""

    __slots__ = ("_call", "_channel", "_closed", "_loop", "_signal", "_thread")

    def __init__(self, call: ToolCall, signal: AbortSignal, channel: _Channel) -> None:
        self._call = call
        self._signal = signal
        self._channel = channel
        self._closed = False
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()

    @property
    def tool_call_id(self) -> str:
        return self._call.id

    @property
    def tool_name(self) -> str:
        return self._call.name

    @property
    def signal(self) -> AbortSignal:
        return self._signal

    def progress(self, partial: ToolResult) -> None:
        if not isinstance(partial, ToolResult):
            raise TypeError(f"progress takes a ToolResult, not {type(partial).__name__}")
        if self._closed:
            return
        if threading.get_ident() == self._thread:
            self._deliver(partial)
        elif not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._deliver, partial)

    def close(self) -> None:
        """The call has settled: what comes later is ignored."""
        self._closed = True

    def _deliver(self, partial: ToolResult) -> None:
        if not self._closed:
            call = self._call
            self._channel.put_nowait(ToolExecutionUpdate(call.id, call.name, call.arguments, partial))


_: type[ToolContext] = _RunningCall
