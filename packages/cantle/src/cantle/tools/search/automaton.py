"""Matches a line in one pass, whatever the expression: for those on which backtracking would never end.

The states are sets of places in the expression, made when the text leads to them and kept up to a limit.
"""

from __future__ import annotations

import re
from bisect import bisect_right

from cantle.tools.blocking import Check
from cantle.tools.search.charsets import MAX, Ranges, holds, named
from cantle.tools.search.expressions import character_ranges
from cantle.tools.search.nodes import Alternatives, Anchor, CharacterSet, Node, Repeat, Sequence

__all__ = ["Automaton"]

_KEPT = 500_000
"""Places in the states that are held, before they are all forgotten."""
_OWN = 32
"""What a state takes beside its places, in these."""
_BLOCK = 64
_FEW = 200
"""Classes of characters, for whose sake all that a state does is looked up at once."""
_EDGE, _PLAIN, _WORD, _WRONG = range(4)
"""What stands beside a place: the end of the line, a character of no word, one of a word, a wrong byte."""


class _State(dict[int, "_State | None"]):
    """Class of a character -> the state behind it, None for a match."""

    __slots__ = ("before", "leaving", "places")

    def __init__(self, places: frozenset[int], before: int) -> None:
        super().__init__()
        self.places = places
        self.before = before
        """What stands before it."""
        self.leaving: re.Pattern[str] | None = None
        """The characters that lead out of it; not known at first."""


class _Classes(dict[str, int]):
    """Character -> its class: those that no set of the expression tells apart share one."""

    def __init__(self, bounds: list[int]) -> None:
        super().__init__()
        self._bounds = bounds

    def __missing__(self, character: str) -> int:
        self[character] = found = bisect_right(self._bounds, ord(character))
        return found


class Automaton:
    """An expression, ready to be fed lines in pieces."""

    def __init__(self, node: Node, check: Check) -> None:
        """`check` is called for whatever takes its time, and raises to end it."""
        self._check = check
        self._sets: list[Ranges] = []
        self._places: list[tuple[int, int]] = []
        """Set and the place behind it."""
        self._free: list[list[tuple[str, int]]] = []
        """Place -> the places that are reached without a character, and what must hold there."""
        self._ends: list[int] = []
        self._minds_words = False
        self._final = self._place()
        self._start = self._build(node, self._final)
        bounds = {0xD800, 0xE000}
        for ranges in (*self._sets, named("w") if self._minds_words else ()):
            bounds.update(each for low, high in ranges for each in (low, high + 1))
        self._bounds = sorted(bounds)
        self._classes = _Classes(self._bounds)
        self._states: dict[tuple[frozenset[int], int], _State] = {}
        self._held = 0
        self._steps: dict[int, tuple[int, set[int]]] = {}

    def begin(self) -> _State:
        """The state at the beginning of a line."""
        return self._state(frozenset((self._start,)), _EDGE)

    def feed(self, state: _State, text: str) -> _State | None:
        """The state behind a piece of a line; None once the line matches."""
        classes = self._classes
        position = 0
        while position < len(text):
            begun = state
            for character in text[position : position + _BLOCK]:
                kind = classes[character]
                if kind in state:
                    following = state[kind]
                else:
                    following = self._follow(state, kind)
                if following is None:
                    return None
                state = following
            position += _BLOCK
            if state is begun and (leaving := self._leaves(state)) is not None:
                # Most of a long line leads nowhere, and is not looked at one by one.
                found = leaving.search(text, position)
                position = found.start() if found is not None else len(text)
        return state

    def _leaves(self, state: _State) -> re.Pattern[str] | None:
        if state.leaving is None and len(self._bounds) <= _FEW:
            kinds = [kind for kind in range(len(self._bounds) + 1) if self._follow(state, kind) is not state]
            limits = [0, *self._bounds, MAX + 1]
            ranges = [(limits[kind], limits[kind + 1] - 1) for kind in kinds]
            source = "".join(f"\\U{low:08x}-\\U{high:08x}" for low, high in ranges if low <= high)
            state.leaving = re.compile(f"[{source}]" if source else "(?!)")
        return state.leaving

    def ends(self, state: _State) -> bool:
        """Whether a line that ends in that state matches."""
        return self._final in self._closure(state.places, state.before, _EDGE)

    def matches(self, line: str) -> bool:
        """Whether the whole of a line holds a match."""
        state = self.feed(self.begin(), line)
        return state is None or self.ends(state)

    def _place(self) -> int:
        self._free.append([])
        return len(self._free) - 1

    def _build(self, node: Node, behind: int) -> int:
        """The place from which the node leads to `behind`."""
        if isinstance(node, Sequence):
            for part in reversed(node.parts):
                behind = self._build(part, behind)
            return behind
        place = self._place()
        if isinstance(node, CharacterSet):
            self._sets.append(character_ranges(node, ascii_only=False))
            self._free[place].append(("", -len(self._sets)))
            self._ends.append(behind)
        elif isinstance(node, Anchor):
            self._minds_words = self._minds_words or node.kind not in ("start", "end")
            self._free[place].append((node.kind, behind))
        elif isinstance(node, Alternatives):
            self._free[place] += [("", self._build(part, behind)) for part in node.parts]
        else:
            self._build_repeat(node, place, behind)
        return place

    def _build_repeat(self, node: Repeat, place: int, behind: int) -> None:
        if node.most is None:
            again = self._place()
            self._free[again] += [("", self._build(node.part, again)), ("", behind)]
            entry = again
        else:
            entry = behind
            for _ in range(node.most - node.least):
                skip = self._place()
                self._free[skip] += [("", self._build(node.part, entry)), ("", behind)]
                entry = skip
        for _ in range(node.least):
            entry = self._build(node.part, entry)
        self._free[place].append(("", entry))

    def _state(self, places: frozenset[int], before: int) -> _State:
        found = self._states.get((places, before))
        if found is None:
            self._held += len(places) + _OWN
            if self._held > _KEPT:
                self._held = len(places) + _OWN
                # They lead to each other, and would wait for the collector of garbage.
                for state in self._states.values():
                    state.clear()
                self._states.clear()
            found = self._states[places, before] = _State(places, before)
        return found

    def _follow(self, state: _State, kind: int) -> _State | None:
        self._check()
        after, sets = self._step(kind)
        reached = self._closure(state.places, state.before, after)
        if self._final in reached:
            state[kind] = None
            return None
        behind = {self._ends[-place - 1] for place in reached if place < 0 and -place - 1 in sets}
        behind.add(self._start)
        state[kind] = following = self._state(frozenset(behind), after)
        return following

    def _step(self, kind: int) -> tuple[int, set[int]]:
        """What the characters of a class are to a word, and the sets that they are in."""
        found = self._steps.get(kind)
        if found is None:
            code = self._bounds[kind - 1] if kind else 0
            sets = {index for index, ranges in enumerate(self._sets) if holds(ranges, code)}
            after = _PLAIN
            if self._minds_words:
                after = _WRONG if 0xD800 <= code < 0xE000 else _WORD if holds(named("w"), code) else _PLAIN
            found = self._steps[kind] = (after, sets)
        return found

    def _closure(self, places: frozenset[int], before: int, after: int) -> set[int]:
        reached: set[int] = set()
        pending = list(places)
        while pending:
            place = pending.pop()
            if place in reached:
                continue
            reached.add(place)
            if place >= 0:
                pending += [
                    to for kind, to in self._free[place] if not kind or _is_there(kind, before, after)
                ]
        return reached


def _is_there(kind: str, before: int, after: int) -> bool:
    if kind == "start":
        return before == _EDGE
    if kind == "end":
        return after == _EDGE
    left, right = before == _WORD, after == _WORD
    if kind == "word":
        return left != right
    if kind == "inside":
        return left == right and _WRONG not in (before, after)
    return right and not left if kind == "word-start" else left and not right
