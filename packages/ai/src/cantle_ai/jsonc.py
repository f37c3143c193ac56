"""JSON as people write it into configuration files: with comments, trailing commas and a byte-order mark.

    {
      // to the end of the line
      "providers": {"local": {"models": [{"id": "a"}, /* or between */]},},
    }

Everything else is as in JSON. A mistake is reported with its line and column, both from 1.
"""

from __future__ import annotations

import re

import msgspec

from cantle_ai.codec import Json

__all__ = ["JsoncError", "parse_jsonc"]

_BOM = b"\xef\xbb\xbf"
_STRING = r'"(?:[^"\\\n]|\\.)*"'
_COMMENT = rf"(?s:{_STRING}|//[^\n]*|/\*.*?(?:\*/|\Z))"
_COMMA = rf"(?s:{_STRING}|,(?=\s*[}}\]]))"
_KEPT = r"[^\n\r\t ]"


class JsoncError(ValueError):
    """It is not JSON. `line` and `column` say where, `reason` what is wrong; `str()` is all of it."""

    def __init__(self, reason: str, line: int, column: int) -> None:
        super().__init__(f"line {line}, column {column}: {reason}")
        self.reason = reason
        self.line = line
        self.column = column


def parse_jsonc(data: bytes) -> Json:
    """The value in `data`. Nothing but blanks and comments is None. Raises :class:`JsoncError`."""
    data = data.removeprefix(_BOM)
    try:
        plain: Json = msgspec.json.decode(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return _parse_loosely(data)
    return plain


def _parse_loosely(data: bytes) -> Json:
    import json

    from cantle_ai.json_mistake import json_mistake

    text = re.sub(_COMMA, _blank, re.sub(_COMMENT, _blank, _text(data)))
    if not text.strip():
        return None
    try:
        value: Json = json.loads(text)
    except json.JSONDecodeError as error:
        mistake = json_mistake(error)
        raise JsoncError(mistake.reason, mistake.line, mistake.column) from None
    except RecursionError:
        raise JsoncError("nested too deeply", 1, 1) from None
    except ValueError as error:  # an integer of more digits than Python converts
        raise JsoncError(str(error).partition(";")[0].lower(), 1, 1) from None
    return value


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        column = len(before.rpartition(b"\n")[2].decode("utf-8")) + 1
        reason = f"the byte 0x{data[error.start]:02x} is not UTF-8"
        raise JsoncError(reason, before.count(b"\n") + 1, column) from None


def _blank(found: re.Match[str]) -> str:
    """Blanks instead of a comment or comma, so that places stay what they were; strings stay as they are."""
    token = found.group()
    return token if token[0] == '"' else re.sub(_KEPT, " ", token)
