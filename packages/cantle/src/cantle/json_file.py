"""JSON files of the configuration (:mod:`cantle_ai.json_file`), with what is wrong as a UserError."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from cantle.errors import ConfigurationFileError
from cantle.paths import present
from cantle_ai.codec import JsonObject
from cantle_ai.errors import ConfigurationError

__all__ = ["as_user_errors", "read_json_file", "update_json_file"]


def read_json_file(path: Path) -> JsonObject | None:
    """The object in `path`; None when there is no such file. Raises :class:`ConfigurationFileError`."""
    if not present(path):
        return None
    from cantle_ai import json_file

    with as_user_errors():
        return json_file.read_json_file(path)


def update_json_file(
    path: Path, change: Callable[[JsonObject], None], *, mode: int | None = None
) -> JsonObject:
    """Change the object in `path`, and return it as written. Raises :class:`ConfigurationFileError`."""
    from cantle_ai import json_file

    with as_user_errors():
        return json_file.update_json_file(path, change, mode=mode)


@contextmanager
def as_user_errors() -> Iterator[None]:
    """Let what is wrong with a file of the configuration be a :class:`ConfigurationFileError`."""
    try:
        yield
    except ConfigurationError as error:
        raise ConfigurationFileError(f"{error}.") from None
