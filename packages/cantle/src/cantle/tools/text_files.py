"""Text of any encoding, with a way back to the very bytes.

A file is taken as

    UTF-8, UTF-16 or UTF-32    when it begins with that byte order mark
    UTF-16 or UTF-32           when zero bytes lie where such text has them
    UTF-8                      when all of it is, or most of what is not ASCII
    what it declares           `coding:` of a Python-like source, `encoding=` of XML, `charset=` of HTML
    Windows-1252               when bytes 80-9F occur and all have a meaning there
    ISO-8859-1                 otherwise; every byte is a character

Bytes that are wrong in the encoding survive: decoding keeps each as one lone surrogate, encoding gives
it back. What people and models see in its place is U+FFFD, one for each, so positions agree.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator
from typing import Literal

from msgspec import Struct

__all__ = [
    "HEAD",
    "REPLACEMENT",
    "Encoding",
    "Evidence",
    "TextFile",
    "declared_encoding",
    "decode_body",
    "decode_file",
    "has_cr_lines",
    "shown",
    "sniff",
]

HEAD = 65_536
"""How much of a file's beginning decides what kind it is."""
_CHUNK = 1 << 20

REPLACEMENT = "\ufffd"


class Encoding(Struct, frozen=True):
    """How the text of a file is written."""

    codec: str
    bom: bytes = b""
    unit: int = 1
    """Bytes of the smallest piece: 1, 2 or 4."""

    @property
    def errors(self) -> Literal["surrogateescape", "surrogatepass"]:
        """The error handler that keeps what is wrong, and gives it back."""
        return "surrogateescape" if self.unit == 1 else "surrogatepass"

    @property
    def label(self) -> str:
        """The name for a reader; `utf-8` for the plain one only."""
        return "utf-8-sig" if self.codec == "utf-8" and self.bom else self.codec


UTF_8 = Encoding("utf-8")
_MARKED = (
    Encoding("utf-8", codecs.BOM_UTF8),
    Encoding("utf-32-le", codecs.BOM_UTF32_LE, 4),
    Encoding("utf-32-be", codecs.BOM_UTF32_BE, 4),
    Encoding("utf-16-le", codecs.BOM_UTF16_LE, 2),
    Encoding("utf-16-be", codecs.BOM_UTF16_BE, 2),
)
_UNMARKED = (
    Encoding("utf-32-le", unit=4),
    Encoding("utf-32-be", unit=4),
    Encoding("utf-16-le", unit=2),
    Encoding("utf-16-be", unit=2),
)


def sniff(head: bytes) -> Encoding | None:
    """The encoding that a file's beginning shows; None when it is one that contains ASCII, or none at all."""
    for encoding in _MARKED:
        if head.startswith(encoding.bom) and (encoding.unit < 4 or _is_text(head, encoding)):
            return encoding
    if b"\0" in head:
        for encoding in _UNMARKED:
            if _zeros_fit(head, encoding) and _is_text(head, encoding):
                return encoding
    return None


def _zeros_fit(head: bytes, encoding: Encoding) -> bool:
    # Zero bytes where text that is mostly Latin has them, hardly any elsewhere.
    unit, total = encoding.unit, len(head) // encoding.unit
    if total < 2:
        return False
    lanes = [head[lane : total * unit : unit].count(0) for lane in range(unit)]
    if encoding.codec.endswith("be"):
        lanes.reverse()
    if unit == 4:
        return lanes[3] == total and lanes[2] >= total * 0.9 and lanes[0] == 0
    return lanes[1] >= total * 0.5 and lanes[0] * 10 <= lanes[1]


def _is_text(head: bytes, encoding: Encoding) -> bool:
    body = head[len(encoding.bom) :]
    try:
        text = body[: len(body) // encoding.unit * encoding.unit].decode(encoding.codec)
    except UnicodeDecodeError as problem:
        # A pair of UTF-16 may be cut at the end of the sample.
        if len(body) - problem.start > 4:
            return False
        text = body[: problem.start].decode(encoding.codec)
    return re.search(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\ufffe\uffff]", text) is None


def has_cr_lines(head: str | bytes) -> bool:
    """Whether lines end with CR alone: there is one, and no LF, in a file's beginning."""
    if isinstance(head, bytes):
        return b"\r" in head and b"\n" not in head
    return "\r" in head and "\n" not in head


# Expressions are compiled by the first file that needs them: compiling them all takes longer than most reads.
_COOKIE = rb"^[ \t\f]*(?:#|//|--|;|%|\"|/\*).*?coding[:=][ \t]*([-\w.]+)"
_XML = rb"^\s*<\?xml[^>]*\bencoding\s*=\s*[\"']([-\w.]+)"
_HTML = rb"(?i)^\s*<[\s\S]*?<meta[^>]*\bcharset\s*=\s*[\"']?([-\w.]+)"
# Only codecs without state: each character's bytes are the same wherever it stands.
_STATELESS = (
    r"cp\d+|iso8859-\d+|koi8-[rtu]|mac-\w+|shift_jis|euc_jp|euc_kr|gbk|gb2312|gb18030|big5|kz1048|ptcp154"
)


def declared_encoding(head: bytes) -> str | None:
    """The codec that a file names in its beginning, if we know it and can write it piece by piece."""
    start = head[:1_024]
    found: re.Match[bytes] | None = None
    if b"coding" in start:
        found = next((m for line in start.split(b"\n")[:2] if (m := re.match(_COOKIE, line))), None)
        found = found or re.match(_XML, start)
    if found is None and b"charset" in start.lower():
        found = re.match(_HTML, start)
    if found is None:
        return None
    try:
        name = codecs.lookup(found[1].decode("ascii", "replace")).name
    except LookupError:
        return None
    return name if re.fullmatch(_STATELESS, name) else None


_ASCII = bytes(range(128))
_LEADS = bytes(range(0xC2, 0xF5))
_NOT_LEADS = bytes(set(range(256)) - set(_LEADS))
_ESCAPED = r"[\udc80-\udcff]"
_NOT_ASCII = r"[^\x00-\x7f]"
_SURROGATES = r"[\ud800-\udfff]"
_UNDEFINED_1252 = frozenset({0x81, 0x8D, 0x8F, 0x90, 0x9D})


class Evidence:
    """Gathers, over the chunks of a file that contains ASCII, whether it is UTF-8 and what else it may be."""

    __slots__ = ("_carry", "_high", "_invalid", "_valid")

    def __init__(self) -> None:
        self._carry = b""
        self._valid = 0
        self._invalid = 0
        self._high: set[int] = set()

    def feed(self, chunk: bytes) -> None:
        if not self._carry and chunk.isascii():
            return
        data = self._carry + chunk
        try:
            _, used = codecs.utf_8_decode(data, "strict", False)
            self._valid += len(data[:used].translate(None, _NOT_LEADS))
        except UnicodeDecodeError:
            text, used = codecs.utf_8_decode(data, "surrogateescape", False)
            wrong = len(re.findall(_ESCAPED, text))
            self._invalid += wrong
            self._valid += len(re.findall(_NOT_ASCII, text)) - wrong
            self._high.update(data.translate(None, _ASCII))
        self._carry = data[used:]

    def encoding(self, head: bytes) -> Encoding:
        """The verdict. `head` is the file's beginning, in which it may declare itself."""
        invalid = self._invalid + len(self._carry)
        if self._valid and self._valid >= invalid:
            return UTF_8
        declared = declared_encoding(head)
        if declared is not None:
            return Encoding(declared)
        if not invalid:
            return UTF_8
        high = self._high.union(self._carry)
        controls = {byte for byte in high if byte < 0xA0}
        if controls and not controls & _UNDEFINED_1252:
            return Encoding("windows-1252")
        return Encoding("iso-8859-1")


def decode_body(body: bytes, encoding: Encoding) -> tuple[str, Encoding]:
    """The text of bytes without mark, reversibly, and the encoding that it took.

    That is ISO-8859-1 in place of one that would not give the same bytes back. Raises UnicodeDecodeError
    for bytes that are not UTF-32.
    """
    if encoding.codec in ("utf-8", "iso-8859-1"):
        return body.decode(encoding.codec, encoding.errors), encoding
    try:
        text = body.decode(encoding.codec, encoding.errors)
        if encoding.unit > 1 or text.encode(encoding.codec, encoding.errors) == body:
            return text, encoding
    except UnicodeError:
        if encoding.unit > 1:
            raise
    return body.decode("iso-8859-1"), Encoding("iso-8859-1")


def shown(text: str) -> str:
    """Text as people and models see it: U+FFFD for each character that stands for wrong bytes."""
    return text if text.isascii() else re.sub(_SURROGATES, REPLACEMENT, text)


class TextFile(Struct, frozen=True):
    """The bytes of a file and its text, position by position."""

    data: bytes
    encoding: Encoding
    text: str
    """The text without the mark; wrong bytes as lone surrogates."""
    shown: str
    """The same, as long, with U+FFFD in place of those."""

    def offsets(self, positions: Iterable[int]) -> Iterator[int]:
        """Where in the bytes each of these positions of the text lies. Positions ascend; the work is one pass."""
        encoding, seen = self.encoding, 0
        offset = len(encoding.bom)
        plain = encoding.unit == 1 and self.text.isascii()
        for position in positions:
            piece = self.text[seen:position]
            offset += len(piece) if plain else len(piece.encode(encoding.codec, encoding.errors))
            seen = position
            yield offset


def decode_file(data: bytes) -> TextFile:
    """The file with these bytes. Whatever they are, apart from UTF-32 that is none, they have a reading.

    Raises UnicodeDecodeError in that case.
    """
    head = data[:HEAD]
    encoding = sniff(head)
    if encoding is None:
        evidence = Evidence()
        for start in range(0, len(data), _CHUNK):
            evidence.feed(data[start : start + _CHUNK])
        encoding = evidence.encoding(head)
    body = data[len(encoding.bom) :]
    whole = len(body) // encoding.unit * encoding.unit
    text, encoding = decode_body(body[:whole], encoding)
    return TextFile(data, encoding, text, shown(text))
