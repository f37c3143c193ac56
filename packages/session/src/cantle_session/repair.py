"""A sound copy of a session file that is not, beside it."""

from __future__ import annotations

import os
from pathlib import Path

from msgspec import Struct

from cantle_session.session import SessionWarning

__all__ = ["Repair", "repair_session"]


class Repair(Struct, frozen=True):
    """What came of looking at a file: `problems`, each with its line and what was done, and the sound `copy`.

    Without problems there is no copy.
    """

    file: Path
    problems: list[SessionWarning]
    copy: Path | None = None
    id: str | None = None
    """The id of the copy, a new one: so both can be in one folder."""
    entries: int = 0
    """How many the copy has."""


def repair_session(file: str | os.PathLike[str], *, cwd: str | os.PathLike[str] | None = None) -> Repair:
    """Look at a session file, and write what is sound of it into a new one beside it. The file stays as it is.

    `cwd` is the working directory of the copy, needed only where no line is a header. Raises
    :class:`~cantle_session.errors.SessionFileError` when nothing in the file is a session, or it cannot be read.
    """
    raise NotImplementedError
