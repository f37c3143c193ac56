"""`ls`: what a model is told of it, and how a call is read. The work is in `listing`."""

from __future__ import annotations

from cantle.tools.arguments import limit_or, optional_text, renamed
from cantle.tools.environment import ToolEnvironment
from cantle.tools.grep.tool import GUIDELINES
from cantle_agent.tool import Tool, ToolContext, ToolResult
from cantle_ai.codec import JsonObject

__all__ = ["ls_tool"]

DESCRIPTION = (
    "List a folder, hidden entries too, in alphabetical order; / stands behind folders. "
    "At most 500 entries or 50 KB."
)
SNIPPET = "List folders"

PARAMETERS: JsonObject = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "description": "Folder; default: working directory"},
        "limit": {"type": "integer", "description": "Entries, default 500"},
    },
}

LIMIT = 500


def ls_tool(environment: ToolEnvironment) -> Tool:
    """The tool that lists folders, from the folder of `environment`."""

    async def execute(arguments: JsonObject, context: ToolContext) -> ToolResult:
        from cantle.tools.blocking import run_blocking
        from cantle.tools.ls.listing import list_folder

        path = optional_text(arguments, "path") or "."
        limit = limit_or(arguments, LIMIT)
        return await run_blocking(
            lambda check: list_folder(environment.cwd, path, limit, check), context.signal
        )

    return Tool(
        name="ls",
        description=DESCRIPTION,
        parameters=PARAMETERS,
        execute=execute,
        prepare=lambda arguments: renamed(arguments, {"file_path": "path"}),
        prompt_snippet=SNIPPET,
        prompt_guidelines=GUIDELINES,
    )
