"""Runs the given prompts and ends: the final answer as text, or every event as a JSON record.

A prompt that is `/compact`, alone or with instructions behind it, compacts the session's history instead; one that
is `/continue` goes on where the session was left.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from cantle.console import READER_GONE, notice
from cantle.errors import CompactionError
from cantle.hub.agent_session import AgentSession
from cantle.hub.events import (
    AutoRetryStart,
    CompactionEnd,
    HistoryProjected,
    ModelFallback,
    SessionEvent,
    SummarizationRetryScheduled,
)
from cantle.modes.output import Output
from cantle.modes.signals import Signals
from cantle_agent.events import MessageUpdate
from cantle_ai.content import UserContent
from cantle_ai.system_errors import reason_of

if TYPE_CHECKING:
    from cantle.hub.history_hooks import CompactionRequest

__all__ = ["run_prompts"]

_COMPACT = "/compact"
_CONTINUE = "/continue"


async def run_prompts(
    session: AgentSession,
    prompts: Sequence[str | Sequence[UserContent]],
    output: Output,
    signals: Signals,
    *,
    json_mode: bool,
    go_on: str | None = None,
) -> int:
    """Run `prompts` one after another and write to `output`, until a signal comes. Returns the exit code.

    `go_on` is the command that goes on with the session, for the advice after a failure.

    0 when the last answer is whole; 1 when one failed, was cut at the output limit or could not be written,
    with the reason on stderr; :data:`cantle.console.READER_GONE` when nobody reads stdout any more.
    Raises nothing that a session's `prompt` does not.
    """
    unsubscribe = _listen(session, output, json_mode=json_mode)
    code = 0
    try:
        if json_mode:
            from cantle.modes.json_events import encode_record

            output.write(encode_record(session.session.header.to_json()))
        answered = False
        for prompt in prompts:
            wish = _compact_wish(prompt)
            if isinstance(prompt, str) and prompt.strip() == _CONTINUE:
                code = await _continue(session)
                answered = answered or not code
            elif wish is None:
                await session.prompt(prompt)
                answered = True
            else:
                code = await _compact(session, wish)
            if signals.received is not None or output.closed:
                break
            code = code or (_outcome(session, go_on) if wish is None else 0)
            if code:
                break
        if answered and not json_mode and not signals.received:
            _write_answer(session, output)
        await output.drain()
    except OSError as error:
        notice(f"the output could not be written: {reason_of(error)}.")
        code = 1
    finally:
        unsubscribe()
    return READER_GONE if output.closed and not code else code


def _listen(session: AgentSession, output: Output, *, json_mode: bool) -> Callable[[], None]:
    """Let what happens be written, until the function that is returned is called."""
    if json_mode:
        return session.subscribe(_JsonListener(session, output))
    listener = _TextListener()
    unsubscribe = session.subscribe(listener)
    # Asked only when there is something to sum up, which the event of the start comes too early for.
    session.before_compact.append(listener.tell_compaction)

    def stop() -> None:
        unsubscribe()
        session.before_compact.remove(listener.tell_compaction)

    return stop


def _compact_wish(prompt: str | Sequence[UserContent]) -> str | None:
    """The instructions of a prompt that asks for a compaction, empty without any; None for any other prompt."""
    if not isinstance(prompt, str):
        return None
    word, *instructions = prompt.split(maxsplit=1) or [""]
    return "".join(instructions).strip() if word == _COMPACT else None


async def _compact(session: AgentSession, instructions: str) -> int:
    """Compact. The exit code; when nothing came of it, stderr says why."""
    try:
        await session.compact(instructions or None)
    except CompactionError as error:
        if not error.aborted:
            notice(_line(str(error)))
        return 1
    return 0


async def _continue(session: AgentSession) -> int:
    """Go on without saying anything. The exit code; where there is nothing to go on with, stderr says so."""
    from cantle_agent.errors import ContinueError

    try:
        await session.continue_()
    except ContinueError:
        why = "the last answer is whole" if session.messages else "the session is empty"
        notice(f"there is nothing to continue: {why}. Say what is to be done next.")
        return 1
    return 0


def _outcome(session: AgentSession, go_on: str | None) -> int:
    """Whether the last answer is what was asked for; says on stderr why it is not."""
    last = session.last_answer
    if last is None or last.stop_reason in ("stop", "toolUse", "deferred"):
        return 0
    from cantle.modes.failures import describe_failure

    notice(describe_failure(last, go_on))
    return 1


def _write_answer(session: AgentSession, output: Output) -> None:
    last = session.last_answer
    if last is not None and not last.failed and last.text:
        text = last.text if last.text.endswith("\n") else last.text + "\n"
        output.write(text.encode("utf-8", "replace"))


class _TextListener:
    """Print mode says nothing before the end, except why it waits and what it cannot do as asked."""

    def __init__(self) -> None:
        self._told: set[str] = set()

    def __call__(self, event: SessionEvent) -> None:
        match event:
            case AutoRetryStart():
                notice(
                    f"{_line(event.error_message)}; trying again in {event.delay_ms / 1000:g} s "
                    f"({event.attempt} of {event.max_attempts})."
                )
            case ModelFallback():
                notice(f"{_line(event.error_message)}; going on with {event.provider}/{event.model_id}.")
            case CompactionEnd():
                self._tell_end(event)
            case SummarizationRetryScheduled():
                notice(
                    f"{_line(event.error_message)}; asking for the summary again in {event.delay_ms / 1000:g} s "
                    f"({event.attempt} of {event.max_attempts})."
                )
            case HistoryProjected():
                self._tell(event)
            case _:
                pass

    def tell_compaction(self, request: CompactionRequest) -> None:
        """Say that one is being made. It decides nothing."""
        notice(_COMPACTING[request.reason])

    def _tell_end(self, event: CompactionEnd) -> None:
        if event.result is not None:
            before, after = event.result.tokens_before, event.result.estimated_tokens_after
            notice(
                f"summed up: about {before:,} tokens became about {after:,}; the session keeps everything."
            )
        elif event.aborted:
            notice("the conversation was not summed up.")
        elif event.error_message is not None and event.reason != "manual":
            notice(_line(event.error_message))

    def _tell(self, event: HistoryProjected) -> None:
        from cantle.modes.projections import projection_notes

        for kind, note in projection_notes(event.counts, tuple(self._told)):
            self._told.add(kind)
            notice(note)


_COMPACTING = {
    "manual": "the conversation is being summed up …",
    "threshold": "the conversation has become long; its beginning is being summed up …",
    "overflow": "the conversation is too long for the model; its beginning is being summed up …",
}


def _line(text: str) -> str:
    return " ".join(text.split())


class _JsonListener:
    """Writes each event as its record, at the reader's pace; an output that takes no more stops the run."""

    def __init__(self, session: AgentSession, output: Output) -> None:
        from cantle.modes.json_events import EventEncoder

        self._session = session
        self._output = output
        self._encode: Callable[[SessionEvent], bytes] = EventEncoder().encode

    def __call__(self, event: SessionEvent) -> Awaitable[None] | None:
        output = self._output
        output.write(self._encode(event))
        if output.full or not isinstance(event, MessageUpdate):
            return self._catch_up()
        if output.closed:
            self._session.request_abort()
        return None

    async def _catch_up(self) -> None:
        await self._output.catch_up()
        if self._output.closed:
            self._session.request_abort()
