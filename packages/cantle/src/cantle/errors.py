"""What a person can do something about, as one sentence or two, with the next step in the last.

    UserError
    ├── ConfigurationFileError   a file of the configuration cannot be used
    ├── WorkingDirectoryError    the folder to work in is not there
    ├── ModelSelectionError      no such model, provider or level, or none to choose from
    ├── ToolSelectionError       no such tool
    ├── SessionError             a session cannot be opened, or its file not written
    └── CompactionError          a history was not compacted, or a branch not summed up

Every door prints `str(error)` and nothing else, and leaves with a status other than 0.
"""

from __future__ import annotations

__all__ = [
    "CompactionError",
    "ConfigurationFileError",
    "ModelSelectionError",
    "SessionError",
    "ToolSelectionError",
    "UserError",
    "WorkingDirectoryError",
]


class UserError(Exception):
    """Something that the user, not the programmer, can mend. `text` says what is wrong, `next_step` what to do."""

    exit_code = 1
    """The status with which a process ends for it."""

    def __init__(self, text: str, next_step: str = "") -> None:
        super().__init__(f"{text} {next_step}" if next_step else text)
        self.text = text
        self.next_step = next_step


class ConfigurationFileError(UserError):
    """A configuration file cannot be read, is not JSON, or holds a value of the wrong kind."""


class WorkingDirectoryError(UserError):
    """The working directory is missing, or is not a folder."""


class ModelSelectionError(UserError):
    """The model that was asked for does not exist, or there is none to choose."""


class ToolSelectionError(UserError):
    """A tool that was asked for does not exist, or a selection contradicts itself."""


class SessionError(UserError):
    """A session cannot be continued, or its file could not be written."""


class CompactionError(UserError):
    """A history could not be compacted, or a branch not be summed up; the session is as it was. `aborted` when somebody stopped it."""

    def __init__(self, text: str, next_step: str = "", *, aborted: bool = False) -> None:
        super().__init__(text, next_step)
        self.aborted = aborted
