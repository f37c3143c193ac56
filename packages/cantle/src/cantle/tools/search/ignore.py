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
from functools import lru_cache
from pathlib import Path

from msgspec import Struct

from cantle.tools.search.globs import END, GlobError, glob_source
from cantle.tools.search.raw_files import joined, read_head

__all__ = ["IgnoreFile", "Rules", "parse_ignore_file", "rules_above", "rules_below"]

_MAX_BYTES = 1 << 20
"""Of an ignore file; what is beyond is not read."""
_MAX_REFERENCE = 4_096
_NAMES = (b".rgignore", b".ignore", b".gitignore")
_GIT = 2
_EXCLUDE = 3
_END = END.encode()


class IgnoreFile(Struct, frozen=True):
    """The rules of one file: an expression whose groups are its lines, the last first, and which of them negate."""

    pattern: re.Pattern[bytes]
    negated: tuple[bool, ...]

    def verdict(self, path: bytes) -> bool | None:
        """Whether the path is ignored; None when no line speaks of it. `path` counts from the file's folder, and
        ends with NUL where it is a folder.
        """
        found = self.pattern.fullmatch(path)
        if found is None or found.lastindex is None:
            return None
        return not self.negated[found.lastindex - 1]


@lru_cache(maxsize=256)
def parse_ignore_file(data: bytes) -> IgnoreFile | None:
    """The rules in an ignore file with these bytes; None when there are none. A line that means nothing is no rule."""
    sources: list[str] = []
    negated: list[bool] = []
    # ISO-8859-1 makes every byte a character, which is how git matches.
    for line in reversed(data.removeprefix(b"\xef\xbb\xbf").decode("iso-8859-1").split("\n")):
        rule = _rule(line.removesuffix("\r"))
        if rule is not None:
            sources.append(f"({rule[0]})")
            negated.append(rule[1])
    if not sources:
        return None
    return IgnoreFile(re.compile("|".join(sources).encode("iso-8859-1"), re.DOTALL), tuple(negated))


def _rule(line: str) -> tuple[str, bool] | None:
    if line.startswith("#"):
        return None
    line = _without_trailing_spaces(line)
    negated = line.startswith("!")
    line = line[negated:]
    folders = line.endswith("/")
    line = line.removesuffix("/")
    anchored = "/" in line
    line = line.removeprefix("/")
    if not line:
        return None
    try:
        source = glob_source(line, braces=False)
    except GlobError:
        return None
    return f"{'' if anchored else '(?:.*/)?'}{source}{END}{'' if folders else '?'}", negated


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
    try:
        reference = read_head(git, _MAX_REFERENCE)
        if reference.startswith(b"gitdir:"):
            folder = git.rpartition(b"/")[0]
            common = own = _resolved(folder, reference.removeprefix(b"gitdir:"))
            common = _resolved(own, read_head(joined(own, b"commondir"), _MAX_REFERENCE))
    except (OSError, ValueError):
        pass
    return _read(joined(common, b"info", b"exclude"))


def _resolved(folder: bytes, reference: bytes) -> bytes:
    reference = reference.strip().replace(os.sep.encode(), b"/")
    absolute = Path(os.fsdecode(reference)).is_absolute()
    return reference if absolute else joined(folder, reference)
