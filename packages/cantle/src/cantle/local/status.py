"""`cantle local status`: what the model in the box needs, and what of it is there."""

from __future__ import annotations

from pathlib import Path

from cantle.console import Results
from cantle.hub.local_model import in_the_box
from cantle.installation import install_command
from cantle.local.release import RELEASE, Release
from cantle.local.setup import is_whole
from cantle.paths import ConfigPaths
from cantle.sdk import configured_models
from cantle_ai.local.weights import engine_installed, find_weights

__all__ = ["show_status"]


def show_status(paths: ConfigPaths, *, release: Release = RELEASE) -> int:
    """Say what is there, a line for each part, and what to do next. Returns 0 only if the model can be used.

    Raises :class:`cantle.errors.UserError` when `models.json`, which may change the model, cannot be used.
    """
    results = Results()
    model = in_the_box(configured_models(paths, []))
    path = find_weights([paths.weights])
    whole = path is not None and is_whole(path, release)
    engine = engine_installed()
    results.say(_row("weights", _weights(path, whole, release)))
    results.say(_row("engine", f"xllamacpp {_engine_version()}" if engine else "xllamacpp is not installed"))
    if model is None:
        taken = f'{paths.models} has a provider of its own called "local"; give it another name'
        results.say(_row("next", taken))
        return 1
    results.say(_row("threads", str(model.compat.get("threads", 1))))
    if not engine:
        results.say(_row("next", install_command("local")))
    elif path is None or (not whole and path.parent == paths.weights):
        results.say(_row("next", "cantle local setup"))
    elif not whole:
        results.say(_row("next", f"install the package {release.package} again, or remove it"))
    else:
        results.say(_row("use", 'cantle --provider local -p "Say hello."'))
    return results.code or (0 if whole and engine else 1)


def _row(name: str, text: str) -> str:
    return f"{name:<9}{text}\n"


def _weights(path: Path | None, whole: bool, release: Release) -> str:
    if path is None:
        return f"not there ({release.file})"
    size = f"{path.stat().st_size / 1e6:.1f} MB"
    return f"{path} ({size}, {'SHA-256 checked' if whole else 'DAMAGED: its SHA-256 is wrong'})"


def _engine_version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("xllamacpp")
    except PackageNotFoundError:
        return "(unknown version)"
