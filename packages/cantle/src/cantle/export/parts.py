"""The parts of an entry: its text and images, what was thought, how an answer ended, and what it took."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cantle.export.code import code_block
from cantle.export.entry_texts import pretty_json, said
from cantle.export.figures import dollars, lasting, prompt_tokens, tokens
from cantle.export.markup import EMPTY, Html, joined, plain, tag, text
from cantle.export.prose import as_typed, rendered
from cantle.export.tool_calls import folded, image
from cantle_ai.codec import Json, JsonObject
from cantle_ai.content import ImageContent, TextContent, ThinkingContent, UserContent
from cantle_ai.messages import AssistantMessage
from cantle_ai.usage import Usage
from cantle_session.messages import BashExecutionMessage

__all__ = [
    "answer_figures",
    "compacted",
    "ending_of",
    "file_lists",
    "raw_json",
    "shell_command",
    "system_prompt",
    "thought",
    "typed_content",
    "usage_line",
]


def typed_content(content: str | Sequence[UserContent]) -> Html:
    if isinstance(content, str):
        return as_typed(content)
    parts = []
    for block in content:
        match block:
            case TextContent():
                parts.append(as_typed(block.text))
            case ImageContent():
                parts.append(image(block))
            case _:
                parts.append(raw_json("A part of a kind that is not known here", block.to_json()))
    return joined(parts)


def thought(block: ThinkingContent) -> Html:
    if not block.thinking.strip():
        return (
            tag("p", text("Thought, in a form that only its provider reads."), class_="aside")
            if block.redacted
            else EMPTY
        )
    line = joined(
        [tag("b", text("Thought")), tag("span", text(said(block.thinking, 140)), class_="what")],
        Html(" "),
    )
    return folded(line, tag("div", rendered(block.thinking), class_="prose"), class_="thinking")


def ending_of(answer: AssistantMessage) -> Html:
    match answer.stop_reason:
        case "error":
            reason = (
                f"The request failed: {answer.error_message}"
                if answer.error_message
                else "The request failed."
            )
        case "aborted":
            reason = "Stopped before it was finished."
        case "length":
            reason = "Cut where the answer reached its longest."
        case _:
            return EMPTY
    return tag("p", text(reason), class_="ending")


def answer_figures(answer: AssistantMessage) -> str:
    parts = [usage_line(answer.usage)]
    if answer.duration_ms is not None:
        parts.append(lasting(answer.duration_ms))
    return " · ".join(parts)


def usage_line(usage: Usage) -> str:
    sent = prompt_tokens(usage)
    cached = f" ({usage.cache_read / sent:.0%} cached)" if sent and usage.cache_read else ""
    return f"{tokens(sent)} in{cached} · {tokens(usage.output)} out · {dollars(usage)}"


def shell_command(command: BashExecutionMessage) -> Html:
    state = f"exit {command.exit_code}" if command.exit_code else "stopped" if command.cancelled else ""
    parts = [code_block(command.command, "bash", class_="code command")]
    shown = plain(command.output).rstrip("\n")
    parts.append(
        code_block(shown, class_="code out")
        if shown
        else tag("p", text("It printed nothing."), class_="aside")
    )
    remarks = [
        state,
        "the output is cut" if command.truncated else "",
        "no model saw it" if command.exclude_from_context else "",
    ]
    remark = ", ".join(filter(None, remarks))
    if remark:
        parts.append(tag("p", text(remark), class_="aside"))
    return joined(parts)


def compacted(tokens_before: float) -> str:
    size = f"{tokens(int(tokens_before))} tokens of " if 0 < tokens_before < 1e15 else ""
    return f"{size}history summed up here"


def file_lists(details: JsonObject) -> Iterator[Html]:
    for key, name in (("modifiedFiles", "Changed"), ("readFiles", "Read")):
        listed = details.get(key)
        paths = [path for path in listed if isinstance(path, str)] if isinstance(listed, list) else []
        if paths:
            names = joined((tag("code", text(path)) for path in paths), Html(" "))
            yield tag("p", tag("b", text(f"{name} ")), names, class_="files")


def system_prompt(raw: JsonObject) -> Html:
    return raw_json("The system prompt of that time, as it was recorded; it is not sent again", raw)


def raw_json(title: str, value: Json) -> Html:
    return folded(text(title), code_block(pretty_json(value), "json"), class_="raw")
