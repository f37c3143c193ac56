"""A branch as Markdown that reads well as text, too: what was said is plain, what was done is folded.

# name                           headings of a message go down two levels
- Folder, Begun, Models, …
## You                           as a quotation
## <model>                       as it is, made safe by `contained`
<details><summary>…</summary>    thinking, tool calls with their results, summaries, recorded prompts
*Model …*                        what is no message
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

from cantle.export.contained import contained, escaped, fenced, quoted
from cantle.export.entry_texts import clock, day, one_line, pretty_json
from cantle.export.figures import counted, figures
from cantle.export.languages import language_of
from cantle.export.markup import plain
from cantle.export.parts import (
    compacted,
    ending_words,
    extension_name,
    hidden_note,
    note_words,
    shell_remarks,
    title_of,
    usage_line,
)
from cantle.export.tool_calls import call_title
from cantle.export.turns import results_of, speaker_of
from cantle_ai.content import (
    Content,
    ImageContent,
    TextContent,
    ThinkingContent,
    ToolCall,
    UnknownContent,
    UserContent,
)
from cantle_ai.messages import AssistantMessage, ToolResultMessage, UnknownMessage, UserMessage
from cantle_session.entries import (
    BranchSummaryEntry,
    CompactionEntry,
    ContextEditEntry,
    CustomEntry,
    CustomMessageEntry,
    Entry,
    LabelEntry,
    MessageEntry,
    SessionHeader,
)
from cantle_session.messages import (
    BashExecutionMessage,
    BranchSummaryMessage,
    CompactionSummaryMessage,
    ExtensionMessage,
)

if TYPE_CHECKING:
    from cantle_session.session import Session

__all__ = ["markdown_page"]


def markdown_page(session: Session, leaf: str | None) -> Iterator[str]:
    """The page of a branch, root first, in parts. Raises UnknownEntryError when `leaf` is no entry's."""
    path = session.path(leaf)
    return _parts(session.header, title_of(session.name, path), path, session.labels())


def _parts(
    header: SessionHeader, title: str, path: Sequence[Entry], marks: Mapping[str, str]
) -> Iterator[str]:
    yield _head(header, title, path)
    places = range(len(path))
    results = results_of(path, places)
    within = {at: position for (position, _), at in results.items()}
    labels: dict[int, list[str]] = {}
    for position in places:
        if label := marks.get(path[position].id):
            labels.setdefault(within.get(position, position), []).append(label)
    speaker = ""
    for position in places:
        if position in within:
            continue
        entry = path[position]
        blocks = [
            block for block in _blocks(path, position, results, follows=speaker_of(entry) == speaker) if block
        ]
        blocks += (f"*Label: {escaped(one_line(label))}*" for label in labels.get(position, ()))
        speaker = speaker_of(entry) or speaker
        yield "".join(f"\n{block}\n" for block in blocks)


def _head(header: SessionHeader, title: str, path: Sequence[Entry]) -> str:
    numbers = figures(path)
    facts = [("Folder", header.cwd), ("Session", header.id)]
    if path and day(path[0].timestamp):
        facts.append(("Begun", f"{day(path[0].timestamp)} {clock(path[0].timestamp)} UTC"))
    if numbers.models:
        facts.append(("Models", ", ".join(model.name for model in numbers.models)))
    said = f"{counted(numbers.prompts, 'prompt')}, {counted(numbers.answers, 'answer')}"
    facts.append(
        ("This branch", f"{said}, {counted(numbers.calls, 'tool call')}; {usage_line(numbers.total)}")
    )
    lines = [f"- {name}: {escaped(one_line(value, 500))}" for name, value in facts]
    return "\n".join([f"# {escaped(title)}", "", *lines, ""])


def _blocks(
    path: Sequence[Entry], position: int, results: dict[tuple[int, str], int], *, follows: bool
) -> Iterator[str]:
    entry = path[position]
    match entry:
        case MessageEntry(message=UserMessage() as message):
            yield _heading("You", entry)
            yield quoted(_content(message.content))
        case MessageEntry(message=AssistantMessage() as answer):
            if not follows:
                yield _heading(answer.model or "Assistant", entry)
            yield from _answer(path, position, answer, results)
        case MessageEntry(message=ToolResultMessage() as result):
            yield _folded(f"Result of {result.tool_name}", _output(result.content))
        case MessageEntry(message=BashExecutionMessage() as command):
            yield _heading("You, in the shell", entry)
            yield from _shell(command)
        case (
            MessageEntry(message=ExtensionMessage(custom_type=name, content=content, display=display))
            | CustomMessageEntry(custom_type=name, content=content, display=display)
        ):
            if display:
                yield _heading(extension_name(name), entry)
                yield quoted(_content(content))
            else:
                yield _folded(hidden_note(name), _content(content))
        case (
            MessageEntry(message=BranchSummaryMessage(summary=summary)) | BranchSummaryEntry(summary=summary)
        ):
            yield _folded("Summary of another branch", contained(summary))
        case MessageEntry(message=CompactionSummaryMessage(summary=summary, tokens_before=size)):
            yield _folded(compacted(size), contained(summary))
        case CompactionEntry():
            yield _folded(compacted(entry.tokens_before or 0), contained(entry.summary))
        case MessageEntry(message=UnknownMessage(raw=raw)):
            yield _folded(
                f"A message of the role {one_line(entry.message.role)}", fenced(pretty_json(raw), "json")
            )
        case LabelEntry():
            pass  # it stands at the entry that has it
        case CustomEntry():
            yield _folded(f"State of {one_line(entry.custom_type)}", fenced(pretty_json(entry.data), "json"))
        case _ if words := _note(entry):
            yield f"*{escaped(words)}*"
        case _:
            yield _folded(
                f"An entry of the type {one_line(entry.type)}", fenced(pretty_json(entry.to_json()), "json")
            )


def _answer(
    path: Sequence[Entry], position: int, answer: AssistantMessage, results: dict[tuple[int, str], int]
) -> Iterator[str]:
    for block in answer.content:
        at = results.get((position, block.id)) if isinstance(block, ToolCall) else None
        yield _part(block, None if at is None else path[at])
    if words := ending_words(answer):
        yield f"**{escaped(one_line(words, 2_000))}**"


def _shell(command: BashExecutionMessage) -> Iterator[str]:
    yield fenced(command.command, "bash")
    yield fenced(plain(command.output), "text") if command.output.strip() else "It printed nothing."
    if remarks := shell_remarks(command):
        yield f"*{remarks}*"


def _heading(author: str, entry: Entry) -> str:
    when = f"{day(entry.timestamp)} {clock(entry.timestamp)}".strip()
    return f"## {escaped(one_line(author))}" + (f" · {when}" if when else "")


def _folded(title: str, *blocks: str) -> str:
    body = "\n\n".join(block for block in blocks if block)
    line = escape(one_line(title, 200), quote=False)
    return f"<details><summary>{line}</summary>\n\n{body}\n\n</details>"


def _part(block: Content, result: Entry | None) -> str:
    match block:
        case TextContent():
            return contained(block.text) if block.text.strip() else ""
        case ThinkingContent():
            return _folded("Thought", contained(block.thinking)) if block.thinking.strip() else ""
        case ToolCall():
            message = result.message if isinstance(result, MessageEntry) else None
            return _call(block, message if isinstance(message, ToolResultMessage) else None)
        case ImageContent():
            return _image(block)
        case UnknownContent():
            return _folded("A part of a kind that is not known here", _unknown_part(block))


def _call(call: ToolCall, result: ToolResultMessage | None) -> str:
    arguments = dict(call.arguments)
    blocks = []
    for key, language in (("command", "bash"), ("content", language_of(str(arguments.get("path", ""))))):
        if isinstance(value := arguments.get(key), str):
            blocks.append(fenced(value, language))
            del arguments[key]
    match result:
        case ToolResultMessage(details={"diff": str(diff)}):
            blocks.append(fenced(diff, "diff"))
            arguments.pop("edits", None)
    if call.invalid_arguments is not None:
        blocks.append(fenced(call.invalid_arguments))
    elif arguments and arguments.keys() != {"path"}:
        blocks.insert(0, fenced(pretty_json(arguments), "json"))
    language = language_of(str(arguments.get("path", ""))) if call.name == "read" else "text"
    blocks.append("No result was recorded." if result is None else _output(result.content, language))
    return _folded(call_title(call, result), *blocks)


def _output(content: Sequence[UserContent], language: str = "text") -> str:
    return _blocks_of(content, lambda text: fenced(plain(text), language)) or "It printed nothing."


def _content(content: str | Sequence[UserContent]) -> str:
    return contained(content) if isinstance(content, str) else _blocks_of(content, contained)


def _blocks_of(content: Sequence[UserContent], written: Callable[[str], str]) -> str:
    """Blocks of content, the text of each as `written`."""
    blocks = []
    for block in content:
        match block:
            case TextContent():
                blocks.append(written(block.text) if block.text.strip() else "")
            case ImageContent():
                blocks.append(_image(block))
            case _:
                blocks.append(_unknown_part(block))
    return "\n\n".join(filter(None, blocks))


def _unknown_part(block: UnknownContent) -> str:
    return fenced(pretty_json(block.to_json()), "json")


def _image(block: ImageContent) -> str:
    kind = block.detected_type or one_line(block.mime_type, 60)
    return f"*An image ({escaped(kind)}), which an export to HTML shows.*"


def _note(entry: Entry) -> str:
    match entry:
        case ContextEditEntry():
            what = "no longer sees" if entry.replacement is None else "sees other words for"
            return f"From here on the model {what} the entry {one_line(entry.target_id)}"
    return note_words(entry)
