"""`write`: what a model is told of it, and the call.

The content is written in UTF-8, exactly as given. Of an existing file only the mode bits, the owner and the
extended attributes stay: a new content says nothing about the old one's encoding or byte order mark, so
those go, and the result says when they did.
"""

from __future__ import annotations

from cantle.tools.arguments import renamed, required_text
from cantle.tools.environment import ToolEnvironment
from cantle_agent.tool import Tool, ToolContext, ToolResult
from cantle_ai.codec import JsonObject

__all__ = ["write_tool"]

DESCRIPTION = "Write a whole file, new or over an old one. Missing folders are made."
SNIPPET = "Create files, or replace whole ones"
GUIDELINES = ("Use write for new files and complete rewrites only.",)

PARAMETERS: JsonObject = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "description": "File, absolute or from the working directory"},
        "content": {"type": "string", "description": "All of its text"},
    },
    "required": ["path", "content"],
}


def write_tool(environment: ToolEnvironment) -> Tool:
    """The tool that writes files, from the folder of `environment`."""

    async def execute(arguments: JsonObject, context: ToolContext) -> ToolResult:
        from cantle.tools.blocking import run_blocking
        from cantle.tools.paths import literal_path
        from cantle.tools.write.file import encode_content, write_file

        name = required_text(arguments, "path")
        data = encode_content(required_text(arguments, "content"))
        async with environment.files.turn(literal_path(environment.cwd, name)) as real:
            return await run_blocking(lambda check: write_file(real, name, data, check), context.signal)

    return Tool(
        name="write",
        description=DESCRIPTION,
        parameters=PARAMETERS,
        execute=execute,
        prepare=lambda arguments: renamed(arguments, {"file_path": "path"}),
        prompt_snippet=SNIPPET,
        prompt_guidelines=GUIDELINES,
    )
