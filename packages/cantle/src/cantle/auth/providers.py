"""What the sub-commands share: the providers that there are, and the store of their credentials."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from cantle.console import warn
from cantle.credentials import SavedCredentials, saved_credentials
from cantle.errors import UserError
from cantle.paths import ConfigPaths, config_directory
from cantle.sdk import configured_models
from cantle.settings import load_settings
from cantle_ai.auth.login import Login
from cantle_ai.auth.logins import find_login
from cantle_ai.model import Provider
from cantle_ai.models import Models

__all__ = ["Runtime", "runtime"]


class Runtime:
    """The providers, and what is saved for them."""

    def __init__(self, models: Models, store: SavedCredentials, paths: ConfigPaths) -> None:
        self.models = models
        self.store = store
        self.paths = paths

    @property
    def rows(self) -> Sequence[Provider]:
        return [row for row in self.models.providers if row.automatic]

    def row(self, name: str) -> Provider:
        """The provider of that id. Raises :class:`UserError` when there is none."""
        found = self.models.provider(name.strip())
        if found is not None:
            return found
        names = [row.id for row in self.rows]
        near = get_close_matches(name.lower(), names, 3) or [row for row in names if name.lower() in row][:3]
        step = f"Did you mean {' or '.join(near)}?" if near else f"Add it in {self.paths.models}."
        raise UserError(f'There is no provider "{name}".', step)

    def login(self, row: Provider) -> Login | None:
        """The login of a provider, if it has one."""
        return None if row.login is None else find_login(row.login)


def runtime() -> Runtime:
    """The runtime that the configuration makes. Raises :class:`UserError`."""
    paths = ConfigPaths(config_directory())
    settings = load_settings(paths)
    warnings: list[str] = []
    models = configured_models(paths, warnings, settings)
    for warning in warnings:
        warn(warning)
    return Runtime(models, saved_credentials(paths, settings), paths)
