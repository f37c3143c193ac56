"""The `cantle` command. This module is all that `cantle --version` loads of it."""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # as in `cantle`: an interrupt before `main` would be shown as an error
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: 0 done, 1 failed, 2 called wrongly, 128 + n ended by signal n
    (141 when nobody reads stdout any more)."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if sys.stdin is None or sys.stdout is None or sys.stderr is None:
        from cantle.console import open_missing_streams

        open_missing_streams()
    try:
        if arguments in (["--version"], ["-v"]):
            return _version()
        return _dispatch(arguments) if argv is not None else _as_process(arguments)
    except KeyboardInterrupt:
        return 130


def _dispatch(arguments: list[str]) -> int:
    from cantle.cli.dispatch import dispatch

    return dispatch(arguments)


def _as_process(arguments: list[str]) -> int:
    """Run a command that the process exists for, with the garbage collector kept from searching what stays.

    What a start loads is in use until the end. So it is neither searched while it grows (`dispatch` and `run`
    end that) nor when the interpreter exits. Together they were a tenth of the instructions of a print run.
    """
    import gc

    from cantle.cli.signals import children_leave_exit_codes, interrupts_end_the_process

    interrupts_end_the_process()
    children_leave_exit_codes()
    gc.disable()
    try:
        return _dispatch(arguments)
    finally:
        gc.freeze()


def _version() -> int:
    from cantle.console import Results
    from cantle.version import VERSION

    results = Results()
    results.say(f"{VERSION}\n")
    return results.code
