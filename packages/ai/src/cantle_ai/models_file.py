"""`models.json`: providers and models that a person adds or changes.

    {
      "providers": {
        "local": {                              // a new provider needs baseUrl, and api here or at each model
          "baseUrl": "http://localhost:11434/v1",
          "api": "openai-completions",
          "apiKey": "$LOCAL_KEY",
          "models": [{"id": "qwen2.5-coder:7b"}]
        },
        "openai": {                             // a known one is changed
          "modelOverrides": {"gpt-5": {"contextWindow": 200000}}
        }
      }
    }

Field names, types and defaults are the reference's. Comments and trailing commas are allowed. Fields that
are not known are passed over. What a person wrote wrong is a :class:`ConfigurationError` that names the file
and the place: line and column for bad JSON, the field's path for a wrong type.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import cast, get_args

from msgspec import Struct

from cantle_ai.codec import Json
from cantle_ai.errors import ConfigurationError
from cantle_ai.fields import FieldError, Fields
from cantle_ai.jsonc import JsoncError, parse_jsonc
from cantle_ai.model import LocalServer
from cantle_ai.model_entries import ModelEntry, read_model_entry
from cantle_ai.providers import BUILTIN_PROVIDERS
from cantle_ai.system_errors import reason_of

__all__ = ["ModelsFile", "ProviderEntry", "load_models_file"]


class ProviderEntry(Struct, frozen=True, kw_only=True):
    """What the file says of a provider itself; None where it is silent."""

    id: str
    name: str | None = None
    base_url: str | None = None
    api: str | None = None
    api_key: str | None = None
    headers: Mapping[str, str] | None = None
    compat: Mapping[str, Json] | None = None
    auth_header: bool | None = None
    server: LocalServer | None = None


class ModelsFile(Struct, frozen=True, kw_only=True):
    """What a models file says. All three maps are by provider id."""

    path: Path
    providers: Mapping[str, ProviderEntry] = {}
    models: Mapping[str, tuple[ModelEntry, ...]] = {}
    """Models that are added, or replace one of the same id."""
    overrides: Mapping[str, tuple[ModelEntry, ...]] = {}
    """Changes to models that exist."""
    warnings: tuple[str, ...] = ()
    """Sentences about what is understood and not supported."""


def load_models_file(path: Path | str, *, known: Collection[str] | None = None) -> ModelsFile:
    """Read the file at `path`; one that does not exist, or is empty, says nothing.

    `known` are the ids of the providers that exist without it, the built-in ones by default; all others must be described in full. Raises
    :class:`ConfigurationError`.
    """
    path = Path(path)
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return ModelsFile(path=path)
    except OSError as error:
        raise ConfigurationError(path, f"cannot be read: {reason_of(error)}; check its permissions") from None
    try:
        return _read(path, parse_jsonc(data), known if known is not None else _BUILTIN)
    except JsoncError as error:
        raise ConfigurationError(path, f"{error}. Correct the file, or move it away") from None
    except FieldError as error:
        raise ConfigurationError(path, f"{error}") from None


def _read(path: Path, raw: Json, known: Collection[str]) -> ModelsFile:
    providers: dict[str, ProviderEntry] = {}
    models: dict[str, tuple[ModelEntry, ...]] = {}
    overrides: dict[str, tuple[ModelEntry, ...]] = {}
    warnings: list[str] = []
    table = None if raw is None else Fields(raw, "").part("providers")
    for fields in () if table is None else table.named_parts():
        id = fields.name
        entry = providers[id] = _provider(fields, id)
        models[id] = tuple(read_model_entry(model) for model in fields.parts("models"))
        overrides[id] = _overrides(fields)
        _check_quirks(fields, entry, models[id])
        if id not in known:
            _require_whole(fields, entry, models[id])
            if not models[id] and entry.server is None:
                warnings.append(f"{path}: {fields.path} is not a known provider and lists no models.")
        if fields.text("oauth") is not None:
            warnings.append(
                f"{path}: {fields.where('oauth')} asks for a login that is not built in; give the provider an apiKey."
            )
    return ModelsFile(
        path=path, providers=providers, models=models, overrides=overrides, warnings=tuple(warnings)
    )


def _provider(fields: Fields, id: str) -> ProviderEntry:
    return ProviderEntry(
        id=id,
        name=fields.text("name"),
        base_url=fields.text("baseUrl"),
        api=fields.text("api"),
        api_key=fields.text("apiKey"),
        headers=fields.texts("headers"),
        compat=fields.json_object("compat"),
        auth_header=fields.flag("authHeader"),
        server=_server(fields),
    )


def _server(fields: Fields) -> LocalServer | None:
    server = fields.text("server")
    if server is not None and server not in get_args(LocalServer):
        raise FieldError(fields.where("server"), f"must be one of {', '.join(get_args(LocalServer))}")
    return cast("LocalServer | None", server)


def _overrides(fields: Fields) -> tuple[ModelEntry, ...]:
    table = fields.part("modelOverrides")
    if table is None:
        return ()
    return tuple(read_model_entry(part, id=part.name) for part in table.named_parts())


_BUILTIN = {provider.id: provider for provider in BUILTIN_PROVIDERS}


def _check_quirks(fields: Fields, entry: ProviderEntry, models: tuple[ModelEntry, ...]) -> None:
    """Quirks of models whose API is known here. Those of others are looked at when a request is made."""
    if entry.compat:
        _check_compat(fields, entry.api)
    usual = entry.api or (_BUILTIN[entry.id].api if entry.id in _BUILTIN else None)
    for part, model in zip(fields.parts("models"), models, strict=True):
        if model.compat:
            _check_compat(part, model.api or usual)


def _check_compat(fields: Fields, api: str | None) -> None:
    import msgspec

    from cantle_ai.apis.compat_table import COMPAT

    quirks = COMPAT.get(api or "")
    if quirks is None:
        return
    try:
        msgspec.convert(fields.json_object("compat"), quirks())
    except msgspec.ValidationError as error:
        reason, _, place = str(error).partition(" - at `$")
        path = fields.where("compat") + place.rstrip("`")
        raise FieldError(path, f"is wrong: {reason[0].lower()}{reason[1:]}") from None


def _require_whole(fields: Fields, entry: ProviderEntry, models: tuple[ModelEntry, ...]) -> None:
    """A provider that exists nowhere else has to say where it is and what it speaks.

    Of one whose models do, a server that is asked for more has to say it as well.
    """
    places: list[ProviderEntry | ModelEntry] = [*models, *([entry] if entry.server else [])]
    for place in places:
        if not (entry.base_url or place.base_url):
            raise FieldError(fields.where("baseUrl"), "is missing: the address of the provider's API")
        if not (entry.api or place.api):
            raise FieldError(fields.where("api"), 'is missing: such as "openai-completions"')
