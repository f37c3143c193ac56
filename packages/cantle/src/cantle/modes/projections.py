"""What a person is told when a request leaves out or changes something of the conversation."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cantle_ai.history import ProjectionKind

__all__ = ["projection_notes"]

_NOTES: Mapping[ProjectionKind, tuple[str, str]] = {
    "images": ("an image was left out", "{} images were left out"),
    "thinking_as_text": (
        "a thought of another model was sent as text",
        "{} thoughts of another model were sent as text",
    ),
    "redacted_thinking": (
        "a thought of another model could not be sent",
        "{} thoughts of another model could not be sent",
    ),
    "missing_beginning": ("the conversation has lost its beginning", ""),
}
"""The kinds that cost the model something it might need. What only makes a request fit is not told."""


def projection_notes(
    counts: Mapping[ProjectionKind, int], told: Collection[str]
) -> Iterator[tuple[str, str]]:
    """Each kind that is worth a word and not among those `told`, with a sentence."""
    for kind, (one, many) in _NOTES.items():
        count = counts.get(kind, 0)
        if count and kind not in told:
            said = one if count == 1 else many.format(count)
            yield kind, f"{said[0].upper()}{said[1:]}; the session keeps everything."
