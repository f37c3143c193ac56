"""A JSON object in a file that several processes and people edit.

Reading says where a file is broken. Writing happens under a lock, takes what the file says then, changes
that, and replaces the file whole; a file that is not valid JSON is never replaced.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import msgspec

from cantle_ai.codec import JsonObject
from cantle_ai.errors import ConfigurationError
from cantle_ai.system_errors import reason_of

__all__ = ["JSON_LOCK_SECONDS", "check_json_file", "read_json_file", "update_json_file"]

JSON_LOCK_SECONDS = 10.0
"""How long a writer waits for another one before it gives up."""

_BOM = b"\xef\xbb\xbf"


def read_json_file(path: Path) -> JsonObject | None:
    """The object in `path`; None when there is no such file. An empty file is an empty object.

    Raises :class:`ConfigurationError` naming file, line and column when it is not JSON, and naming the file when
    it cannot be read or holds something other than an object.
    """
    try:
        data = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _problem(f"{path} cannot be read: {reason_of(error)}. Check its permissions") from None
    return _parse(path, data)


def update_json_file(
    path: Path, change: Callable[[JsonObject], None], *, mode: int | None = None
) -> JsonObject:
    """Change the object in `path` in place of whoever else may be writing it, and return it as written.

    `change` gets what the file holds under the lock, an empty object when there is no file, and edits it. The
    new file has `mode`, or the mode of the old one; a symbolic link stays one. Raises
    :class:`ConfigurationError` when the file is not valid (it is left as it was), cannot be written, or stays
    locked for longer than :data:`JSON_LOCK_SECONDS`.
    """
    return _updated(path, change, mode)


def check_json_file(path: Path) -> None:
    """Raise what :func:`update_json_file` would raise now. All is done but the last step: the file stays."""
    _updated(path, lambda value: None, None, replace=False)


def _updated(
    path: Path, change: Callable[[JsonObject], None], mode: int | None, *, replace: bool = True
) -> JsonObject:
    from cantle_ai.file_lock import held_lock

    target = Path(os.path.realpath(path))
    lock = target.with_name(target.name + ".lock")
    try:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with held_lock(lock, patience=JSON_LOCK_SECONDS):
            value = read_json_file(target) or {}
            change(value)
            _write(target, _encode(value), mode, replace)
    except TimeoutError:
        raise _problem(
            f"{lock} has been held by another process for {JSON_LOCK_SECONDS:g} seconds. "
            "Try again when that process is done"
        ) from None
    except OSError as error:
        raise _problem(
            f"{path} cannot be written: {reason_of(error)}. Check its folder's permissions and free space"
        ) from None
    return value


def _problem(text: str) -> ConfigurationError:
    """The error with a text that names the file itself."""
    return ConfigurationError(None, text)


def _parse(path: Path, data: bytes) -> JsonObject:
    data = data.removeprefix(_BOM)
    if not data.strip():
        return {}
    try:
        value = msgspec.json.decode(data)
    except (msgspec.MsgspecError, RecursionError):
        value = _parse_slowly(path, data)
    if not isinstance(value, dict):
        raise _problem(f"{path} does not hold a JSON object. It must begin with a brace")
    return value


def _parse_slowly(path: Path, data: bytes) -> object:
    """What msgspec refuses may still be JSON (a lone surrogate); otherwise `json` knows line and column."""
    import json

    from cantle_ai.json_mistake import json_mistake

    next_step = "Mend the file; it was left as it is"
    try:
        return json.loads(data.decode("utf-8"))
    except json.JSONDecodeError as error:
        mistake = json_mistake(error)
        raise _problem(
            f"{path}, line {mistake.line}, column {mistake.column}: not valid JSON ({mistake.reason}). {next_step}"
        ) from None
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - (data.rfind(b"\n", 0, error.start) + 1) + 1
        raise _problem(
            f"{path}, line {line}, column {column}: not valid JSON (a byte that is not UTF-8). {next_step}"
        ) from None
    except RecursionError:
        raise _problem(f"{path} is nested too deeply. {next_step}") from None


def _encode(value: JsonObject) -> bytes:
    import json

    try:
        return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()
    except UnicodeEncodeError:  # a lone surrogate, which only an escape can write
        return (json.dumps(value, indent=2) + "\n").encode()


def _write(target: Path, data: bytes, mode: int | None, replace: bool) -> None:
    from cantle_ai.new_files import new_file

    if mode is None:
        mode = target.stat().st_mode & 0o7777 if target.exists() else 0o644
    with new_file(target.parent, 0o600) as fresh:
        fresh.write(data)
        os.fsync(fresh.descriptor)
        fresh.path.chmod(mode)
        if replace:
            fresh.replace(target)
