"""Expressions: what is understood, what is refused, and that three ways to match them say the same."""

import os
import random
import sys
import time
import unicodedata
from itertools import pairwise
from pathlib import Path

import pytest

from cantle.tools.search.automaton import Automaton
from cantle.tools.search.expressions import python_source, quick_part
from cantle.tools.search.lines import LineMatcher, matching_lines
from cantle.tools.search.nodes import Node
from cantle.tools.search.pattern import PatternError, literal_node, parse_pattern
from cantle.tools.search.ripgrep import Halt, Ripgrep, find_ripgrep
from packages.cantle.tests.tools.searching import unchecked
from tests.support.extras import needs
from tests.support.samples import full_run, samples


def own_lines(path: Path, node: Node) -> list[int]:
    return [
        line.number for line in matching_lines(os.fsencode(path), LineMatcher(node, unchecked), 0, unchecked)
    ]


def ripgrep_lines(path: Path, node: Node) -> list[int]:
    program = find_ripgrep()
    assert program is not None
    ripgrep = Ripgrep(program, str(path.parent), node, context=0, most=1_000_000, halt=Halt())
    found = ripgrep.search([os.fsencode(path.name)], unchecked)
    return [line.number for _, lines in found for line in lines]


def automaton_lines(path: Path, node: Node) -> list[int]:
    automaton = Automaton(node, unchecked)
    lines = path.read_bytes().removesuffix(b"\n").split(b"\n")
    return [
        number
        for number, line in enumerate(lines, 1)
        if automaton.matches(line.decode("utf-8", "surrogateescape"))
    ]


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        ("a|b", "xb"), ("^ab$", "ab"), ("^ab$", "ab\r"), ("(?:ab)+c", "ababc"), ("(?P<n>a)(?<m>b)", "ab"), ("a{2,3}b", "aab"),
        ("a{,2}b", "b"), ("if (x) {", "if x {"), ("if \\(x\\) {", "if (x) {"), ("\\$\\{name\\}", "${name}"), ("{", "{"), ("a{x}", "a{x}"),
        ("a{", "a{"), ("a}]", "a}]"), ("[]]", "]"), ("[^]]", "a"), ("[a\\]]", "]"), ("[a-]", "-"), ("[\\w.-]+@", "a.b-c@"),
        ("\\<word\\>", "a word."), ("\\bword\\b", "a word."), ("(?i)HIT", "hit"), ("(?i:H)it", "hit"), ("a(?i)B|C", "c"),
        ("\\x41\\u0042\\x{1F600}", "AB😀"), ("\\t\\-\\/\\\"\\'\\<?", "\t-/\"'"), ("a*?b", "b"), ("\\p{Lu}\\pL\\PN", "Aa-"),
        ("[[:alpha:]][[:^digit:]]", "ab"), ("(?s).", "a"), ("(?-s:.)", "a"), ("", ""), ("|a", ""), ("()", "x"), ("a||b", "x"),
        ("\\.\\*\\+\\?\\(\\)\\[\\]\\|\\\\", ".*+?()[]|\\"), ("é", "é"), ("[à-ü]", "é"), ("#~&", "#~&"),
    ],
)  # fmt: skip
def test_an_expression_and_a_line_of_it(tmp_path: Path, pattern: str, line: str) -> None:
    (tmp_path / "f").write_bytes(line.encode() + b"\n")
    node = parse_pattern(pattern)
    assert own_lines(tmp_path / "f", node) == [1]
    assert automaton_lines(tmp_path / "f", node) == [1]


@pytest.mark.parametrize(
    ("pattern", "word"),
    [
        ("(?=a)", "look-around"), ("(?!a)", "look-around"), ("(?<=a)b", "look-around"), ("(?<!a)b", "look-around"),
        ("(a)\\1", "back-reference"), ("(?P<n>a)(?P=n)", "back-reference"), ("(?>a)", "atomic"), ("a++", "possessive"),
        ("a*+", "possessive"), ("a{2}+", "possessive"), ("(?#x)a", "comment"), ("(?x) a", "flag x"), ("(?m-i)a", ""),
        ("(?-u)a", "flag u"), ("\\Aa", "write ^"), ("a\\z", "write $"), ("a\\Z", "write $"), ("a\\nb", "line end"),
        ("a\nb", "line end"), ("[\\n]", "line end"), ("\\p{Greek}", "general categories"), ("\\p{Script=Greek}", "general"),
        ("x**", "repetition"), ("\udcff", "half"), ("[a-z&&[^b]]", "&&"), ("[a[bc]]", "\\["), ("[[:what:]]", "\\["), ("[z-a]", "backwards"), ("(", "\\("), (")", "\\)"),
        ("[a", "]"), ("*a", "repetition"), ("+", "repetition"), ("a|*", "repetition"), ("\\", "ends"), ("\\y", "\\y"),
        ("a{2000}", "1,000"), ("a{3,2}", "{3,2}"), ("(?P<1>a)", "name"), ("\\x{110000}", "\\x"), ("\\ud800", "\\u"),
        ("((a{999}){999}){9}", "too large"), ("\\K", "\\K"), ("(?(1)a)", "condition"), ("(?R)", "recursion"),
        ("(?P>n)", "recursion"), ("(*UTF8)a", "(*"), ("\\b{what}", "\\b{"), ("[\\b]", "\\b"), ("[a-\\d]", "range"),
        ("(" * 200 + ")" * 200, "deep"), ("(?i", "flags"), ("\\Q.\\E", "\\Q"), ("\\h", "[ \\t]"), ("\\x4", "\\x"),
    ],
)  # fmt: skip
def test_what_no_search_here_can_do_is_refused_in_words(pattern: str, word: str) -> None:
    if not word:
        parse_pattern(pattern)
        return
    with pytest.raises(PatternError) as problem:
        parse_pattern(pattern)
    assert word in str(problem.value)
    assert str(problem.value).rstrip(".") != str(problem.value)


def test_a_plain_text_is_taken_as_it_stands(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("a.b(c)[\nA.B(C)[\naxb(c)[\n", "utf-8")
    assert own_lines(tmp_path / "f", literal_node("a.b(c)[")) == [1]
    assert own_lines(tmp_path / "f", literal_node("a.b(c)[", ignore_case=True)) == [1, 2]
    for text in ("a\nb", "a\ud800"):
        with pytest.raises(PatternError):
            literal_node(text)


ALPHABET = list("aabbcABKkSs01_ -.éßſ\u212a\u0301İı½²ǅǆΣσς日ⅠⅰⓐⒶ\u2028\u200d\t\r\x0b\x1c𝒜")
WRONG = (b"\xfe", b"\xc3", b"\xe2\x82", b"\xed\xa0\x80", b"\xf0\x9f\x98")
ATOMS = (
    *"aabcAks01_ éßſ日Σ-½", "\\.", "\\-", "\\x41", "\\u00e9", "\\x{1d49c}", "\\t", ".", ".", ".", "\\d", "\\w", "\\s", "\\D", "\\W",
    "\\S", "\\p{Lu}", "\\P{L}", "\\pN", "[[:alpha:]]", "[[:^alpha:]]", "\\p{^L}", "^", "$", "\\b", "\\B", "\\<", "\\>",
)  # fmt: skip
MEMBERS = (
    "a", "b", "k", "a-c", "A-Z", "0-9", "é", "\\w", "\\s", "\\d", "\\W", "\\p{Ll}", "_", "\\-", "\\]", "[:digit:]", "ſ", "\\S", "Σ",
)  # fmt: skip


def expression(draw: random.Random, depth: int) -> str:
    """An expression of everything that there is."""
    branches = []
    for _ in range(draw.choice((1, 1, 1, 2))):
        branch = ""
        for _ in range(draw.randint(1, 4)):
            kind = draw.random()
            if kind < 0.15:
                branch += f"[{draw.choice(('', '^'))}{''.join(draw.choice(MEMBERS) for _ in range(draw.randint(1, 3)))}]"
            elif kind < 0.3 and depth:
                opening = draw.choice(("(", "(?:", "(?i:", f"(?P<n{draw.randrange(10**9)}>", "(?-i:"))
                branch += f"{opening}{expression(draw, depth - 1)})"
            else:
                branch += draw.choice(ATOMS)
            if draw.random() < 0.3 and not branch.endswith("\\b"):
                branch += draw.choice(("*", "+", "?", "{2}", "{1,2}", "{,2}", "{2,}", "*?", "+?"))
        branches.append(branch)
    return "|".join(branches)


def line_of(draw: random.Random) -> bytes:
    pieces = [
        draw.choice(WRONG) if draw.random() < 0.06 else draw.choice(ALPHABET).encode()
        for _ in range(draw.randint(0, 9))
    ]
    return b"".join(pieces) + draw.choice((b"", b"", b"\r"))


@needs("search")
@pytest.mark.parametrize("batch", range(10))
def test_ripgrep_python_and_the_automaton_match_the_same_lines(tmp_path: Path, batch: int) -> None:
    for seed in range(samples(200, 12)):
        draw = random.Random(batch * 10_000 + seed)
        lines = [b"x", *(line_of(draw) for _ in range(60))]
        (tmp_path / "any").write_bytes(b"\n".join(lines) + b"\n")
        (tmp_path / "ascii").write_bytes(b"\n".join(line for line in lines if line.isascii()) + b"\n")
        pattern, ignore_case = expression(draw, 2), draw.random() < 0.3
        node = parse_pattern(pattern, ignore_case=ignore_case)
        for name in ("any", "ascii"):
            theirs = ripgrep_lines(tmp_path / name, node)
            assert own_lines(tmp_path / name, node) == theirs, (pattern, ignore_case)
            assert automaton_lines(tmp_path / name, node) == theirs, (pattern, ignore_case)


# Their foldings are newer than some Pythons.
NEW_FOLDINGS = {"\u019b", "\u0264"}


@needs("search")
@pytest.mark.parametrize(
    ("pattern", "ignore_case"),
    [
        ("^\\w$", False), ("^\\s$", False), ("^\\d$", False), ("^\\W$", True), ("^\\p{Ll}$", True), ("^\\P{Lu}$", True),
        ("^[^\\p{Lu}]$", True), ("^[a-z]$", True), ("^[^a-z]$", True), ("^\\pM$", False), ("^\\pS$", False), ("\\b", False),
        ("\\B", False), ("^.$", False),
    ],
)  # fmt: skip
def test_sets_mean_the_same_characters_for_both(tmp_path: Path, pattern: str, ignore_case: bool) -> None:
    step = 1 if full_run() else 7
    characters = [
        chr(code)
        for code in range(1, sys.maxunicode + 1, step)
        if code != 0x0A and unicodedata.category(chr(code)) not in ("Cn", "Co", "Cs")
    ]
    characters = [character for character in characters if character not in NEW_FOLDINGS]
    (tmp_path / "f").write_bytes("\n".join(characters).encode() + b"\n")
    node = parse_pattern(pattern, ignore_case=ignore_case)
    differing = set(own_lines(tmp_path / "f", node)) ^ set(ripgrep_lines(tmp_path / "f", node))
    assert [hex(ord(characters[number - 1])) for number in sorted(differing)] == []


@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)+$",
        "(a|a)*b",
        "(a|ab)*c",
        "(\\w+\\s*)+:",
        ".*.*.*.*x",
        "a?" * 30 + "a{30}b",
        "(a*)*b",
        "([a-z]+)*=",
        "x*x*x*x*y",
    ],
)
def test_no_expression_keeps_a_search_busy_for_ever(tmp_path: Path, pattern: str) -> None:
    lines = ["a" * 40, "a" * 3_000 + "!", "x" * 100_000, "word " * 5_000, ""]
    (tmp_path / "f").write_text("\n".join(lines), "utf-8")
    begun = time.process_time()
    own_lines(tmp_path / "f", parse_pattern(pattern))
    assert time.process_time() - begun < 5


@pytest.mark.parametrize(
    ("pattern", "ignore_case", "line"),
    [
        ("a*[bc]", False, b"a" * 8_000),
        ("a*a*[bc]", False, b"a" * 500),
        ("a*a*a*[bc]", False, b"a" * 120),
        ("a{0,4}" * 20 + "[bc]", False, b"a" * 60),
        ("(a|[a-c])" * 6 + "a{0,4}a{0,4}[de]", False, b"a" * 4_000),
        ("[ab]" * 500 + "[de]", False, b"a" * 900_000),
        ("a" * 900 + "[de]", True, b"a" * 900_000),
        ("(a|b)*a(a|b){12}c", False, bytes(random.Random(1).choices(b"ab", k=2_000_000))),
    ],
)
def test_an_abort_never_waits_for_an_expression(
    tmp_path: Path, pattern: str, ignore_case: bool, line: bytes
) -> None:
    """Neither in a matcher that nothing interrupts, nor in ours; and the whole takes seconds at most."""
    (tmp_path / "f").write_bytes((line + b"\n") * max(400_000 // len(line), 1))
    looks = [time.thread_time()]

    def look() -> None:
        looks.append(time.thread_time())

    matcher = LineMatcher(parse_pattern(pattern, ignore_case=ignore_case), look)
    assert list(matching_lines(os.fsencode(tmp_path / "f"), matcher, 0, look)) == []
    look()
    assert max(after - before for before, after in pairwise(looks)) < 1.5
    assert looks[-1] - looks[0] < 15


def test_what_is_quick_to_look_for_is_known() -> None:
    """The expression itself, where it is quick; else the part of it that says most; what a line need not have is left out."""
    known = {
        "abc": ("abc", True), "a.c": ("a.c", True), "a*b": ("b", True), "a*b*": ("", True), ".*foo.*": ("foo", True),
        "foo\\w+": ("foo\\w", True), "foo|bar": ("foo|bar", True), "a{2,4}b?": ("a{2}", True), "(ab)?c": ("c", True),
        "foo.*bars": ("bars", False), "(?:foo.*x)|(?:y.*bars)": ("foo|bars", False), "x(a+)+$": ("x", False),
        "a[a-z]+0": ("a", False), "(?:ab+c)+.*d": ("a", False), "^\\s*def \\w+": ("def \\w", False), "x(?:a|[bc]*)d": ("x", False),
    }  # fmt: skip
    for pattern, (part, is_whole) in known.items():
        found, is_all = quick_part(parse_pattern(pattern))
        assert (simple(python_source(found, ascii_only=True)), is_all) == (
            simple(python_source(parse_pattern(part), ascii_only=True)),
            is_whole,
        ), pattern


def simple(source: str) -> str:
    """A source without what means nothing in it."""
    return source.replace("(?:a){2,2}", "aa").replace("(?:", "").replace(")", "")


def test_an_automaton_forgets_states_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cantle.tools.search.automaton._KEPT", 20_000)
    held: list[int] = []
    automaton = Automaton(parse_pattern("(a|b)*a(a|b){12}c"), lambda: held.append(len(automaton._states)))
    draw = random.Random(3)
    text = "".join(draw.choice("ab") for _ in range(8_000))
    assert not automaton.matches(text)
    assert automaton.matches(f"{text}a{'b' * 12}c")
    assert max(held) < 20_000 // 32 and sum(after < before for before, after in pairwise(held)) > 5
