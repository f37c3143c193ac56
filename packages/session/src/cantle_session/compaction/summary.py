"""The request for a summary, and what may become of it.

One user message with the conversation as text, no tools, no caching. A conversation that does not fit the window
of the model that sums it up is asked for in portions, each with the notes on those before it. An answer that was
cut at its limit, is empty or failed is no summary.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from cantle_agent.messages import AgentMessage
from cantle_ai.abort import AbortError, AbortSignal
from cantle_ai.codec import Json
from cantle_ai.context import Context
from cantle_ai.messages import AssistantMessage, UserMessage
from cantle_ai.model import Model, StreamOptions
from cantle_ai.usage import Usage, total_usage
from cantle_session.compaction import prompts
from cantle_session.compaction.files import without_lists
from cantle_session.compaction.transcript import shortened, transcript_part, without_tags
from cantle_session.errors import SessionError
from cantle_session.tokens import estimate_tokens_of_text

if TYPE_CHECKING:
    from cantle_ai.stream import StreamFunction
    from cantle_session.compaction.plan import CompactionPlan

__all__ = ["Attempts", "Summarizer", "Summary", "SummaryAborted", "SummaryFailed", "summarize"]

Attempts: TypeAlias = Callable[[Callable[[], Awaitable[AssistantMessage]]], Awaitable[AssistantMessage]]
"""Asks once by calling what it is given, and again where that is worth it; gives the last answer."""

_LEAST_ROOM = 256
"""A model that refuses less is not helped by asking for less again."""
_UNKNOWN_ROOM = 1_000_000
"""Tokens for a model whose window nobody knows: it says itself when they are too many."""
_ABORTED = "Operation aborted"
_TURN_HEADING = "## The turn that was under way when this was written"


class Summary(Struct, frozen=True):
    """A summary, what it cost, and what its entry is to remember."""

    text: str
    usage: Usage | None = None
    details: Json = None


class SummaryFailed(SessionError):
    """No summary came of it. `answer` is the answer that was none; `usage` what was used until then, it included."""

    def __init__(self, text: str, answer: AssistantMessage, usage: Usage) -> None:
        super().__init__(text)
        self.answer = answer
        self.usage = usage


class SummaryAborted(AbortError):
    """It was given up. `usage` is what was used until then."""

    def __init__(self, text: str, usage: Usage) -> None:
        super().__init__(text)
        self.usage = usage


async def summarize(
    plan: CompactionPlan,
    stream: StreamFunction,
    model: Model,
    *,
    instructions: str | None = None,
    signal: AbortSignal | None = None,
    options: StreamOptions | None = None,
    attempts: Attempts | None = None,
) -> Summary:
    """Sum up what `plan` cuts off, with `instructions` of the user for what matters to them.

    `options` are those of the requests, without their caching. `attempts` may ask again after a failure. Raises
    :class:`SummaryFailed`, and :class:`SummaryAborted` when `signal` is aborted.
    """
    summarizer = Summarizer(stream, model, signal=signal, options=options, attempts=attempts)
    text = plan.previous_summary or ""
    if plan.messages:
        text = await summarizer.notes(
            plan.messages, prompts.FIRST, previous=plan.previous_summary, instructions=instructions
        )
    if plan.turn:
        turn = await summarizer.notes(plan.turn, prompts.TURN, instructions=instructions)
        text = "\n\n".join((*((text, "---") if text else ()), _TURN_HEADING, turn))
    return Summary(text + plan.files.text(), summarizer.usage, plan.files.to_json())


class Summarizer:
    """Asks one model for notes. `usage` is what that took so far."""

    def __init__(
        self,
        stream: StreamFunction,
        model: Model,
        *,
        signal: AbortSignal | None = None,
        options: StreamOptions | None = None,
        attempts: Attempts | None = None,
    ) -> None:
        self._stream = stream
        self._model = model
        self._signal = signal
        self._options = replace(options or StreamOptions(), cache_retention="none", signal=signal)
        self._attempts = attempts
        self.usage = Usage()

    async def notes(
        self,
        messages: Iterable[AgentMessage],
        task: str,
        *,
        previous: str | None = None,
        instructions: str | None = None,
    ) -> str:
        """The notes on `messages`, by `task` for the first portion, which most often is all of them."""
        parts = [part for part in map(transcript_part, messages) if part]
        room = self._room(previous)
        place = 0
        while place < len(parts):
            portion, following = _portion(parts, place, room)
            text = prompts.request_text(
                task if previous is None else prompts.NEXT,
                portion,
                previous=None if previous is None else without_tags(previous),
                instructions=instructions,
            )
            try:
                previous = await self._ask(text)
            except SummaryFailed as failure:
                room = min(room, estimate_tokens_of_text(portion)) // 2
                if room < _LEAST_ROOM or not self._was_too_long(failure.answer):
                    raise
            else:
                place = following
        return previous or ""

    async def _ask(self, text: str) -> str:
        context = Context(prompts.SYSTEM, [UserMessage(text)])

        async def once() -> AssistantMessage:
            answer = await self._stream(self._model, context, self._options).result()
            self.usage = total_usage([self.usage, answer.usage])
            return answer

        try:
            if self._signal is not None:
                self._signal.raise_if_aborted()
            answer = await (once() if self._attempts is None else self._attempts(once))
        except AbortError as error:
            raise SummaryAborted(str(error), self.usage) from error
        return self._text_of(answer)

    def _text_of(self, answer: AssistantMessage) -> str:
        if self._signal is not None and self._signal.aborted:
            raise SummaryAborted(self._signal.reason or _ABORTED, self.usage)
        if answer.stop_reason == "aborted":
            raise SummaryAborted(answer.error_message or _ABORTED, self.usage)
        text = without_lists(answer.text).strip()
        if answer.stop_reason == "stop" and text:
            return text
        match answer.stop_reason:
            case "error":
                why = f"the summary failed: {answer.error_message or 'the model gave no reason'}"
            case "length":
                why = "the summary was cut at the model's output limit; choose a model that may say more"
            case "stop":
                why = "the model gave an empty summary; try again, or choose another model"
            case reason:
                why = f"the model gave no summary, but ended with {reason!r}; try another model"
        raise SummaryFailed(why, answer, self.usage)

    def _was_too_long(self, answer: AssistantMessage) -> bool:
        """Whether the estimate was so wrong that a request did not fit after all."""
        from cantle_ai.overflow import is_overflow  # its tables are compiled; most summaries never need them

        return is_overflow(answer, self._model.context_window or None)

    def _room(self, previous: str | None) -> int:
        """Tokens of conversation for one request. A fifth of the window is for mistakes of the estimate."""
        window = self._model.context_window
        if window <= 0:
            return _UNKNOWN_ROOM
        output = min(self._model.max_tokens, window // 4)
        said = estimate_tokens_of_text(prompts.SYSTEM + prompts.NEXT)
        before = max(output, 0 if previous is None else estimate_tokens_of_text(previous))
        return max(window * 4 // 5 - output - said - before, window // 8)


def _portion(parts: Sequence[str], start: int, room: int) -> tuple[str, int]:
    """As many parts as there is room for, from `start` on, at least one, shortened if it must be; and what follows."""
    size, end = 0, start
    while end < len(parts):
        size += estimate_tokens_of_text(parts[end]) + 1
        if size > room and end > start:
            break
        end += 1
    if end - start > 1:
        return "\n\n".join(parts[start:end]), end
    part = parts[start]
    tokens = estimate_tokens_of_text(part)
    return (part if tokens <= room else shortened(part, len(part) * room // tokens)), end
