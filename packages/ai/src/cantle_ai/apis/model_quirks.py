"""The quirks of one model, read from its row into the Struct of its wire API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import msgspec

from cantle_ai.codec import Json
from cantle_ai.errors import ConfigurationError
from cantle_ai.model import Model

__all__ = ["model_quirks"]

_S = TypeVar("_S", bound=msgspec.Struct)


def model_quirks(model: Model, kind: type[_S], known: Mapping[str, Json] | None = None) -> _S:
    """What `model.compat` says, over what is `known` without it. Names that belong to other APIs are passed over.

    Raises :class:`ConfigurationError` for a value of the wrong type.
    """
    try:
        return msgspec.convert({**(known or {}), **model.compat}, kind)
    except msgspec.ValidationError as error:
        text = str(error).replace("`$.", "`compat.")
        raise ConfigurationError(None, f"The model {model.key} cannot be used: {text}") from None
