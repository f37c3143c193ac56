"""`export_markdown`: one branch of a session as Markdown, tools and thinking folded."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cantle_session.session import Session

__all__ = ["export_markdown"]


def export_markdown(
    session: Session,
    file: str | os.PathLike[str],
    *,
    leaf: str | None = None,
    overwrite: bool = False,
) -> Path:
    """Write the branch of `session` that ends at `leaf`, or where it stands, to `file`; give its absolute path.

    Raises UnknownEntryError when there is no such entry, and :class:`~cantle_session.errors.SessionFileError` when `file`
    is already there, unless `overwrite`, or cannot be written; nothing of the page is left then.
    """
    from cantle.export.markdown_page import markdown_page
    from cantle.export.new_page import write_page

    return write_page(file, markdown_page(session, leaf), overwrite=overwrite)
