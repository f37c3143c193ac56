"""Draws sentences from a grammar in GBNF, as far as ours use it. A grammar that is not sound raises ValueError."""

from __future__ import annotations

import re
from random import Random

__all__ = ["Grammar"]

_TOKENS = re.compile(
    r"""\s*(?:(?P<text>"(?:\\.|[^"\\])*")|(?P<set>\[(?:\\.|[^\]\\])*\])|(?P<name>[a-z][a-z0-9]*)|(?P<sign>[()|*?])|"""
    r"""(?P<times>\{\d+,\d*\}))"""
)
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}
_SAMPLE = 'abz é"\\/\n\x00{}[]0_<>\U0001f600'
_MOST = 3
"""More than the minimum that is drawn of what may be repeated."""
_DEEP = 12


class Grammar:
    """The rules by name. Every rule that is named must exist, and none may begin with itself."""

    def __init__(self, text: str) -> None:
        self._rules: dict[str, object] = {}
        for line in text.splitlines():
            if line.strip():
                name, sign, body = line.partition(" ::= ")
                if not sign:
                    raise ValueError(f"no rule: {line}")
                self._rules[name] = _Parser(body).rule()
        for name in self._rules:
            self._check(name)

    def sentence(self, random: Random) -> str:
        return self._draw(self._rules["root"], random, 0)

    def _draw(self, node: object, random: Random, depth: int) -> str:
        match node:
            case ("or", options):
                assert isinstance(options, list)
                return self._draw(random.choice(options), random, depth)
            case ("all", parts):
                assert isinstance(parts, list)
                return "".join(self._draw(part, random, depth) for part in parts)
            case ("times", int(least), most, inner):
                room = _MOST if not isinstance(most, int) else min(_MOST, most - least)
                extra = 0 if depth > _DEEP else random.randint(0, room)
                return "".join(self._draw(inner, random, depth + 1) for _ in range(least + extra))
            case ("rule", name):
                assert isinstance(name, str)
                if depth > 200:
                    raise RecursionError(name)
                return self._draw(self._rules[name], random, depth + 1)
            case ("set", characters):
                assert isinstance(characters, str)
                return random.choice(characters)
            case str():
                return node
        raise AssertionError(node)

    def _check(self, name: str) -> None:
        """Raise ValueError when the rule can begin with itself, or names one that is not there."""
        seen: set[str] = set()
        todo = [name]
        while todo:
            for first in self._firsts(self._rules[todo.pop()]):
                if first not in self._rules:
                    raise ValueError(f"{name}: there is no rule {first}")
                if first == name:
                    raise ValueError(f"{name} begins with itself")
                if first not in seen:
                    seen.add(first)
                    todo.append(first)

    def _firsts(self, node: object) -> list[str]:
        match node:
            case ("rule", str(name)):
                return [name]
            case ("or", list(options)):
                return [first for option in options for first in self._firsts(option)]
            case ("all", list(parts)):
                firsts: list[str] = []
                for part in parts:
                    firsts += self._firsts(part)
                    if not self._nullable(part):
                        break
                return firsts
            case ("times", _, _, inner):
                return self._firsts(inner)
        return []

    def _nullable(self, node: object) -> bool:
        match node:
            case ("times", 0, _, _):
                return True
            case ("all", list(parts)):
                return all(map(self._nullable, parts))
            case ("or", list(options)):
                return any(map(self._nullable, options))
            case ("rule", str(name)):
                rule = self._rules.get(name)
                return rule is not None and rule == ("or", [("all", [])])
        return node == ""


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens: list[tuple[str, str]] = []
        place = 0
        while place < len(text.rstrip()):
            found = _TOKENS.match(text, place)
            if found is None:
                raise ValueError(f"not GBNF: {text[place:]}")
            self._tokens.append((str(found.lastgroup), found[str(found.lastgroup)]))
            place = found.end()
        self._place = 0

    def rule(self) -> object:
        options = self._options()
        if self._place != len(self._tokens):
            raise ValueError("something is left over")
        return options

    def _peek(self) -> tuple[str, str]:
        return self._tokens[self._place] if self._place < len(self._tokens) else ("end", "")

    def _options(self) -> object:
        options = [self._all()]
        while self._peek() == ("sign", "|"):
            self._place += 1
            options.append(self._all())
        return ("or", options)

    def _all(self) -> object:
        parts: list[object] = []
        while (token := self._peek())[0] != "end" and token not in (("sign", "|"), ("sign", ")")):
            self._place += 1
            parts.append(self._repeated(self._one(*token)))
        return ("all", parts)

    def _one(self, kind: str, text: str) -> object:
        match kind:
            case "text":
                return _unescaped(text[1:-1])
            case "set":
                return ("set", _members(text[1:-1]))
            case "name":
                return ("rule", text)
        if text != "(":
            raise ValueError(f"unexpected {text}")
        inner = self._options()
        if self._peek() != ("sign", ")"):
            raise ValueError("a bracket is open")
        self._place += 1
        return inner

    def _repeated(self, inner: object) -> object:
        kind, text = self._peek()
        if kind == "times":
            least, _, most = text[1:-1].partition(",")
            self._place += 1
            return ("times", int(least), int(most) if most else None, inner)
        if (kind, text) in (("sign", "*"), ("sign", "?")):
            self._place += 1
            return ("times", 0, None if text == "*" else 1, inner)
        return inner


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[1]), text)


def _members(text: str) -> str:
    """Those of a few characters, and of those that the set names, that it has."""
    if text.startswith("^"):
        pattern = re.compile(f"[{text}]")
        return "".join(letter for letter in _SAMPLE if pattern.match(letter))
    pattern = re.compile(f"[{re.escape(text) if '-' not in text else text}]")
    return "".join(chr(code) for code in range(32, 127) if pattern.match(chr(code)))
