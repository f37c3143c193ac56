"""Which place keeps the sessions of a working directory. A module of its own, so that listing them loads no agent."""

from __future__ import annotations

import os
from pathlib import Path

from cantle.errors import SessionError
from cantle.paths import ConfigPaths, user_path
from cantle.settings import Settings, read_session_dir
from cantle_session.folders import is_database, session_folder

__all__ = ["sessions_directory"]


def sessions_directory(
    cwd: Path, paths: ConfigPaths, settings: Settings, *, explicit: str | Path | None = None
) -> Path | str:
    """The folder that holds the sessions of `cwd`, or the location of the database. Raises SessionError for an
    address of something that keeps no sessions.

    `explicit` (`--session-dir`), `CANTLE_SESSION_DIR` and the `sessionDir` setting, the project's before the
    user's, name it outright and count from `cwd`; otherwise it is the folder for `cwd` under `sessions/`.
    """
    chosen = explicit or os.environ.get("CANTLE_SESSION_DIR") or read_session_dir(cwd) or settings.session_dir
    if not chosen:
        return session_folder(cwd, paths.sessions)
    text = str(chosen)
    kind, mark, path = text.partition(":")
    if mark and kind == "sqlite":
        return f"sqlite:{cwd / user_path(path)}" if path else "sqlite:"
    if is_database(text):
        return text
    if "://" in text or kind in ("postgresql", "postgres"):
        # What stands behind the name can be a password, so it is not repeated.
        raise SessionError(
            f"Sessions cannot be kept in a place that begins with '{kind}:'.",
            "Name a folder, sqlite:FILE or postgresql://HOST/NAME.",
        )
    return cwd / user_path(text)
