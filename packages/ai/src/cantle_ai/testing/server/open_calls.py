"""The rule for tool calls and their results: each call is answered, once, where its API wants the answer."""

from __future__ import annotations

from cantle_ai.testing.server.refusal import Path, Refusal

__all__ = ["OpenCalls"]


class OpenCalls:
    """The calls of a conversation, and which of them wait for a result."""

    def __init__(self) -> None:
        self._seen: set[str] = set()
        self._open: list[str] = []

    @property
    def any(self) -> bool:
        """Whether there was a call."""
        return bool(self._seen)

    def ask(self, call_id: str, path: Path) -> None:
        """Take a call. Refuses an id that an earlier one has."""
        if call_id in self._seen:
            raise Refusal("call-id", f"{path} has the call id {call_id!r}, which an earlier call has")
        self._seen.add(call_id)
        self._open.append(call_id)

    def answer(self, call_id: str, path: Path) -> None:
        """Take a result. Refuses one of a call that does not wait for it."""
        if call_id not in self._open:
            known = "was answered before" if call_id in self._seen else "was never asked"
            raise Refusal("call-id", f"{path} answers the call {call_id!r}, which {known}")
        self._open.remove(call_id)

    def all_answered(self, path: Path) -> None:
        """Refuse what stands at `path` while a call waits."""
        if self._open:
            raise Refusal("unanswered", f"{path}: no result for the calls {', '.join(self._open)}")
