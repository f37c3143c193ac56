"""From the path that a model wrote to the file that it means.

Models put `@` before a path, as people do when they mention a file, and use `~`. macOS writes names that
look like others: a narrow no-break space before AM and PM, decomposed accents, curly quotes. Where a path
does not exist as written, a name that differs in nothing else is taken, if there is one such name only. Names that
hold what no line can show are shown as bash writes them, `$'new\\nline'`, and may be written like that.
"""

from __future__ import annotations

import os
import re
import stat
import unicodedata
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from cantle_agent.tool import ToolError
from cantle_ai.system_errors import reason_of

__all__ = ["existing_path", "kind_name", "literal_path", "unencodable"]

_LISTED = 20_000
"""Names of a folder that are looked at, at most."""
_SUGGESTED = 5_000
_LOOKALIKES = str.maketrans(
    {"\u202f": " ", "\u00a0": " ", "\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"'}
)
_QUOTED = re.compile(r"\$'((?:[^'\\]|\\.)*)'", re.DOTALL)
_ESCAPED = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_SIGNS = {"t": "\t", "n": "\n", "r": "\r", "e": "\x1b"}


def literal_path(cwd: Path, text: str) -> Path:
    """The path that `text` names, from `cwd`: `@` and `~` understood, nothing looked for.

    Raises :class:`ToolError` for what can't be a path.
    """
    if not text.strip():
        raise ToolError("path is empty; give the path of a file.")
    if "\0" in text:
        raise ToolError("path holds a NUL character, which no path may.")
    try:
        os.fsencode(text)
    except UnicodeEncodeError as problem:
        raise ToolError(f"path {unencodable(problem)}") from None
    if text.startswith("@") and not _first_exists(cwd, text) and len(text) > 1:
        text = text[1:]
    if text == "~" or text.startswith("~/"):
        text = str(Path(text).expanduser())
    return cwd / text


def unencodable(problem: UnicodeEncodeError) -> str:
    """What is wrong with a text that the system takes no bytes for, and what to do; without its subject."""
    character = problem.object[problem.start]
    if "\ud800" <= character <= "\udfff":
        return "holds half of a character (a lone surrogate), which has no bytes; write the whole character."
    return (
        f"holds {character!r}, which the locale of this system has no bytes for ({problem.encoding}). "
        "Start Cantle in a UTF-8 locale, such as LC_ALL=C.UTF-8."
    )


def existing_path(cwd: Path, text: str) -> Path:
    """The file that `text` means, under the name that it has. Raises :class:`ToolError` when there is none."""
    path = literal_path(cwd, text)
    try:
        if os.path.lexists(path):
            return path
        found = _lookalike(path) or _written_for_bash(cwd, text)
    except OSError as problem:
        raise ToolError(f"{text} can't be looked up: {reason_of(problem)}.") from None
    if found is None:
        raise ToolError(_no_such_file(path, text))
    return found


def kind_name(mode: int) -> str:
    """What a thing that is not a regular file is called."""
    if stat.S_ISDIR(mode):
        return "a directory"
    if stat.S_ISFIFO(mode):
        return "a named pipe"
    if stat.S_ISSOCK(mode):
        return "a socket"
    return "a device"


def _no_such_file(path: Path, text: str) -> str:
    """Says that there is no such file, where we looked, and which names come close."""
    folder = next((parent for parent in path.parents if parent.is_dir()), path.parent)
    lost = path.relative_to(folder).parts[0]
    near = _near(folder, lost)
    if lost == path.name:
        sentence = f"There is no file {text} (looked in {folder})."
    else:
        sentence = f"There is no file {text}: {folder} has no folder {lost}."
    return sentence + (f" Similar names there: {', '.join(near)}." if near else "")


def _first_exists(cwd: Path, text: str) -> bool:
    # `@scope/name` may be meant as it is: then its first part exists with the sign, or nothing does without.
    first = Path(text).parts[0]
    return os.path.lexists(cwd / first) or not os.path.lexists(
        cwd / (Path(text[1:] or ".").parts or ("",))[0]
    )


def _written_for_bash(cwd: Path, text: str) -> Path | None:
    meant = _QUOTED.sub(lambda quoted: _ESCAPED.sub(_character, quoted[1]), text)
    if meant == text or "\0" in meant:
        return None
    path = literal_path(cwd, meant)
    return path if os.path.lexists(path) else None


def _character(escaped: re.Match[str]) -> str:
    byte, code, sign = escaped.groups()
    if byte is not None:
        return os.fsdecode(bytes.fromhex(byte))
    return chr(int(code, 16)) if code is not None else _SIGNS.get(sign, sign)


def _lookalike(path: Path) -> Path | None:
    real = Path(path.anchor)
    for name in path.parts[1:]:
        if name == ".." or os.path.lexists(real / name):
            real = real / name
            continue
        key = _key(name)
        same = [entry for entry in _names(real, _LISTED) if _key(entry) == key]
        if len(same) != 1:
            return None
        real = real / same[0]
    return real


def _key(name: str) -> str:
    return unicodedata.normalize("NFC", name).translate(_LOOKALIKES)


def _names(folder: Path, limit: int) -> Iterator[str]:
    try:
        with os.scandir(folder) as entries:
            yield from (entry.name for entry in islice(entries, limit))
    except OSError:
        return


def _near(folder: Path, name: str) -> list[str]:
    from difflib import get_close_matches

    folded: dict[str, str] = {entry.lower(): entry for entry in _names(folder, _SUGGESTED)}
    return [folded[match] for match in get_close_matches(name.lower(), folded, n=3, cutoff=0.6)]
