"""The named quirks of models and endpoints that speak Google's `generateContent`.

The names are those of the `compat` objects in `models.json`, in camel case there. What is not set there follows
from the generation of the model, which its id tells: `gemini-2.5-flash` is older, and anything that names no
generation (`gemini-flash-latest`, a name of one's own) is taken for a new one. Nothing is guessed from an address.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from cantle_ai.apis.model_quirks import model_quirks
from cantle_ai.codec import Json
from cantle_ai.model import Model

__all__ = ["GoogleCompat", "compat_of"]


class GoogleCompat(Struct, frozen=True, kw_only=True, rename="camel"):
    """How a model differs from the others of its API. The defaults are those of Gemini 3 and later."""

    thinking_format: Literal["level", "budget"] = "level"
    """How much it is to think: by a `thinkingLevel`, or by a `thinkingBudget` of tokens, as before Gemini 3.
    (ai.google.dev/gemini-api/docs/thinking)"""
    least_thinking_budget: int = 0
    """The fewest tokens that a budget may have, 0 aside. (the table of budgets there)"""
    most_thinking_budget: int = 0
    """The most tokens that a budget may have; 0 when that is not known, and the model then decides how long it
    thinks. (the table of budgets there)"""
    supports_thinking_off: bool = True
    """A budget of 0 turns thinking off; Gemini 2.5 Pro refuses that. (the table of budgets there)"""
    requires_thought_signatures: bool = True
    """It refuses an answer whose first function call has no signature. One of another model gets the word that
    skips the check. (ai.google.dev/gemini-api/docs/thought-signatures)"""
    supports_call_ids: bool = True
    """Function calls and their responses carry the id of the call. Gemini gives ids since its third generation.
    (ai.google.dev/gemini-api/docs/function-calling)"""
    supports_images_in_function_responses: bool = True
    """Images of a tool's result lie inside its function response; otherwise in a user's content after it.
    (ai.google.dev/gemini-api/docs/function-calling, "Multimodal function responses")"""
    supports_parameters_json_schema: bool = True
    """Tools are declared with JSON schema (`parametersJsonSchema`); otherwise with the part of OpenAPI's that
    `parameters` takes, for servers of an older kind. (ai.google.dev/api/caching#FunctionDeclaration)"""


_BEFORE_3: dict[str, Json] = {
    "thinkingFormat": "budget",
    "requiresThoughtSignatures": False,
    "supportsCallIds": False,
    "supportsImagesInFunctionResponses": False,
}
_FAMILIES: tuple[tuple[str, dict[str, Json]], ...] = (
    (
        "gemini-2.5-pro",
        {"leastThinkingBudget": 128, "mostThinkingBudget": 32768, "supportsThinkingOff": False},
    ),
    ("gemini-2.5-flash-lite", {"leastThinkingBudget": 512, "mostThinkingBudget": 24576}),
    ("gemini-2.5-flash", {"mostThinkingBudget": 24576}),
)
"""What is known of a family of models, by the beginning of their ids."""

_GENERATION = re.compile(r"gemini-(\d+)(?!\d)")


def compat_of(model: Model) -> GoogleCompat:
    """The quirks of a model. Names that belong to other APIs are passed over.

    Raises :class:`ConfigurationError` for a value of the wrong type.
    """
    return model_quirks(model, GoogleCompat, _known(model))


def _known(model: Model) -> Mapping[str, Json]:
    name = model.id.rpartition("/")[2]
    generation = _GENERATION.match(name)
    if generation is None or int(generation[1]) >= 3:
        return {}
    family = next((facts for prefix, facts in _FAMILIES if name.startswith(prefix)), {})
    return {**_BEFORE_3, **family}
