"""What is known about the built-in providers' models, as data.

One JSON file for each provider, loaded when its models are first asked for:

    {"source", "date", "provider", "defaults": {…}, "models": [entries as in models.json]}

`source` and `date` say where and when the figures were taken; `defaults` hold for every entry that does not
say otherwise.
"""

from __future__ import annotations

from pathlib import Path

from cantle_ai.codec import decode_object
from cantle_ai.fields import Fields
from cantle_ai.model import Model, Provider
from cantle_ai.model_entries import new_model, read_model_entry

__all__ = ["load_catalog"]


def load_catalog(provider: Provider) -> list[Model]:
    """The models of `provider`, the one to begin with first. None for a provider without a file here."""
    try:
        data = Path(__file__).with_name(f"{provider.id}.json").read_bytes()
    except FileNotFoundError:
        return []
    raw = decode_object(data)
    defaults = Fields(raw, "").json_object("defaults") or {}
    entries = Fields(raw, "").items("models") or []
    return [
        new_model(read_model_entry(Fields({**defaults, **entry}, f"models[{index}]")), provider)
        for index, entry in enumerate(entries)
        if isinstance(entry, dict)
    ]
