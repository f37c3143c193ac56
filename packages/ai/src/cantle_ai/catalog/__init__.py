"""What is known about the built-in providers' models, as data.

One JSON file for each provider, loaded when its models are first asked for:

    {"source", "date", "provider", "defaults": {API: {…}}, "models": [entries as in models.json]}

`source` and `date` say where and when the figures were taken. `defaults` hold, field by field, for every entry of
that API that does not say otherwise; `null` there takes one back. The files are made by `tools/catalog`.
"""

from __future__ import annotations

from pathlib import Path

from cantle_ai.codec import decode_object
from cantle_ai.fields import Fields
from cantle_ai.model import Model, Provider
from cantle_ai.model_entries import new_model, read_model_entry

__all__ = ["FOLDER", "load_catalog"]

FOLDER = Path(__file__).parent
"""Where the files are."""


def load_catalog(provider: Provider) -> list[Model]:
    """The models of `provider`, the one to begin with first. None for a provider without a file here."""
    try:
        data = (FOLDER / f"{provider.id}.json").read_bytes()
    except FileNotFoundError:
        return []
    raw = Fields(decode_object(data), "")
    defaults = raw.json_object("defaults") or {}
    models = []
    for index, entry in enumerate(raw.items("models") or ()):
        if isinstance(entry, dict):
            shared = defaults.get(str(entry.get("api", provider.api)))
            whole = {**shared, **entry} if isinstance(shared, dict) else entry
            models.append(new_model(read_model_entry(Fields(whole, f"models[{index}]")), provider))
    return models
