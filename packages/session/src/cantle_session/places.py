"""Where a session goes that is written whole: a folder of files, or a store."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from cantle_session.folders import session_file_name
from cantle_session.lines import encode_header
from cantle_session.whole_files import write_whole

if TYPE_CHECKING:
    from cantle_session.entries import SessionHeader

__all__ = ["Place", "keep"]

Place: TypeAlias = "str | os.PathLike[str]"
"""A folder for the file."""


def keep(place: Place, header: SessionHeader, lines: Iterable[bytes]) -> str:
    """Keep a session at `place`, whole or not at all, and never over another one; gives its location."""
    path = Path(place).absolute() / session_file_name(header.timestamp, header.id)
    write_whole(path, _with_header(header, lines))
    return str(path)


def _with_header(header: SessionHeader, lines: Iterable[bytes]) -> Iterable[bytes]:
    yield encode_header(header)
    yield from lines
