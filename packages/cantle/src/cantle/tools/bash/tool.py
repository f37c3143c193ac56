"""`bash`: what a model is told of it, and how a call is read. The work is in `command`."""

from __future__ import annotations

from cantle.tools.arguments import renamed, required_text
from cantle.tools.environment import ToolEnvironment
from cantle_agent.tool import Tool, ToolContext, ToolError, ToolResult
from cantle_ai.codec import Json, JsonObject

__all__ = ["bash_tool"]

DESCRIPTION = (
    "Run a bash command in the working directory. Gives stdout and stderr together: "
    "at most 2000 lines or 50 KB, the first 200 lines and the end, and a file with everything when there is more."
)
SNIPPET = "Run shell commands"
GUIDELINES = ("Find, list and search files with bash (ls, find, grep or rg).",)

PARAMETERS: JsonObject = {
    "type": "object",
    "properties": {
        "command": {"type": "string"},
        "timeout": {"type": "number", "description": "Seconds; without it there is no limit"},
    },
    "required": ["command"],
}

MAX_TIMEOUT = 2_147_483
"""Seconds, nearly 25 days: the reference's limit."""


def bash_tool(environment: ToolEnvironment) -> Tool:
    """The tool that runs commands, in the folder of `environment`."""

    async def execute(arguments: JsonObject, context: ToolContext) -> ToolResult:
        from cantle.tools.bash.command import run_command

        command = required_text(arguments, "command")
        return await run_command(environment, command, timeout_seconds(arguments.get("timeout")), context)

    return Tool(
        name="bash",
        description=DESCRIPTION,
        parameters=PARAMETERS,
        execute=execute,
        prepare=lambda arguments: renamed(arguments, {"cmd": "command"}),
        prompt_snippet=SNIPPET,
        prompt_guidelines=GUIDELINES,
    )


def timeout_seconds(value: Json) -> float | None:
    """A time-out as a model gave it, in seconds. Raises :class:`ToolError` for one that means nothing."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= MAX_TIMEOUT:
        raise ToolError(
            f"timeout must be a number of seconds above 0 and at most {MAX_TIMEOUT}; leave it out for no limit. "
            "The command was not started."
        )
    return float(value)
