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

import re

__all__ = ["GlobError", "glob_source", "has_wildcards", "path_glob"]


class GlobError(ValueError):
    """A glob that means nothing; the text says why."""


END = "\0"
"""What a path of a folder ends with while it is matched: no name holds it, and no wildcard takes it."""

_STAR = f"[^/{END}]*"
_FOLDERS = "(?:.*/)?"
_MOST_STARS = 8

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
    return re.search(r"[*?\[\\]", glob) is not None


def glob_source(glob: str, *, braces: bool) -> str:
    """The source of a regular expression for a whole path, or a whole name where the glob has no slash.

    Raises :class:`GlobError`.
    """
    tokens: list[str] = []
    position, depth = 0, 0
    in_braces = False
    while position < len(glob):
        character = glob[position]
        if character == "*":
            source, position = _stars(glob, position, "{,}" if depth else "")
        elif character == "[":
            source, position = _class(glob, position)
        elif character == "\\":
            if position + 1 == len(glob):
                raise GlobError("it ends with a backslash, which has nothing to escape")
            source, position = re.escape(glob[position + 1]), position + 2
        else:
            source, position = re.escape(character), position + 1
            if character == "?":
                source = f"[^/{END}]"
            elif braces and character in "{,}":
                source, depth = _brace(character, depth)
                in_braces = in_braces or character == "{"
        tokens.append(source)
    if depth:
        raise GlobError("its { is not closed by }")
    if not in_braces:
        return _without_backtracking(tokens)
    if sum(token in (_STAR, _FOLDERS) for token in tokens) > _MOST_STARS:
        raise GlobError(f"it has braces and more than {_MOST_STARS} stars")
    return "".join(tokens)


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


def path_glob(glob: str) -> tuple[re.Pattern[str], bool]:
    """A model's glob, as an expression for whole paths (with `END` behind those of folders), and whether it means
    folders only. Raises :class:`GlobError`.
    """
    folders = glob.endswith("/") and not glob.endswith("\\/")
    glob = glob.rstrip("/") if folders else glob
    anywhere = "" if "/" in glob else "(?:.*/)?"
    while glob.startswith("./"):
        glob = glob[2:].lstrip("/")
    source = glob_source(glob.removeprefix("/"), braces=True)
    return re.compile(f"{anywhere}{source}{END}{'' if folders else '?'}", re.DOTALL), folders


def _stars(glob: str, start: int, edges: str) -> tuple[str, int]:
    """Stars from `start` on. `edges` are the signs that part alternatives: a path begins and ends there, too."""
    end = start
    while glob.startswith("*", end):
        end += 1
    opens = start == 0 or glob[start - 1] == "/" or glob[start - 1] in edges
    if end - start > 1 and opens:
        if end == len(glob) or glob[end] in edges:
            return f"[^{END}]+", end
        if glob[end] == "/":
            return _FOLDERS, end + 1
        if glob.startswith("\\/", end):
            return _FOLDERS, end + 2
    return _STAR, end


def _brace(character: str, depth: int) -> tuple[str, int]:
    if character == "{":
        return "(?:", depth + 1
    if not depth:
        return re.escape(character), depth
    return ("|", depth) if character == "," else (")", depth - 1)


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
