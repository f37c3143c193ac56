"""A session that is being opened: awaited, it is the session; entered, it is the session and closes it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from functools import wraps
from types import TracebackType
from typing import Any, ParamSpec

from cantle.hub.agent_session import AgentSession

__all__ = ["Opening", "opening"]

_P = ParamSpec("_P")


class Opening(Coroutine[Any, Any, AgentSession]):
    """The coroutine that opens a session, which `async with` takes as well. It runs once."""

    __slots__ = ("_coroutine", "_session")

    def __init__(self, coroutine: Coroutine[Any, Any, AgentSession]) -> None:
        self._coroutine = coroutine
        self._session: AgentSession | None = None

    def send(self, value: Any) -> Any:
        return self._coroutine.send(value)

    def throw(self, *error: Any) -> Any:
        return self._coroutine.throw(*error)

    def close(self) -> None:
        self._coroutine.close()

    def __await__(self) -> Generator[Any, Any, AgentSession]:
        return self._coroutine.__await__()

    async def __aenter__(self) -> AgentSession:
        self._session = await self._coroutine
        return self._session

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()


def opening(function: Callable[_P, Coroutine[Any, Any, AgentSession]]) -> Callable[_P, Opening]:
    """`function` with its result as an :class:`Opening`."""

    @wraps(function)
    def opened(*args: _P.args, **options: _P.kwargs) -> Opening:
        return Opening(function(*args, **options))

    return opened
