"""`grep`: what a model is told of it, and how a call is read. The work is in `search`."""

from __future__ import annotations

from cantle.tools.arguments import (
    limit_or,
    optional_count,
    optional_flag,
    optional_text,
    renamed,
    required_text,
)
from cantle.tools.environment import ToolEnvironment
from cantle_agent.tool import Tool, ToolContext, ToolError, ToolResult
from cantle_ai.codec import JsonObject

__all__ = ["GUIDELINES", "grep_tool"]

DESCRIPTION = (
    "Find lines that match in files, except in what .gitignore rules out. "
    "Gives path:line: text, at most 100 matches or 50 KB; long lines are cut at 500 characters."
)
SNIPPET = "Search the text of files"
GUIDELINES = ("Look for files and text with grep, find and ls where you have them, not with bash.",)

PARAMETERS: JsonObject = {
    "type": "object",
    "properties": {
        "pattern": {"type": "string", "description": "Regular expression, for one line"},
        "path": {"type": "string", "description": "Folder or file; default: working directory"},
        "glob": {"type": "string", "description": "Only these files: *.ts, src/**/*.ts (from path), !*.md"},
        "ignoreCase": {"type": "boolean"},
        "literal": {"type": "boolean", "description": "Take pattern as plain text"},
        "context": {"type": "integer", "description": "Lines to show around each match"},
        "limit": {"type": "integer", "description": "Matches, default 100"},
    },
    "required": ["pattern"],
}

LIMIT = 100


def grep_tool(environment: ToolEnvironment) -> Tool:
    """The tool that searches the text of files, from the folder of `environment`."""

    async def execute(arguments: JsonObject, context: ToolContext) -> ToolResult:
        from cantle.tools.blocking import run_blocking
        from cantle.tools.grep.search import Request, search
        from cantle.tools.search.ripgrep import Halt, find_ripgrep

        around = optional_count(arguments, "context") or 0
        if around < 0:
            raise ToolError("context must be a number of lines, 0 or more.")
        request = Request(
            pattern=required_text(arguments, "pattern"),
            path=optional_text(arguments, "path") or ".",
            glob=optional_text(arguments, "glob"),
            ignore_case=optional_flag(arguments, "ignoreCase"),
            literal=optional_flag(arguments, "literal"),
            context=around,
            limit=limit_or(arguments, LIMIT),
        )
        halt = Halt()
        return await run_blocking(
            lambda check: search(environment.cwd, request, find_ripgrep(), halt, check),
            context.signal,
            halt=halt,
        )

    return Tool(
        name="grep",
        description=DESCRIPTION,
        parameters=PARAMETERS,
        execute=execute,
        prepare=lambda arguments: renamed(arguments, {"file_path": "path", "include": "glob"}),
        prompt_snippet=SNIPPET,
        prompt_guidelines=GUIDELINES,
    )
