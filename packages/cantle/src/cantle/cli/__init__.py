"""The `cantle` command. This module is all that `cantle --version` loads of it."""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: 0 done, 1 failed, 2 called wrongly, 128 + n ended by signal n
    (141 when nobody reads stdout any more)."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments in (["--version"], ["-v"]):
        from cantle.version import VERSION

        sys.stdout.write(f"{VERSION}\n")
        return 0
    from cantle.cli.dispatch import dispatch

    try:
        return dispatch(arguments)
    except KeyboardInterrupt:
        return 130
