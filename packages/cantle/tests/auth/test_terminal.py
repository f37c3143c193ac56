"""When a browser is opened, and when an address is shown instead."""

from __future__ import annotations

import pytest

from cantle.auth.terminal import browser_at_hand


@pytest.mark.parametrize(
    ("environ", "platform", "opened"),
    [
        ({}, "linux", False),
        ({"DISPLAY": ":0"}, "linux", True),
        ({"WAYLAND_DISPLAY": "wayland-0"}, "linux", True),
        ({"WSL_DISTRO_NAME": "Debian"}, "linux", True),
        ({"BROWSER": "firefox"}, "linux", True),
        ({}, "darwin", True),
        ({}, "win32", True),
        ({"DISPLAY": ":10", "SSH_CONNECTION": "…"}, "linux", False),
        ({"SSH_TTY": "/dev/pts/1"}, "darwin", False),
    ],
)
def test_a_browser_is_opened_where_it_would_be_seen(
    environ: dict[str, str], platform: str, opened: bool
) -> None:
    assert browser_at_hand(environ, platform) is opened
