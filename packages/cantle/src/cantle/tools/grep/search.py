"""One call of `grep`: from its arguments to the lines that a model reads."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from msgspec import Struct

from cantle.tools.blocking import Check
from cantle.tools.paths import existing_path, kind_name
from cantle.tools.search.content import Content, FileLines
from cantle.tools.search.globs import path_filter
from cantle.tools.search.lines import HEAD, KEPT, Line, is_text
from cantle.tools.search.nodes import Node
from cantle.tools.search.pattern import PatternError, literal_node, parse_pattern
from cantle.tools.search.results import Listing, shown_name
from cantle.tools.search.ripgrep import Halt
from cantle.tools.search.walk import Unreadable, walk
from cantle.tools.text_files import Evidence, decode_body, shown
from cantle.tools.truncation import cut_head
from cantle_agent.tool import ToolError, ToolResult
from cantle_ai.system_errors import reason_of

__all__ = ["MAX_LINE", "Request", "search"]

MAX_LINE = 500
"""Characters of a line that are shown: the reference's limit."""
_MOST_CONTEXT = 2_000
_MOST_MATCHES = 10_000
"""More can't be shown in any case."""


class Request(Struct, frozen=True, kw_only=True):
    """What is searched for, and where."""

    pattern: str
    path: str
    glob: str | None
    ignore_case: bool
    literal: bool
    context: int
    limit: int

    def node(self) -> Node:
        """The expression. Raises :class:`ToolError`."""
        try:
            if self.literal:
                return literal_node(self.pattern, ignore_case=self.ignore_case)
            return parse_pattern(self.pattern, ignore_case=self.ignore_case)
        except PatternError as problem:
            raise ToolError(f"The pattern can't be searched for: {problem}") from None


def search(cwd: Path, request: Request, program: str | None, halt: Halt, check: Check) -> ToolResult:
    """Search with ripgrep, or, where `program` is None, without. Raises :class:`ToolError`."""
    node = request.node()
    path = existing_path(cwd, request.path)
    context = min(request.context, _MOST_CONTEXT)
    unreadable: list[Unreadable] = []
    place = _Place(path, request, unreadable, check)
    content = Content(
        root=place.root,
        node=node,
        context=context,
        # What follows the last match that is shown may hold matches, too.
        most=min(request.limit, _MOST_MATCHES) + context + 1,
        check=check,
        halt=halt,
        unreadable=unreadable,
        program=program,
    )
    gathering = _Gathering(request.limit, context)
    with closing(content.search(place.paths())) as files:
        for file in files:
            if not gathering.take(file):
                break
    if place.is_file and unreadable:
        raise ToolError(f"{request.path} can't be read: {unreadable[0].reason}.")
    return gathering.result(place, unreadable)


class _Place:
    """Where a search goes: the files of a folder, or one file."""

    def __init__(self, path: Path, request: Request, unreadable: list[Unreadable], check: Check) -> None:
        self.is_file = not path.is_dir()
        self.files = 0
        self._name = request.path
        self._path = path
        self._unreadable = unreadable
        self._check = check
        if self.is_file and path.exists() and not path.is_file():
            raise ToolError(
                f"{request.path} is {kind_name(path.stat().st_mode)}, neither a file nor a folder."
            )
        self.root = str(path.parent if self.is_file else path.resolve())
        glob = request.glob
        if glob is not None and glob.endswith("/"):
            glob += "**"
        self._wanted = None if glob is None or self.is_file else path_filter(glob, self.root)

    def paths(self) -> Iterator[bytes]:
        if self.is_file:
            self.files = 1
            yield os.fsencode(self._path.name)
            return
        for entry in walk(self.root, self._unreadable, self._check):
            if entry.kind == "file" and (self._wanted is None or self._wanted.takes(entry.path)):
                self.files += 1
                yield entry.path

    def nothing(self) -> str:
        """What a model reads when no line matches."""
        if not self.is_file:
            if self.files:
                return f"No line matches, in {self.files:,} file{'' if self.files == 1 else 's'}."
            what = "no file that is not ignored" if self._wanted is None else "no file that the glob takes"
            return f"No line matches: there is {what}."
        try:
            with self._path.open("rb") as file:
                head = file.read(HEAD)
        except OSError as problem:
            raise ToolError(f"{self._name} can't be read: {reason_of(problem)}.") from None
        return "No line matches." if is_text(head) else f"No line matches: {self._name} is not text."


class _Gathering:
    """The lines that are shown, up to the limit, and whether there are more."""

    def __init__(self, limit: int, context: int) -> None:
        self._limit = limit
        self._context = context
        self._matches = 0
        self._more = False
        self._cut = False
        self._listing = Listing()

    def take(self, file: FileLines) -> bool:
        """Take the lines of a file; whether any more are wanted."""
        name = shown_name(file.path)
        last = -1
        for line in file.lines:
            if line.is_match and self._matches < self._limit:
                self._matches += 1
                last = line.number
                self._add(f"{name}:{line.number}: ", line)
            elif self._matches < self._limit or (last > 0 and line.number <= last + self._context):
                self._more = self._more or line.is_match
                self._add(f"{name}-{line.number}- ", line)
            elif line.is_match:
                self._more = True
            if self._listing.full or (self._more and line.number > last + self._context):
                return False
        return not self._more

    def _add(self, begin: str, line: Line) -> None:
        text = _text(line.data)
        if len(text) > MAX_LINE:
            self._cut = True
            text = f"{text[:MAX_LINE]}…"
        self._listing.add(begin + text)

    def result(self, place: _Place, unreadable: list[Unreadable]) -> ToolResult:
        listing = self._listing
        if self._more or listing.full:
            listing.note_limit(
                "matches",
                "matchLimitReached",
                self._limit,
                advice="Narrow the search, or raise limit." if not listing.full else "Narrow the search.",
            )
        if self._cut:
            listing.notices.append(f"Lines are cut at {MAX_LINE} characters; read shows them whole.")
            listing.details["linesTruncated"] = True
        listing.note_unreadable(unreadable)
        return listing.result("" if self._matches else place.nothing())


def _text(data: bytes) -> str:
    if len(data) >= KEPT:
        data = cut_head(data, KEPT - 1)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        evidence = Evidence()
        evidence.feed(data)
        text = shown(decode_body(data, evidence.encoding(head=b""))[0])
    return text.removesuffix("\r").replace("\0", "\ufffd")
