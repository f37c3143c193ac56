"""Giving a session to another working directory, or another place."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cantle_session.places import Place

__all__ = ["move_session"]


def move_session(
    file: str | os.PathLike[str], place: Place, *, cwd: str | os.PathLike[str] | None = None
) -> str:
    """Keep the session in `file` at `place` instead, for the working directory `cwd` (by default, the same one).

    Its id and its lines stay as they are, but for the directory in the header. The file goes when the whole of
    it is at its new place. Gives the new location. Raises :class:`~cantle_session.errors.SessionFileError` when
    another process has the session open, or that place has a session with its id.
    """
    raise NotImplementedError
