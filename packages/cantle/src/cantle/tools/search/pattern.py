"""The regular expressions of `grep`: what both ripgrep and Python can do, read once.

    a . [a-z] [^a-z] [[:alpha:]]      characters; . is no line end
    \\d \\w \\s \\D \\W \\S \\p{Lu} \\PL     sets, of Unicode
    ^ $ \\b \\B \\< \\>                   the ends of lines (CRLF too) and words
    ab a|b (a) (?:a) (?<name>a)       groups; what they caught is not kept
    a* a+ a? a{2} a{2,} a{2,5} a*?    repetition; a { that begins none is itself
    (?i) (?i:a) (?-i)                 case
    \\t \\r \\f \\v \\a \\x41 \\x{1F600} \\u0041 \\U0001F600, and \\ before any other sign

Everything else is refused with a sentence of ours, whichever of them searches. A line matches or does not, so
how much of it a repetition takes makes no difference.
"""

from __future__ import annotations

from cantle.tools.search.charsets import CATEGORIES, MAX, POSIX, negated
from cantle.tools.search.nodes import (
    Alternatives,
    Anchor,
    CharacterSet,
    Named,
    Node,
    Repeat,
    Sequence,
    node_size,
)

__all__ = ["PatternError", "literal_node", "parse_pattern"]


class PatternError(ValueError):
    """An expression that is not searched for; the text says why, and what to write."""


_MOST = 1_000
"""Of a counted repetition."""
_SIZE = 20_000
"""Characters and places of an expression, its repetitions written out."""
_DEPTH = 100
_HINT = " To search for the text as it stands, set literal."
_LINE_END = "it holds a line end, but lines are searched one by one; search for one line of it."
_HEX_DIGITS = {"x": 2, "u": 4, "U": 8}
"""Of `\\x41` and the like, where no braces hold them."""
_CONTROLS = {"t": "\t", "r": "\r", "f": "\f", "v": "\v", "a": "\a"}
_REFUSED = {
    "A": "ends of a text, for lines are searched one by one: write ^",
    "z": "ends of a text, for lines are searched one by one: write $",
    "Z": "ends of a text, for lines are searched one by one: write $",
    "n": "a line end, for lines are searched one by one",
    "R": "line ends, for lines are searched one by one",
    "G": "the place of the last match",
    "K": "\\K",
    "Q": "quoting with \\Q",
    "h": "\\h: write [ \\t]",
    "N": "\\N: write .",
    "X": "\\X",
}


def parse_pattern(text: str, *, ignore_case: bool = False) -> Node:
    """What an expression means. Raises :class:`PatternError`."""
    _refuse_halves(text)
    parser = _Parser(text, ignore_case)
    node = parser.alternatives(0)
    if parser.position < len(text):
        raise PatternError("it has a ) without a (; for the sign itself write \\).")
    if node_size(node) > _SIZE:
        raise PatternError("its repetitions make it too large; repeat less.")
    return node


def literal_node(text: str, *, ignore_case: bool = False) -> Node:
    """That text as it stands. Raises :class:`PatternError` for a line end."""
    _refuse_halves(text)
    if "\n" in text:
        raise PatternError(_LINE_END)
    return Sequence(tuple(_literal(character, ignore_case) for character in text))


def _refuse_halves(text: str) -> None:
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise PatternError("it holds half of a character (a lone surrogate); write the whole character.")


def _literal(character: str, fold: bool) -> CharacterSet:
    code = ord(character)
    return CharacterSet(((code, code),), fold=fold and character.lower() != character.upper())


class _Parser:
    def __init__(self, text: str, fold: bool) -> None:
        self._text = text
        self.position = 0
        self._fold = fold

    def alternatives(self, depth: int) -> Node:
        if depth > _DEPTH:
            raise PatternError(f"its groups are nested more than {_DEPTH} deep.")
        fold = self._fold
        branches = [self._sequence(depth)]
        while self._take("|"):
            branches.append(self._sequence(depth))
        self._fold = fold
        return branches[0] if len(branches) == 1 else Alternatives(tuple(branches))

    def _take(self, text: str) -> bool:
        if self._text.startswith(text, self.position):
            self.position += len(text)
            return True
        return False

    def _next(self, what: str) -> str:
        if self.position >= len(self._text):
            raise PatternError(f"it ends within {what}.{_HINT}")
        self.position += 1
        return self._text[self.position - 1]

    def _sequence(self, depth: int) -> Node:
        parts: list[Node] = []
        while self.position < len(self._text) and self._text[self.position] not in "|)":
            bounds = self._repetition()
            if bounds is not None:
                raise PatternError(
                    f"nothing stands before a repetition; for the sign itself put \\ before it.{_HINT}"
                )
            part = self._one(depth)
            if part is None:
                continue
            bounds = self._repetition()
            if bounds is not None:
                part = self._repeated(part, bounds)
            parts.append(part)
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def _repeated(self, part: Node, bounds: tuple[int, int | None]) -> Node:
        self._take("?")
        if self._repetition() is not None:
            raise PatternError(
                "a repetition follows a repetition; possessive ones do not exist here, for others use a group."
            )
        return Repeat(part, *bounds)

    def _repetition(self) -> tuple[int, int | None] | None:
        for sign, bounds in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self._take(sign):
                return bounds
        if not self._text.startswith("{", self.position):
            return None
        end = self._text.find("}", self.position)
        least, comma, most = self._text[self.position + 1 : max(end, 0)].partition(",")
        if not all(not part or (part.isascii() and part.isdigit()) for part in (least, most)) or not (
            least or most
        ):
            return None
        if max(len(least), len(most)) > 4 or max(int(least or 0), int(most or 0)) > _MOST:
            raise PatternError(f"it repeats something more than {_MOST:,} times.")
        low = int(least or 0)
        high = (int(most) if most else None) if comma else low
        if high is not None and high < low:
            raise PatternError(f"{{{least},{most}}} has its smaller number behind the larger.")
        self.position = end + 1
        return low, high

    def _one(self, depth: int) -> Node | None:
        character = self._next("an expression")
        if character == "(":
            return self._group(depth)
        if character == "[":
            return self._bracket()
        if character == "\\":
            return self._escape()
        if character == ".":
            return CharacterSet(((0x0A, 0x0A), (0x0D, 0x0D)), negated=True)
        if character == "^":
            return Anchor("start")
        if character == "$":
            # A line may end with CRLF.
            return Sequence((Repeat(_literal("\r", fold=False), 0, 1), Anchor("end")))
        if character == "\n":
            raise PatternError(_LINE_END)
        return _literal(character, self._fold)

    def _group(self, depth: int) -> Node | None:
        fold = self._fold
        if self._take("?"):
            if self._flags():
                return None
        elif self._take("*"):
            raise PatternError(f"it begins a group with (*, which means nothing here.{_HINT}")
        node = self.alternatives(depth + 1)
        if not self._take(")"):
            raise PatternError(f"it has a ( without a ); for the sign itself write \\(.{_HINT}")
        self._fold = fold
        return node

    def _flags(self) -> bool:
        """Read what follows `(?`. Whether that was all of the group."""
        for opening, what in (
            ("=", "look-around"),
            ("!", "look-around"),
            ("<=", "look-around"),
            ("<!", "look-around"),
            (">", "an atomic group"),
            ("#", "a comment"),
            ("(", "a condition"),
            ("|", "a branch reset"),
            ("P=", "a back-reference"),
            ("P>", "a recursion"),
            ("R", "a recursion"),
            ("&", "a recursion"),
        ):
            if self._take(opening):
                raise PatternError(
                    f"it uses {what}, which a search here does not have. Search for more, and look."
                )
        if self._take("P<") or self._take("<"):
            end = self._text.find(">", self.position)
            if end < 0 or not self._text[self.position : end].isidentifier():
                raise PatternError("a group has a name that is none: (?<name>…).")
            self.position = end + 1
            return False
        value = True
        while True:
            flag = self._next("the flags of a group")
            if flag == "-":
                value = False
            elif flag == "i":
                self._fold = value
            elif flag in ":)":
                return flag == ")"
            elif flag not in ("smUu" if value else "sU"):
                raise PatternError(f"it sets the flag {flag}; a search here has (?i) alone.")

    def _escape(self) -> Node:
        character = self._next("an escape")
        if character in "dwsDWS":
            return CharacterSet((Named(character.lower(), character.isupper()),))
        if character in "pP":
            return CharacterSet((self._property(character == "P"),), fold=self._fold)
        if character == "b" and self._take("{"):
            for word, place in (("start}", Anchor("word-start")), ("end}", Anchor("word-end"))):
                if self._take(word):
                    return place
            raise PatternError("it has \\b{ without start} or end} behind it.")
        places: dict[str, Anchor] = {
            "b": Anchor("word"),
            "B": Anchor("inside"),
            "<": Anchor("word-start"),
            ">": Anchor("word-end"),
        }
        if character in places:
            return places[character]
        return _literal(self._escaped(character), self._fold)

    def _escaped(self, character: str) -> str:
        if character in _CONTROLS:
            return _CONTROLS[character]
        if character in "xuU":
            return self._code_point(character)
        if character in _REFUSED:
            raise PatternError(f"it asks for {_REFUSED[character]}.")
        if character.isdigit():
            raise PatternError("it uses a back-reference, which a search here does not have.")
        if character.isascii() and not character.isalnum() and character.isprintable():
            return character
        raise PatternError(f"\\{character} means nothing here.{_HINT}")

    def _code_point(self, kind: str) -> str:
        if self._take("{"):
            end = self._text.find("}", self.position)
            digits = self._text[self.position : max(end, self.position)]
            self.position = end + 1
        else:
            size = _HEX_DIGITS[kind]
            digits = self._text[self.position : self.position + size]
            self.position += len(digits)
            if len(digits) < size:
                digits = ""
        try:
            code = int(digits, 16) if digits.isalnum() else -1
        except ValueError:
            code = -1
        if not 0 <= code <= MAX or 0xD800 <= code <= 0xDFFF:
            raise PatternError(f"\\{kind} is not followed by the number of a character.")
        if code == 0x0A:
            raise PatternError(_LINE_END)
        return chr(code)

    def _property(self, excludes: bool) -> Named:
        name = self._next("\\p")
        if name == "{":
            end = self._text.find("}", self.position)
            name = self._text[self.position : max(end, self.position)]
            self.position = max(end, self.position) + 1
            if name.startswith("^"):
                name, excludes = name[1:], not excludes
        if name not in CATEGORIES:
            raise PatternError(
                f"\\p{{{name}}} is not one of the sets here: general categories in their short form, such as L, Lu or Nd."
            )
        return Named(name, excludes)

    def _bracket(self) -> CharacterSet:
        excludes = self._take("^")
        items: list[tuple[int, int] | Named] = []
        first = True
        while first or not self._text.startswith("]", self.position):
            if self._text.startswith(("&&", "--", "~~"), self.position):
                raise PatternError(
                    "it combines sets with &&, -- or ~~; for the signs themselves put \\ before them."
                )
            items.extend(self._member(first=first))
            first = False
        self.position += 1
        return CharacterSet(tuple(items), excludes, self._fold)

    def _member(self, *, first: bool) -> list[tuple[int, int] | Named]:
        character = self._next("a set; a [ is not closed by ]")
        if character == "[":
            return self._posix()
        if character == "\\":
            escaped = self._text[self.position : self.position + 1]
            if escaped and escaped in "dwsDWSpP":
                found = self._escape()
                assert isinstance(found, CharacterSet)
                return list(found.items)
            if escaped == "b":
                raise PatternError("\\b means nothing in a set.")
            character = self._escaped(self._next("an escape"))
        elif character == "\n":
            raise PatternError(_LINE_END)
        low = high = ord(character)
        if self._text.startswith("-", self.position) and not self._text.startswith(
            ("-]", "--"), self.position
        ):
            self.position += 1
            high = self._range_end()
        if high < low:
            raise PatternError(f"the range {chr(low)}-{chr(high)} runs backwards.")
        return [(low, high)]

    def _range_end(self) -> int:
        character = self._next("a range")
        if character == "\\":
            escaped = self._next("an escape")
            if escaped in "dwsDWSpPb":
                raise PatternError(f"a range can't end with \\{escaped}.")
            return ord(self._escaped(escaped))
        if character in "[\n":
            raise PatternError(
                "a range ends with [ or a line end; put \\ before a sign that is meant itself."
            )
        return ord(character)

    def _posix(self) -> list[tuple[int, int] | Named]:
        if self._take(":"):
            end = self._text.find(":]", self.position)
            name = self._text[self.position : max(end, self.position)]
            bare = name.removeprefix("^")
            if end >= 0 and bare in POSIX:
                self.position = end + 2
                if bare == name:
                    return list(POSIX[bare])
                return list(negated(POSIX[bare]))
        raise PatternError("a set holds a [; for the sign itself write \\[.")
