"""Globs as regular expressions: those of ignore files, byte for byte as git reads them, and those of a model.

    *       any characters but /              ?       one character but /
    **/     at the beginning: any folders     /**     at the end: everything inside
    /**/    any folders between, or none      **      elsewhere: as *
    [a-z]   one of these, [!a-z] and [^a-z] none of them, [[:alpha:]] too; never /
    {a,b}   one of these; not in ignore files
    \\x      x itself

A model's glob without a slash matches names at any depth, one with a slash the path from the search folder.
"""

from __future__ import annotations

import os
import re
from itertools import pairwise

from msgspec import Struct

from cantle_agent.tool import ToolError

__all__ = ["END", "GlobError", "PathFilter", "glob_source", "has_wildcards", "path_filter", "path_glob"]


class GlobError(ValueError):
    """A glob that means nothing; the text says why."""


END = "\0"
"""What a path of a folder ends with while it is matched: no name holds it, and no wildcard takes it."""

_STAR = f"[^/{END}]*"
_FOLDERS = "(?:.*/)?"
_MOST_ALTERNATIVES = 100

_POSIX = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "blank": " \\t",
    "cntrl": "\\x00-\\x1f\\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": "!-/:-@\\[-`{-~",
    "space": " \\t-\\r",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}


def has_wildcards(glob: str) -> bool:
    """Whether a glob may mean anything but itself."""
    return re.search(r"[*?\[\\]", glob) is not None


def glob_source(glob: str) -> str:
    """The source of a regular expression for a whole path, or a whole name where the glob has no slash. Braces are signs
    as others. Raises :class:`GlobError`.
    """
    tokens: list[str] = []
    position = 0
    while position < len(glob):
        character = glob[position]
        if character == "*":
            source, position = _stars(glob, position)
        elif character == "[":
            source, position = _class(glob, position)
        elif character == "\\":
            if position + 1 == len(glob):
                raise GlobError("it ends with a backslash, which has nothing to escape")
            source, position = re.escape(glob[position + 1]), position + 2
        else:
            source, position = f"[^/{END}]" if character == "?" else re.escape(character), position + 1
        tokens.append(source)
    return _without_backtracking(tokens)


def _alternatives(glob: str) -> list[str]:
    """The globs without braces that one with braces stands for."""
    bounds: list[int] = []
    """Of the first alternatives: the places of their {, commas and }."""
    position = depth = 0
    while position < len(glob):
        character = glob[position]
        if character == "[":
            position = _class(glob, position)[1]
            continue
        depth += (character == "{") - (character == "}" and depth > 0)
        if (character == "{" and depth == 1) or (character == "," and depth == 1) or (bounds and not depth):
            bounds.append(position)
        if bounds and not depth:
            break
        position += 2 if character == "\\" else 1
    if depth:
        raise GlobError("its { is not closed by }")
    if not bounds:
        return [glob]
    too_many = GlobError(f"its braces stand for more than {_MOST_ALTERNATIVES} globs")
    if glob.count("{") > _MOST_ALTERNATIVES:
        raise too_many
    found: list[str] = []
    for before, after in pairwise(bounds):
        rest = glob[before + 1 : after] + glob[bounds[-1] + 1 :]
        found += [glob[: bounds[0]] + each for each in _alternatives(rest)]
        if len(found) > _MOST_ALTERNATIVES:
            raise too_many
    return found


def _without_backtracking(tokens: list[str]) -> str:
    """The tokens as one expression whose work grows with the length of a path, and no faster.

    What stands between two stars may be taken at the first place where it matches: whatever a later place would
    leave to the second star, the first leaves as well.
    """
    first, *others = [_in_folders(part) for part in _parted(tokens, _FOLDERS)]
    return first + _taken_first(others, _FOLDERS, f"(?:[^{END}]*?/)??")


def _in_folders(tokens: list[str]) -> str:
    """The same for tokens without `**/`."""
    first, *others = ["".join(part) for part in _parted(tokens, _STAR)]
    return first + _taken_first(others, _STAR, f"[^/{END}]*?")


def _taken_first(parts: list[str], star: str, lazy: str) -> str:
    """Parts that each stand behind a star: all but the last one at the first place where they match."""
    return "".join(f"(?>{lazy}{part})" for part in parts[:-1]) + "".join(star + part for part in parts[-1:])


def _parted(tokens: list[str], sign: str) -> list[list[str]]:
    parts: list[list[str]] = [[]]
    for token in tokens:
        if token == sign:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def path_glob(glob: str) -> re.Pattern[str]:
    """A model's glob, as an expression for whole paths; a folder's ends with `END`. Raises :class:`GlobError`."""
    folders = glob.endswith("/") and not glob.endswith("\\/")
    glob = glob.rstrip("/") if folders else glob
    anywhere = "" if "/" in glob else _FOLDERS
    while glob.startswith("./"):
        glob = glob[2:].lstrip("/")
    source = "|".join(map(glob_source, _alternatives(glob.removeprefix("/"))))
    return re.compile(f"{anywhere}(?:{source}){END}{'' if folders else '?'}", re.DOTALL)


class PathFilter(Struct, frozen=True):
    """Which paths a model's glob chooses; with `!` before it, all others."""

    expression: re.Pattern[str]
    excludes: bool

    def takes(self, path: bytes) -> bool:
        """Whether it chooses the path, which counts from the search folder; a folder's ends with `END`."""
        return (self.expression.fullmatch(os.fsdecode(path)) is None) is self.excludes


def path_filter(text: str, root: str) -> PathFilter:
    """The paths below the folder `root` that the glob `text` means. Raises :class:`ToolError`."""
    excludes = text.startswith("!")
    glob = text.removeprefix("!")
    if os.sep == "\\":
        glob, root = glob.replace("\\", "/"), root.replace("\\", "/")
    # A path from the root of the system is one from the search folder, if it is in there.
    root = root.rstrip("/")
    if glob.startswith(f"{root}/"):
        glob = glob[len(root) :]
    try:
        return PathFilter(path_glob(glob or "*"), excludes)
    except GlobError as problem:
        raise ToolError(f"The glob {text} can't be used: {problem}.") from None


def _stars(glob: str, start: int) -> tuple[str, int]:
    end = start
    while glob.startswith("*", end):
        end += 1
    if end - start > 1 and (start == 0 or glob[start - 1] == "/"):
        if end == len(glob):
            return f"[^{END}]+", end
        if glob[end] == "/":
            return _FOLDERS, end + 1
        if glob.startswith("\\/", end):
            return _FOLDERS, end + 2
    return _STAR, end


def _class(glob: str, start: int) -> tuple[str, int]:
    position = start + 1
    negated = glob[position : position + 1] in ("!", "^")
    position += negated
    items: list[str] = []
    first = True
    while first or not glob.startswith("]", position):
        first = False
        if (
            glob.startswith("[:", position)
            and (end := glob.find("]", position + 2)) > 0
            and glob[end - 1] == ":"
        ):
            name = glob[position + 2 : end - 1]
            if name not in _POSIX:
                raise GlobError(f"there is no character class [:{name}:]")
            items.append(_POSIX[name])
            position = end + 1
            continue
        low, position = _member(glob, position)
        high = low
        if glob.startswith("-", position) and not glob.startswith("]", position + 1):
            high, position = _member(glob, position + 1)
        if low <= high:
            items.append(f"{_in_class(low)}-{_in_class(high)}")
    position += 1
    if not items:
        return (f"[^/{END}]" if negated else "(?!)"), position
    # In front of the class, for a range may hold what must not match.
    return f"(?![/{END}])[{'^' if negated else ''}{''.join(items)}]", position


def _member(glob: str, position: int) -> tuple[str, int]:
    if glob.startswith("\\", position):
        position += 1
    if position >= len(glob):
        raise GlobError("its [ is not closed by ]")
    return glob[position], position + 1


def _in_class(character: str) -> str:
    return f"\\{character}" if character in "\\]^-[&~|" else character
