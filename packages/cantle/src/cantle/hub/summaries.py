"""How a session asks for summaries: with the agent's model and key, again after a failure that may pass."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from cantle.errors import CompactionError, SessionError
from cantle.hub.events import (
    CompactionReason,
    SummarizationRetryAttemptStart,
    SummarizationRetryFinished,
    SummarizationRetryScheduled,
    SummarySource,
)
from cantle.hub.history_hooks import CallOff, OwnSummary
from cantle.hub.recorder import saving
from cantle.hub.retry import Retry
from cantle_agent.errors import error_text
from cantle_agent.patience import patiently
from cantle_ai.abort import AbortError, AbortSignal
from cantle_ai.messages import AssistantMessage
from cantle_ai.model import StreamOptions
from cantle_ai.usage import Usage, total_usage

if TYPE_CHECKING:
    from cantle.hub.compaction import Compactor
    from cantle_session.compaction.summary import Attempts

__all__ = ["SummaryRequests", "ask_hooks", "sentence"]

_NOTE = 500
"""Characters of a failure's text that are kept."""

_R = TypeVar("_R")
_T = TypeVar("_T")


class SummaryRequests:
    """The requests for one summary. Its retries count only themselves."""

    def __init__(
        self, compactor: Compactor, *, source: SummarySource, reason: CompactionReason | None = None
    ) -> None:
        parts = compactor.parts
        self.model = parts.agent.model
        """Who is asked."""
        self._agent = parts.agent
        self._session = parts.session
        self._policy = parts.retry
        self._pause = parts.pause
        self._emit = compactor.emit
        self._total = compactor.usage
        self._source = source
        self._reason = reason
        self._used = Usage()

    @contextmanager
    def counted(self, kind: str) -> Iterator[None]:
        """What the requests took is written down as `kind` when nothing comes of them, for whatever reason."""
        try:
            yield
        except BaseException as error:  # raised again, whatever it is: what was used is written down
            if self._used.total_tokens:
                with suppress(SessionError), saving():  # what is told is why nothing came of them
                    self._session.append_usage(
                        kind, self.model.provider, self.model.id, self._used, note=error_text(error)[:_NOTE]
                    )
                    self._total.add_usage(self._used)
            raise

    async def options(self, signal: AbortSignal) -> StreamOptions:
        """The agent's options for a request that is no part of its conversation. Raises as :func:`ask_hooks` does."""
        agent = self._agent
        options = agent.options() if callable(agent.options) else agent.options
        key = options.api_key
        if agent.get_api_key is not None:
            key = (
                await _ask("get_api_key", agent.get_api_key, self.model.provider, signal, agent.grace) or key
            )
        return replace(options, api_key=key, signal=signal, on_projection=None)

    def attempts(self, signal: AbortSignal) -> Attempts:
        """Asks until there is an answer, retries are spent, or `signal` is aborted."""

        async def ask(once: Callable[[], Awaitable[AssistantMessage]]) -> AssistantMessage:
            retry = Retry(self._policy)
            try:
                while True:
                    answer = await once()
                    self._used = total_usage([self._used, answer.usage])
                    if signal.aborted or not retry.wanted(answer):
                        return answer
                    await self._wait(retry, answer, signal)
            finally:
                if retry.end():
                    await self._emit(SummarizationRetryFinished())

        return ask

    async def _wait(self, retry: Retry, failed: AssistantMessage, signal: AbortSignal) -> None:
        wait_ms = retry.begin(failed)
        text = failed.error_message or "The request failed"
        await self._emit(SummarizationRetryScheduled(retry.attempt, retry.policy.max_retries, wait_ms, text))
        await self._pause(wait_ms / 1000, signal)
        signal.raise_if_aborted()
        await self._emit(SummarizationRetryAttemptStart(self._source, self._reason))


async def ask_hooks(
    name: str,
    hooks: Sequence[Callable[[_R], CallOff | OwnSummary | None | Awaitable[CallOff | OwnSummary | None]]],
    request: _R,
    signal: AbortSignal,
    grace: float,
) -> CallOff | OwnSummary | None:
    """The first decision of `hooks`.

    Raises :class:`cantle.errors.CompactionError` for a hook that fails, AbortError when `signal` is aborted.
    """
    for hook in tuple(hooks):
        decision: object = await _ask(name, hook, request, signal, grace)
        signal.raise_if_aborted()
        if decision is None:
            continue
        if not isinstance(decision, CallOff | OwnSummary):
            given = type(decision).__name__
            raise CompactionError(
                f"The hook {name} gave {given!r}, where a CallOff, an OwnSummary or None is asked for."
            )
        if isinstance(decision, OwnSummary):
            _check(name, decision)
        return decision
    return None


def _check(name: str, own: OwnSummary) -> None:
    """What is written down of it must be what it says it is, or the session could not be read any more."""
    summary: object = own.summary
    usage: object = own.usage
    if not isinstance(summary, str):
        raise CompactionError(
            f"The hook {name} gave a summary that is no text, but {type(summary).__name__!r}."
        )
    if not summary.strip():
        raise CompactionError(
            f"The hook {name} gave a summary that is empty.",
            "None leaves it to the model, a CallOff to nobody.",
        )
    if not isinstance(usage, Usage | None):
        raise CompactionError(f"The hook {name} gave a usage that is no Usage, but {type(usage).__name__!r}.")


async def _ask(
    name: str, hook: Callable[[_R], _T | Awaitable[_T]], request: _R, signal: AbortSignal, grace: float
) -> _T:
    try:
        return await patiently(hook(request), signal, grace)
    except AbortError:
        raise
    except (Exception, SystemExit) as error:  # a hook is foreign code, and may raise anything
        raise CompactionError(f"The hook {name} failed: {error_text(error).rstrip('.')}.") from error


def sentence(text: str) -> str:
    """A text that stands inside a sentence, as one of its own."""
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."
