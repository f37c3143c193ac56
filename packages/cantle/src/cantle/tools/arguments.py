"""Arguments of a call, read with an error that says what is wanted.

A call's arguments have been validated against the tool's schema by then. Tools are used without that
as well, and a schema does not say everything.
"""

from __future__ import annotations

from cantle_agent.tool import ToolError
from cantle_ai.codec import JsonObject

__all__ = ["limit_or", "optional_count", "optional_flag", "optional_text", "renamed", "required_text"]


def required_text(arguments: JsonObject, name: str) -> str:
    """The text argument of that name. Raises :class:`ToolError`."""
    value = arguments.get(name)
    if not isinstance(value, str):
        raise ToolError(f"{name} must be given, as text.")
    return value


def optional_text(arguments: JsonObject, name: str) -> str | None:
    """The text argument of that name, None when it is not given or empty. Raises :class:`ToolError`."""
    if not arguments.get(name):
        return None
    return required_text(arguments, name)


def optional_flag(arguments: JsonObject, name: str) -> bool:
    """The true or false of that name, false when it is not given. Raises :class:`ToolError`."""
    value = arguments.get(name)
    if value is not None and not isinstance(value, bool):
        raise ToolError(f"{name} must be true or false.")
    return bool(value)


def optional_count(arguments: JsonObject, name: str) -> int | None:
    """The whole number of that name, None when it is not given. Raises :class:`ToolError`."""
    value = arguments.get(name)
    if value is None:
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise ToolError(f"{name} must be a whole number.")
    return value


def limit_or(arguments: JsonObject, default: int) -> int:
    """The argument `limit`, at least 1, and `default` when it is not given. Raises :class:`ToolError`."""
    value = optional_count(arguments, "limit")
    if value is not None and value < 1:
        raise ToolError(f"limit must be at least 1; leave it out for {default}.")
    return default if value is None else value


def renamed(arguments: JsonObject, names: dict[str, str]) -> JsonObject:
    """The arguments with other tools' names for them replaced: `names` maps theirs to ours."""
    if not names.keys() & arguments.keys():
        return arguments
    mended = {key: value for key, value in arguments.items() if key not in names}
    for theirs, ours in names.items():
        if theirs in arguments:
            mended.setdefault(ours, arguments[theirs])
    return mended
