"""What a command says: results on stdout, everything else on stderr, in whatever state the two are."""

from __future__ import annotations

import io
import os
import sys

__all__ = ["HIDDEN", "READER_GONE", "Results", "notice", "open_missing_streams", "say_aside", "warn"]

READER_GONE = 141
"""Exit code when nobody reads stdout any more: what a shell says of a program that SIGPIPE ended. Nothing is printed."""

HIDDEN = {
    code: f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"
    for code in (*range(32), *range(127, 160), 0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
}  # fmt: skip
"""What a terminal obeys instead of showing it, and what turns a line's direction round: as escapes, which it shows."""

_COMMANDS = {code: escape for code, escape in HIDDEN.items() if code not in (9, 10)}
"""The same in what may have several lines."""


class Results:
    """Text on stdout, written at once. `code` is the exit code that a failure to write makes: 1, or READER_GONE.

    After a failure, which is told on stderr, what follows is dropped.
    """

    def __init__(self) -> None:
        self.code = 0

    def say(self, text: str) -> None:
        """Write `text`. Characters that stdout's encoding lacks become escapes."""
        if self.code:
            return
        try:
            sys.stdout.write(_fitting(text, sys.stdout.encoding))
            sys.stdout.flush()
        except BrokenPipeError:
            self.code = READER_GONE
        except OSError as error:
            from cantle_ai.system_errors import reason_of

            notice(f"the output could not be written: {reason_of(error)}.")
            self.code = 1
        if self.code:
            _discard(sys.stdout.fileno())

    def show(self, text: str) -> None:
        """Write `text` for a program as it is, and for a person so that a terminal obeys nothing in it."""
        self.say(text.translate(_COMMANDS) if sys.stdout.isatty() else text)


def notice(text: str) -> None:
    """Tell the user something, as one line on stderr. A stderr that cannot be written to costs nothing but that.

    What follows the program's name begins with a small letter, unless it begins with a name.
    """
    _complain(_inside_a_line(text))


def warn(text: str) -> None:
    """Tell the user of something that did not stop the work, like :func:`notice`."""
    _complain(f"warning: {_inside_a_line(text)}")


def say_aside(text: str, *, end: str = "\n") -> None:
    """Speak with the user on stderr, where a command has more to say than one notice. Control characters are shown."""
    _write_aside(f"{text.translate(_COMMANDS)}{end}")


def _inside_a_line(sentence: str) -> str:
    first, space, rest = sentence.partition(" ")
    word = first.isalpha() and first == first.capitalize()
    return f"{first.lower()} {rest}" if word and space else sentence


def _complain(text: str) -> None:
    _write_aside(f"cantle: {text.translate(_COMMANDS)}\n")


def _write_aside(text: str) -> None:
    stream = sys.stderr
    if stream is None or stream.closed:  # by a tool, which runs in this process
        return
    try:
        stream.write(_fitting(text, stream.encoding))
        stream.flush()
    except OSError:
        _discard(stream.fileno())


def open_missing_streams() -> None:
    """Give the descriptors 0 to 2 that are closed something to lead to.

    Otherwise the next files that are opened get them: what is meant for the user would be written into a file,
    or what is meant for stderr into the answer. A closed stdout stays one that cannot be written to.
    """
    for descriptor, flags in enumerate((os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(descriptor)
        except OSError:
            opened = os.open(os.devnull, flags)
            if opened != descriptor:
                os.dup2(opened, descriptor)
                os.close(opened)
    if sys.stdout is None:
        sys.stdout = _text(1)
    if sys.stderr is None:
        sys.stderr = _text(2)


def _text(descriptor: int) -> io.TextIOWrapper:
    return open(descriptor, "w", encoding="utf-8", errors="backslashreplace", closefd=False)


def _fitting(text: str, encoding: str | None) -> str:
    encoding = encoding or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def _discard(descriptor: int) -> None:
    """Let what a stream still holds go nowhere, or Python's own flush at exit fails and changes the exit code."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    if nowhere != descriptor:
        os.dup2(nowhere, descriptor)
        os.close(nowhere)
