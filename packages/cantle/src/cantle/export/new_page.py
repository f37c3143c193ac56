"""A page that is written whole or not at all, and never over another file."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from cantle_ai.new_files import new_file
from cantle_ai.system_errors import reason_of
from cantle_session.errors import SessionFileError

__all__ = ["write_page"]

_BATCH = 1 << 20
"""Characters that are written at once."""


def write_page(file: str | os.PathLike[str], parts: Iterable[str], *, overwrite: bool) -> Path:
    """Write `parts` to `file` as UTF-8, and give its absolute path.

    Raises :class:`~cantle_session.errors.SessionFileError` when something is there already and `overwrite` is not
    meant, or when the system refuses. Nothing of the new page is left then.
    """
    target = Path(file).absolute()
    if not overwrite and os.path.lexists(target):
        raise _occupied(target)
    try:
        with new_file(target.parent, 0o600) as page:
            waiting: list[str] = []
            size = 0
            for part in parts:
                waiting.append(part)
                size += len(part)
                if size >= _BATCH:
                    page.write("".join(waiting).encode())
                    waiting, size = [], 0
            page.write("".join(waiting).encode())
            if overwrite:
                page.replace(target)
            else:
                page.become(target)
    except FileExistsError:
        raise _occupied(target) from None
    except OSError as error:
        text = f"the export could not be written: {reason_of(error)}; give another place for it"
        raise SessionFileError(target, text) from None
    return target


def _occupied(target: Path) -> SessionFileError:
    return SessionFileError(
        target, "is already there and was left as it is; give another name, or remove it first"
    )
