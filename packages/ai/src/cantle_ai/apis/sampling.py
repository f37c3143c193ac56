"""Sampling parameters: the fields that a model, one of its thinking levels and the caller add to a request."""

from __future__ import annotations

from collections.abc import Collection

from cantle_ai.codec import JsonObject
from cantle_ai.messages import ThinkingLevel
from cantle_ai.model import Model, StreamOptions

__all__ = ["add_sampling", "sampling_layers"]


def sampling_layers(
    model: Model, options: StreamOptions, level: ThinkingLevel | None = None
) -> tuple[JsonObject, JsonObject, JsonObject]:
    """The model's, those of the thinking level, those of `options`; what comes later counts.

    `level` is the one that the request ends up with; by default what the model makes of that of `options`.
    """
    by_level = model.sampling_by_level.get(level or model.clamp(options.thinking), {})
    return model.sampling, by_level, options.sampling


def add_sampling(
    fields: JsonObject, model: Model, options: StreamOptions, *, except_for: Collection[str]
) -> None:
    """Put them into the `fields` of a body, over what stands there, but for those that an API must keep its own."""
    for sampling in sampling_layers(model, options):
        fields.update({name: value for name, value in sampling.items() if name not in except_for})
