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
    "find_tool",
    "grep_tool",
    "ls_tool",
    "read_tool",
    "write_tool",
]


# These are off unless someone asks for them, so a start without them does not load them.
def grep_tool(environment: ToolEnvironment) -> Tool:
    """The tool that searches the text of files, from the folder of `environment`."""
    from cantle.tools.grep.tool import grep_tool

    return grep_tool(environment)


def find_tool(environment: ToolEnvironment) -> Tool:
    """The tool that finds files and folders by glob, from the folder of `environment`."""
    from cantle.tools.find.tool import find_tool

    return find_tool(environment)


def ls_tool(environment: ToolEnvironment) -> Tool:
    """The tool that lists folders, from the folder of `environment`."""
    from cantle.tools.ls.tool import ls_tool

    return ls_tool(environment)


BUILTIN_TOOLS: Mapping[str, Callable[[ToolEnvironment], Tool]] = MappingProxyType(
    {
        "read": read_tool,
        "bash": bash_tool,
        "edit": edit_tool,
        "write": write_tool,
        "grep": grep_tool,
        "find": find_tool,
        "ls": ls_tool,
    }
)
"""Every built-in tool by its name."""

DEFAULT_TOOLS = ("read", "bash", "edit", "write")
"""The tools of an agent for which nobody chose any."""


def default_tools(environment: ToolEnvironment) -> list[Tool]:
    """The default tools, working in `environment`."""
    return [BUILTIN_TOOLS[name](environment) for name in DEFAULT_TOOLS]
