"""Sets of characters as ranges of code points, with the meanings that ripgrep's expressions give their names.

Python's `\\w`, `\\s` and `IGNORECASE` differ from them in hundreds of characters. The tables are made from
`unicodedata` when text that is not ASCII is searched for the first time.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from collections.abc import Iterable
from functools import cache
from typing import TypeAlias

__all__ = [
    "CATEGORIES",
    "MAX",
    "POSIX",
    "Ranges",
    "folded",
    "folded_ascii",
    "holds",
    "named",
    "negated",
    "normalized",
]

Ranges: TypeAlias = tuple[tuple[int, int], ...]
"""First and last code points, ascending, none touching the next."""

MAX = 0x10FFFF
"""The last code point that there is."""
_ASSIGNED = ((0, 0x33480), (0xE0000, 0xE01F0))
"""Where characters are, apart from those that say nothing."""
_CASED = 0x1E944

CATEGORIES = frozenset(
    "L Lu Ll Lt Lm Lo M Mn Mc Me N Nd Nl No P Pc Pd Ps Pe Pi Pf Po S Sm Sc Sk So Z Zs Zl Zp".split()
)
"""The general categories that may be asked for by name."""

POSIX: dict[str, Ranges] = {
    "alnum": ((0x30, 0x39), (0x41, 0x5A), (0x61, 0x7A)),
    "alpha": ((0x41, 0x5A), (0x61, 0x7A)),
    "ascii": ((0, 0x7F),),
    "blank": ((0x09, 0x09), (0x20, 0x20)),
    "cntrl": ((0, 0x1F), (0x7F, 0x7F)),
    "digit": ((0x30, 0x39),),
    "graph": ((0x21, 0x7E),),
    "lower": ((0x61, 0x7A),),
    "print": ((0x20, 0x7E),),
    "punct": ((0x21, 0x2F), (0x3A, 0x40), (0x5B, 0x60), (0x7B, 0x7E)),
    "space": ((0x09, 0x0D), (0x20, 0x20)),
    "upper": ((0x41, 0x5A),),
    "word": ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)),
    "xdigit": ((0x30, 0x39), (0x41, 0x46), (0x61, 0x66)),
}

_SPACE: Ranges = (
    (0x09, 0x0D),
    (0x20, 0x20),
    (0x85, 0x85),
    (0xA0, 0xA0),
    (0x1680, 0x1680),
    (0x2000, 0x200A),
    (0x2028, 0x2029),
    (0x202F, 0x202F),
    (0x205F, 0x205F),
    (0x3000, 0x3000),
)
_WORD_CATEGORIES = frozenset(("Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "Pc"))
# Circled and squared letters are letters, and the two joiners belong to the words that they are in.
_WORD_OTHERS = (
    (0x200C, 0x200D),
    (0x24B6, 0x24E9),
    (0x1F130, 0x1F149),
    (0x1F150, 0x1F169),
    (0x1F170, 0x1F189),
)
# Simple foldings that are newer than some Pythons, or that only a full folding has.
_FOLDS = {0xFB05: 0xFB06, 0x1FD3: 0x390, 0x1FE3: 0x3B0}


def normalized(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """The union of ranges in any order."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            if high > merged[-1][1]:
                merged[-1] = (merged[-1][0], high)
        else:
            merged.append((low, high))
    return tuple(merged)


def holds(ranges: Ranges, code: int) -> bool:
    """Whether a code point is in one of the ranges."""
    at = bisect_right(ranges, (code, MAX)) - 1
    return at >= 0 and code <= ranges[at][1]


def negated(ranges: Ranges) -> Ranges:
    """All other characters. What stands for a wrong byte is no character."""
    found: list[tuple[int, int]] = []
    low = 0
    for first, last in normalized((*ranges, (0xD800, 0xDFFF))):
        if low < first:
            found.append((low, first - 1))
        low = last + 1
    if low <= MAX:
        found.append((low, MAX))
    return tuple(found)


@cache
def named(name: str) -> Ranges:
    """The set that `d`, `s`, `w`, or a general category such as `Lu` or `L`, stands for."""
    if name == "s":
        return _SPACE
    if name == "w":
        return normalized(
            (*_WORD_OTHERS, *(each for category in _WORD_CATEGORIES for each in _categories()[category]))
        )
    if name == "d":
        return _categories()["Nd"]
    return normalized(
        each
        for category, ranges in _categories().items()
        if category == name or category[0] == name
        for each in ranges
    )


@cache
def _categories() -> dict[str, Ranges]:
    found: dict[str, list[tuple[int, int]]] = {}
    category_of = unicodedata.category
    for start, stop in _ASSIGNED:
        first, running = start, category_of(chr(start))
        for code in range(start + 1, stop):
            category = category_of(chr(code))
            if category != running:
                found.setdefault(running, []).append((first, code - 1))
                first, running = code, category
        found.setdefault(running, []).append((first, stop - 1))
    return {category: tuple(ranges) for category, ranges in found.items()}


@cache
def _orbits() -> tuple[tuple[int, ...], ...]:
    """The characters that are one to whoever ignores case."""
    orbits: dict[int, list[int]] = {}
    for code in range(_CASED):
        fold = _fold(code)
        if fold != code:
            orbits.setdefault(fold, [fold]).append(code)
    return tuple(tuple(orbit) for orbit in orbits.values())


def _fold(code: int) -> int:
    if code in _FOLDS:
        return _FOLDS[code]
    character = chr(code)
    for mapped in (character.casefold(), character.lower()):
        if len(mapped) == 1:
            return ord(mapped)
    return code


def folded(ranges: Ranges) -> Ranges:
    """The set with everything that differs from one of it in case alone."""
    more = [
        (code, code) for orbit in _orbits() if any(holds(ranges, code) for code in orbit) for code in orbit
    ]
    return normalized((*ranges, *more))


def folded_ascii(ranges: Ranges) -> Ranges:
    """The same within ASCII, without the tables."""
    more = list(ranges)
    for low, high in ranges:
        for first, last, shift in ((0x41, 0x5A, 0x20), (0x61, 0x7A, -0x20)):
            if max(low, first) <= min(high, last):
                more.append((max(low, first) + shift, min(high, last) + shift))
    # The long s and the sign for Kelvin.
    more += [(0x53, 0x53), (0x73, 0x73)] if any(low <= 0x17F <= high for low, high in ranges) else []
    more += [(0x4B, 0x4B), (0x6B, 0x6B)] if any(low <= 0x212A <= high for low, high in ranges) else []
    return normalized(more)
