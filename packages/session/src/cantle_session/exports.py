"""One branch of a session as a file of the same format."""

from __future__ import annotations

import os
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from cantle_session.branch_lines import branch_lines
from cantle_session.lines import encode_header
from cantle_session.whole_files import write_whole

if TYPE_CHECKING:
    from cantle_session.session import Session

__all__ = ["export_jsonl"]


def export_jsonl(session: Session, file: str | os.PathLike[str], *, leaf: str | None = None) -> Path:
    """Write the branch that ends at `leaf` (by default, where the session stands) to `file`, and give its path.

    The file is a session with the same id, which :func:`cantle_session.imports.import_session` takes in. Raises
    UnknownEntryError when there is no such entry, :class:`~cantle_session.errors.SessionFileError` when it cannot be
    written or is there already.
    """
    path = Path(file).absolute()
    header = encode_header(session.header.current())
    write_whole(path, chain([header], branch_lines(session, leaf)))
    return path
