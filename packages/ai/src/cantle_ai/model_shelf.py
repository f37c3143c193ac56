"""A provider and its models: listed at once or loaded when first asked for, and what models files change about them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

import msgspec

from cantle_ai.model import Model, Provider
from cantle_ai.providers import LOCAL_API

if TYPE_CHECKING:
    from pathlib import Path

    from cantle_ai.model_entries import ModelEntry
    from cantle_ai.models_file import ModelsFile, ProviderEntry

__all__ = ["CatalogModels", "GivenModels", "LocalModels", "ModelShelf", "ModelSource"]


class ModelSource(Protocol):
    """Where a provider's models come from."""

    def listed(self, provider: Provider) -> Sequence[Model | ModelEntry]:
        """The models to offer, the one to begin with first. Called when they are first asked for, and then kept."""
        ...

    def resolve(self, provider: Provider, model_id: str) -> Model | None:
        """The model of an id that is not among them, such as a file by its path; None when it means nothing."""
        ...


GivenModels: TypeAlias = (
    "Sequence[Model | ModelEntry] | Callable[[Provider], Sequence[Model | ModelEntry]] | ModelSource"
)
"""What may be given as a provider's models: themselves, a function that loads them, or a source.

An entry takes what it does not say, such as its API, from the provider."""


class CatalogModels:
    """What the catalog has of a provider."""

    def listed(self, provider: Provider) -> Sequence[Model]:
        from cantle_ai.catalog import load_catalog

        return load_catalog(provider)

    def resolve(self, provider: Provider, model_id: str) -> Model | None:
        return None


class LocalModels:
    """The models of the provider `local`: those whose weights are found, and files by their paths."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = tuple(folders)

    def listed(self, provider: Provider) -> Sequence[Model]:
        from cantle_ai.local.rows import listed_models

        return listed_models(provider, self._folders)

    def resolve(self, provider: Provider, model_id: str) -> Model | None:
        from cantle_ai.local.rows import named_model

        return named_model(provider, model_id, self._folders)


class _Loaded:
    def __init__(
        self, models: Sequence[Model | ModelEntry] | Callable[[Provider], Sequence[Model | ModelEntry]]
    ):
        self._models = models

    def listed(self, provider: Provider) -> Sequence[Model | ModelEntry]:
        return self._models(provider) if callable(self._models) else self._models

    def resolve(self, provider: Provider, model_id: str) -> Model | None:
        return None


class ModelShelf:
    """A provider and its models, with what models files change about them, worked out when first asked for."""

    def __init__(self, provider: Provider, models: GivenModels) -> None:
        self.provider = provider
        self._row = provider
        """As it is without any file: an `api` that a file names is that of models which the file adds."""
        self._source: ModelSource = (
            _Loaded(models) if isinstance(models, Sequence) or callable(models) else models
        )
        self._files: list[tuple[ModelsFile, ProviderEntry]] = []
        self._models: dict[str, Model] | None = None

    @property
    def models(self) -> dict[str, Model]:
        """By id, in order."""
        if self._models is None:
            whole = (self._whole(model) for model in self._source.listed(self._row))
            self._models = {model.id: model for model in whole}
            for file, entry in self._files:
                self._change(self._models, file, entry)
        return self._models

    def serve(self, models: Sequence[Model]) -> None:
        """Take the models that its server has now."""
        self._source = _Loaded(models)
        self._models = None

    def find(self, model_id: str) -> Model | None:
        """The model of that id, listed or not."""
        return self.models.get(model_id) or self._source.resolve(self.provider, model_id)

    def apply(self, file: ModelsFile, entry: ProviderEntry) -> None:
        """Change the provider as `entry` says, and its models as the file does."""
        self.provider = _changed(self.provider, entry, chosen=bool(file.models.get(entry.id)))
        self._files.append((file, entry))
        self._models = None

    def _whole(self, model: Model | ModelEntry) -> Model:
        if isinstance(model, Model):
            return model
        from cantle_ai.model_entries import new_model

        return new_model(model, self._row)

    def _change(self, models: dict[str, Model], file: ModelsFile, entry: ProviderEntry) -> None:
        from cantle_ai.model_entries import changed_model, new_model

        if entry.base_url is not None:
            for model in models.values():
                models[model.id] = msgspec.structs.replace(model, base_url=entry.base_url)
        for override in file.overrides.get(entry.id, ()):
            if override.id in models:
                models[override.id] = changed_model(models[override.id], override)
        for added in file.models.get(entry.id, ()):
            base = self._source.resolve(self.provider, added.base_url or added.id)
            models[added.id] = (
                new_model(added, self.provider)
                if base is None
                else changed_model(msgspec.structs.replace(base, id=added.id), added)
            )


def _changed(provider: Provider, entry: ProviderEntry, *, chosen: bool) -> Provider:
    """The provider as `entry` says. With `chosen`, somebody has listed models of it: they may be taken unasked."""
    given = {
        name: value
        for name in ("name", "base_url", "api", "api_key", "auth_header", "server")
        if (value := getattr(entry, name)) is not None
    }
    if entry.base_url is not None:
        given["endpoints"] = {}  # the new address is that of all its APIs
    if chosen and provider.api != LOCAL_API:
        given["automatic"] = True
    return msgspec.structs.replace(
        provider,
        **given,
        headers={**provider.headers, **(entry.headers or {})},
        compat={**provider.compat, **(entry.compat or {})},
    )
