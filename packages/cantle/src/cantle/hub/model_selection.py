"""Which model a session talks to, and how hard it thinks.

Model: what was asked for, else what the session used last, else the settings' default, else the first model of
the first provider with a key. One that runs on this machine is used only when it is named.

Level: what was asked for, else the model's `:level` suffix, else the session's, else the settings'; always
clamped to what the model can do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from cantle.errors import ModelSelectionError
from cantle.paths import ConfigPaths
from cantle.settings import Settings
from cantle_ai.messages import ThinkingLevel
from cantle_ai.model import THINKING_LEVELS, Model, Provider
from cantle_ai.providers import LOCAL_API

if TYPE_CHECKING:
    from cantle_ai.auth.resolution import AuthSource

__all__ = [
    "ModelChoice",
    "ModelLookup",
    "also_elsewhere",
    "checked_level",
    "choose_level",
    "choose_model",
    "explain_no_key",
    "find_model",
    "no_key",
    "require_key",
    "require_parts",
    "server_of",
]

_NAMED_AT_MOST = 8


class ModelLookup(Protocol):
    """What is asked here of :class:`cantle_ai.models.Models`."""

    @property
    def providers(self) -> Sequence[Provider]: ...
    def list(self, provider: str | None = None) -> Sequence[Model]: ...
    def find(self, provider_id: str, model_id: str) -> Model | None: ...
    def configured(self, provider_id: str) -> bool: ...
    def auth_source(self, provider_id: str) -> AuthSource | None: ...
    def api_problem(self, model: Model) -> str | None: ...


class ModelChoice(Struct, frozen=True):
    """A model, the level that came with its name, and what the user should know about how it was chosen."""

    model: Model
    level: ThinkingLevel | None = None
    warnings: tuple[str, ...] = ()


def server_of(models: ModelLookup, wanted: Model | str | None, *, provider: str | None = None) -> str | None:
    """The provider, a server of this machine, that has to be asked for its models before `wanted` is looked for.

    `wanted` is a pattern, and `provider` what goes with it or stands alone.
    """
    if isinstance(wanted, Model):
        return None
    if provider is None and wanted is not None and "/" in wanted:
        provider = wanted.partition("/")[0]
    name = (provider or "").casefold()
    row = next((row for row in models.providers if row.id.casefold() == name), None)
    return None if row is None or row.server is None else row.id


def also_elsewhere(models: ModelLookup, wanted: Model | str | None) -> bool:
    """Whether `wanted`, though it begins with the name of a server, is the very id of another provider's model.

    Proxies name what they pass on to `ollama/qwen3`.
    """
    if not isinstance(wanted, str) or "/" not in wanted:
        return False
    from cantle_ai.model_patterns import split_level

    ids = {wanted.casefold(), split_level(wanted)[0].casefold()}
    rows = [row for row in models.providers if row.server is None and models.configured(row.id)]
    return any(model.id.casefold() in ids for row in rows for model in models.list(row.id))


def find_model(
    models: ModelLookup, pattern: str, *, provider: str | None = None, given_key: bool = False
) -> ModelChoice:
    """The model that `pattern` means: see :mod:`cantle_ai.model_patterns`.

    With `given_key` there is a key for whom the pattern names in full: it never goes to a gateway that has a model
    of that name. Raises :class:`ModelSelectionError` when nothing matches, or several providers do. An id that its provider
    does not list is an error too: whoever means it says so in models.json, where its limits and prices belong.
    """
    exact = _outright(models, pattern, provider)
    if exact is not None and (given_key or provider is not None or models.configured(exact.provider)):
        return ModelChoice(_whole(models, exact))
    from cantle_ai.model_patterns import ModelPatternError, resolve_model

    try:
        found = resolve_model(pattern, models.list(), provider, has_auth=models.configured, unlisted=False)
    except ModelPatternError as error:
        if (named := _unlisted(models, pattern, provider)) is not None:
            return named
        step = "" if error.candidates else _next_step(models, pattern)
        raise ModelSelectionError(f"{error}.", step) from None
    return ModelChoice(found.model, found.thinking_level)


def _next_step(models: ModelLookup, pattern: str) -> str:
    from cantle.hub.local_model import name_of_file

    return name_of_file(models, pattern) or "List the models with --list-models, or add it to models.json."


def _outright(models: ModelLookup, pattern: str, provider: str | None) -> Model | None:
    """The model whose provider and id are given in full. No other provider's catalog is read for it."""
    if provider is None:
        provider, _, pattern = pattern.partition("/")
    elif "/" in pattern:
        return _file(models, provider, pattern.removeprefix(f"{provider}/"))
    return models.find(provider, pattern)


def _whole(models: ModelLookup, model: Model) -> Model:
    """`model` as a session can name it for good."""
    if model.api != LOCAL_API:
        return model
    from cantle.hub.local_model import whole_path

    return whole_path(models, model)


def _file(models: ModelLookup, provider: str, path: str) -> Model | None:
    """The model of a file, for a provider that runs files. An id with a slash may repeat the provider's name."""
    found = models.find(provider, path)
    return found if found is not None and found.api == LOCAL_API else None


def _unlisted(models: ModelLookup, pattern: str, provider: str | None) -> ModelChoice | None:
    """A model that runs on this machine and is in no list, as a file and what still needs something never are.

    Its level may follow. The one in the box may be named by its id alone, in any case.
    """
    from cantle.hub.local_model import in_the_box
    from cantle_ai.model_patterns import split_level

    text, level = split_level(pattern)
    found = _outright(models, text, provider)
    boxed = in_the_box(models)
    if found is None and boxed is not None and provider in (None, boxed.provider):
        found = boxed if text.casefold() in (boxed.id, boxed.key) else None
    if found is None or found.api != LOCAL_API:
        return None
    return ModelChoice(_whole(models, found), level)


def choose_model(
    models: ModelLookup,
    settings: Settings,
    *,
    paths: ConfigPaths,
    explicit: Model | str | None = None,
    provider: str | None = None,
    from_session: tuple[str, str] | None = None,
    given_key: bool = False,
) -> ModelChoice:
    """The model to begin with. A stored one that is gone, or has no key, is named in a warning and passed over.

    Raises :class:`ModelSelectionError` for an explicit model that does not exist, and when there is none at all.
    """
    if isinstance(explicit, Model):
        return ModelChoice(explicit)
    if explicit is not None:
        return find_model(models, explicit, provider=provider, given_key=given_key)
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
        listed = models.list(row.id) if row.automatic and models.configured(row.id) else ()
        usable = next((model for model in listed if models.api_problem(model) is None), None)
        if usable is not None:
            return ModelChoice(usable, None, _then(warnings, usable))
    raise no_key(models, paths, warnings)


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


def require_key(models: ModelLookup, model: Model, paths: ConfigPaths) -> None:
    """Raise :class:`ModelSelectionError` when nothing would authorise a request to the model's provider."""
    if models.configured(model.provider):
        return
    source = models.auth_source(model.provider)
    if source is not None and source.problem:
        raise ModelSelectionError(f"{source.problem}.")
    if source is not None and not source.usable:
        step = "Set that environment variable" + ("." if source.needed else ", or give --api-key.")
        raise ModelSelectionError(_capital(_unset(source, model.provider, paths)) + ".", step)
    row = next((row for row in models.providers if row.id == model.provider), None)
    raise _keyless(model.provider, row, paths)


def explain_no_key(paths: ConfigPaths) -> Callable[[Provider], str]:
    """What a model runtime says of a provider whose key is gone when a request needs it."""
    return lambda provider: str(_keyless(provider.id, provider, paths)).rstrip(".")


def _keyless(provider: str, row: Provider | None, paths: ConfigPaths) -> ModelSelectionError:
    from cantle_ai.auth.ambient import ambient_settings

    settings = [] if row is None else [*_key_variable(row), *ambient_settings(row)]
    ways = [f"set {' or '.join(settings)}"] if settings else []
    ways += [
        f"run `cantle auth login {provider}`",
        "give --api-key",
        f"give it an apiKey in {paths.models}",
    ]
    return ModelSelectionError(f"There is no key for the provider {provider}.", _sentence(ways))


def _key_variable(row: Provider) -> list[str]:
    """The variable to name: the one for a plain key, which most people have, before those for tokens."""
    plain = [name for name in row.key_variables if row.key_kinds.get(name, "key") == "key"]
    return [*plain, *row.key_variables][:1]


def require_parts(model: Model) -> None:
    """Raise :class:`ModelSelectionError` when `model` runs on this machine and something that it needs is missing."""
    if (missing := _missing_part(model)) is not None:
        raise missing


def _missing_part(model: Model) -> ModelSelectionError | None:
    if model.api != LOCAL_API:
        return None
    from cantle.hub.local_model import missing_part

    return missing_part(model)


def no_key(models: ModelLookup, paths: ConfigPaths, warnings: Sequence[str] = ()) -> ModelSelectionError:
    """The error for a configuration in which no provider has a key. `warnings` say what was tried before."""
    sources = {row.id: models.auth_source(row.id) for row in models.providers}
    unset = {id: source for id, source in sources.items() if source is not None and not source.usable}
    damaged = [source.problem for source in unset.values() if source.problem]
    if damaged:
        return ModelSelectionError(f"{'. '.join(damaged)}.", "No other provider has a key.")
    reasons = [*warnings, *(_unset(source, provider, paths) for provider, source in unset.items())]
    text = "No model can be used, because no provider has a key."
    if reasons:
        text = _capital(f"{'; '.join(reasons)}, and no other provider has a key.")
    known = next((row.key_variables[0] for row in models.providers if row.key_variables), None)
    wanted = " or ".join(dict.fromkeys(_first_unset(source) for source in unset.values())) or known
    ways = [f"set {wanted}"] if wanted else []
    ways += ["run `cantle auth login`"]
    ways += [] if unset else [f"describe a provider in {paths.models}"]
    ways += ["name a model with --model and give --api-key"]
    from cantle.hub.local_model import offer

    return ModelSelectionError(text, f"{_sentence(ways)} {offer(models)}".rstrip())


def _unset(source: AuthSource, provider: str, paths: ConfigPaths) -> str:
    """Which variable keeps a provider from being used, and who refers to it."""
    if not source.missing:
        why = f"the provider {provider} needs"
    elif source.kind == "stored-key":
        why = f"the saved key of the provider {provider} refers to"
    else:
        why = f"{paths.models} names as the key of the provider {provider}"
    return f"the variable {_first_unset(source)}, which {why}, is not set"


def _first_unset(source: AuthSource) -> str:
    return (*source.missing, *source.needed)[0]


def _stored(
    models: ModelLookup, origin: str, stored: tuple[str | None, str | None] | None, warnings: list[str]
) -> Model | None:
    """The model that the `origin` has stored as provider and id; else None, and why stands in `warnings`."""
    provider, model_id = stored or (None, None)
    if provider is None and model_id is None:
        return None
    if model_id is None:
        found = _first(models, provider) if provider is not None else None
    elif provider is None:
        found = next((model for model in models.list() if model.id == model_id), None)
    else:
        found = models.find(provider, model_id)
    name = "/".join(part for part in (provider, model_id) if part)
    if found is None:
        warnings.append(f"the model {name} of the {origin} does not exist any more")
    elif not models.configured(found.provider):
        warnings.append(f"there is no key for the model {name} of the {origin}")
    elif (missing := _missing_part(found)) is not None:
        warnings.append(f"the model {name} of the {origin} cannot be used ({_inside(missing)})")
    else:
        return found
    return None


def _then(warnings: Sequence[str], model: Model) -> tuple[str, ...]:
    return tuple(f"{_capital(warning)}; using {model.key}." for warning in warnings)


def _first_of(models: ModelLookup, provider: str) -> Model:
    """The first model of a provider that somebody named. Raises :class:`ModelSelectionError` where there is none."""
    if not any(row.id == provider for row in models.providers):
        raise _unknown_provider(models, provider)
    found = _first(models, provider)
    if found is None:
        raise ModelSelectionError(
            f"The provider {provider} has no models.", "Name one with --model, or list some in models.json."
        )
    return found


def _first(models: ModelLookup, provider: str) -> Model | None:
    """The provider's first model; the one in the box also where something that it needs is missing."""
    found = next(iter(models.list(provider)), None)
    if found is None and any(row.id == provider and row.api == LOCAL_API for row in models.providers):
        from cantle.hub.local_model import in_the_box

        return in_the_box(models, provider)
    return found


def _unknown_provider(models: ModelLookup, provider: str) -> ModelSelectionError:
    names = [row.id for row in models.providers]
    shown = ", ".join(names[:_NAMED_AT_MOST]) + (", …" if len(names) > _NAMED_AT_MOST else "")
    return ModelSelectionError(
        f'There is no provider "{provider}".', f"Known are {shown}; others can be added in models.json."
    )


def _sentence(ways: Sequence[str]) -> str:
    return _capital(", ".join(ways[:-1]) + f", or {ways[-1]}.")


def _inside(error: ModelSelectionError) -> str:
    """What an error says, to stand in brackets."""
    text = str(error).rstrip(".")
    return text[0].lower() + text[1:]


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]
