"""Source code with its parts coloured: keywords, strings, comments, names, numbers."""

from __future__ import annotations

from collections.abc import Iterator

from cantle.export.languages import Language, language
from cantle.export.markup import EMPTY, Html, joined, tag, text

__all__ = ["code_block", "highlighted", "highlighted_lines"]

_LONGEST = 200_000
"""Characters that are coloured: a page with more spans than that in one place is slow to read."""


def code_block(source: str, language_name: str = "", *, class_: str = "code") -> Html:
    """A block of code; without colours where the language is not known."""
    return tag("pre", tag("code", highlighted(source, language_name)), class_=class_, tabindex="0")


def highlighted(source: str, language_name: str) -> Html:
    """`source` in spans."""
    return joined(_span(kind, value) for kind, value in _pieces(source, language_name))


def highlighted_lines(lines: list[str], language_name: str) -> list[Html]:
    """Each of these lines, which are read as one text. None of them may contain a line end."""
    found: list[list[Html]] = [[]]
    for kind, value in _pieces("\n".join(lines), language_name):
        first, *others = value.split("\n")
        found[-1].append(_span(kind, first))
        found += ([_span(kind, piece)] for piece in others)
    return [joined(parts) for parts in found] if lines else []


def _pieces(source: str, name: str) -> Iterator[tuple[str, str]]:
    """`source` in pieces, each with its class; empty for what has no colour."""
    found = language(name) if len(source) <= _LONGEST else None
    if found is None:
        yield "", source
        return
    done = 0
    for match in found.pattern.finditer(source):
        kind = (match.lastgroup or "").lstrip("_0123456789")
        if kind == "w":
            kind = _word_kind(found, source, match[0], match.end())
        if kind:
            yield "", source[done : match.start()]
            yield kind, match[0]
            done = match.end()
    yield "", source[done:]


def _word_kind(found: Language, source: str, word: str, end: int) -> str:
    if word in found.keywords:
        return "k"
    if word in found.constants:
        return "n"
    if found.calls and source.startswith("(", end):
        return "f"
    return "t" if word[:1].isupper() and found.calls else ""


def _span(kind: str, value: str) -> Html:
    if not value:
        return EMPTY
    shown = text(value)
    return tag("span", shown, class_=kind) if kind else shown
