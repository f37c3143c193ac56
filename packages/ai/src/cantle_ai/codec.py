"""JSON that keeps what it does not know and does not give up on what others write.

`msgspec` does the work. Three things that other programs write it refuses, and `json` from the
standard library accepts: escapes of lone surrogates (`"\\ud800"`, which Node writes), `NaN` and
`Infinity`, and numbers beyond a double's range. Those take the slow path, so that no line is lost.
What is written is always JSON: `NaN` and the infinities, which it has no form for, leave as `null`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypeAlias

import msgspec

__all__ = [
    "Json",
    "JsonObject",
    "decode_json",
    "decode_object",
    "encode_json",
    "kept_fields",
    "unknown_fields",
    "wire_json",
]

Json: TypeAlias = "None | bool | int | float | str | list[Json] | dict[str, Json]"
JsonObject: TypeAlias = "dict[str, Json]"

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


def decode_json(data: bytes | str) -> Json:
    """One JSON value. Bytes that are not UTF-8 are read with U+FFFD in their place.

    Raises ValueError when it is not JSON.
    """
    try:
        value: Json = _decode(data)
    except (msgspec.MsgspecError, UnicodeError):
        value = _decode_slowly(data)
    except RecursionError:
        raise ValueError("JSON is nested too deeply") from None
    return value


def decode_object(data: bytes | str) -> JsonObject:
    """One JSON object. Raises ValueError when it is anything else."""
    value = decode_json(data)
    if not isinstance(value, dict):
        raise ValueError(f"expected a JSON object, not {type(value).__name__}")
    return value


def encode_json(value: object) -> bytes:
    """Compact UTF-8 JSON, without a line break. Lone surrogates leave as `\\udXXX` escapes, as Node writes them.

    Raises TypeError for what JSON has no form for, or no reader takes: objects of other types, thousands of
    levels or of digits.
    """
    try:
        return _encode(value)
    except UnicodeEncodeError:
        return _encode_slowly(value)
    except RecursionError:
        raise TypeError("the value is nested too deeply for JSON") from None
    except ValueError as error:
        raise TypeError(f"the value cannot be written as JSON: {error}") from None


def wire_json(value: object) -> bytes:
    """JSON for a provider: as :func:`encode_json`, but a lone surrogate becomes U+FFFD, as none accepts it."""
    encoded = encode_json(value)
    if b"\\ud" not in encoded:
        return encoded
    import json

    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()


def unknown_fields(raw: JsonObject, known: frozenset[str]) -> JsonObject | None:
    """The fields of `raw` that this version does not know; None when there are none."""
    if raw.keys() <= known:
        return None
    return {key: value for key, value in raw.items() if key not in known}


def kept_fields(raw: JsonObject, known: Mapping[str, type | tuple[type, ...]]) -> JsonObject | None:
    """The fields of `raw` to keep as they are: unknown ones, and those of another type than `known` says.

    A message is not lost because one of its lesser fields is odd. None when there are none: then each field
    has its type or is missing.
    """
    kept: JsonObject | None = None
    for key, value in raw.items():
        if not isinstance(value, known.get(key, ())):
            kept = kept or {}
            kept[key] = value
    return kept


def _decode_slowly(data: bytes | str) -> Json:
    import json

    text = data.decode("utf-8", "replace") if isinstance(data, bytes) else data
    try:
        value: Json = json.loads(text, parse_int=_integer)
    except RecursionError:
        raise ValueError("JSON is nested too deeply") from None
    return value


def _integer(digits: str) -> int | float:
    """Python refuses to convert more than 4,300 digits: those are infinite, as for every other reader."""
    try:
        return int(digits)
    except ValueError:
        return float(digits)


def _encode_slowly(value: object) -> bytes:
    import json

    try:
        plain = _without_nan(msgspec.to_builtins(value, str_keys=True))
        return json.dumps(plain, ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode("ascii")
    except RecursionError:
        raise TypeError("the value is nested too deeply for JSON") from None
    except ValueError as error:
        raise TypeError(f"the value cannot be written as JSON: {error}") from None


def _without_nan(value: object) -> object:
    match value:
        case float():
            return value if math.isfinite(value) else None
        case dict():
            return {key: _without_nan(item) for key, item in value.items()}
        case list() | tuple():
            return [_without_nan(item) for item in value]
        case _:
            return value
