"""A person at a terminal, or a program in its place, who signs in: everything is said on stderr."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Mapping

from cantle.console import say_aside
from cantle_ai.auth.login import Dialogue, LoginError

__all__ = ["TerminalDialogue", "browser_at_hand"]


class TerminalDialogue:
    """Lines on stderr, answers from stdin."""

    def __init__(self, *, open_browser: bool) -> None:
        self._open_browser = open_browser
        self._lines: asyncio.Queue[str | None] | None = None

    @property
    def can_paste(self) -> bool:
        return sys.stdin is not None and sys.stdin.isatty()

    def show_address(self, url: str) -> None:
        if self._open_browser:
            say_aside("Opening this page in a browser; open it yourself if that does not work:")
            threading.Thread(target=_open, args=(url,), daemon=True).start()
        else:
            say_aside("Open this page in a browser:")
        say_aside(f"\n  {url}\n")

    def show_code(self, code: str, url: str) -> None:
        say_aside(
            f"Open this page in a browser, on any machine, and type in the code:\n\n  {url}\n  code: {code}\n"
        )
        if self._open_browser:
            threading.Thread(target=_open, args=(url,), daemon=True).start()
        say_aside("Waiting for it …")

    def tell(self, text: str) -> None:
        say_aside(text)

    async def ask(self, question: str) -> str:
        if sys.stdin is None:
            raise LoginError("Nothing can be pasted: there is no stdin. Run this where you can answer")
        say_aside(question, end="")
        if self._lines is None:
            self._lines = asyncio.Queue()
            threading.Thread(
                target=_read_lines, args=(asyncio.get_running_loop(), self._lines), daemon=True
            ).start()
        line = await self._lines.get()
        if line is None:
            self._lines.put_nowait(None)
            raise LoginError("Nothing was pasted: stdin has ended. Run this where you can answer")
        return line


def browser_at_hand(environ: Mapping[str, str], platform: str = sys.platform) -> bool:
    """Whether a browser that is opened would show on the screen of whoever asks for it."""
    if environ.get("SSH_CONNECTION") or environ.get("SSH_TTY"):
        return False
    if environ.get("BROWSER") or platform in ("win32", "darwin"):
        return True
    return bool(environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY") or environ.get("WSL_DISTRO_NAME"))


def _open(url: str) -> None:
    import webbrowser

    webbrowser.open(url)  # False where there is none: the address stands on the screen


def _read_lines(loop: asyncio.AbstractEventLoop, lines: asyncio.Queue[str | None]) -> None:
    """Lines from the descriptor itself: a thread that waits inside `sys.stdin` would not let the program end."""
    rest = b""
    while True:
        try:
            data = os.read(0, 65_536)
        except OSError:
            data = b""
        *whole, rest = (rest + data).split(b"\n")
        if not data and rest:
            whole.append(rest)
        try:
            for line in whole:
                loop.call_soon_threadsafe(lines.put_nowait, line.decode("utf-8", "replace").strip())
            if not data:
                loop.call_soon_threadsafe(lines.put_nowait, None)
                return
        except RuntimeError:  # the loop is closed: nobody asks any more
            return


_proof: type[Dialogue] = TerminalDialogue
