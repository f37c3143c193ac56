"""What Ctrl+C does while nobody handles it: end the process without a word, or raise KeyboardInterrupt.

And that the ends of children are told, whatever the program that started us wants of its own.

The first is right while the program is put together and while the interpreter ends, where Python would show
an error of its own, or an import would take the exception for another. The second is for code that clears up.
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
    """Where SIGCHLD is ignored, which is inherited, the system throws exit codes away."""
    if hasattr(signal, "SIGCHLD") and signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)


def _change(before: object, after: Any) -> None:
    if signal.getsignal(signal.SIGINT) is before:
        signal.signal(signal.SIGINT, after)
