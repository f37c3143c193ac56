"""Which tools come with Cantle, in the order in which a model is told of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from cantle.tools.bash.tool import bash_tool
from cantle.tools.edit.tool import edit_tool
from cantle.tools.environment import ToolEnvironment
from cantle.tools.read.tool import read_tool
from cantle.tools.write.tool import write_tool
from cantle_agent.tool import Tool

__all__ = [
    "BUILTIN_TOOLS",
    "DEFAULT_TOOLS",
    "bash_tool",
    "default_tools",
    "edit_tool",
    "read_tool",
    "write_tool",
]

BUILTIN_TOOLS: Mapping[str, Callable[[ToolEnvironment], Tool]] = MappingProxyType(
    {"read": read_tool, "bash": bash_tool, "edit": edit_tool, "write": write_tool}
)
"""Every built-in tool by its name."""

DEFAULT_TOOLS = ("read", "bash", "edit", "write")
"""The tools of an agent for which nobody chose any."""


def default_tools(environment: ToolEnvironment) -> list[Tool]:
    """The default tools, working in `environment`."""
    return [BUILTIN_TOOLS[name](environment) for name in DEFAULT_TOOLS]
