"""An edit changes nothing but its match: a property over encodings, line ends, marks and broken bytes.

A file is put together from pieces of which we know text and bytes; one piece is edited as a model would,
with `\\n` between lines; what stands before and after it must be the same bytes.
"""

import codecs

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from cantle.tools.edit.file import edit_bytes
from cantle.tools.text_files import decode_file, sniff
from cantle_agent.tool import ToolError
from tests.support.samples import samples

ENCODINGS = {
    "ascii": (b"", "ascii"),
    "utf-8": (b"", "utf-8"),
    "utf-8-sig": (codecs.BOM_UTF8, "utf-8"),
    "utf-16-le": (codecs.BOM_UTF16_LE, "utf-16-le"),
    "utf-16-be": (codecs.BOM_UTF16_BE, "utf-16-be"),
    "utf-32-le": (codecs.BOM_UTF32_LE, "utf-32-le"),
    "utf-32-be": (codecs.BOM_UTF32_BE, "utf-32-be"),
    "latin-1": (b"", "latin-1"),
    "cp1252": (b"", "cp1252"),
}
ALPHABETS = {
    "ascii": "ab {}\t.",
    "latin-1": "ab {}é£ÿ",
    "cp1252": "ab {}é€“”",
}
ENDS = ["\n", "\r\n", "\r"]
MARK = "@@"
"""Stands in the edited lines only, so that they occur once."""


def edited(data: bytes, edits: list[tuple[str, str]]) -> bytes:
    return edit_bytes(data, edits, "the file")[0]


@st.composite
def files(draw: st.DrawFn) -> tuple[str, bytes, list[str], list[str], bytes]:
    """Encoding, bytes before, the lines to edit, their line ends, bytes after."""
    name = draw(st.sampled_from(sorted(ENCODINGS)))
    bom, codec = ENCODINGS[name]
    ends = draw(st.sampled_from([["\n"], ["\r\n"], ["\r"], ENDS, ["\n", "\r\n"]]))
    line = st.text(ALPHABETS.get(name, "ab {}é€😀\u2028"), max_size=6)
    end = st.sampled_from(ends)
    before = draw(st.lists(st.tuples(line, end), max_size=6))
    after = draw(st.lists(st.tuples(line, end), max_size=6))
    target = [text + MARK for text in draw(st.lists(line, min_size=1, max_size=4))]
    between = [draw(end) for _ in target[1:]]
    last = draw(line)

    def encode(text: str) -> bytes:
        return text.encode(codec)

    head = bom + encode("".join(text + stop for text, stop in before) + draw(line))
    ended = bool(after) or draw(st.booleans())
    rest = (draw(end) if ended else "") + "".join(text + stop for text, stop in after)
    tail = encode(rest + last)
    if codec in ("ascii", "utf-8") and all(text.isascii() for text in target) and draw(st.booleans()):
        # Bytes that are no text at all, NUL among them, on both sides: it may not be UTF-8 then.
        head += draw(st.binary(max_size=6)).replace(b"@", b"")
        tail += draw(st.binary(max_size=6)).replace(b"@", b"")
        assume(bom or sniff(head + b"@@" + tail) is None)
    return codec, head, target, between, tail


@pytest.mark.timeout(300)
@pytest.mark.timeout(samples(600, 60))
@settings(max_examples=samples(5_000, 300), deadline=None, suppress_health_check=list(HealthCheck))
@given(file=files(), new=st.lists(st.text("ab {}", max_size=6), min_size=1, max_size=4))
@pytest.mark.parity("tools.edit-bytes")
def test_i01_i09_an_edit_changes_nothing_but_its_match(
    file: tuple[str, bytes, list[str], list[str], bytes], new: list[str]
) -> None:
    codec, head, target, between, tail = file
    middle = "".join(text + end for text, end in zip(target, [*between, ""], strict=True))
    data = head + middle.encode(codec) + tail
    old_text, new_text = "\n".join(target), "\n".join(new)
    # Bytes of a one-byte encoding may happen to be UTF-8 as well.
    assume(
        codec not in ("latin-1", "cp1252") or data.isascii() or decode_file(data).encoding.codec != "utf-8"
    )
    assume(not (between and head.endswith("\r".encode(codec)) and middle.startswith("\n")))
    result = edited(data, [(old_text, new_text)])
    assert result[: len(head)] == head
    assert result[len(result) - len(tail) :] == tail
    written = result[len(head) : len(result) - len(tail)].decode(codec)
    assert written.replace("\r\n", "\n").replace("\r", "\n") == new_text


@pytest.mark.timeout(300)
@settings(max_examples=samples(2_000, 150), deadline=None)
@given(
    lines=st.lists(st.tuples(st.text("abé", max_size=4), st.sampled_from(ENDS)), min_size=2, max_size=8),
    data=st.data(),
)
def test_i01_unchanged_lines_inside_a_match_keep_their_ends(
    lines: list[tuple[str, str]], data: st.DataObject
) -> None:
    numbered = [(f"{number}{text}.", end) for number, (text, end) in enumerate(lines)]
    raw = "".join(text + end for text, end in numbered)
    chosen = data.draw(st.integers(0, len(numbered) - 1))
    old = "".join(text + "\n" for text, _ in numbered)
    new = "".join(("new" if number == chosen else text) + "\n" for number, (text, _) in enumerate(numbered))
    expected = "".join(
        ("new" if number == chosen else text) + end for number, (text, end) in enumerate(numbered)
    )
    assert edited(raw.encode(), [(old, new)]) == expected.encode()


@pytest.mark.timeout(300)
@settings(max_examples=samples(2_000, 150), deadline=None)
@given(pieces=st.lists(st.binary(max_size=8), min_size=2, max_size=5))
def test_i09_any_bytes_survive_around_ascii_edits(pieces: list[bytes]) -> None:
    marks = [f"<<{number}>>" for number in range(len(pieces) - 1)]
    clean = [piece.replace(b"<", b"").replace(b">", b"") for piece in pieces]
    # In front, so that nothing random is taken for a mark of UTF-16 or UTF-32.
    clean[0] = b"text\n" + clean[0]

    def joined(words: list[str]) -> bytes:
        parts = [part for piece, word in zip(clean, words, strict=False) for part in (piece, word.encode())]
        return b"".join([*parts, clean[-1]])

    edits = [(mark, mark.replace("<", "[")) for mark in marks]
    assert edited(joined(marks), edits) == joined([new for _, new in edits])


@pytest.mark.parametrize(
    ("data", "old", "new", "expected"),
    [
        (b"a\ncaf\xe9\nb\n", "b\n", "c\n", b"a\ncaf\xe9\nc\n"),
        (b"a\ncaf\xe9 = 1\n", "café = 1", "café = 2 ü", b"a\ncaf\xe9 = 2 \xfc\n"),
        (b"x\x80y\n", "x€y", "x–y", b"x\x96y\n"),
        (b"a\0b\nend\n", "end", "END", b"a\0b\nEND\n"),
        ("é".encode() * 9 + b"\xff = 1\n", "\ufffd = 1", "\ufffd = 2", "é".encode() * 9 + b"\xff = 2\n"),
        (
            "é".encode() * 9 + b"\xff\xfe 1\n",
            "1",
            "\ufffd",
            "é".encode() * 9 + b"\xff\xfe " + b"\xef\xbf\xbd\n",
        ),
        ("é".encode() * 9 + b"a\xffb", "a\ufffdb", "x\ufffdy", "é".encode() * 9 + b"x\xffy"),
        ("é".encode() * 9 + b"a\xffb", "a\ufffdb", "none", "é".encode() * 9 + b"none"),
        (
            "\ufeffa\r\nb\n".encode("utf-16-le") + b"\x07",
            "b",
            "c",
            "\ufeffa\r\nc\n".encode("utf-16-le") + b"\x07",
        ),
        (b"a\r\nb", "b", "b\nc", b"a\r\nb\r\nc"),
        (b"a\rb\r", "b", "b\nc", b"a\rb\rc\r"),
        (b"a\r\nb\r\n", "a\nb\n", "", b""),
        (b"a\r\nb\r\n", "\nb", "", b"a\r\n"),
        (b"a\r\nb\r\n", "a\r\nb", "a\r\nc\r\nd", b"a\r\nc\r\nd\r\n"),
        (b"a\nb\n", "a\r\nb", "a\r\nc", b"a\nc\n"),
        (b"a\nb\n", "b", "b\rc", b"a\nb\rc\n"),
        (b"a\nb\r\nc", "a\n", "", b"b\r\nc"),
        (b"# coding: latin-1\nx\n", "x", "é", b"# coding: latin-1\n\xe9\n"),
    ],
)
def test_i09_bytes(data: bytes, old: str, new: str, expected: bytes) -> None:
    assert edited(data, [(old, new)]) == expected


def test_a_match_that_line_ends_make_ambiguous_may_be_written_exactly() -> None:
    data = b"a\r\nb\na\nb\n"
    with pytest.raises(ToolError, match="2 times"):
        edited(data, [("b\n", "x")])
    assert edited(data, [("a\r\nb", "x\ny")]) == b"x\r\ny\na\nb\n"
    assert edited(data, [("a\nb", "x\ny")]) == b"a\r\nb\nx\ny\n"


@pytest.mark.parametrize(
    ("data", "old", "new", "words"),
    [
        (b"caf\xe9\n", "café", "c€", ["iso-8859-1", "U+20AC"]),
        (b"x\x80\n", "x", "日", ["windows-1252", "U+65E5"]),
        (b"x\n", "x", "\ud800", ["surrogate"]),
        ("é".encode() * 9 + b"a\xffb", "a\ufffdb", "\ufffd\ufffd", ["U+FFFD"]),
        (codecs.BOM_UTF32_LE + "a".encode("utf-32-le") * 20_000 + b"\0\0\xff\x7f", "a", "b", ["utf-32"]),
    ],
)
def test_i09_what_the_encoding_has_no_bytes_for_is_refused(
    data: bytes, old: str, new: str, words: list[str]
) -> None:
    with pytest.raises(ToolError) as caught:
        edited(data, [(old, new)])
    assert all(word in str(caught.value) for word in words), caught.value
