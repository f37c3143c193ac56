"""What can be taken of a JSON value that need not have the type it should. Shared by the readers of answers.

An answer is decoded by its types first; only what does not fit them comes here, so that one odd field costs no
more than itself.
"""

from __future__ import annotations

from typing import TypeVar

from msgspec import Struct

from cantle_ai.codec import Json

__all__ = ["as_count", "as_counts", "as_list", "as_text"]

_LARGEST = 1e15
"""No request has so many tokens; beyond it a number of JSON may be infinite."""
_S = TypeVar("_S", bound=Struct)


def as_text(raw: Json) -> str | None:
    """A string; None for all else."""
    return raw if isinstance(raw, str) else None


def as_count(raw: Json) -> int | None:
    """A whole number that is not negative, also from a fraction or a string (as Google writes 64 bits); else None."""
    if isinstance(raw, str):
        try:
            raw = float(raw)
        except ValueError:
            return None
    return int(raw) if isinstance(raw, int | float) and 0 <= raw < _LARGEST else None


def as_counts(raw: Json, kind: type[_S]) -> _S | None:
    """An object all of whose fields are counts; None for what is no object."""
    if not isinstance(raw, dict):
        return None
    return kind(*[as_count(raw.get(name)) for name in kind.__struct_encode_fields__])


def as_list(raw: Json) -> list[Json]:
    """A list; an empty one for all else."""
    return raw if isinstance(raw, list) else []
