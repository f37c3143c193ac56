"""What a reader of HTML finds in a page: its elements, their attributes, its text."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

_VOID = frozenset({"meta", "input", "img", "br", "hr"})


@dataclass
class Element:
    name: str
    attributes: dict[str, str | None]


@dataclass
class Read(HTMLParser):
    """A page that was read. `problems` are ends without a beginning."""

    elements: list[Element] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    depth: int = 0

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(Element(tag, dict(attrs)))
        if tag not in _VOID:
            self._open.append(tag)
            self.depth = max(self.depth, len(self._open))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(Element(tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if self._open and self._open[-1] == tag:
            self._open.pop()
        else:
            self.problems.append(f"</{tag}> within {self._open[-5:]}")

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def handle_comment(self, data: str) -> None:
        self.problems.append(f"a comment: {data[:80]}")

    @property
    def text(self) -> str:
        return "".join(self.texts)

    @property
    def left_open(self) -> list[str]:
        return self._open


def read(page: str) -> Read:
    reader = Read()
    reader.feed(page)
    reader.close()
    return reader
