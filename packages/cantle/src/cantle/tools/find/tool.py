"""`find`: what a model is told of it, and how a call is read. The work is in `search`."""

from __future__ import annotations

from cantle.tools.arguments import limit_or, optional_text, renamed, required_text
from cantle.tools.environment import ToolEnvironment
from cantle.tools.grep.tool import GUIDELINES
from cantle_agent.tool import Tool, ToolContext, ToolResult
from cantle_ai.codec import JsonObject

__all__ = ["find_tool"]

DESCRIPTION = (
    "Find files and folders by glob, except what .gitignore rules out. "
    "Gives paths from the search folder, at most 1000 or 50 KB."
)
SNIPPET = "Find files by glob"

PARAMETERS: JsonObject = {
    "type": "object",
    "properties": {
        "pattern": {
            "type": "string",
            "description": "*.ts at any depth; with a slash from path: src/**/*.ts",
        },
        "path": {"type": "string", "description": "Folder; default: working directory"},
        "limit": {"type": "integer", "description": "Paths, default 1000"},
    },
    "required": ["pattern"],
}

LIMIT = 1_000


def find_tool(environment: ToolEnvironment) -> Tool:
    """The tool that finds files by their names, from the folder of `environment`."""

    async def execute(arguments: JsonObject, context: ToolContext) -> ToolResult:
        from cantle.tools.blocking import run_blocking
        from cantle.tools.find.search import search

        pattern = required_text(arguments, "pattern")
        path = optional_text(arguments, "path") or "."
        limit = limit_or(arguments, LIMIT)
        return await run_blocking(
            lambda check: search(environment.cwd, pattern, path, limit, check), context.signal
        )

    return Tool(
        name="find",
        description=DESCRIPTION,
        parameters=PARAMETERS,
        execute=execute,
        prepare=lambda arguments: renamed(arguments, {"file_path": "path", "glob": "pattern"}),
        prompt_snippet=SNIPPET,
        prompt_guidelines=GUIDELINES,
    )
