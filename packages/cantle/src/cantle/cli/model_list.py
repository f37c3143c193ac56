"""`cantle --list-models`: the models that a request could be made to now, as a table."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from cantle.console import Results, warn
from cantle.errors import UserError
from cantle.hub.model_selection import choose_model, no_key, require_key, require_parts
from cantle.paths import ConfigPaths, config_directory
from cantle.sdk import configured_models
from cantle.settings import Settings
from cantle_ai.listening import may_listen
from cantle_ai.model import Model
from cantle_ai.models import Models

__all__ = ["list_models"]

_SHOWN = 8
_HEAD = ("provider", "model", "context", "max-out", "thinking", "images")


def list_models(options: argparse.Namespace) -> int:
    """Print the models of providers with a key, or those among them that a search fits."""
    warnings: list[str] = []
    paths = ConfigPaths(config_directory())
    models = configured_models(paths, warnings)
    _ask_servers(models, options.provider)
    listed = _spoken(models, _authorised(models, paths, options), warnings)
    for warning in warnings:
        warn(warning)
    if not listed:
        raise UserError("There is no model that can be used.", f"Correct the APIs in {paths.models}.")
    wanted = _searched(listed, options.list_models)
    if not wanted:
        raise _none_fits(models, options)
    results = Results()
    results.say(_table([_HEAD, *(_row(model) for model in wanted)]))
    return results.code


def _ask_servers(models: Models, provider: str | None) -> None:
    """Ask the servers of this machine that are there, or that of `provider`, for their models."""
    asked = [row for row in models.providers if row.server is not None and provider in (None, row.id)]
    if provider is None:
        asked = [row for row in asked if may_listen(row.base_url)]
    if not asked:
        return
    import asyncio

    from cantle.hub.local_servers import ask_all, ask_server

    async def ask() -> None:
        try:
            await (ask_all(models) if provider is None else ask_server(models, provider))
        finally:
            await models.aclose()

    asyncio.run(ask())


def _authorised(models: Models, paths: ConfigPaths, options: argparse.Namespace) -> Sequence[Model]:
    """The models of providers with a key; with `--provider` those of that one, which `--api-key` gives a key."""
    if options.provider:
        first = choose_model(models, Settings(), paths=paths, provider=options.provider).model
        require_parts(first)
        if not options.api_key:
            require_key(models, first, paths)
        return models.list(options.provider)
    rows = sorted(models.providers, key=lambda row: not row.automatic)  # offered last
    listed = [model for row in rows if models.configured(row.id) for model in models.list(row.id)]
    if not listed:
        raise no_key(models, paths)
    return listed


def _spoken(models: Models, listed: Sequence[Model], warnings: list[str]) -> Sequence[Model]:
    """Those of them whose API is known. Adds a warning for each API that is not, with the first of its models."""
    told: set[tuple[str, str]] = set()
    spoken: list[Model] = []
    for model in listed:
        problem = models.api_problem(model)
        if problem is None:
            spoken.append(model)
        elif (where := (model.provider, model.api)) not in told:
            told.add(where)
            warnings.append(f"{problem}.")
    return spoken


def _searched(listed: Sequence[Model], search: str) -> Sequence[Model]:
    """Those that a glob means, or, without its signs, those whose names have the letters."""
    if any(sign in search for sign in "*?["):
        from cantle_ai.model_patterns import match_models

        if found := match_models([search], listed).models:
            return [each.model for each in found]
    return [model for model in listed if _fits(model, search)]


def _none_fits(models: Models, options: argparse.Namespace) -> UserError:
    """Why nothing is listed for a search: nothing is called so, or only what has no key."""
    search: str = options.list_models
    if not options.provider:
        rows = [row.id for row in models.providers if not models.configured(row.id)]
        others = [row for row in rows if _searched(models.list(row), search)]
        others.sort(key=lambda row: models.find(row, search) is None)
        if others:
            names = f"{', '.join(others[:_SHOWN])}{', …' if len(others) > _SHOWN else ''}"
            return UserError(
                f'No model that can be used fits "{search}"; some of providers without a key do: {names}.',
                f"`cantle auth check {others[0]}` says what is missing.",
            )
    return UserError(f'No model fits "{search}".', "`cantle --list-models` lists those that can be used.")


def _fits(model: Model, search: str) -> bool:
    """Whether the letters of `search` come in this order in the model's key or name."""
    return any(_in_order(search.casefold(), text.casefold()) for text in (model.key, model.name))


def _in_order(letters: str, text: str) -> bool:
    rest = iter(text)
    return all(letter in rest for letter in letters if not letter.isspace())


def _row(model: Model) -> tuple[str, ...]:
    return (
        model.provider,
        model.id,
        _count(model.context_window),
        _count(model.max_tokens),
        "yes" if model.reasoning else "no",
        "yes" if "image" in model.input else "no",
    )


def _count(tokens: int) -> str:
    if tokens >= 1_000_000:
        return f"{tokens / 1_000_000:.3g}M"
    return f"{tokens / 1000:.1f}K".replace(".0K", "K") if tokens >= 1000 else str(tokens)


def _table(rows: list[tuple[str, ...]]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "".join(f"{line.rstrip()}\n" for line in lines)
