"""The named quirks of Mistral's chat API, for `compat` objects in `models.json` (in camel case there)."""

from __future__ import annotations

from msgspec import Struct

from cantle_ai.apis.model_quirks import model_quirks
from cantle_ai.model import Model

__all__ = ["MistralConversationsCompat", "compat_of"]


class MistralConversationsCompat(Struct, frozen=True, kw_only=True, rename="camel"):
    """How a model or endpoint differs from the plainest one."""

    supports_strict_mode: bool = False
    """Tools whose schema allows it are sent with `strict`. The field is in the vendor's type `Function`; models
    that do not know it have been seen to stall."""
    prompt_mode: bool | None = None
    """Thinking is asked for by `prompt_mode: "reasoning"`, the vendor's type `MistralPromptMode`, and not by an
    effort. Where nothing is said: for models whose row names no thinking levels, as in version 1.6.0 of the
    reference."""


def compat_of(model: Model) -> MistralConversationsCompat:
    """The quirks of a model. Names that belong to other APIs are passed over.

    Raises :class:`ConfigurationError` for a value of the wrong type.
    """
    return model_quirks(model, MistralConversationsCompat)
