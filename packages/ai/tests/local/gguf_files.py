"""Makes GGUF files: a header as given, and tensors that hold nothing."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

__all__ = ["FIELDS", "gguf"]

FIELDS: Mapping[str, object] = {
    "general.architecture": "llama",
    "general.name": "Tiny",
    "llama.context_length": 4096,
    "llama.block_count": 2,
    "llama.embedding_length": 64,
    "llama.attention.head_count": 4,
    "llama.attention.head_count_kv": 2,
    "tokenizer.ggml.tokens": ["a", "b", "é"],
    "tokenizer.ggml.scores": [0.5] * 5000,
    "tokenizer.chat_template": "{{ messages }}",
}


def gguf(fields: Mapping[str, object] = FIELDS, *, version: int = 3, tensors: int = 2) -> bytes:
    """A whole file."""
    head = b"GGUF" + struct.pack("<IQQ", version, tensors, len(fields))
    head += b"".join(_text(key) + _typed(value) for key, value in fields.items())
    for number in range(tensors):
        head += _text(f"t{number}") + struct.pack("<IQIQ", 1, 8, 0, 32 * number)
    return head + b"\0" * (-len(head) % 32) + b"\1" * 32 * tensors


def _text(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _typed(value: object) -> bytes:
    match value:
        case bool():
            return struct.pack("<I?", 7, value)
        case int():
            return struct.pack("<II", 4, value)
        case float():
            return struct.pack("<If", 6, value)
        case str():
            return struct.pack("<I", 8) + _text(value)
        case Sequence():
            kind = _typed(value[0])[:4]
            return (
                struct.pack("<I", 9)
                + kind
                + struct.pack("<Q", len(value))
                + b"".join(_typed(v)[4:] for v in value)
            )
    raise TypeError(type(value).__name__)
