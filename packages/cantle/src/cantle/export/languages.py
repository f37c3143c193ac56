"""What is told apart in source code, for each language: comments, strings, numbers, words.

Each language is one expression that is tried at each place of a text. None of its parts reads far and fails, or reads
a thing again from its middle (quantifiers are possessive, ends optional, beginnings bound), so the time is in step
with the text, whatever stands in it. General highlighters do not promise that: a file of blank lines keeps some of them for
minutes. What an expression does not know stays without a colour.
"""

from __future__ import annotations

import re
from functools import lru_cache

from msgspec import Struct

__all__ = ["LANGUAGES", "Language", "language", "language_of"]


class Language(Struct, frozen=True):
    """`pattern` has groups named as the classes of the style sheet, and `w` for words, which are told apart by lists.

    A number stands before the class: `_3c`.
    """

    pattern: re.Pattern[str]
    keywords: frozenset[str]
    constants: frozenset[str]
    calls: bool
    """A word before `(` is the name of a function."""


class _Row(Struct, frozen=True):
    """A language in the table: its parts in the order in which they are tried, its words."""

    parts: str
    keywords: str = ""
    calls: bool = True


def language(name: str) -> Language | None:
    """The language that is called so, by its name or by how its files' names end; None for one that is not known."""
    name = _OTHER_NAMES.get(name.lower(), name.lower())
    return _made(name) if name in _ROWS else None


def language_of(path: str) -> str:
    """The language of a file by its name; empty when it is not known."""
    name = path.replace("\\", "/").rpartition("/")[2].lower()
    name = _FILES.get(name) or name.rpartition(".")[2]
    name = _OTHER_NAMES.get(name, name)
    return name if name in _ROWS else ""


@lru_cache(maxsize=64)
def _made(name: str) -> Language:
    row = _ROWS[name]
    # Two parts may have one class; the number keeps the names of their groups apart.
    parts = (_PARTS[part].replace("(?P<", f"(?P<_{number}") for number, part in enumerate(row.parts.split()))
    pattern = "|".join(parts)
    return Language(re.compile(pattern, re.MULTILINE), frozenset(row.keywords.split()), _CONSTANTS, row.calls)


_PARTS = {
    "hash": r"(?P<c>#[^\n]*+)",
    "word-hash": r"(?P<c>(?<![^\s;(])#[^\n]*+)",
    "semicolon": r"(?P<c>^[ \t]{0,99}[;#][^\n]*+)",
    "slashes": r"(?P<c>//[^\n]*+|/\*(?:[^*]|\*(?!/))*+(?:\*/)?)",
    "stars": r"(?P<c>/\*(?:[^*]|\*(?!/))*+(?:\*/)?)",
    "dashes": r"(?P<c>--[^\n]*+)",
    "percent": r"(?P<c><!--(?:[^-]|-(?!->))*+(?:-->)?)",
    "triple": r"(?P<s>[rbfuRBFU]{0,2}(?:\"\"\"(?:[^\"\\]|\\[\s\S]|\"(?!\"\"))*+(?:\"\"\")?"
    r"|'''(?:[^'\\]|\\[\s\S]|'(?!''))*+(?:''')?|\"(?:[^\"\\\n]|\\.)*+\"?|'(?:[^'\\\n]|\\.)*+'?))",
    "strings": r"(?P<s>\"(?:[^\"\\\n]|\\.)*+\"?|'(?:[^'\\\n]|\\.)*+'?)",
    "double": r"(?P<s>\"(?:[^\"\\\n]|\\.)*+\"?)",
    "one-char": r"(?P<s>\"(?:[^\"\\]|\\[\s\S])*+\"?|'(?:[^'\\\n]|\\.)')",
    "ticks": r"(?P<s>`(?:[^`\\]|\\[\s\S])*+`?)",
    "shell": r"(?P<s>'[^']*+'?|\"(?:[^\"\\]|\\[\s\S])*+\"?)",
    "sql": r"(?P<s>'(?:[^']|'')*+'?)",
    "number": r"(?P<n>\b(?:0[xXbBoO][\da-fA-F_]++|\d[\d_]*+(?:\.\d++)?(?:[eE][+-]?\d++)?))",
    "word": r"(?P<w>[A-Za-z_][\w]*+)",
    "kebab": r"(?P<w>[A-Za-z_][\w-]*+)",
    "at": r"(?P<f>@[\w.]++)",
    "variable": r"(?P<v>\$(?:\w++|\{[^}\n]*+\}?|[#?@*!$-]))",
    "option": r"(?P<t>(?<=\s)--?[A-Za-z][\w-]*+)",
    "directive": r"(?P<k>^[ \t]{0,99}#[ \t]{0,99}[a-z]++)",
    "key": r"(?P<t>\"(?:[^\"\\\n]|\\.)*+\"(?=[ \t]{0,9}:))",
    "yaml-key": r"(?P<t>^[ \t-]{0,99}[\w./-]++(?=:(?:\s|$)))",
    "ini-key": r"(?P<t>^[ \t]{0,99}[\w.\"-]++(?=[ \t]{0,99}=))",
    "section": r"(?P<k>^\[[^\]\n]*+\]*+)",
    "property": r"(?P<t>(?<![\w-])[\w-]++(?=[ \t]{0,9}:))",
    "selector": r"(?P<f>[.#][A-Za-z_][\w-]*+)|(?P<k>@[\w-]++)",
    "tag": r"(?P<k></?[A-Za-z][\w:.-]*+|/?>)",
    "attribute": r"(?P<t>(?<![\w:.@-])[A-Za-z_:@][\w:.-]*+(?==))",
    "value": r"(?P<s>(?<==)(?:\"[^\"]*+\"?|'[^']*+'?))",
    "diff": r"(?P<gi>^\+[^\n]*+)|(?P<gd>^-[^\n]*+)|(?P<k>^@@[^\n]*+)|(?P<c>^(?:diff|index|\\)[^\n]*+)",
}
_C = "break case const continue default do else enum for goto if return static struct switch while "
_C_TYPES = "auto bool char double float int long short signed size_t unsigned void "
_OBJECTS = "abstract catch class extends final finally implements import interface new package private protected public super this throw throws try "
_JS = (
    _C
    + _OBJECTS
    + "as async await declare delete export from function get in instanceof keyof let namespace of readonly set type typeof var yield satisfies "
)
_ROWS = {
    "bash": _Row(
        "word-hash shell variable option number kebab",
        "case do done elif else esac export fi for function if in local return select then until while cd echo exit read set source unset",
        calls=False,
    ),
    "c": _Row("slashes directive strings number word", _C + _C_TYPES + "extern inline register sizeof typedef union volatile"),
    "c++": _Row(
        "slashes directive strings number word",
        _C + _C_TYPES + "catch class constexpr delete explicit friend inline mutable namespace new noexcept operator override "
        "private protected public sizeof template this throw try typedef typename using virtual",
    ),
    "c#": _Row(
        "slashes strings number word",
        _C + _C_TYPES + _OBJECTS + "as async await base decimal delegate foreach get in internal is lock namespace object out "
        "override params readonly record ref sealed set string using var virtual where yield",
    ),
    "css": _Row("stars strings selector property number kebab", calls=True),
    "diff": _Row("diff"),
    "docker": _Row(
        "hash shell variable option kebab",
        "ADD ARG AS CMD COPY ENTRYPOINT ENV EXPOSE FROM HEALTHCHECK LABEL RUN SHELL STOPSIGNAL USER VOLUME WORKDIR",
        calls=False,
    ),
    "go": _Row(
        "slashes ticks strings number word",
        "break case chan const continue default defer else fallthrough for func go goto if import interface map package range "
        "return select struct switch type var any bool byte error float64 int int64 rune string uint64",
    ),
    "html": _Row("percent tag attribute value"),
    "ini": _Row("semicolon section ini-key strings number", calls=False),
    "java": _Row(
        "slashes at triple number word", _C + _C_TYPES + _OBJECTS + "assert boolean byte instanceof native record sealed synchronized transient var volatile yield"
    ),
    "javascript": _Row("slashes ticks strings at number word", _JS),
    "json": _Row("slashes key double number word"),
    "kotlin": _Row(
        "slashes at triple number word",
        "as break by class companion constructor continue data do else enum for fun if import in init interface internal is lateinit "
        "object open operator override package private protected public return sealed super suspend this throw try typealias val var when while",
    ),
    "lua": _Row(
        "dashes strings number word", "and break do else elseif end for function goto if in local not or repeat return then until while"
    ),
    "make": _Row("hash variable strings kebab", "define else endef endif export ifdef ifeq ifndef ifneq include", calls=False),
    "php": _Row("slashes hash strings variable number word", _C + _OBJECTS + "as echo fn foreach function global match namespace print require trait use var yield"),
    "powershell": _Row("hash strings variable option number kebab", "catch else elseif exit for foreach function if in param process return switch throw try while", calls=False),
    "python": _Row(
        "hash triple at number word",
        "and as assert async await break case class continue def del elif else except finally for from global if import in is lambda match "
        "nonlocal not or pass raise return try while with yield",
    ),
    "ruby": _Row(
        "hash strings at number word",
        "alias and begin break case class def do else elsif end ensure for if in module next not or redo require rescue retry return self super "
        "then undef unless until when while yield",
    ),
    "rust": _Row(
        "slashes one-char number word",
        "as async await break const continue crate dyn else enum extern fn for if impl in let loop match mod move mut pub ref return self static "
        "struct super trait type unsafe use where while bool char f32 f64 i32 i64 str u8 u32 u64 usize",
    ),
    "sql": _Row(
        "dashes stars sql double number word",
        " ".join(
            f"{word} {word.lower()}"
            for word in "ADD ALL ALTER AND AS ASC BEGIN BETWEEN BY CASE COMMIT CREATE DELETE DESC DISTINCT DROP ELSE END EXISTS FROM GROUP HAVING IF IN "
            "INDEX INNER INSERT INTO IS JOIN KEY LEFT LIKE LIMIT NOT ON OR ORDER OUTER PRIMARY REFERENCES RIGHT SELECT SET TABLE THEN UNION UNIQUE "
            "UPDATE VALUES VIEW WHEN WHERE WITH".split()
        ),
    ),
    "swift": _Row(
        "slashes at triple number word",
        "actor as associatedtype async await break case catch class continue default defer do else enum extension fileprivate for func guard if "
        "import in init inout internal is let mutating override private protocol public return self static struct super switch throw throws try var where while",
    ),
    "toml": _Row("hash section ini-key triple number word", calls=False),
    "typescript": _Row("slashes ticks strings at number word", _JS + "any boolean never number string unknown void"),
    "xml": _Row("percent tag attribute value"),
    "yaml": _Row("word-hash yaml-key strings number word", calls=False),
}  # fmt: skip
LANGUAGES = tuple(_ROWS)
"""The names of all."""
_CONSTANTS = frozenset("true false null nil None True False undefined NULL NaN this self cls".split())
_OTHER_NAMES = {
    other: name
    for name, others in {
        "bash": "sh shell zsh console",
        "c": "h",
        "c#": "cs csharp",
        "c++": "cpp cc cxx hpp",
        "css": "scss less",
        "diff": "patch",
        "docker": "dockerfile",
        "go": "golang",
        "html": "htm vue svelte",
        "ini": "cfg conf properties",
        "javascript": "js jsx mjs cjs",
        "json": "jsonl json5 jsonc ipynb",
        "kotlin": "kt kts",
        "make": "makefile mk",
        "powershell": "ps1",
        "python": "py python3 pyi",
        "ruby": "rb",
        "rust": "rs",
        "typescript": "ts tsx mts cts",
        "xml": "svg xsd",
        "yaml": "yml",
    }.items()
    for other in others.split()
}
_FILES = {".bashrc": "bash", ".zshrc": "bash", ".gitconfig": "ini"}
