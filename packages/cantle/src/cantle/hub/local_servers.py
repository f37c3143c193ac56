"""Servers of this machine are asked for their models when somebody wants one of theirs, and at no other time."""

from __future__ import annotations

from cantle.errors import ModelSelectionError
from cantle.hub.model_selection import also_elsewhere
from cantle_ai.errors import ConfigurationError
from cantle_ai.model import Model
from cantle_ai.models import Models

__all__ = ["ask_all", "ask_server"]


async def ask_server(
    models: Models, provider: str, *, wanted: Model | str | None = None, needed: bool = True
) -> None:
    """Ask one provider's server which models it has, because of `wanted`.

    Raises :class:`ModelSelectionError` when it does not answer, or has none. One that is not `needed`, as it was
    only stored or another provider has a model of that name, is passed over then, as any model that is gone.
    """
    needed = needed and not also_elsewhere(models, wanted)
    row = models.provider(provider)
    if row is None or row.server is None:
        return
    listed = models.list(provider)
    try:
        await models.refresh(provider)
    except ConfigurationError as error:
        if needed and not listed:  # models.json says what it has, whether it runs or not
            raise ModelSelectionError(f"{error}.") from None
        return
    if needed and not models.list(provider):
        raise ModelSelectionError(f"{row.name} at {row.base_url} has no models.", "Load one there.")


async def ask_all(models: Models) -> None:
    """Ask all servers; those that do not answer have no models."""
    await models.refresh()
