"""Why an image can't be shown to a model."""

from __future__ import annotations

__all__ = ["UnusableImageError"]


class UnusableImageError(Exception):
    """An image that no model can be shown as it is.

    `reason` goes on from the image's name ("is a BMP image, …"), `advice` is a sentence on what to do.
    """

    def __init__(self, reason: str, advice: str) -> None:
        super().__init__(f"{reason}. {advice}")
        self.reason = reason
        self.advice = advice
