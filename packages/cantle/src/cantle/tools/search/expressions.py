"""An expression of :mod:`pattern` in the words of ripgrep and of Python."""

from __future__ import annotations

import re
from functools import lru_cache, reduce
from operator import itemgetter
from typing import NamedTuple

from cantle.tools.search.charsets import MAX, Ranges, folded, folded_ascii, named, negated, normalized
from cantle.tools.search.nodes import Alternatives, Anchor, CharacterSet, Named, Node, Repeat, Sequence

__all__ = ["character_ranges", "python_source", "quick_part", "required_text", "ripgrep_source"]

_ASCII = 0x7F
_RUST_ANCHORS = {
    "start": "^",
    "end": "$",
    "word": r"\b",
    "inside": r"\B",
    "word-start": r"\b{start}",
    "word-end": r"\b{end}",
}


def ripgrep_source(node: Node) -> str:
    """The expression as ripgrep reads it."""
    if isinstance(node, CharacterSet):
        return _rust_set(node)
    if isinstance(node, Anchor):
        return _RUST_ANCHORS[node.kind]
    if isinstance(node, Repeat):
        return f"(?:{ripgrep_source(node.part)}){_count(node)}"
    if isinstance(node, Alternatives):
        return f"(?:{'|'.join(map(ripgrep_source, node.parts))})"
    return "".join(map(ripgrep_source, node.parts))


def _count(node: Repeat) -> str:
    return f"{{{node.least},{'' if node.most is None else node.most}}}"


def _rust_set(node: CharacterSet) -> str:
    items = [_rust_named(item) if isinstance(item, Named) else _rust_range(*item) for item in node.items]
    stands_alone = (
        not node.negated
        and len(node.items) == 1
        and (isinstance(node.items[0], Named) or node.items[0][0] == node.items[0][1])
    )
    source = items[0] if stands_alone else f"[{'^' if node.negated else ''}{''.join(items)}]"
    return f"(?i:{source})" if node.fold else source


def _rust_named(item: Named) -> str:
    if item.name in "dsw":
        return f"\\{item.name.upper() if item.negated else item.name}"
    return f"\\{'P' if item.negated else 'p'}{{{item.name}}}"


def _rust_range(low: int, high: int) -> str:
    return _rust_character(low) if low == high else f"{_rust_character(low)}-{_rust_character(high)}"


def _rust_character(code: int) -> str:
    character = chr(code)
    return character if character.isascii() and character.isalnum() else f"\\x{{{code:X}}}"


@lru_cache(maxsize=512)
def character_ranges(node: CharacterSet, *, ascii_only: bool) -> Ranges:
    """The characters of a set; a line end is in none. With `ascii_only`, those of ASCII."""
    # Letters outside of ASCII fold into it, so a set that names a category is made whole first.
    quick = ascii_only and not any(
        isinstance(item, Named) and (item.name not in _ASCII_NAMED or node.fold) for item in node.items
    )
    found: list[tuple[int, int]] = []
    for item in node.items:
        if not isinstance(item, Named):
            found.append(item)
            continue
        ranges = _ASCII_NAMED[item.name] if quick else named(item.name)
        if node.fold and item.name not in _ASCII_NAMED:
            ranges = folded(ranges)
        found.extend(negated(ranges) if item.negated else ranges)
    ranges = normalized(found)
    if node.fold:
        ranges = folded_ascii(ranges) if quick else folded(ranges)
    if node.negated:
        ranges = negated(ranges)
    top = _ASCII if ascii_only else MAX
    kept: list[tuple[int, int]] = []
    for low, high in ranges:
        if low <= 0x0A <= high:
            kept += [(low, 0x09), (0x0B, high)]
        else:
            kept.append((low, high))
    return tuple((low, min(high, top)) for low, high in kept if low <= min(high, top))


_ASCII_WORD: Ranges = ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
_ASCII_NAMED: dict[str, Ranges] = {
    "d": ((0x30, 0x39),),
    "w": _ASCII_WORD,
    "s": ((0x09, 0x0D), (0x20, 0x20)),
}


def python_source(node: Node, *, ascii_only: bool) -> str:
    """The expression as Python reads it with MULTILINE, for text of ASCII alone or for any.

    In any text, a lone surrogate stands for a byte that is not UTF-8.
    """
    if isinstance(node, CharacterSet):
        return _python_set(character_ranges(node, ascii_only=ascii_only))
    if isinstance(node, Anchor):
        return _python_anchor(node, ascii_only)
    if isinstance(node, Repeat):
        return f"(?:{python_source(node.part, ascii_only=ascii_only)}){_count(node)}"
    parts = [python_source(part, ascii_only=ascii_only) for part in node.parts]
    return f"(?:{'|'.join(parts)})" if isinstance(node, Alternatives) else "".join(parts)


def _python_set(ranges: Ranges) -> str:
    if not ranges:
        return "(?!)"
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return re.escape(chr(ranges[0][0]))
    return f"[{''.join(_python_range(low, high) for low, high in ranges)}]"


def _python_range(low: int, high: int) -> str:
    return f"\\U{low:08x}-\\U{high:08x}" if high > _ASCII else f"\\x{low:02x}-\\x{high:02x}"


def _python_anchor(node: Anchor, ascii_only: bool) -> str:
    if node.kind in ("start", "end"):
        return "^" if node.kind == "start" else "$"
    word = _python_set(_ASCII_WORD if ascii_only else named("w"))
    if node.kind == "word-start":
        return f"(?<!{word})(?={word})"
    if node.kind == "word-end":
        return f"(?<={word})(?!{word})"
    if node.kind == "word":
        return f"(?:(?<!{word})(?={word})|(?<={word})(?!{word}))"
    # Beside a wrong byte there is neither a boundary nor none.
    right = "" if ascii_only else "(?<![\udc80-\udcff])(?![\udc80-\udcff])"
    return f"(?:{right}(?:(?<!{word})(?!{word})|(?<={word})(?={word})))"


def quick_part(node: Node) -> tuple[Node, bool]:
    """What Python's `re` may be asked for in place of the expression, and whether that is all of it.

    Every line that matches the expression matches the part, and no text keeps a backtracking matcher busy with it.
    Where little of the expression is like that, the part is empty, and every line matches it.
    """
    trimmed = _trimmed(node, front=True, back=True)
    if _work(trimmed).steps <= _STEPS:
        return trimmed, True
    return _part(trimmed)[1], False


_STEPS = 100
"""Steps at one place of a text that are few: a matcher has to begin at every place."""
_ENDLESS = 1 << 20


class _Work(NamedTuple):
    """What a backtracking matcher may have to do at one place: all ways to match there, and the steps of them all."""

    ways: int = 1
    steps: int = 0

    def then(self, other: _Work) -> _Work:
        return _Work(
            min(self.ways * other.ways, _ENDLESS), min(self.steps + self.ways * other.steps, _ENDLESS)
        )


def _work(node: Node) -> _Work:
    if isinstance(node, CharacterSet | Anchor):
        return _Work(1, 1)
    if isinstance(node, Repeat):
        if node.most is None:
            return _Work(_ENDLESS, _ENDLESS)
        part, whole, ways = _work(node.part), _Work(), 0
        for number in range(node.most + 1):
            if number >= node.least:
                ways += whole.ways
            if number < node.most:
                whole = whole.then(part)
        return _Work(min(ways, _ENDLESS), whole.steps)
    parts = list(map(_work, node.parts))
    if isinstance(node, Alternatives):
        return _Work(sum(part.ways for part in parts), sum(part.steps for part in parts))
    return reduce(_Work.then, parts, _Work())


def _trimmed(node: Node, *, front: bool, back: bool) -> Node:
    """The same without what a line need not have: at an end, a repetition may be as short as can be."""
    if isinstance(node, Repeat) and (front or back):
        if node.least == 1:
            return _trimmed(node.part, front=front, back=back)
        return Repeat(node.part, node.least, node.least) if node.least else _NOTHING
    if isinstance(node, Alternatives):
        return Alternatives(tuple(_trimmed(part, front=front, back=back) for part in node.parts))
    if isinstance(node, Sequence):
        parts = list(node.parts)
        while front and parts and (first := _trimmed(parts[0], front=True, back=False)) != parts[0]:
            parts[:1] = [first] if first != _NOTHING else []
        while back and parts and (last := _trimmed(parts[-1], front=False, back=True)) != parts[-1]:
            parts[-1:] = [last] if last != _NOTHING else []
        return Sequence(tuple(parts))
    return node


_NOTHING = Sequence(())


def _part(node: Node) -> tuple[int, Node]:
    """How much a part that every match holds says, and that part, of few steps."""
    if isinstance(node, CharacterSet):
        return _telling(node), node
    if isinstance(node, Repeat) and node.least:
        return _part(node.part)
    if isinstance(node, Alternatives):
        parts = [_part(part) for part in node.parts]
        found = Alternatives(tuple(part for _, part in parts))
        if _work(found).steps <= _STEPS:
            return min(telling for telling, _ in parts), found
    best: tuple[int, Node] = (0, _NOTHING)
    if isinstance(node, Sequence):
        running: list[Node] = []
        for part in node.parts:
            if _work(Sequence((*running, part))).steps > _STEPS:
                running = []
                best = max(best, _part(part), key=itemgetter(0))
            if _work(part).steps <= _STEPS:
                running.append(part)
                best = max(best, (sum(map(_telling, running)), Sequence(tuple(running))), key=itemgetter(0))
    return best


def _telling(node: Node) -> int:
    if isinstance(node, CharacterSet):
        if node.negated or any(isinstance(item, Named) for item in node.items):
            return 1
        return 4 if node.single is not None else 3
    if isinstance(node, Repeat):
        return _telling(node.part) * node.least
    if isinstance(node, Sequence | Alternatives) and node.parts:
        tellings = map(_telling, node.parts)
        return sum(tellings) if isinstance(node, Sequence) else min(tellings)
    return 0


def required_text(node: Node) -> str:
    """A text that every match holds; empty when none is known."""
    runs, running = [""], ""
    for part in node.parts if isinstance(node, Sequence) else (node,):
        single = part.single if isinstance(part, CharacterSet) else None
        if single is not None:
            running += single
            continue
        runs.append(running)
        running = ""
        if isinstance(part, Repeat) and part.least and isinstance(part.part, CharacterSet):
            runs.append(part.part.single or "")
        elif isinstance(part, Sequence):
            runs.append(required_text(part))
    return max((*runs, running), key=len)
