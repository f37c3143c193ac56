"""The agent loop: ask the model, run the tools it calls, ask again, until there is nothing left to do.

It knows no terminal, file or session. Two faces, one code: `run_loop` awaits a run and calls a listener with
each event, `agent_loop` iterates over the same events. Both begin a run with prompts, or continue without.

A failure of the model, a hook or the stream is an answer that says so, and the last. A listener that raises ends
a run in order: aborted, with every result and event, and then the exception. Cancelling the wait aborts, too.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TypeVar

from cantle_agent.admission import admit_message
from cantle_agent.batch import Batch
from cantle_agent.config import AgentContext, FinishedTurn, LoopConfig
from cantle_agent.errors import ContinueError, HookError, error_text
from cantle_agent.events import (
    AgentEnd,
    AgentEvent,
    AgentStart,
    Emit,
    MessageEnd,
    MessageStart,
    TurnEnd,
    TurnStart,
)
from cantle_agent.generation import ask_hook, generate
from cantle_agent.messages import AgentMessage, last_shown, unanswered
from cantle_agent.patience import see_through, was_cancelled
from cantle_agent.queues import MessageQueue
from cantle_agent.rendezvous import Rendezvous
from cantle_ai.abort import AbortController, AbortError, AbortSignal
from cantle_ai.messages import AssistantMessage

__all__ = ["agent_loop", "drive", "run_loop"]

_T = TypeVar("_T")


async def run_loop(
    prompts: Sequence[AgentMessage],
    context: AgentContext,
    config: LoopConfig,
    emit: Emit,
    signal: AbortSignal | None = None,
) -> list[AgentMessage]:
    """One run: with `prompts` a new one, without them a continuation of `context`.

    Returns the messages that it added to `context.messages`, which is always left such that a model accepts
    it, each call with its result. Raises ContinueError if there is nothing to continue, before any event;
    and what `emit` raised first, after the last event.
    """
    controller = AbortController(signal)
    try:
        return await drive(prompts, context, config, emit, controller)
    finally:
        controller.detach()


async def drive(
    prompts: Sequence[AgentMessage],
    context: AgentContext,
    config: LoopConfig,
    emit: Emit,
    controller: AbortController,
) -> list[AgentMessage]:
    """:func:`run_loop` for who owns the abort of the run: whatever ends it early also aborts `controller`."""
    _check_opening(prompts, context, config)
    run = _Run(context, config, emit, controller)
    task = asyncio.create_task(run.work(prompts), name="cantle-run")
    return await see_through(task, controller, config.grace)


async def agent_loop(
    prompts: Sequence[AgentMessage],
    context: AgentContext,
    config: LoopConfig,
    signal: AbortSignal | None = None,
) -> AsyncGenerator[AgentEvent, None]:
    """The events of one run, as :func:`run_loop` has them. The run goes on only when the next one is asked for.

    Leaving early aborts the run and awaits its end: at once with `contextlib.aclosing`, else when forgotten.
    """
    meeting, controller = Rendezvous(), AbortController(signal)
    task = asyncio.create_task(run_loop(prompts, context, config, meeting.put, controller.signal))
    task.add_done_callback(lambda _: meeting.end())
    try:
        while (event := await meeting.get()) is not None:
            yield event
        await task
    finally:
        controller.detach()
        if not task.done():
            controller.abort("The run was left")
            meeting.leave()
            with suppress(Exception):
                await task


def _check_opening(prompts: Sequence[AgentMessage], context: AgentContext, config: LoopConfig) -> None:
    if prompts or config.steering or config.follow_up:
        return
    last = last_shown(context.messages)
    if last is None or (isinstance(last, AssistantMessage) and not unanswered(context.messages)):
        state = "is empty" if last is None else "ends in an answer"
        raise ContinueError(f"Nothing to continue: the transcript {state}. Prompt, or queue a message first.")


class _Run:
    """One run: what it has added, what is to enter next, and what went wrong."""

    def __init__(
        self, context: AgentContext, config: LoopConfig, emit: Emit, controller: AbortController
    ) -> None:
        self.context, self.config = context, config
        self.abort, self.signal = controller.abort, controller.signal
        self.added: list[AgentMessage] = []
        self.incoming: deque[AgentMessage] = deque()
        self.batch: Batch | None = None
        self.trouble: HookError | None = None
        self.failure: BaseException | None = None
        self._emit = emit

    async def work(self, prompts: Sequence[AgentMessage]) -> list[AgentMessage]:
        try:
            self.incoming.extend([*unanswered(self.context.messages), *prompts])
            self.take(self.config.steering)
            if not self.incoming and isinstance(last_shown(self.context.messages), AssistantMessage | None):
                self.take(self.config.follow_up)
            await self.emit(AgentStart())
            await self.rounds()
            await self.emit(AgentEnd(self.added))
        finally:
            self.close()
        if self.failure is not None:
            raise self.failure
        return self.added

    async def rounds(self) -> None:
        """Turns while there are results or queued messages to answer; then follow-ups, and turns again."""
        last: FinishedTurn | None = None
        while True:
            more = True
            while more or self.incoming:
                last, more = await self.turn(last)
                if last is None:
                    return
                self.take(self.config.steering)
            if not self.take(self.config.follow_up):
                return

    async def turn(self, last: FinishedTurn | None) -> tuple[FinishedTurn | None, bool]:
        """One answer and its calls. Returns it, None if it was the last, and whether its results want an answer."""
        if last is not None:
            await self.prepare_next(last)
        await self.emit(TurnStart())
        await self.enter()
        answer = await self.answer()
        self.batch = Batch(
            answer, self.context.tools, self.config, emit=self.emit, record=self.add, signal=self.signal
        )
        if not answer.failed:
            await self.batch.run()
        await self.emit(TurnEnd(answer, self.batch.results))
        self.incoming.extend(self.config.notes.take())
        await self.enter()
        turn = FinishedTurn(
            message=answer,
            tool_results=self.batch.results,
            context=self.context,
            added=self.added,
            model=self.config.model,
            thinking_level=self.config.thinking_level,
            signal=self.signal,
        )
        should_stop = self.config.should_stop_after_turn
        if answer.failed or await self.ask("should_stop_after_turn", should_stop, turn):
            return None, False
        return turn, self.batch.wants_answer or self.trouble is not None

    async def answer(self) -> AssistantMessage:
        answer = await generate(self.context, self.config, self.emit, self.signal, trouble=self.trouble)
        self.context.messages.append(answer)
        self.added.append(answer)
        await self.emit(MessageEnd(answer))
        return answer

    async def prepare_next(self, last: FinishedTurn) -> None:
        change = await self.ask("prepare_next_turn", self.config.prepare_next_turn, last)
        if change is not None:
            self.context = change.context or self.context
            self.config = change.apply_to(self.config)
        if not self.incoming:
            self.take(self.config.steering)

    async def ask(
        self, name: str, hook: Callable[[FinishedTurn], _T | Awaitable[_T]] | None, turn: FinishedTurn
    ) -> _T | None:
        """A hook's answer; None without one. Its failure is kept, to be that of the next answer."""
        if hook is None:
            return None
        try:
            return await ask_hook(name, self.config, self.signal, hook, turn)
        except HookError as error:
            self.trouble = error
        except AbortError:
            pass
        return None

    async def enter(self) -> None:
        while self.incoming:
            message = await admit_message(self.incoming[0], self.config, self.signal)
            self.incoming.popleft()
            await self.add(message)

    async def add(self, message: AgentMessage) -> None:
        self.context.messages.append(message)
        self.added.append(message)
        await self.emit(MessageStart(message))
        await self.emit(MessageEnd(message))

    def take(self, queue: MessageQueue) -> bool:
        """Let in what `queue` has for this moment. An aborted run leaves it where it is."""
        taken = [] if self.signal.aborted else queue.take()
        self.incoming.extend(taken)
        return bool(taken)

    async def emit(self, event: AgentEvent) -> None:
        try:
            await self._emit(event)
        except (Exception, asyncio.CancelledError) as error:  # of a listener, which is foreign code
            if was_cancelled(error):
                raise
            self.failure = self.failure or error  # raised again when the run has ended in order
            self.abort(error_text(error))

    def close(self) -> None:
        """Leave a whole transcript, also where a run was torn off: results for all calls, and what had been taken."""
        known = None if self.batch is None else self.batch.settled
        rest = [*unanswered(self.context.messages, known), *self.incoming]
        self.incoming.clear()
        self.context.messages.extend(rest)
        self.added.extend(rest)
