"""The header of a GGUF file: what a model is, read without loading it.

    "GGUF", version u32, tensors u64, fields u64
    fields × (key, type u32, value)              a key and a text: length u64, UTF-8
    tensors × (name, dimensions u32, sizes u64…, type u32, offset u64)
    padding, then the tensors' data

All numbers are little-endian. An array is its items' type, its length and the items. Only the header is
touched; of a large file, no more than its vocabulary.
"""

from __future__ import annotations

import mmap
import stat
import struct
from pathlib import Path

from msgspec import Struct

from cantle_ai.errors import ConfigurationError
from cantle_ai.system_errors import reason_of

__all__ = ["GgufHeader", "read_header"]

_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_HIGHEST = 1000
"""No version is above it in the order that the numbers are read in."""
_FORMATS = {
    0: "<B",
    1: "<b",
    2: "<H",
    3: "<h",
    4: "<I",
    5: "<i",
    6: "<f",
    7: "<?",
    10: "<Q",
    11: "<q",
    12: "<d",
}
_SIZES = {kind: struct.calcsize(form) for kind, form in _FORMATS.items()}
_U32, _TEXT, _ARRAY, _U64 = 4, 8, 9, 10
_MOST_FIELDS = 100_000
_MOST_DIMENSIONS = 8
_SHORT_ARRAY = 4096
"""Longer arrays (vocabularies) are stepped over."""
_DEFAULT_ALIGNMENT = 32
_KV_BYTES = 2
"""The cache holds numbers of 16 bits."""


class GgufHeader(Struct, frozen=True, kw_only=True):
    """What a file says of its model."""

    path: Path
    architecture: str
    name: str = ""
    context_length: int = 0
    """Tokens that it was trained for; 0 where the file does not say."""
    chat_template: str = ""
    cache_bytes_per_token: int = 0
    """What each token of the context takes in memory; 0 where the file does not say."""


def read_header(path: Path) -> GgufHeader:
    """The header of the file at `path`.

    Raises :class:`ConfigurationError` when there is none, when it is not a GGUF file or not a whole one, and
    when what is in it is not a language model.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # a pipe would be waited for
            raise ConfigurationError(path, "is not a file. Name the file of a model")
        with path.open("rb") as file:
            beginning = file.read(len(_MAGIC))
            if beginning != _MAGIC:
                raise ConfigurationError(path, "is not a GGUF file. Name the file of a model in that format")
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return _header(path, _Reader(data))
    except OSError as error:
        raise ConfigurationError(path, f"cannot be read: {reason_of(error)}") from None
    except (struct.error, IndexError, UnicodeDecodeError, ValueError):
        raise ConfigurationError(
            path, "is not a whole GGUF file: it is cut off or damaged. Get it again"
        ) from None


def _header(path: Path, reader: _Reader) -> GgufHeader:
    version = reader.number(_U32)
    if version > _HIGHEST:
        raise ValueError("not a version: the numbers have another order, or the file is damaged")
    if version not in _VERSIONS:
        raise ConfigurationError(
            path, f"is a GGUF file of version {version}, which cannot be read. Convert it to version 3"
        )
    tensors, count = reader.number(_U64), reader.number(_U64)
    if count > _MOST_FIELDS:
        raise ValueError("no file has so many fields")
    fields: dict[str, object] = {}
    for _ in range(count):
        key = reader.text()
        fields[key] = reader.value(reader.number(_U32))
    _check_whole(reader, tensors, _positive(fields.get("general.alignment")) or _DEFAULT_ALIGNMENT)
    return _described(path, fields)


def _check_whole(reader: _Reader, tensors: int, alignment: int) -> None:
    """Raise ValueError when a tensor begins behind the end of the file."""
    last = 0
    for _ in range(tensors):
        reader.skip_text()
        dimensions = reader.number(_U32)
        if dimensions > _MOST_DIMENSIONS:
            raise ValueError("no tensor has so many dimensions")
        reader.skip(8 * dimensions + 4)
        last = max(last, reader.number(_U64))
    start = -(-reader.place // alignment) * alignment
    if tensors and start + last >= reader.size:
        raise ValueError("a tensor is not in the file")


def _described(path: Path, fields: dict[str, object]) -> GgufHeader:
    architecture = _text(fields.get("general.architecture"))
    kind = _text(fields.get("general.type")) or "model"
    causal = fields.get(f"{architecture}.attention.causal")
    if not architecture or kind != "model" or causal is False or architecture == "clip":
        raise ConfigurationError(path, "holds no model that can talk. Name the file of a chat model")
    return GgufHeader(
        path=path,
        architecture=architecture,
        name=_text(fields.get("general.name")),
        context_length=_positive(fields.get(f"{architecture}.context_length")),
        chat_template=_text(fields.get("tokenizer.chat_template")),
        cache_bytes_per_token=_cache_bytes(fields, architecture),
    )


def _cache_bytes(fields: dict[str, object], architecture: str) -> int:
    """Keys and values of all layers for one token."""

    def figure(name: str) -> int:
        value = fields.get(f"{architecture}.{name}")
        return (
            max((_positive(each) for each in value), default=0)
            if isinstance(value, list)
            else _positive(value)
        )

    heads = figure("attention.head_count")
    width = figure("embedding_length") // heads if heads else 0
    kept = figure("attention.head_count_kv") or heads
    sizes = (figure("attention.key_length") or width) + (figure("attention.value_length") or width)
    return figure("block_count") * kept * sizes * _KV_BYTES


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _positive(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0


class _Reader:
    """Reads values one after the other. Raises ValueError or struct.error at the end of the data."""

    def __init__(self, data: mmap.mmap) -> None:
        self._data = data
        self.place = len(_MAGIC)
        self.size = len(data)

    def number(self, kind: int) -> int:
        (value,) = struct.unpack_from(_FORMATS[kind], self._data, self.place)
        self.place += _SIZES[kind]
        return int(value)

    def skip(self, size: int) -> None:
        self.place += size
        if self.place > self.size:
            raise ValueError("the file ends here")

    def skip_text(self) -> None:
        self.skip(self.number(_U64))

    def text(self, errors: str = "strict") -> str:
        start, size = self.place + 8, self.number(_U64)
        self.skip(size)
        return self._data[start : start + size].decode(errors=errors)

    def value(self, kind: int) -> object:
        """A field's value; None for an array of texts, and for a long one."""
        if kind == _TEXT:
            return self.text(errors="replace")
        if kind == _ARRAY:
            return self._array()
        (value,) = struct.unpack_from(_FORMATS[_known(kind)], self._data, self.place)
        self.place += _SIZES[kind]
        return value

    def _array(self) -> list[object] | None:
        kind, length = self.number(_U32), self.number(_U64)
        if kind == _ARRAY:
            raise ValueError("arrays of arrays are not read")
        if kind != _TEXT and length > _SHORT_ARRAY:
            self.skip(_SIZES[_known(kind)] * length)
            return None
        if kind == _TEXT:
            if length > self.size:
                raise ValueError("the file is not so long")
            self._skip_texts(length)
            return None
        return [self.value(kind) for _ in range(length)]

    def _skip_texts(self, count: int) -> None:
        """Vocabularies have hundreds of thousands of them."""
        unpack, data, place = struct.Struct("<Q").unpack_from, self._data, self.place
        for _ in range(count):
            place += unpack(data, place)[0] + 8
            if place > self.size:
                raise ValueError("the file ends here")
        self.place = place


def _known(kind: int) -> int:
    if kind not in _FORMATS:
        raise ValueError("not a type of value")
    return kind
