"""Which model a session talks to, and how hard it thinks.

Model: what was asked for, else what the session used last, else the settings' default, else the first model of
the first provider with a key. Level: what was asked for, else the model's `:level` suffix, else the session's,
else the settings'; always clamped to what the model can do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from cantle.errors import ModelSelectionError
from cantle.settings import Settings
from cantle_ai.messages import ThinkingLevel
from cantle_ai.model import THINKING_LEVELS, Model, Provider

__all__ = [
    "ModelChoice",
    "ModelLookup",
    "checked_level",
    "choose_level",
    "choose_model",
    "find_model",
    "require_key",
]

_NAMED_AT_MOST = 8


class ModelLookup(Protocol):
    """What is asked here of :class:`cantle_ai.models.Models`."""

    @property
    def providers(self) -> Sequence[Provider]: ...
    def list(self, provider: str | None = None) -> Sequence[Model]: ...
    def find(self, provider_id: str, model_id: str) -> Model | None: ...
    def configured(self, provider_id: str) -> bool: ...


class ModelChoice(Struct, frozen=True):
    """A model, the level that came with its name, and what the user should know about how it was chosen."""

    model: Model
    level: ThinkingLevel | None = None
    warnings: tuple[str, ...] = ()


def find_model(models: ModelLookup, pattern: str, *, provider: str | None = None) -> ModelChoice:
    """The model that `pattern` means: see :mod:`cantle_ai.model_patterns`.

    Raises :class:`ModelSelectionError` when nothing matches, or several providers do. An id that its provider
    does not list is an error too: whoever means it says so in models.json, where its limits and prices belong.
    """
    if (exact := _outright(models, pattern, provider)) is not None:
        return ModelChoice(exact)
    from cantle_ai.model_patterns import ModelPatternError, resolve_model

    try:
        found = resolve_model(pattern, models.list(), provider, has_auth=models.configured)
    except ModelPatternError as error:
        raise ModelSelectionError(f"{error}.") from None
    if models.find(found.model.provider, found.model.id) is None:
        raise ModelSelectionError(
            f'The provider {found.model.provider} has no model "{found.model.id}".',
            "List the models with --list-models, or add it to models.json.",
        )
    return ModelChoice(found.model, found.thinking_level)


def _outright(models: ModelLookup, pattern: str, provider: str | None) -> Model | None:
    """The model whose provider and id are given in full. No other provider's catalog is read for it."""
    if provider is None:
        provider, _, pattern = pattern.partition("/")
    elif "/" in pattern:
        return None  # it may repeat the provider's name
    return models.find(provider, pattern)


def choose_model(
    models: ModelLookup,
    settings: Settings,
    *,
    explicit: Model | str | None = None,
    provider: str | None = None,
    from_session: tuple[str, str] | None = None,
) -> ModelChoice:
    """The model to begin with. A stored one that is gone, or has no key, is named in a warning and passed over.

    Raises :class:`ModelSelectionError` for an explicit model that does not exist, and when there is none at all.
    """
    if isinstance(explicit, Model):
        return ModelChoice(explicit)
    if explicit is not None:
        return find_model(models, explicit, provider=provider)
    if provider is not None:
        return ModelChoice(_first_of(models, provider))
    warnings: list[str] = []
    candidates = (
        ("session", from_session),
        ("settings", (settings.default_provider, settings.default_model)),
    )
    for origin, stored in candidates:
        found = _stored(models, origin, stored, warnings)
        if found is not None:
            return ModelChoice(found, None, _then(warnings, found))
    for row in models.providers:
        if models.configured(row.id) and (available := models.list(row.id)):
            return ModelChoice(available[0], None, _then(warnings, available[0]))
    raise _no_key(warnings)


def choose_level(
    model: Model,
    settings: Settings,
    *,
    explicit: ThinkingLevel | None = None,
    from_session: ThinkingLevel | None = None,
) -> ThinkingLevel:
    """The level to begin with, one that the model has."""
    return model.clamp(
        (explicit and checked_level(explicit)) or from_session or settings.thinking_level(model.key)
    )


def checked_level(level: str) -> ThinkingLevel:
    """`level` itself. Raises :class:`ModelSelectionError` when there is no such thinking level."""
    for known in THINKING_LEVELS:
        if level == known:
            return known
    raise ModelSelectionError(
        f'There is no thinking level "{level}".', f"There are {', '.join(THINKING_LEVELS)}."
    )


def require_key(models: ModelLookup, model: Model) -> None:
    """Raise :class:`ModelSelectionError` when nothing would authorise a request to the model's provider."""
    if models.configured(model.provider):
        return
    row = next((row for row in models.providers if row.id == model.provider), None)
    variable = row.key_variables[0] if row is not None and row.key_variables else None
    ways = [f"set {variable}"] if variable else []
    ways += ["give --api-key", f'add "{model.provider}" to auth.json', "give it an apiKey in models.json"]
    raise ModelSelectionError(f"There is no key for the provider {model.provider}.", _sentence(ways))


def _stored(
    models: ModelLookup, origin: str, stored: tuple[str | None, str | None] | None, warnings: list[str]
) -> Model | None:
    provider, model_id = stored or (None, None)
    if provider is None and model_id is None:
        return None
    if model_id is None:
        found = next(iter(models.list(provider)), None)
    elif provider is None:
        found = next((model for model in models.list() if model.id == model_id), None)
    else:
        found = models.find(provider, model_id)
    name = "/".join(part for part in (provider, model_id) if part)
    if found is None:
        warnings.append(f"the model {name} of the {origin} does not exist any more")
    elif not models.configured(found.provider):
        warnings.append(f"there is no key for the model {name} of the {origin}")
    else:
        return found
    return None


def _then(warnings: Sequence[str], model: Model) -> tuple[str, ...]:
    return tuple(f"{warning[0].upper()}{warning[1:]}; using {model.key}." for warning in warnings)


def _first_of(models: ModelLookup, provider: str) -> Model:
    if not any(row.id == provider for row in models.providers):
        raise _unknown_provider(models, provider)
    available = models.list(provider)
    if not available:
        raise ModelSelectionError(
            f"The provider {provider} has no models.", "Name one with --model, or list some in models.json."
        )
    return available[0]


def _unknown_provider(models: ModelLookup, provider: str) -> ModelSelectionError:
    names = [row.id for row in models.providers]
    shown = ", ".join(names[:_NAMED_AT_MOST]) + (", …" if len(names) > _NAMED_AT_MOST else "")
    return ModelSelectionError(
        f'There is no provider "{provider}".', f"Known are {shown}; others can be added in models.json."
    )


def _no_key(warnings: Sequence[str]) -> ModelSelectionError:
    text = "No model can be used, because no provider has a key."
    if warnings:
        text = f"{'; '.join(warnings)}, and no other provider has a key."
        text = text[0].upper() + text[1:]
    ways = [
        "Set OPENAI_API_KEY",
        "save a key in auth.json",
        "describe a provider in models.json",
        "name a model with --model and give --api-key",
    ]
    return ModelSelectionError(text, _sentence(ways))


def _sentence(ways: Sequence[str]) -> str:
    joined = ", ".join(ways[:-1]) + f", or {ways[-1]}."
    return joined[0].upper() + joined[1:]
