"""Writes what happens into the session: finished messages as they come, and changes of model, level and name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from cantle.errors import SessionError
from cantle_agent.messages import AgentMessage
from cantle_ai.codec import JsonObject
from cantle_ai.messages import ThinkingLevel
from cantle_ai.model import Model
from cantle_session.errors import SessionFileError
from cantle_session.session import Session

__all__ = ["Recorder", "saving"]


class Recorder:
    """The one writer of a session. Knows what the file says of model and level, so that it says it once.

    Every method raises :class:`cantle.errors.SessionError` when it cannot write; nothing has been added then.
    """

    def __init__(self, session: Session, model: tuple[str, str] | None, level: str | None) -> None:
        """`model` and `level` are what the session's context says."""
        self._session = session
        self._model = model
        self._level = level
        self._last: tuple[AgentMessage, str] | None = None

    def message(self, message: AgentMessage) -> None:
        """Append a finished message."""
        with saving():
            self._last = message, self._session.append_message(message).id

    def state(self, model: Model, level: ThinkingLevel) -> None:
        """Append model and level where they differ from what the session says."""
        key = (model.provider, model.id)
        with saving():
            if key != self._model:
                self._session.append_model_change(*key)
                self._model = key
            if level != self._level:
                self._session.append_thinking_level_change(level)
                self._level = level

    def hide(self, message: AgentMessage) -> JsonObject | None:
        """Keep the last message of the context out of what a model is told from here on. Returns the entry's JSON."""
        with saving():
            entry_id = self._id_of(message)
            return None if entry_id is None else self._session.append_context_edit(entry_id).to_json()

    def show(self, message: AgentMessage) -> JsonObject | None:
        """Have a model told again of a message that was hidden. Returns the entry's JSON."""
        with saving():
            entry_id = self._id_of(message)
            if entry_id is None:
                return None
            content = {"content": message.to_json()["content"]}
            return self._session.append_context_edit(entry_id, content).to_json()

    def moved(self, model: tuple[str, str] | None, level: str | None) -> None:
        """The session stands elsewhere, where its context says this of model and level."""
        self._model, self._level, self._last = model, level, None

    def _id_of(self, message: AgentMessage) -> str | None:
        if self._last is not None and self._last[0] is message:
            return self._last[1]
        last = next(reversed(self._session.projected()), None)
        return last.entry.id if last is not None and last.message == message else None

    def name(self, name: str) -> None:
        """Append the session's name."""
        with saving():
            self._session.append_session_info(name)


@contextmanager
def saving() -> Iterator[None]:
    """Raises :class:`cantle.errors.SessionError` for what goes wrong when the session is written."""
    try:
        yield
    except SessionFileError as error:
        raise SessionError(
            f"The session could not be saved. {error}.",
            "Mend that, name another folder with --session-dir, or keep no session with --no-session.",
        ) from error
    except TypeError as error:
        raise SessionError(
            f"A message could not be saved, because it holds what JSON has no form for: {error}."
        ) from error
