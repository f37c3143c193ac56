"""Which model goes on when the one that was asked has failed for good."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from cantle_ai.messages import AssistantMessage
from cantle_ai.model import Model

__all__ = ["Fallback", "FallbackChooser"]

FallbackChooser: TypeAlias = Callable[[AssistantMessage], Model | None]
"""Gets the failed answer, and gives the model to ask next, or None to leave it at the failure."""


class Fallback:
    """Asked once the retries of an answer are spent, or would be of no use: the account is empty."""

    def __init__(self, choose: FallbackChooser) -> None:
        self._choose = choose
        self.chosen: Model | None = None
        """The model to go on with, until :meth:`take`."""

    def wanted(self, message: AssistantMessage) -> bool:
        """Whether another model is to be asked. One that fails as well is not asked twice in a row."""
        self.chosen = None
        if message.stop_reason != "error":
            return False
        from cantle_ai.quota import is_quota_exhausted
        from cantle_ai.retry import retryable

        if retryable(message) or is_quota_exhausted(message):
            model = self._choose(message)
            if model is not None and (model.provider, model.id) != (message.provider, message.model):
                self.chosen = model
        return self.chosen is not None

    def take(self) -> Model | None:
        """The model to go on with, once."""
        chosen, self.chosen = self.chosen, None
        return chosen
