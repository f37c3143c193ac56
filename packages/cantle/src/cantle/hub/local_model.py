"""The model in the box, `local/smollm2-135m`, and others that run in this process: is what they need there?

It is offered where no provider has a key, and chosen only by name: a model of that size, let loose with tools
by mistake, would be a trap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cantle.errors import ModelSelectionError
from cantle.paths import present
from cantle_ai.errors import ConfigurationError
from cantle_ai.model import Model
from cantle_ai.providers import LOCAL_API

if TYPE_CHECKING:
    from pathlib import Path

    from cantle.hub.model_selection import ModelLookup

__all__ = ["in_the_box", "missing_part", "name_of_file", "offer", "whole_path"]

LOCAL_PROVIDER: Final = "local"


def missing_part(model: Model) -> ModelSelectionError | None:
    """What is missing for `model`, which runs in this process, and how to get it; None when nothing is."""
    from cantle_ai.local.rows import file_path
    from cantle_ai.local.weights import engine_installed

    if not engine_installed():
        from cantle.installation import install_command

        return ModelSelectionError(
            f"The model {model.key} needs xllamacpp, which is not installed.",
            f"Install it: `{install_command('local')}`.",
        )
    if not model.base_url:
        return ModelSelectionError(
            f"The weights of {model.key} are not there.", "Get them with `cantle local setup`."
        )
    path = file_path(model.base_url)
    if not present(path):
        return ModelSelectionError(
            f"There is no file {path}.", "Name one that exists: `--model local/PATH.gguf`."
        )
    return _unreadable(path) if _is_named_by_path(model) else None


def _unreadable(path: Path) -> ModelSelectionError | None:
    """What is wrong with a file that somebody named; nothing is asked and recorded for it."""
    from cantle_ai.local.gguf import read_header

    try:
        read_header(path)
    except ConfigurationError as error:
        return ModelSelectionError(f"{error}.")
    return None


def whole_path(models: ModelLookup, model: Model) -> Model:
    """`model`, and if it was named by the path of its file, by all of that: sessions find it again from any folder."""
    from cantle_ai.local.rows import file_path

    if not _is_named_by_path(model):
        return model
    return models.find(model.provider, str(file_path(model.base_url))) or model


def _is_named_by_path(model: Model) -> bool:
    """Whether its id is the path of its file, and not a name that models.json or the catalog gives it."""
    return model.id == model.base_url


def name_of_file(models: ModelLookup, pattern: str) -> str:
    """The sentence that names a model by its file, for a pattern that looks like one; empty for any other."""
    if not pattern.casefold().endswith(".gguf") or in_the_box(models) is None:
        return ""
    return f"The model of a file is named by the provider that runs it: `--model {LOCAL_PROVIDER}/{pattern}`."


def in_the_box(models: ModelLookup, provider: str = LOCAL_PROVIDER) -> Model | None:
    """The model in the box, whether or not it can be used; None where `provider` is somebody else's."""
    from cantle_ai.local.rows import PACKAGED_MODEL

    found = models.find(provider, PACKAGED_MODEL)
    return found if found is not None and found.api == LOCAL_API else None


def offer(models: ModelLookup) -> str:
    """The sentence that offers the model in the box to somebody without a key; empty where there is none."""
    model = in_the_box(models)
    if model is None:
        return ""
    if missing_part(model) is None:
        ask = f'cantle --provider {model.provider} -p "…"'
        return f"To try things out without one, name the small model in the box: `{ask}`."
    return "To try things out without one, set up the small model in the box: `cantle local setup`."
