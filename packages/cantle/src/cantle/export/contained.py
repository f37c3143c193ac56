"""Markdown of a session inside a Markdown page: it can neither open what it does not close, nor bring HTML.

Code stays as it is. Outside of it `<` of a tag becomes `&lt;`, headings go down two levels, and a block of code
that was left open is closed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

from cantle.export.markup import clean

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

__all__ = ["contained", "escaped", "fenced", "quoted"]

_LONGEST = 200_000
"""Characters that are read as Markdown; a longer text stands in a block of code."""
_LONGEST_LINE = 5_000
"""Characters of a line in which code is told from text."""
_TICKS = re.compile(r"`+")
_SPAN = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)")
_TAG = re.compile(r"<(?!https?://|mailto:)(?=[A-Za-z/!?])")
_SIGNS = re.compile(r"[\\`*_\[\]<>&~|#]")


def contained(source: str) -> str:
    """`source`, safe to stand between other blocks."""
    source = clean(source).replace("\r\n", "\n").replace("\r", "\n").strip("\n")
    if len(source) > _LONGEST:
        return fenced(source)
    for without_tags in (_outside_code, _everywhere):
        shown = _mended(source, without_tags)
        if not _has_html(shown):
            return shown
    return fenced(source)


def _mended(source: str, without_tags: Callable[[str], str]) -> str:
    """`source` with its tags taken by `without_tags`, its headings lower, and its last block of code closed."""
    lines = source.split("\n")
    tokens = _parser(html=False).parse(source)
    code: set[int] = set()
    headings: list[Token] = []
    for token in tokens:
        if token.map and token.type in {"fence", "code_block"}:
            code.update(range(*token.map))
        elif token.map and token.type == "heading_open":
            headings.append(token)
    shown = [line if number in code else without_tags(line) for number, line in enumerate(lines)]
    for heading in headings:
        _lower(heading, shown)
    if tokens and (end := _missing_end(tokens[-1], lines)):
        shown.append(end)
    return "\n".join(shown)


def _lower(heading: Token, lines: list[str]) -> None:
    """Let a heading be two levels further down; one within a quotation or a list may stay when it is underlined."""
    first, end = heading.map or (0, 0)
    deeper = "#" * min(int(heading.tag[1:]) + 2, 6)
    if heading.markup.startswith("#"):
        lines[first] = lines[first].replace(heading.markup, deeper, 1)
    elif heading.level == 0:
        words = " ".join(line.strip() for line in lines[first : end - 1])
        lines[first:end] = [f"{deeper} {words}", *[""] * (end - 1 - first)]


def _has_html(source: str) -> bool:
    """Whether a reader would find a tag: code can span lines and end where a line alone does not tell."""
    if "<" not in source:
        return False
    return any(
        token.type == "html_block" or any(child.type == "html_inline" for child in token.children or ())
        for token in _parser(html=True).parse(source)
    )


def escaped(words: str) -> str:
    """Words of a session on one line, none of them Markdown."""
    return _SIGNS.sub(r"\\\g<0>", clean(words))


def fenced(source: str, language: str = "") -> str:
    """A block of code that `source` cannot end."""
    source = clean(source).replace("\r\n", "\n").replace("\r", "\n").rstrip("\n")
    longest = max((len(ticks) for ticks in _TICKS.findall(source)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{source}\n{fence}"


def quoted(block: str) -> str:
    """A block with the mark of a quotation before each line."""
    return "\n".join(f"> {line}" if line else ">" for line in block.split("\n"))


def _everywhere(line: str) -> str:
    return _TAG.sub("&lt;", line)


def _outside_code(line: str) -> str:
    if "<" not in line or "`" not in line or len(line) > _LONGEST_LINE:
        return _everywhere(line)
    parts: list[str] = []
    done = 0
    for span in _SPAN.finditer(line):
        parts += (_everywhere(line[done : span.start()]), span[0])
        done = span.end()
    parts.append(_everywhere(line[done:]))
    return "".join(parts)


def _missing_end(last: Token, lines: list[str]) -> str:
    """What closes the block of code at the end; empty where it is closed, or closed by what it lies in."""
    if last.type != "fence" or last.level or last.map is None:
        return ""
    closed = last.map[1] - last.map[0] > 1 and re.fullmatch(
        rf" {{0,3}}{re.escape(last.markup[0])}{{{len(last.markup)},}}[ \t]*", lines[last.map[1] - 1]
    )
    return "" if closed else last.markup


@lru_cache(maxsize=2)
def _parser(*, html: bool) -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": html}).enable("table")
