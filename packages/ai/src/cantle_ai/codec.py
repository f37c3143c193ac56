"""JSON that keeps what it does not know and does not give up on what others write.

`msgspec` does the work. Three things that other programs write it refuses, and `json` from the
standard library accepts: escapes of lone surrogates (`"\\ud800"`, which Node writes), `NaN` and
`Infinity`, and numbers beyond a double's range. Those take the slow path, so that no line is lost.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

__all__ = ["Json", "JsonObject", "decode_json", "decode_object", "encode_json", "unknown_fields"]

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
    except msgspec.MsgspecError:
        import json

        text = data.decode("utf-8", "replace") if isinstance(data, bytes) else data
        try:
            value = json.loads(text)
        except RecursionError:
            raise ValueError("JSON is nested too deeply") from None
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

    Raises TypeError for what JSON has no form for.
    """
    try:
        return _encode(value)
    except UnicodeEncodeError:
        import json

        return json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode("ascii")


def unknown_fields(raw: JsonObject, known: frozenset[str]) -> JsonObject | None:
    """The fields of `raw` that this version does not know; None when there are none."""
    if raw.keys() <= known:
        return None
    return {key: value for key, value in raw.items() if key not in known}
