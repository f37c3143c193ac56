"""How this Cantle was installed, as far as a person has to know to add something to it."""

from __future__ import annotations

import shlex
import sys
from importlib.util import find_spec
from pathlib import Path

__all__ = ["install_command"]


def install_command(extra: str) -> str:
    """What to type to add the extra `extra` to the installation that runs, made by uv, pipx or pip."""
    wanted = f"'cantle[{extra}]'"
    prefix = Path(sys.prefix)
    if (prefix / "uv-receipt.toml").is_file():
        return f"uv tool install {wanted}"
    if (prefix / "pipx_metadata.json").is_file():
        return f"pipx install --force {wanted}"
    python = shlex.quote(sys.executable)
    if find_spec("pip") is not None:
        return f"{python} -m pip install {wanted}"
    return f"uv pip install --python {python} {wanted}"
