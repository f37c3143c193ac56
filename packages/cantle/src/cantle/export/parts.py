"""The parts of an entry: its text and images, what was thought, how an answer ended, and what it took."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cantle.export.code import code_block
from cantle.export.entry_texts import gist, one_line, pretty_json, said
from cantle.export.figures import dollars, lasting, prompt_tokens, tokens
from cantle.export.markup import EMPTY, Html, joined, plain, tag, text
from cantle.export.prose import as_typed, rendered
from cantle.export.tool_calls import folded, image
from cantle_ai.codec import Json, JsonObject
from cantle_ai.content import ImageContent, TextContent, ThinkingContent, UserContent
from cantle_ai.messages import AssistantMessage, UserMessage
from cantle_ai.usage import Usage
from cantle_session.entries import (
    Entry,
    MessageEntry,
    ModelChangeEntry,
    SessionInfoEntry,
    ThinkingLevelChangeEntry,
    UsageEntry,
)
from cantle_session.messages import BashExecutionMessage

__all__ = [
    "answer_figures",
    "compacted",
    "ending_of",
    "ending_words",
    "extension_name",
    "file_lists",
    "hidden_note",
    "note_words",
    "raw_json",
    "shell_command",
    "shell_remarks",
    "system_prompt",
    "thought",
    "title_of",
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
    """How an answer ended, where it did not end well."""
    words = ending_words(answer)
    return tag("p", text(words), class_="ending") if words else EMPTY


def ending_words(answer: AssistantMessage) -> str:
    """How an answer ended, in words; empty where that needs none."""
    match answer.stop_reason:
        case "error":
            why = answer.error_message
            return f"The request failed: {why}" if why else "The request failed."
        case "aborted":
            return "Stopped before it was finished."
        case "length":
            return "Cut where the answer reached its longest."
    return ""


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
    parts = [code_block(command.command, "bash", class_="code command")]
    shown = plain(command.output).rstrip("\n")
    parts.append(
        code_block(shown, class_="code out")
        if shown
        else tag("p", text("It printed nothing."), class_="aside")
    )
    if remarks := shell_remarks(command):
        parts.append(tag("p", text(remarks), class_="aside"))
    return joined(parts)


def shell_remarks(command: BashExecutionMessage) -> str:
    """What is to be said of a person's command beside what it printed."""
    remarks = [f"exit {command.exit_code}" if command.exit_code else "stopped" if command.cancelled else ""]
    if command.truncated:
        remarks.append("the output is cut")
    if command.exclude_from_context:
        remarks.append("no model saw it")
    return ", ".join(filter(None, remarks))


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


def extension_name(name: str) -> str:
    """Who speaks where an extension does."""
    return f"{one_line(name, 60)} (extension)"


def hidden_note(name: str) -> str:
    """What stands over a note that an extension gave to the model alone."""
    return f"A note of {extension_name(name)} that is not shown in the conversation"


def note_words(entry: Entry) -> str:
    """What an entry says that is no message and holds no more than a line; empty for any other."""
    match entry:
        case ModelChangeEntry():
            return f"Model {one_line(f'{entry.provider}/{entry.model_id}')}"
        case ThinkingLevelChangeEntry():
            return f"Thinking {one_line(entry.thinking_level)}"
        case SessionInfoEntry():
            return f"Named “{one_line(entry.name)}”" if entry.name else "Name taken away"
        case UsageEntry():
            why = f" ({one_line(entry.note, 300)})" if entry.note else ""
            return f"{one_line(entry.kind)}: {one_line(entry.model)}, {usage_line(entry.usage)}{why}"
    return ""


def system_prompt(raw: JsonObject) -> Html:
    return raw_json("The system prompt of that time, as it was recorded; it is not sent again", raw)


def raw_json(title: str, value: Json) -> Html:
    return folded(text(title), code_block(pretty_json(value), "json"), class_="raw")


def title_of(name: str | None, entries: Sequence[Entry]) -> str:
    """A session's name, or the first thing that the user said."""
    if name:
        return one_line(name, 120)
    for entry in entries:
        if isinstance(entry, MessageEntry) and isinstance(entry.message, UserMessage):
            return gist(entry, 90)
    return "A session"
