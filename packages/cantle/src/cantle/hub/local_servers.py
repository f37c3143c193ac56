"""Servers of this machine are asked for their models when somebody wants one of theirs, and at no other time."""

from __future__ import annotations

from cantle.errors import ModelSelectionError
from cantle_ai.errors import ConfigurationError
from cantle_ai.model import Model
from cantle_ai.models import Models

__all__ = ["ask_all", "ask_for", "ask_server"]


async def ask_for(
    models: Models, wanted: Model | str | None, *, provider: str | None = None, stored: str | None = None
) -> None:
    """Ask the server that a model is wanted of. `wanted` and `provider` are what was asked for, if anything was;
    `stored` is the provider that a session or the settings name.

    Raises :class:`ModelSelectionError` when a server that was asked for does not answer. One that was stored is
    passed over, as any model that is gone.
    """
    if isinstance(wanted, Model):
        return
    if provider is None and wanted is not None:
        provider, slash, _ = wanted.partition("/")
        if not slash:
            return
    if provider is not None:
        await ask_server(models, provider)
    elif stored is not None:
        try:
            await ask_server(models, stored)
        except ModelSelectionError:
            return


async def ask_server(models: Models, provider: str) -> None:
    """Ask one provider's server. Does nothing for a provider that is none. Raises :class:`ModelSelectionError`."""
    row = models.provider(provider)
    if row is None or row.server is None:
        return
    listed = models.list(provider)
    try:
        await models.refresh(provider)
    except ConfigurationError as error:
        if not listed:  # models.json says what it has, whether it runs or not
            raise ModelSelectionError(f"{error}.") from None
        return
    if not models.list(provider):
        raise ModelSelectionError(f"{row.name} at {row.base_url} has no models.", "Load one there.")


async def ask_all(models: Models) -> None:
    """Ask all servers; those that do not answer have no models."""
    await models.refresh()
