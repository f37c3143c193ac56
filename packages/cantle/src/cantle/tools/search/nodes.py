"""What an expression consists of."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

__all__ = ["Alternatives", "Anchor", "CharacterSet", "Named", "Node", "Repeat", "Sequence", "node_size"]


class Named(Struct, frozen=True):
    """A set by its name: `d`, `w`, `s` or a general category."""

    name: str
    negated: bool


class CharacterSet(Struct, frozen=True):
    """One character of a set."""

    items: tuple[tuple[int, int] | Named, ...]
    negated: bool = False
    fold: bool = False
    """Whether case is ignored."""

    @property
    def single(self) -> str | None:
        """The only character of it, if it is one that is written with its case."""
        if self.negated or self.fold or len(self.items) != 1 or isinstance(self.items[0], Named):
            return None
        low, high = self.items[0]
        return chr(low) if low == high else None


class Anchor(Struct, frozen=True):
    """A place between two characters."""

    kind: Literal["start", "end", "word", "inside", "word-start", "word-end"]


class Sequence(Struct, frozen=True):
    """One after the other."""

    parts: tuple[Node, ...]


class Alternatives(Struct, frozen=True):
    """One of them."""

    parts: tuple[Node, ...]


class Repeat(Struct, frozen=True):
    """The same, again and again; `most` is None for no end."""

    part: Node
    least: int
    most: int | None


Node: TypeAlias = CharacterSet | Anchor | Sequence | Alternatives | Repeat


def node_size(node: Node) -> int:
    """How many characters and places it has, with its repetitions written out."""
    if isinstance(node, Repeat):
        return node_size(node.part) * max(node.least + 1 if node.most is None else node.most, 1)
    if isinstance(node, Sequence | Alternatives):
        return 1 + sum(map(node_size, node.parts))
    return 1
