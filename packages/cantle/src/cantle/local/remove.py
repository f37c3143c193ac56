"""`cantle local remove`: deletes what setup put into Cantle's folder, and nothing else."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from cantle.console import Results
from cantle.errors import UserError
from cantle.local.release import RELEASE
from cantle.local.staging import NAME, staging_folder
from cantle_ai.system_errors import reason_of

__all__ = ["remove"]


def remove(folder: Path) -> int:
    """Delete the weights in `folder`, what a killed set-up left there, and `folder` itself if nothing else is in it.

    Returns the exit code. Raises :class:`UserError` when something cannot be deleted.
    """
    target = folder / RELEASE.file
    results = Results()
    try:
        there = os.path.lexists(target)
        if there or os.path.lexists(folder / NAME):
            with staging_folder(folder):
                target.unlink(missing_ok=True)
            with suppress(OSError):  # it holds something else, or is a link to a folder elsewhere
                folder.rmdir()
    except OSError as error:
        raise UserError(
            f"{target} could not be deleted: {reason_of(error)}.", "Check the folder's permissions."
        ) from None
    results.say(f"Removed {target}\n" if there else f"There is nothing to remove in {folder}\n")
    return results.code
