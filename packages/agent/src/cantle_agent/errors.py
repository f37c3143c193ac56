"""What goes wrong in the harness itself, for a person to read. A tool's failure is never one of these.

AgentError
    HookError              a hook of the loop failed; its text is the answer that ends the run
    AgentBusyError         a second prompt, or a reset, while a run is on
    ContinueError          there is nothing that a model could answer
    ListenerError          a listener failed; the run was ended in order
    SchemaError            a tool is declared in a way that no model could use
"""

from __future__ import annotations

__all__ = [
    "AgentBusyError",
    "AgentError",
    "ContinueError",
    "HookError",
    "ListenerError",
    "SchemaError",
    "error_text",
]


class AgentError(Exception):
    """Base of the agent runtime's own failures."""


class AgentBusyError(AgentError):
    """A run is on, and what was asked must wait for its end."""


class ContinueError(AgentError):
    """The transcript does not end in anything that a model could answer."""


class HookError(AgentError):
    """A hook of the loop failed. `hook` names which."""

    def __init__(self, hook: str, cause: BaseException) -> None:
        super().__init__(f"{hook} failed: {error_text(cause)}")
        self.hook = hook


class ListenerError(AgentError):
    """A listener raised. The other listeners got the event and all that followed; the transcript is whole.

    `listener` names it, `__cause__` is what it raised.
    """

    def __init__(self, listener: str, event: str, cause: BaseException) -> None:
        super().__init__(f"listener {listener} failed on {event}: {error_text(cause)}")
        self.listener = listener
        self.__cause__ = cause


class SchemaError(AgentError):
    """A tool was declared in a way that no model could use: without a name, a description or a schema of its own."""


def error_text(error: BaseException) -> str:
    """What an exception of foreign code says; its type where it says nothing."""
    if isinstance(error, SystemExit):
        return f"The code tried to exit the program ({error})"
    return str(error) or type(error).__name__
