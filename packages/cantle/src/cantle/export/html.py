"""`export_html`: a whole session as one HTML file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cantle_session.session import Session

__all__ = ["export_html"]


def export_html(
    session: Session,
    file: str | os.PathLike[str],
    *,
    leaf: str | None = None,
    overwrite: bool = False,
) -> Path:
    """Write every branch of `session` to `file`, one page that loads nothing and runs nothing; give its absolute path.

    The page opens on the branch to `leaf`, or to where the session stands. Raises UnknownEntryError when there is no such
    entry, and :class:`~cantle_session.errors.SessionFileError` when `file` is already there, unless `overwrite`, or cannot be
    written; nothing of the page is left then.
    """
    from cantle.export.new_page import write_page
    from cantle.export.page import page

    return write_page(file, page(session, leaf), overwrite=overwrite)
