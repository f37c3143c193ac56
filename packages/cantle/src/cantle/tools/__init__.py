"""The built-in tools, and the table they are looked up in by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cantle.tools.builtin import (
        BUILTIN_TOOLS,
        bash_tool,
        default_tools,
        edit_tool,
        find_tool,
        grep_tool,
        ls_tool,
        read_tool,
        write_tool,
    )
    from cantle.tools.environment import ToolEnvironment

__all__ = [
    "BUILTIN_TOOLS",
    "ToolEnvironment",
    "bash_tool",
    "default_tools",
    "edit_tool",
    "find_tool",
    "grep_tool",
    "ls_tool",
    "read_tool",
    "write_tool",
]


_HOMES = {
    "BUILTIN_TOOLS": "cantle.tools.builtin",
    "ToolEnvironment": "cantle.tools.environment",
    "bash_tool": "cantle.tools.builtin",
    "default_tools": "cantle.tools.builtin",
    "edit_tool": "cantle.tools.builtin",
    "find_tool": "cantle.tools.builtin",
    "grep_tool": "cantle.tools.builtin",
    "ls_tool": "cantle.tools.builtin",
    "read_tool": "cantle.tools.builtin",
    "write_tool": "cantle.tools.builtin",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
