"""Source code with its parts coloured: keywords, strings, comments, names, numbers.

A language is one of a list, never guessed from what a text says: some readers of Pygments take very long over
text that was made for that. For the same reason only texts of a moderate length are read at all; a longer one is
shown as it is.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from cantle.export.markup import EMPTY, Html, joined, tag, text

if TYPE_CHECKING:
    from pygments.lexer import Lexer

__all__ = ["code_block", "highlighted", "highlighted_lines", "language_of"]

_LONGEST = 40_000
"""Characters that are coloured."""
_LONGEST_LINE = 2_000


def code_block(source: str, language: str = "", *, class_: str = "code") -> Html:
    """A block of code; no lines, no colours and no limit beyond those."""
    return tag("pre", tag("code", highlighted(source, language)), class_=class_, tabindex="0")


def highlighted(source: str, language: str) -> Html:
    """`source` in spans, or as it is where the language is not known."""
    if not _is_readable(source, language):
        return text(source)
    return joined(_span(kind, value) for kind, value in _tokens(source, language))


def highlighted_lines(lines: list[str], language: str) -> list[Html]:
    """Each of these lines, which are read as one text. None of them may contain a line end."""
    source = "\n".join(lines)
    if not _is_readable(source, language):
        return [text(line) for line in lines]
    found: list[list[Html]] = [[]]
    for kind, value in _tokens(source, language):
        pieces = value.split("\n")
        found[-1].append(_span(kind, pieces[0]))
        for piece in pieces[1:]:
            found.append([_span(kind, piece)])
    return [joined(parts) for parts in found[: len(lines)]] + [EMPTY] * (len(lines) - len(found))


def language_of(path: str) -> str:
    """The language of a file by its name; empty when it is not known."""
    name = path.replace("\\", "/").rpartition("/")[2].lower()
    return _NAMES.get(name) or _LANGUAGES.get(name.rpartition(".")[2], "")


def _is_readable(source: str, language: str) -> bool:
    if language.lower() not in _LANGUAGES or len(source) > _LONGEST:
        return False
    return all(len(line) <= _LONGEST_LINE for line in source.split("\n"))


def _tokens(source: str, language: str) -> list[tuple[str, str]]:
    """The pieces of `source` with the class of each; neighbours of one class are one piece."""
    found: list[tuple[str, str]] = []
    for token, value in _lexer(_LANGUAGES[language.lower()]).get_tokens(source):
        kind = _class_of(tuple(token))
        if found and found[-1][0] == kind:
            found[-1] = (kind, found[-1][1] + value)
        else:
            found.append((kind, value))
    return found


def _span(kind: str, value: str) -> Html:
    shown = text(value)
    return tag("span", shown, class_=kind) if kind and value else shown


@lru_cache(maxsize=64)
def _lexer(name: str) -> Lexer:
    from pygments.lexers import get_lexer_by_name

    lexer: Lexer = get_lexer_by_name(name, stripnl=False, ensurenl=False)
    return lexer


@lru_cache(maxsize=512)
def _class_of(token: tuple[str, ...]) -> str:
    """The class of a kind of token, the most special one that has one; empty where there is none."""
    for length in range(len(token), 0, -1):
        if (kind := _CLASSES.get(".".join(token[:length]))) is not None:
            return kind
    return ""


_CLASSES = {
    "Comment": "c",
    "Comment.Preproc": "k",
    "Keyword": "k",
    "Keyword.Type": "t",
    "Keyword.Constant": "n",
    "Operator.Word": "k",
    "Literal.String": "s",
    "Literal.String.Escape": "n",
    "Literal.String.Interpol": "n",
    "Literal.Number": "n",
    "Literal.Date": "n",
    "Name.Attribute": "t",
    "Name.Builtin": "t",
    "Name.Class": "f",
    "Name.Constant": "n",
    "Name.Decorator": "f",
    "Name.Exception": "t",
    "Name.Function": "f",
    "Name.Tag": "k",
    "Name.Variable": "v",
    "Generic.Deleted": "gd",
    "Generic.Inserted": "gi",
    "Generic.Heading": "c",
    "Generic.Subheading": "c",
}
_LANGUAGES = {
    name: lexer
    for lexer, names in {
        "bash": "bash sh shell zsh console",
        "c": "c h",
        "c#": "cs csharp",
        "c++": "cpp cc cxx hpp c++",
        "css": "css",
        "diff": "diff patch",
        "docker": "dockerfile docker",
        "go": "go golang",
        "html": "html htm",
        "ini": "ini cfg conf",
        "java": "java",
        "javascript": "js javascript jsx mjs cjs",
        "json": "json jsonl json5 jsonc",
        "kotlin": "kt kotlin",
        "lua": "lua",
        "make": "make makefile mk",
        "php": "php",
        "powershell": "ps1 powershell",
        "python": "py python python3 pyi",
        "ruby": "rb ruby",
        "rust": "rs rust",
        "scss": "scss",
        "sql": "sql",
        "swift": "swift",
        "toml": "toml",
        "typescript": "ts typescript tsx mts cts",
        "xml": "xml svg xsd",
        "yaml": "yaml yml",
    }.items()
    for name in names.split()
}
_NAMES = {"dockerfile": "docker", "makefile": "make", ".bashrc": "bash", ".zshrc": "bash"}
