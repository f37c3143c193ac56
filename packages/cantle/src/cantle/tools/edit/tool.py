"""`edit`: what a model is told of it, how its arguments are mended, and the call."""

from __future__ import annotations

from cantle.tools.arguments import renamed, required_text
from cantle.tools.environment import ToolEnvironment
from cantle_agent.tool import Tool, ToolContext, ToolError, ToolResult
from cantle_ai.codec import Json, JsonObject, decode_json

__all__ = ["edit_tool"]

DESCRIPTION = (
    "Replace pieces of one text file. Each oldText must occur exactly once in the file as it is before the call, "
    "and none may overlap another. All are replaced, or none."
)
SNIPPET = "Change pieces of a file, several in one call"
GUIDELINES = (
    "Change files with edit; put all changes to one file into one call.",
    "Keep oldText short, yet unique in the file; leave out unchanged lines between two places.",
)

PARAMETERS: JsonObject = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "description": "File, absolute or from the working directory"},
        "edits": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "oldText": {"type": "string", "description": "Text exactly as in the file"},
                    "newText": {"type": "string", "description": "What takes its place"},
                },
                "required": ["oldText", "newText"],
            },
        },
    },
    "required": ["path", "edits"],
}


def edit_tool(environment: ToolEnvironment) -> Tool:
    """The tool that edits files, from the folder of `environment`."""

    async def execute(arguments: JsonObject, context: ToolContext) -> ToolResult:
        from cantle.tools.blocking import run_blocking
        from cantle.tools.edit.file import edit_file
        from cantle.tools.paths import existing_path

        name = required_text(arguments, "path")
        edits = _edits(arguments)
        path = existing_path(environment.cwd, name)
        async with environment.files.turn(path) as real:
            return await run_blocking(lambda check: edit_file(real, name, edits, check), context.signal)

    return Tool(
        name="edit",
        description=DESCRIPTION,
        parameters=PARAMETERS,
        execute=execute,
        prepare=prepare,
        prompt_snippet=SNIPPET,
        prompt_guidelines=GUIDELINES,
    )


def prepare(arguments: JsonObject) -> JsonObject:
    """The shapes that models are known to send, as the one that the schema asks for.

    One edit in place of a list, JSON text in place of either, `oldText` and `newText` beside `path`, other
    tools' names for the same things, fields that nobody asked for.
    """
    arguments = renamed(arguments, {"file_path": "path", **_NAMES})
    edits = _parsed(arguments.get("edits"))
    if isinstance(edits, dict):
        edits = [edits]
    if isinstance(edits, list):
        edits = [_mended(edit) for edit in edits]
    if "oldText" in arguments and "newText" in arguments:
        alone = {"oldText": arguments["oldText"], "newText": arguments["newText"]}
        edits = [*(edits if isinstance(edits, list) else []), alone]
    mended: JsonObject = {"path": arguments["path"]} if "path" in arguments else {}
    if edits is not None:
        mended["edits"] = edits
    return mended


_NAMES = {"old_text": "oldText", "new_text": "newText", "old_string": "oldText", "new_string": "newText"}


def _mended(edit: Json) -> Json:
    edit = _parsed(edit)
    if not isinstance(edit, dict):
        return edit
    edit = renamed(edit, _NAMES)
    return {key: edit[key] for key in ("oldText", "newText") if key in edit}


def _parsed(value: Json) -> Json:
    if not isinstance(value, str):
        return value
    try:
        return decode_json(value)
    except ValueError:
        return value


def _edits(arguments: JsonObject) -> list[tuple[str, str]]:
    edits = arguments.get("edits")
    if not isinstance(edits, list) or not edits:
        raise ToolError("edits must be a list of at least one {oldText, newText}.")
    pairs = []
    for number, edit in enumerate(edits):
        old, new = (edit.get("oldText"), edit.get("newText")) if isinstance(edit, dict) else (None, None)
        if not isinstance(old, str) or not isinstance(new, str):
            raise ToolError(f"edits[{number}] must have oldText and newText, both text.")
        if not old:
            raise ToolError(
                f"edits[{number}]: oldText is empty. To insert, repeat the text before or after the place in "
                "both; to write a whole file, use write."
            )
        pairs.append((old, new))
    return pairs
