"""The system prompt, assembled from what is active in this session.

    who and where                     or the text that replaces it
    <tools>     a line for each tool that brings one
    <rules>     the tools' own rules, then a few of ours
    <docs>      the three places of Cantle's documentation
    <context>   the context files, outermost first
    <cwd>

The same session always gets the same bytes: there is no date in it and nothing that changes between two
requests, so providers can cache it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from cantle.paths import Documentation
from cantle.prompt.context_files import ContextFile
from cantle.tools.bash.tool import GUIDELINES as BASH_GUIDELINES
from cantle_agent.tool import Tool

__all__ = ["PromptParts", "build_system_prompt"]

_ROLE = (
    "You are Cantle, a coding agent. You work on the user's files with the tools below: you look, you change, "
    "you check. Finish what was asked before you stop."
)

_RULES = (
    "Look at a file before you change it; do not guess what it holds.",
    "After a change, run what would show that it works, such as the project's tests.",
    "Name files by their paths. Keep answers short and concrete.",
)

_SEARCHING = frozenset(("grep", "find", "ls"))

_VARIABLES_RULE = (
    "Commands see CANTLE_SESSION_ID, CANTLE_SESSION_FILE, CANTLE_PROVIDER, CANTLE_MODEL and "
    "CANTLE_REASONING_LEVEL: which session this is, and which model answers."
)


class PromptParts(Struct, frozen=True, kw_only=True):
    """What a system prompt is made of."""

    cwd: Path
    tools: Sequence[Tool] = ()
    documentation: Documentation
    custom: str | None = None
    """Replaces all but the appended texts, the context files and the working directory."""
    appended: Sequence[str] = ()
    context_files: Sequence[ContextFile] = ()


def build_system_prompt(parts: PromptParts) -> str:
    """The prompt for `parts`. Pure: equal parts give equal text."""
    sections = [parts.custom] if parts.custom is not None else _own_sections(parts)
    sections += parts.appended
    if parts.context_files:
        sections.append(_context(parts.context_files))
    sections.append(f"<cwd>{parts.cwd.as_posix()}</cwd>")
    return "\n\n".join(section.strip() for section in sections if section.strip())


def _own_sections(parts: PromptParts) -> list[str]:
    sections = [_ROLE]
    if lines := [f"{tool.name}: {tool.prompt_snippet}" for tool in parts.tools if tool.prompt_snippet]:
        sections.append(_section("tools", lines))
    guidelines = [line for tool in parts.tools for line in tool.prompt_guidelines]
    if any(tool.name in _SEARCHING for tool in parts.tools):
        # Their own line says what is to be done with them; bash's says the contrary.
        guidelines = [line for line in guidelines if line not in BASH_GUIDELINES]
    if any(tool.name == "bash" for tool in parts.tools):
        guidelines.append(_VARIABLES_RULE)
    sections.append(_section("rules", list(dict.fromkeys((*guidelines, *_RULES)))))
    if any(tool.name in ("read", "bash") for tool in parts.tools):
        places = parts.documentation
        sections.append(
            "<docs>\n"
            "Only when the user asks about Cantle itself (its settings, models, sessions, SDK), read first:\n"
            f"- overview: {places.readme.as_posix()}\n"
            f"- manual: {places.docs.as_posix()}\n"
            f"- examples: {places.examples.as_posix()}\n"
            "</docs>"
        )
    return sections


def _section(name: str, lines: Sequence[str]) -> str:
    return "\n".join((f"<{name}>", *(f"- {line}" for line in lines), f"</{name}>"))


def _context(files: Sequence[ContextFile]) -> str:
    parts = [f'<file path="{file.path.as_posix()}">\n{file.text.strip()}\n</file>' for file in files]
    return "\n".join(("<context>", "Instructions of the user and the project:", *parts, "</context>"))
