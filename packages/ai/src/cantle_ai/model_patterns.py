"""Which model a person means: `openai/gpt-5:high`, `gpt-5`, `sol`, or for lists `openai/gpt-*`.

A pattern is, in this order: an exact id or `provider/id`; a name; what stands behind the last `/` of an id; a part of
one. Case does not count, and `:level` may stand behind each if the whole is nothing: ids may contain `/` and `:`
themselves, so the whole is always tried first. `openai/gpt-5` may be an id of a gateway, too: of several models, those
of providers with credentials are meant, and then the one that is named in full. Of several of one provider the newest
is meant: no variant of another (`…:batch`, `…-fast`), no date in its id, the highest version.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import cast

import msgspec
from msgspec import Struct

from cantle_ai.errors import CantleAIError
from cantle_ai.messages import ThinkingLevel
from cantle_ai.model import THINKING_LEVELS, Model

__all__ = ["ModelPatternError", "Resolution", "Scope", "match_models", "resolve_model", "split_level"]

_SHOWN = 8
_DATED = re.compile(r"\d{4}-?\d{2}-?\d{2}$")
_DIGITS = re.compile(r"(\d+)")
_SUFFIX = re.compile(r":|-(?=[A-Za-z])")


class ModelPatternError(CantleAIError):
    """A pattern means no model, or several. `candidates` are the keys of those that it may have meant."""

    def __init__(self, text: str, candidates: Sequence[str] = ()) -> None:
        super().__init__(text)
        self.candidates = tuple(candidates)


class Resolution(Struct, frozen=True):
    """What a pattern means: the model, the level if it named one, and what the person should know."""

    model: Model
    thinking_level: ThinkingLevel | None = None
    warning: str | None = None


class Scope(Struct, frozen=True):
    """What a list of patterns means, in the order of the patterns, each model once."""

    models: tuple[Resolution, ...]
    warnings: tuple[str, ...] = ()


def resolve_model(
    pattern: str,
    models: Iterable[Model],
    provider: str | None = None,
    *,
    has_auth: Callable[[str], bool] | None = None,
    unlisted: bool = True,
) -> Resolution:
    """The one model that `pattern` means, among those of `provider` if it is given.

    `has_auth` says whether a provider, by its id, has credentials: such a one is preferred. With `unlisted`,
    an id that a named provider does not list is taken as it is, with a warning: catalogs are older than
    models. Raises :class:`ModelPatternError` when nothing matches, or several providers do.
    """
    known = list(models)
    pool = [model for model in known if provider is None or model.provider.casefold() == provider.casefold()]
    if provider is not None and not pool:
        raise ModelPatternError(_unknown_provider(provider, known))
    for text, level in _readings(pattern):
        found = _matches(text, pool)
        if found:
            return Resolution(_choose(text, found, has_auth), level)
    return _as_given(pattern, pool, provider is not None, unlisted)


def match_models(
    patterns: Iterable[str], models: Iterable[Model], *, has_auth: Callable[[str], bool] | None = None
) -> Scope:
    """All models that the patterns mean: a glob every one that it fits, others one for each provider that has it.

    Globs (`*`, `?`, `[ab]`) are matched against `id` and `provider/id`, whatever the case. A pattern that
    means nothing is a warning, not an error.
    """
    known = list(models)
    chosen: dict[str, Resolution] = {}
    warnings: list[str] = []
    for pattern in patterns:
        found, level = _listed(pattern, known, has_auth)
        if not found:
            warnings.append(f'No model matches "{pattern}".')
        for model in found:
            chosen.setdefault(model.key, Resolution(model, level))
        if len(found) > 1 and not _is_glob(pattern):
            warnings.append(f'Several providers have "{pattern}": {_names(found)}.')
    return Scope(tuple(chosen.values()), tuple(warnings))


def split_level(pattern: str) -> tuple[str, ThinkingLevel | None]:
    """`pattern` without its `:level`, and the level; None when what follows the last `:` is none."""
    text, colon, suffix = pattern.rpartition(":")
    if colon and text and suffix.lower() in THINKING_LEVELS:
        return text, cast("ThinkingLevel", suffix.lower())
    return pattern, None


def _readings(pattern: str) -> list[tuple[str, ThinkingLevel | None]]:
    text, level = split_level(pattern)
    return [(pattern, None)] if level is None else [(pattern, None), (text, level)]


def _matches(pattern: str, pool: Sequence[Model]) -> list[Model]:
    """The models that fit best: exactly, else in part; nothing for an empty pattern."""
    text = pattern.strip().casefold()
    if not text:
        return []
    prefix, slash, rest = text.partition("/")
    inside = [model for model in pool if slash and rest and model.provider.casefold() == prefix]
    return (
        [model for model in pool if text in (model.id.casefold(), model.key.casefold())]
        or [model for model in pool if text == model.name.casefold()]
        or [model for model in inside if rest == _tail(model)]
        or [model for model in pool if text == _tail(model)]
        or [model for model in inside if _contains(model, rest)]
        or [model for model in pool if _contains(model, text)]
    )


def _tail(model: Model) -> str:
    return model.id.rpartition("/")[2].casefold()


def _contains(model: Model, text: str) -> bool:
    return text in model.id.casefold() or text in model.name.casefold()


def _usable(pattern: str, found: Sequence[Model], has_auth: Callable[[str], bool] | None) -> Sequence[Model]:
    """Those of providers with credentials, if any; of these the one that is named in full."""
    usable = [model for model in found if has_auth is None or has_auth(model.provider)] or found
    return [model for model in usable if model.key.casefold() == pattern.strip().casefold()] or usable


def _choose(pattern: str, found: Sequence[Model], has_auth: Callable[[str], bool] | None) -> Model:
    usable = _usable(pattern, found, has_auth)
    if len({model.provider for model in usable}) > 1:
        best = _best_of_each(usable)
        raise ModelPatternError(
            f'"{pattern}" is a model of several providers: {_names(best)}. Name one of these',
            [model.key for model in best],
        )
    return max(_plain(usable), key=_age)


def _plain(found: Sequence[Model]) -> Sequence[Model]:
    """Without names for others (`~maker/latest`) and variants (`…:batch`, `…-fast`) of what is found, too."""
    ids = {model.id for model in found}
    return [
        model
        for model in found
        if not model.id.startswith("~") and not any(base in ids for base in _bases(model.id))
    ] or found


def _bases(model_id: str) -> Iterator[str]:
    """What it would be a variant of; a version is none, `claude-5-5` not one of `claude-5`."""
    for end in _SUFFIX.finditer(model_id):
        yield model_id[: end.start()]


def _best_of_each(found: Sequence[Model]) -> list[Model]:
    best: dict[str, Model] = {}
    for model in sorted(_plain(found), key=_age):
        best[model.provider] = model
    return sorted(best.values(), key=lambda model: model.key)


def _age(model: Model) -> tuple[bool, list[tuple[bool, int, str]], int]:
    """Newer sorts higher: ids without a date, then by version, numbers as numbers; of equals the shorter one."""
    parts = [
        (part.isdecimal(), int(part) if part.isdecimal() else 0, part) for part in _DIGITS.split(model.id)
    ]
    return _DATED.search(model.id) is None, parts, -len(model.id)


def _as_given(pattern: str, pool: Sequence[Model], named: bool, unlisted: bool) -> Resolution:
    """An id that its provider does not list, shaped like the provider's first model."""
    prefix, slash, rest = pattern.partition("/")
    inside = [model for model in pool if slash and rest and model.provider.casefold() == prefix.casefold()]
    template = (inside or pool)[0] if inside or (named and pool) else None
    text, level = split_level(rest if inside else pattern)
    if template is None or not text.strip():
        raise ModelPatternError(f'No model matches "{pattern}"{_hint(pattern, pool)}')
    if not unlisted:
        hint = _hint(rest if inside else pattern, inside or pool)
        raise ModelPatternError(f'The provider {template.provider} has no model "{text}"{hint}')
    warning = f'The provider {template.provider} lists no model "{text}"; it is asked for as it is, at unknown cost.'
    model = msgspec.structs.replace(template, id=text, name="", price=None)
    return Resolution(model, level, warning)


def _listed(
    pattern: str, known: Sequence[Model], has_auth: Callable[[str], bool] | None
) -> tuple[list[Model], ThinkingLevel | None]:
    for text, level in _readings(pattern.strip()):
        if _is_glob(text):
            found = _globbed(text, known)
        else:
            found = _best_of_each(_usable(text, _matches(text, known), has_auth))
        if found:
            return found, level
    return [], None


def _is_glob(pattern: str) -> bool:
    return any(sign in pattern for sign in "*?[")


def _globbed(pattern: str, known: Sequence[Model]) -> list[Model]:
    import fnmatch

    fits = re.compile(fnmatch.translate(pattern), re.IGNORECASE).match
    return [model for model in known if fits(model.id) or fits(model.key)]


def _unknown_provider(provider: str, known: Sequence[Model]) -> str:
    names = ", ".join(dict.fromkeys(model.provider for model in known)) or "none"
    return f'No provider "{provider}" has models (those that have: {names}). Correct the name'


def _hint(pattern: str, pool: Sequence[Model]) -> str:
    """What may have been meant instead, as more sentences; the last without its full stop."""
    import difflib

    text, level = split_level(pattern)
    close = difflib.get_close_matches(text.casefold(), {model.id.casefold(): None for model in pool}, 3)
    hint = f". Close to it: {', '.join(close)}" if close else ""
    _, colon, suffix = pattern.rpartition(":")
    if colon and level is None and suffix.lower() not in THINKING_LEVELS:
        hint += f'. "{suffix}" is not a thinking level ({", ".join(THINKING_LEVELS)})'
    return hint


def _names(models: Sequence[Model]) -> str:
    shown = [model.key for model in models[:_SHOWN]]
    return ", ".join(shown) + (", …" if len(models) > _SHOWN else "")
