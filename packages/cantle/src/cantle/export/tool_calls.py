"""A tool call with its result, folded to one line: what was asked for and how it went.

Our own tools and those of the reference are shown by what they do: a command as a command, an edit as a
difference, a file by its language. Any other tool is shown by its arguments.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeAlias

from cantle.export.code import code_block, highlighted_lines
from cantle.export.entry_texts import one_line, pretty_json
from cantle.export.figures import counted, lasting
from cantle.export.languages import language_of
from cantle.export.markup import EMPTY, Html, joined, plain, tag, text, void
from cantle_ai.codec import JsonObject
from cantle_ai.content import ImageContent, TextContent, ToolCall, UserContent
from cantle_ai.messages import ToolResultMessage

__all__ = ["call_title", "folded", "image", "output", "result_alone", "tool_call"]

_DIFF_LINE = re.compile(r"([ +-]) *(\d+)(?: (.*))?", re.DOTALL)
_Row: TypeAlias = tuple[str, str, str]
"""A line of a difference: its sign, or `…` where lines are left out, its number, its text."""
_BY_PATH = frozenset({"read", "write", "edit", "ls", "find"})
_SHORT = 32
"""Characters of a path that the summary of a call shows on a phone, too."""
_MAIN_ARGUMENTS = ("command", "path", "file_path", "pattern", "query", "url", "prompt", "task", "description")


def folded(summary: Html, *body: Html, class_: str, id: str | None = None) -> Html:
    """A line that opens."""
    return tag(
        "details",
        tag("summary", summary),
        tag("div", *body, class_="fold"),
        class_=class_,
        id=id,
    )


def tool_call(call: ToolCall, result: ToolResultMessage | None, anchor: str | None, *marks: Html) -> Html:
    """A call and, once there was one, its result, which is at `anchor` and has these `marks`."""
    changes = _diff_of(call, result)
    state = [tag("span", text(call.name), class_="tool-name"), tag("code", text(_what(call)), class_="what")]
    if changes:
        added, removed = (sum(row[0] == sign for row in changes) for sign in "+-")
        state += [
            tag("span", text(f"+{added}"), class_="plus"),
            tag("span", text(f"−{removed}"), class_="minus"),
        ]
    state += [*_outcome(result), *marks]
    body = [_arguments(call, changes)]
    if result is None:
        body.append(tag("p", text("No result was recorded."), class_="aside"))
    else:
        body.append(
            tag(
                "div",
                _result(call, result, bool(changes) or call.name == "write"),
                class_="result",
                id=anchor,
            )
        )
    bad = " bad" if result is None or result.is_error else ""
    return folded(joined(state, Html(" ")), *body, class_=f"tool{bad}")


def result_alone(result: ToolResultMessage, anchor: str) -> Html:
    """A result whose call is elsewhere."""
    state = [
        tag("span", text(result.tool_name), class_="tool-name"),
        tag("code", text("result of an earlier call"), class_="what"),
        *_outcome(result),
    ]
    bad = " bad" if result.is_error else ""
    return folded(joined(state, Html(" ")), output(result.content), class_=f"tool{bad}", id=anchor)


def output(content: Sequence[UserContent], language: str = "") -> Html:
    """What a tool printed: text as it is, images, anything else as its JSON."""
    parts = []
    for block in content:
        match block:
            case TextContent():
                if block.text.strip():
                    parts.append(
                        code_block(
                            plain(block.text).rstrip("\n"),
                            language,
                            class_="code" if language else "code out",
                        )
                    )
            case ImageContent():
                parts.append(image(block))
            case _:
                parts.append(code_block(pretty_json(block.to_json()), "json"))
    return joined(parts) if parts else tag("p", text("It printed nothing."), class_="aside")


def image(block: ImageContent) -> Html:
    """An image of a kind that cannot carry more than pixels; of any other, that it is there."""
    kind = block.detected_type
    if kind is None:
        what = f"An image that is not shown here: {one_line(block.mime_type, 60)}, {len(block.data):,} characters."
        return tag("p", text(what), class_="aside")
    picture = void("img", src=f"data:{kind};base64,{block.data}", alt=f"image ({kind})", decoding="async")
    return tag("figure", picture)


def call_title(call: ToolCall, result: ToolResultMessage | None) -> str:
    """A call in one line of text: the tool, what it was asked, and how it went where it did not go well."""
    failed = "no result" if result is None else _failure(result)
    return f"{call.name} {_what(call)}".strip() + (f" — {failed}" if failed else "")


def _what(call: ToolCall) -> str:
    """The argument that tells most about a call."""
    arguments = call.arguments
    if call.name == "grep" and isinstance(arguments.get("pattern"), str):
        where = arguments.get("path")
        return one_line(f"{arguments['pattern']}" + (f"  in {where}" if isinstance(where, str) else ""), 160)
    for name in _MAIN_ARGUMENTS:
        value = arguments.get(name)
        if isinstance(value, str) and value.strip():
            return one_line(value, 160)
    return next((one_line(value, 160) for value in arguments.values() if isinstance(value, str)), "")


def _outcome(result: ToolResultMessage | None) -> list[Html]:
    if result is None:
        return [tag("span", text("no result"), class_="state")]
    found = []
    if failed := _failure(result):
        found.append(tag("span", text(failed), class_="state"))
    pictures = sum(isinstance(block, ImageContent) for block in result.content)
    if pictures:
        found.append(tag("span", text(counted(pictures, "image")), class_="extra"))
    if result.duration_ms is not None and result.duration_ms >= 1000:
        found.append(tag("span", text(lasting(result.duration_ms)), class_="extra"))
    return found


def _failure(result: ToolResultMessage) -> str:
    if not result.is_error:
        return ""
    code = result.details.get("exitCode") if isinstance(result.details, dict) else None
    return f"exit {code}" if isinstance(code, int) and code else "failed"


def _arguments(call: ToolCall, changes: list[_Row]) -> Html:
    arguments = call.arguments
    path = _path(arguments)
    if call.invalid_arguments is not None:
        note = tag("p", text("These arguments are not a JSON object:"), class_="aside")
        return joined([note, code_block(call.invalid_arguments)])
    if call.name == "bash" and isinstance(arguments.get("command"), str):
        rest = {name: value for name, value in arguments.items() if name != "command"}
        shown = [code_block(str(arguments["command"]), "bash", class_="code command")]
        return joined([*shown, code_block(pretty_json(rest), "json")] if rest else shown)
    if call.name == "write" and isinstance(arguments.get("content"), str):
        return joined(
            [_file_line(path), code_block(str(arguments["content"]).rstrip("\n"), language_of(path))]
        )
    if changes:
        return joined([_file_line(path), _diff(changes, language_of(path))])
    if call.name in _BY_PATH and path and len(arguments) == 1:
        return _file_line(path)
    return code_block(pretty_json(arguments), "json") if arguments else EMPTY


def _result(call: ToolCall, result: ToolResultMessage, shows_changes: bool) -> Html:
    if result.is_error:
        return output(result.content)
    if shows_changes:
        return tag("p", text(one_line(result.text, 300)), class_="aside")
    return output(result.content, language_of(_path(call.arguments)) if call.name == "read" else "")


def _file_line(path: str) -> Html:
    """The whole path, where the line above may not have had the room for it."""
    return tag("p", tag("code", text(path)), class_="file") if len(path) > _SHORT else EMPTY


def _path(arguments: JsonObject) -> str:
    for name in ("path", "file_path"):
        if isinstance(path := arguments.get(name), str):
            return path
    return ""


def _diff_of(call: ToolCall, result: ToolResultMessage | None) -> list[_Row]:
    """The difference that a call made, or else asked for."""
    match result:
        case ToolResultMessage(details={"diff": str(diff)}) if diff:
            return [_row(line) for line in diff.split("\n")]
    if call.name != "edit":
        return []
    edits = call.arguments.get("edits")
    rows: list[_Row] = []
    for edit in edits if isinstance(edits, list) else [call.arguments]:
        match edit:
            case {"oldText": str(old), "newText": str(new)}:
                rows += [("…", "", "")] if rows else []
                rows += [("-", "", line) for line in _lines(old)]
                rows += [("+", "", line) for line in _lines(new)]
    return rows


def _row(line: str) -> _Row:
    """A line as `cantle.tools.diff` writes it."""
    if line.strip() == "...":
        return "…", "", ""
    match = _DIFF_LINE.fullmatch(line)
    if match is not None:
        return match[1], match[2], match[3] or ""
    return (line[0], "", line[1:]) if line[:1] in {"+", "-"} else (" ", "", line[1:])


def _lines(source: str) -> list[str]:
    return source.removesuffix("\n").split("\n") if source else []


def _diff(rows: list[_Row], language: str) -> Html:
    shown = highlighted_lines([source.replace("\r", "") for _, _, source in rows], language)
    written = []
    for (sign, number, _), code in zip(rows, shown, strict=True):
        if sign == "…":
            written.append(tag("span", text("⋯"), class_="gap"))
        else:
            kind = {"+": "add", "-": "del"}.get(sign)
            written.append(tag("span", tag("i", text(number)), tag("b", text(sign)), code, class_=kind))
    return tag("pre", tag("code", *written), class_="code diff", tabindex="0")
