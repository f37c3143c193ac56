"""JSON schemas of files that people write, for their editors. Made by `tools/models_schema`."""

from __future__ import annotations

from pathlib import Path

__all__ = ["MODELS_SCHEMA"]

MODELS_SCHEMA = Path(__file__).with_name("models.schema.json")
"""The schema of `models.json`."""
