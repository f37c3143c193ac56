"""Taking in a session file from elsewhere."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from cantle_session.places import Place

__all__ = ["Imported", "import_session"]


class Imported(Struct, frozen=True):
    """Where a session is now. `new` is false when it was there already."""

    location: str
    id: str
    cwd: str
    new: bool = True


def import_session(
    file: str | os.PathLike[str],
    place: Place,
    *,
    cwd: str | os.PathLike[str] | None = None,
    new_id: bool = False,
) -> Imported:
    """Keep a copy of the session in `file` at `place`, with its id and its lines as they are.

    With `cwd` it belongs to that working directory from now on; with `new_id` it gets an id of its own, and so
    can lie beside the one that it is a copy of. Raises :class:`~cantle_session.errors.SessionFileError` when
    the file is no session, or a session with that id is there already; then nothing is left behind.
    """
    raise NotImplementedError
