"""`cantle --models-schema`: the JSON schema by which an editor completes and checks models.json."""

from __future__ import annotations

from cantle.console import Results
from cantle_ai.schemas import MODELS_SCHEMA

__all__ = ["print_schema"]


def print_schema() -> int:
    """Print it and return the exit code."""
    results = Results()
    results.say(MODELS_SCHEMA.read_text(encoding="utf-8"))
    return results.code
