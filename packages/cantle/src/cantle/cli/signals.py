"""Signals that the process meets before anything of ours handles them.

Ctrl+C ends the process without a word, or raises KeyboardInterrupt. The first is right while the program is put
together and while the interpreter ends, where Python would show an error of its own, or an import would take the
exception for another. The second is for code that clears up.
"""

from __future__ import annotations

import signal
from typing import Any

__all__ = ["children_leave_exit_codes", "interrupts_end_the_process", "interrupts_raise"]


def interrupts_end_the_process() -> None:
    """What other programs do that handle nothing. Interrupts that are ignored stay ignored."""
    _change(signal.default_int_handler, signal.SIG_DFL)


def interrupts_raise() -> None:
    """What Python programs do. Takes back :func:`interrupts_end_the_process`."""
    _change(signal.SIG_DFL, signal.default_int_handler)


def children_leave_exit_codes() -> None:
    """Let the system keep exit codes: it throws them away where SIGCHLD is ignored, which children inherit."""
    if hasattr(signal, "SIGCHLD") and signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)


def _change(before: object, after: Any) -> None:
    if signal.getsignal(signal.SIGINT) is before:
        signal.signal(signal.SIGINT, after)
