"""Which paths ignore files rule out, as git and ripgrep do.

Four kinds of file count, the stronger first: `.rgignore`, `.ignore`, `.gitignore`, and `info/exclude` of a
repository. Within a kind the innermost folder's file that says anything about a path decides, and in a file
the last line that does. `.gitignore` reaches no further down than the next repository, and no further up than
its own. What a user has configured for git on this machine (`core.excludesFile`) does not count: the same
folder gives the same answers everywhere.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from msgspec import Struct

from cantle.tools.search.globs import END, GlobError, glob_source, has_wildcards
from cantle.tools.search.raw_files import joined, read_head

__all__ = ["IgnoreFile", "Rules", "parse_ignore_file", "rules_above", "rules_below"]

_MAX_BYTES = 1 << 20
"""Of an ignore file; what is beyond is not read."""
_MAX_REFERENCE = 4_096
_NAMES = (b".rgignore", b".ignore", b".gitignore")
_GIT = 2
_EXCLUDE = 3
_END = END.encode()


class _Lines:
    """Lines of an ignore file that need an expression: one for all, in which the last line has the first word."""

    __slots__ = ("_pattern", "_sources")

    def __init__(self) -> None:
        self._sources: list[tuple[int, str]] = []
        self._pattern: re.Pattern[bytes] | None = None

    def add(self, number: int, source: str) -> None:
        self._sources.append((number, source))

    def last(self, path: bytes) -> int:
        """The number of the last line that takes the path, -1 for none."""
        if not self._sources:
            return -1
        if self._pattern is None:
            source = "|".join(f"({source})" for _, source in reversed(self._sources))
            self._pattern = re.compile(source.encode("iso-8859-1"), re.DOTALL)
        found = self._pattern.fullmatch(path)
        return -1 if found is None or found.lastindex is None else self._sources[-found.lastindex][0]


class _Literals:
    """Lines that are looked up: for folders alone, and for whatever has the name."""

    __slots__ = ("_any", "_folders")

    def __init__(self) -> None:
        self._any: dict[bytes, int] = {}
        self._folders: dict[bytes, int] = {}

    def add(self, number: int, name: bytes, *, folders: bool) -> None:
        (self._folders if folders else self._any)[name] = number

    def last(self, name: bytes, is_folder: bool) -> int:
        found = self._any.get(name, -1)
        return max(found, self._folders.get(name, -1)) if is_folder else found


class IgnoreFile:
    """The rules of one file. A file of thousands of lines costs hardly more to ask than one of ten."""

    __slots__ = (
        "_below",
        "_endings",
        "_lengths",
        "_names",
        "_negated",
        "_other_names",
        "_other_paths",
        "_paths",
    )

    def __init__(self, lines: Iterable[str]) -> None:
        self._negated: list[bool] = []
        self._names = _Literals()
        self._endings = _Literals()
        """Of lines such as `*.log`."""
        self._lengths: set[int] = set()
        self._other_names = _Lines()
        self._paths = _Literals()
        self._below: dict[bytes, _Lines] = {}
        """Of lines such as `/src/*.log`, by their first folder."""
        self._other_paths = _Lines()
        for line in lines:
            self._add(line)

    def __bool__(self) -> bool:
        return bool(self._negated)

    def verdict(self, path: bytes) -> bool | None:
        """Whether the path is ignored; None when no line speaks of it. `path` counts from the file's folder, and
        ends with NUL where it is a folder.
        """
        is_folder = path.endswith(_END)
        bare = path[:-1] if is_folder else path
        folder, _, name = bare.rpartition(b"/")
        last = max(
            self._names.last(name, is_folder),
            self._paths.last(bare, is_folder),
            self._other_names.last(name + path[len(bare) :]),
            self._other_paths.last(path),
        )
        for length in self._lengths:
            last = max(last, self._endings.last(name[-length:], is_folder))
        if folder and (below := self._below.get(folder.partition(b"/")[0])) is not None:
            last = max(last, below.last(path))
        return None if last < 0 else not self._negated[last]

    def _add(self, line: str) -> None:
        if line.startswith("#"):
            return
        line = _without_trailing_spaces(line)
        negated = line.startswith("!")
        line = line[negated:]
        folders = line.endswith("/")
        line = line.removesuffix("/")
        anchored = "/" in line
        line = line.removeprefix("/")
        if not line:
            return
        try:
            source = f"{glob_source(line)}{END}{'' if folders else '?'}"
        except GlobError:
            return
        number = len(self._negated)
        self._negated.append(negated)
        if anchored:
            self._add_path(number, line, source, folders=folders)
        elif not has_wildcards(line):
            self._names.add(number, line.encode("iso-8859-1"), folders=folders)
        elif line.startswith("*") and len(line) > 1 and not has_wildcards(line[1:]):
            self._endings.add(number, line[1:].encode("iso-8859-1"), folders=folders)
            self._lengths.add(len(line) - 1)
        else:
            self._other_names.add(number, source)

    def _add_path(self, number: int, line: str, source: str, *, folders: bool) -> None:
        first, _, rest = line.partition("/")
        if not has_wildcards(line):
            self._paths.add(number, line.encode("iso-8859-1"), folders=folders)
        elif rest and not has_wildcards(first):
            self._below.setdefault(first.encode("iso-8859-1"), _Lines()).add(number, source)
        else:
            self._other_paths.add(number, source)


@lru_cache(maxsize=256)
def parse_ignore_file(data: bytes) -> IgnoreFile | None:
    """The rules in an ignore file with these bytes; None when there are none. A line that means nothing is no rule."""
    # ISO-8859-1 makes every byte a character, which is how git matches.
    text = data.removeprefix(b"\xef\xbb\xbf").decode("iso-8859-1")
    return IgnoreFile(line.removesuffix("\r") for line in text.split("\n")) or None


def _without_trailing_spaces(line: str) -> str:
    end = len(line)
    while end and line[end - 1] == " ":
        end -= 1
    # A space behind an odd number of backslashes is escaped.
    slashes = end - len(line[:end].rstrip("\\"))
    return line[: end + 1] if slashes % 2 and end < len(line) else line[:end]


class _Source(Struct, frozen=True):
    """One file's rules, seen from the folder whose entries are matched."""

    kind: int
    rules: IgnoreFile
    prefix: bytes
    """The path of that folder from the file's, with a slash at its end; empty for the same folder."""


class Rules(Struct, frozen=True):
    """What holds for the entries of one folder, the strongest first."""

    sources: tuple[_Source, ...] = ()

    def ignores(self, name: bytes, is_folder: bool) -> bool:
        """Whether the entry of that name is ruled out."""
        if is_folder:
            name += _END
        for source in self.sources:
            verdict = source.rules.verdict(source.prefix + name)
            if verdict is not None:
                return verdict
        return False

    def inside(self, name: bytes) -> Rules:
        """The same rules, for the entries of that subfolder."""
        if not self.sources:
            return self
        return Rules(
            tuple(
                _Source(source.kind, source.rules, b"%b%b/" % (source.prefix, name))
                for source in self.sources
            )
        )

    def joined(self, own: list[_Source], *, is_repository: bool) -> Rules:
        """These rules and those of a folder's own files; of a repository's top, those of git above it end there."""
        kept = self.sources
        if is_repository:
            kept = tuple(source for source in kept if source.kind < _GIT)
        if not own:
            return Rules(kept) if is_repository else self
        return Rules(tuple(sorted((*own, *kept), key=lambda source: source.kind)))


def rules_below(rules: Rules, folder: bytes, names: set[bytes] | None = None) -> Rules:
    """The rules for the entries of `folder`: `rules`, which come from above, and the files that it holds.

    `names` are those of its entries, where they are known.
    """
    is_repository = (b".git" in names or b".jj" in names) if names is not None else _is_repository(folder)
    own: list[_Source] = []
    for kind, name in enumerate(_NAMES):
        if (names is None or name in names) and (found := _read(joined(folder, name))) is not None:
            own.append(_Source(kind, found, b""))
    if is_repository and (exclude := _exclude(joined(folder, b".git"))) is not None:
        own.append(_Source(_EXCLUDE, exclude, b""))
    return rules.joined(own, is_repository=is_repository) if own or is_repository else rules


def rules_above(folder: bytes) -> Rules:
    """The rules that folders above `folder`, a real path with slashes, have for it: those of its repository.

    None where it is in no repository, where it is the top of one, and where they rule out the folder itself:
    who searches there wants to see what is there.
    """
    top = folder
    while not _is_repository(top):
        parent = top.rpartition(b"/")[0] or b"/"
        if parent == top:
            return Rules()
        top = parent
    rules = Rules()
    place = top
    for name in filter(None, folder[len(top) :].split(b"/")):
        rules = rules_below(rules, place)
        if rules.ignores(name, is_folder=True):
            return Rules()
        rules, place = rules.inside(name), joined(place, name)
    return rules


def _is_repository(folder: bytes) -> bool:
    return any(os.path.lexists(joined(folder, name)) for name in (b".git", b".jj"))


def _read(path: bytes) -> IgnoreFile | None:
    try:
        return parse_ignore_file(read_head(path, _MAX_BYTES))
    except OSError:
        return None


def _exclude(git: bytes) -> IgnoreFile | None:
    """The rules in `info/exclude` of the repository that `.git` is, or refers to: a work tree has a file there."""
    common = git
    # What can't be read refers to nothing: a folder, a submodule without `commondir`, a path with a NUL.
    with suppress(OSError, ValueError):
        reference = read_head(git, _MAX_REFERENCE)
        if reference.startswith(b"gitdir:"):
            common = _resolved(git.rpartition(b"/")[0], reference.removeprefix(b"gitdir:"))
            common = _resolved(common, read_head(joined(common, b"commondir"), _MAX_REFERENCE))
    return _read(joined(common, b"info", b"exclude"))


def _resolved(folder: bytes, reference: bytes) -> bytes:
    reference = reference.strip().replace(os.sep.encode(), b"/")
    absolute = Path(os.fsdecode(reference)).is_absolute()
    return reference if absolute else joined(folder, reference)
