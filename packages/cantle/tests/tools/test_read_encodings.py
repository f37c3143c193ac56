"""`read` shows text of any encoding faithfully, and says which it was."""

import codecs

import pytest

from cantle.tools.text_files import decode_file
from packages.cantle.tests.tools.harness import Tools, text_of

TEXT = "Grüße, café – “naïve”\nzweite Zeile\nprice: 5\n"
LATIN = "Grüße, café\nzweite Zeile\n"

CASES = [
    ("utf-8", TEXT.encode(), TEXT),
    ("utf-8-sig", codecs.BOM_UTF8 + TEXT.encode(), TEXT),
    ("utf-16-le", codecs.BOM_UTF16_LE + TEXT.encode("utf-16-le"), TEXT),
    ("utf-16-be", codecs.BOM_UTF16_BE + TEXT.encode("utf-16-be"), TEXT),
    ("utf-32-le", codecs.BOM_UTF32_LE + TEXT.encode("utf-32-le"), TEXT),
    ("utf-32-be", codecs.BOM_UTF32_BE + TEXT.encode("utf-32-be"), TEXT),
    ("utf-16-le", TEXT.encode("utf-16-le"), TEXT),
    ("utf-16-be", TEXT.encode("utf-16-be"), TEXT),
    ("utf-32-le", TEXT.encode("utf-32-le"), TEXT),
    ("utf-32-be", TEXT.encode("utf-32-be"), TEXT),
    ("utf-16-le", "😀 and words enough\n".encode("utf-16-le"), "😀 and words enough\n"),
    ("iso-8859-1", LATIN.encode("latin-1"), LATIN),
    ("windows-1252", TEXT.encode("cp1252"), TEXT),
    (
        "shift_jis",
        "# coding: shift_jis\nx = '日本語'\n".encode("shift_jis"),
        "# coding: shift_jis\nx = '日本語'\n",
    ),
    (
        "koi8-r",
        "# -*- coding: koi8-r -*-\n# привет\n".encode("koi8-r"),
        "# -*- coding: koi8-r -*-\n# привет\n",
    ),
    (
        "cp1251",
        '<?xml version="1.0" encoding="windows-1251"?>\n<a>привет</a>'.encode("cp1251"),
        '<?xml version="1.0" encoding="windows-1251"?>\n<a>привет</a>',
    ),
    ("utf-8", ("ü" * 50).encode() + b"\xff", "ü" * 50 + "\ufffd"),
    ("iso-8859-1", b"only \xe9 here", "only é here"),
    ("utf-16-le", codecs.BOM_UTF16_LE + "odd\n".encode("utf-16-le") + b"x", "odd\n\ufffd"),
    ("utf-16-le", codecs.BOM_UTF16_LE + b"a\0\x00\xd8b\0", "a\ufffdb"),
]


@pytest.mark.parametrize(("label", "data", "shown"), CASES)
async def test_i09_text_is_shown_whatever_its_encoding(
    tools: Tools, label: str, data: bytes, shown: str
) -> None:
    (tools.folder / "a.txt").write_bytes(data)
    result = await tools.read("a.txt")
    assert text_of(result) == shown
    assert result.details == (None if label == "utf-8" else {"encoding": label})


@pytest.mark.parametrize(("label", "data", "shown"), CASES)
def test_i09_edit_takes_a_file_for_the_same_that_read_shows(label: str, data: bytes, shown: str) -> None:
    file = decode_file(data)
    assert file.encoding.label == label
    # An odd byte at the end is not text; it is kept, and shown by `read` only.
    assert file.shown == (shown if len(data) % file.encoding.unit == 0 else shown.removesuffix("\ufffd"))
    assert len(file.text) == len(file.shown)


async def test_i09_a_character_cut_by_a_chunk_stays_whole(tools: Tools) -> None:
    for shift in range(4):
        text = "x" * shift + "€" * 40_000 + "\n" + "😀" * 40_000 + "\nend\n"
        for encoding in ("utf-8", "utf-16-le"):
            (tools.folder / "a.txt").write_bytes(("\ufeff" + text).encode(encoding))
            assert text_of(await tools.read("a.txt", offset=3)) == "end\n"
            decoded = text_of(await tools.read("a.txt", offset=2))
            assert "\ufffd" not in decoded
            assert decoded.startswith("😀" * 10_000)


async def test_i09_the_encoding_is_that_of_the_whole_file(tools: Tools) -> None:
    (tools.folder / "a.txt").write_bytes(b"plain\n" * 100_000 + b"caf\xe9\n")
    result = await tools.read("a.txt", offset=100_001)
    assert text_of(result) == "café\n"
    assert result.details == {"encoding": "iso-8859-1"}


async def test_windows_1252_counts_its_characters_in_utf_8(tools: Tools) -> None:
    (tools.folder / "a.txt").write_bytes(("é" * 99 + "\n").encode("latin-1") * 1_000)
    shown = text_of(await tools.read("a.txt")).rpartition("\n\n")[0]
    assert len(shown.encode()) <= 51_200
    assert set(shown.split("\n")) == {"é" * 99}
