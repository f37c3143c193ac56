"""`read`: what a model is told of it, and how a call is read. The work is in `text` and `images`."""

from __future__ import annotations

from cantle.tools.arguments import optional_count, renamed, required_text
from cantle.tools.environment import ToolEnvironment
from cantle_agent.tool import Tool, ToolContext, ToolError, ToolResult
from cantle_ai.codec import JsonObject

__all__ = ["read_tool"]

DESCRIPTION = (
    "Read a text file, or look at an image. Gives at most 2000 lines or 50 KB of text; go on with offset."
)
SNIPPET = "Read files and look at images"
GUIDELINES = ("Read files with read, not with cat, head or sed.",)

PARAMETERS: JsonObject = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "description": "File, absolute or from the working directory"},
        "offset": {"type": "integer", "description": "First line, counted from 1"},
        "limit": {"type": "integer", "description": "Number of lines"},
    },
    "required": ["path"],
}


def read_tool(environment: ToolEnvironment) -> Tool:
    """The tool that reads files, from the folder of `environment`."""

    async def execute(arguments: JsonObject, context: ToolContext) -> ToolResult:
        from cantle.tools.blocking import run_blocking
        from cantle.tools.read.file import read_file

        path = required_text(arguments, "path")
        offset, limit = optional_count(arguments, "offset"), optional_count(arguments, "limit")
        if offset is not None and offset < 0:
            raise ToolError("offset must be the number of a line; the first is 1.")
        if limit is not None and limit < 1:
            raise ToolError("limit must be a number of lines, at least 1.")
        first = max(offset or 1, 1)
        return await run_blocking(
            lambda check: read_file(environment.cwd, path, first, limit, check), context.signal
        )

    return Tool(
        name="read",
        description=DESCRIPTION,
        parameters=PARAMETERS,
        execute=execute,
        prepare=lambda arguments: renamed(arguments, {"file_path": "path"}),
        prompt_snippet=SNIPPET,
        prompt_guidelines=GUIDELINES,
    )
