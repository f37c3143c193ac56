"""Where this process listens."""

from __future__ import annotations

from pathlib import Path

__all__ = ["listening"]


def listening() -> set[str]:
    """The TCP sockets that this process listens on."""
    own = {
        link for entry in Path("/proc/self/fd").iterdir() if (link := _target(entry)).startswith("socket:")
    }
    rows = [
        line.split()
        for name in ("tcp", "tcp6")
        for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]
    ]
    return {row[1] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in own}


def _target(entry: Path) -> str:
    try:
        return str(entry.readlink())
    except OSError:
        return ""
