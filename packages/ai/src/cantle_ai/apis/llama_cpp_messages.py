"""A conversation as a small local model is told it: system, user and assistant in turn, nothing else.

Chat templates that know tools are rare in small models, and each has a way of its own. So tools are named in
the system message, with the JSON that calls them; what the assistant says is that JSON too (the grammar in
`llama_cpp_grammar` lets it say nothing else), and results come from the user. Without tools all is plain text.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from cantle_ai.apis.llama_cpp_grammar import call_head
from cantle_ai.codec import JsonObject
from cantle_ai.content import TextContent, UserContent
from cantle_ai.context import Context, ToolDefinition
from cantle_ai.history import replayable
from cantle_ai.history_images import shown_blocks
from cantle_ai.messages import AssistantMessage, Message, ToolResultMessage, UserMessage

__all__ = ["chat_messages"]

_NO_OUTPUT = "(no output)"
_TOOLS = 'You can use these tools:\n{tools}\nWithout a tool: {{"answer": "<answer>"}}\n\nReply with one of these JSON objects.'
_LONGEST_DESCRIPTION = 120
_MOST_SHOWN = 8
"""Arguments of a tool that are shown; the grammar has them all."""


def chat_messages(context: Context, no_images: str) -> list[JsonObject]:
    """The messages of a request: at most one from the system, then user and assistant in turn.

    `no_images` stands for every image.
    """
    messages: list[JsonObject] = []
    parts = [context.system_prompt] if context.system_prompt.strip() else []
    if context.tools:
        parts.append(_TOOLS.format(tools="\n".join(map(_tool, context.tools))))
    if parts:
        messages.append({"role": "system", "content": "\n\n".join(parts)})
    for message in replayable(context.messages):
        role, text = _said(message, no_images, json_answers=bool(context.tools))
        if not text:
            continue
        last = messages[-1] if messages else {}
        if last.get("role") == role:
            last["content"] = f"{last['content']}\n\n{text}"
        else:
            messages.append({"role": role, "content": text})
    return messages


def _tool(tool: ToolDefinition) -> str:
    """`read: Read a file. {"tool": "read", "arguments": {"path": "<path>"}}`, with the arguments that it needs.

    A small model copies a `"..."`, and fills in a name in brackets.
    """
    properties, needed = tool.parameters.get("properties"), tool.parameters.get("required")
    names = needed if isinstance(needed, list) else properties if isinstance(properties, dict) else ()
    arguments = ", ".join(
        f"{json.dumps(name)}: {json.dumps(f'<{name}>')}" for name in list(names)[:_MOST_SHOWN]
    )
    return f"{tool.name}: {_short(tool.description)} {call_head(tool.name)}{{{arguments}}}}}"


def _short(description: str) -> str:
    """The first sentence: a small model loses the thread over long descriptions, and each token takes its time."""
    line = " ".join(description.split())
    end = line.find(". ")
    line = line if end < 0 else line[: end + 1]
    return line if len(line) <= _LONGEST_DESCRIPTION else f"{line[:_LONGEST_DESCRIPTION]}…"


def _said(message: Message, no_images: str, *, json_answers: bool) -> tuple[str, str]:
    """Who says it, and what."""
    match message:
        case UserMessage():
            content = message.content
            return "user", content if isinstance(content, str) else _text(content, no_images)
        case ToolResultMessage():
            head = "Error of" if message.is_error else "Result of"
            return "user", f"{head} {message.tool_name}:\n{_text(message.content, no_images) or _NO_OUTPUT}"
        case AssistantMessage():
            return "assistant", _answer(message, json_answers)


def _answer(message: AssistantMessage, json_answers: bool) -> str:
    lines = [
        f"{call_head(call.name)}{json.dumps(call.arguments, ensure_ascii=False)}}}"
        for call in message.tool_calls
    ]
    text = message.text
    if text.strip():
        lines.insert(0, json.dumps({"answer": text}, ensure_ascii=False) if json_answers else text)
    return "\n".join(lines)


def _text(blocks: Sequence[UserContent], no_images: str) -> str:
    shown = shown_blocks(blocks, no_images)
    return "\n".join(block.text for block in shown if isinstance(block, TextContent) and block.text.strip())
