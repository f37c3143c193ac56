"""Which tools a session has: a pure function of what there is, what settings say and what was asked for.

A list holds names and `*` patterns, or `+name` and `-name`, which change the selection before it. In a
list of settings, plain names come first and the signed ones are applied to them in order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from cantle.errors import ToolSelectionError
from cantle.tools.builtin import DEFAULT_TOOLS

__all__ = ["select_tools"]


def select_tools(
    available: Sequence[str],
    *,
    defaults: Iterable[Sequence[str]] = (),
    requested: Sequence[str] | None = None,
    excluded: Sequence[str] = (),
) -> tuple[list[str], list[str]]:
    """The names of the active tools, in the order in which they are named, and warnings.

    `available` are all tools that exist; `defaults` the `defaultTools` lists, the weakest first; `requested`
    what `--tools` says, instead of the defaults or, if all signed, on top of them; `excluded` goes last.
    A name that does not exist is a warning in settings and in `excluded`, and a :class:`ToolSelectionError` where
    it was asked for.
    """
    warnings: list[str] = []
    selected = [name for name in DEFAULT_TOOLS if name in available]
    for listed in defaults:
        selected = _changed(selected, listed)
    if unknown := [name for name in selected if name not in available]:
        warnings.append(f"defaultTools in the settings names tools that do not exist: {', '.join(unknown)}.")
        selected = [name for name in selected if name in available]
    if requested is not None:
        selected = _requested(selected, requested, available)
    # Whoever mistypes what to leave out has it on: not an error, since a tool that is not there is left out, too.
    if strangers := [name for name in excluded if "*" not in name and not _fits_any(name, available)]:
        warnings.append(
            f"What is to be left out names tools that do not exist: {', '.join(strangers)}. "
            f"There are: {', '.join(available)}."
        )
    return [name for name in selected if not any(fnmatchcase(name, out) for out in excluded)], warnings


def _fits_any(pattern: str, names: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for name in names)


def _changed(selected: list[str], listed: Sequence[str]) -> list[str]:
    plain = [entry for entry in listed if not entry.startswith(("+", "-"))]
    signed = [entry for entry in listed if entry.startswith(("+", "-"))]
    selected = list(dict.fromkeys(plain)) if plain or not listed else list(selected)
    for entry in signed:
        name = entry[1:]
        if entry[0] == "-":
            selected = [kept for kept in selected if kept != name]
        elif name not in selected:
            selected.append(name)
    return selected


def _requested(selected: list[str], requested: Sequence[str], available: Sequence[str]) -> list[str]:
    signed = [entry for entry in requested if entry.startswith(("+", "-"))]
    if signed and len(signed) != len(requested):
        raise ToolSelectionError(
            "Tools are either listed by name or changed with +name and -name, not both.",
            f"Write {', '.join(signed)} or {', '.join(e for e in requested if e not in signed)}.",
        )
    if signed:
        _require([entry[1:] for entry in signed], available)
        return _changed(selected, signed)
    chosen: dict[str, None] = {}
    for entry in requested:
        matching = [name for name in available if fnmatchcase(name, entry)]
        if not matching:
            _require([entry], available)
        chosen.update(dict.fromkeys(matching))
    return list(chosen)


def _require(names: Iterable[str], available: Sequence[str]) -> None:
    for name in names:
        if name not in available:
            raise ToolSelectionError(f'There is no tool "{name}".', f"There are: {', '.join(available)}.")
