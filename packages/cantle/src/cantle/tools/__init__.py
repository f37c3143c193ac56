"""The built-in tools, and the table they are looked up in by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cantle.tools.builtin import BUILTIN_TOOLS, bash_tool, default_tools, edit_tool, read_tool, write_tool
    from cantle.tools.environment import ToolEnvironment

__all__ = [
    "BUILTIN_TOOLS",
    "ToolEnvironment",
    "bash_tool",
    "default_tools",
    "edit_tool",
    "read_tool",
    "write_tool",
]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "ToolEnvironment":
        from cantle.tools import environment as home
    else:
        from cantle.tools import builtin as home  # type: ignore[no-redef]
    return getattr(home, name)
