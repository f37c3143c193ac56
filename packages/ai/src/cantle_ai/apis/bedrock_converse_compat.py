"""The named quirks of models behind Bedrock's Converse, for `compat` objects in `models.json` (in camel case there).

Converse is one API for the models of many vendors, who differ in what they take. An id of Bedrock says whose a model
is (`us.anthropic.claude-sonnet-4-6`), also inside an ARN; so what is known about a vendor's models stands in one
table here, by id, and holds for models that no catalog has. What a row says goes over it. The ARN of an application
inference profile does not name the model: there the row has to say it all.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from cantle_ai.apis.model_quirks import model_quirks
from cantle_ai.codec import Json
from cantle_ai.model import Model

__all__ = ["BedrockConverseCompat", "BedrockThinking", "compat_of"]

BedrockThinking: TypeAlias = Literal["none", "adaptive", "budget", "reasoning", "reasoning-effort", "nova"]
"""How `additionalModelRequestFields` ask for a thinking level; see
:func:`cantle_ai.apis.bedrock_converse_thinking.thinking_of`."""


class BedrockConverseCompat(Struct, frozen=True, kw_only=True, rename="camel"):
    """How a model differs from the plainest one."""

    supports_strict_mode: bool = False
    """Tools whose schema allows it are sent with `strict`. From "Structured outputs" of AWS's documentation, which
    lists the models."""
    thinking_format: BedrockThinking = "none"
    """How thinking is asked for. `none` is for models that think by themselves, or not at all."""
    supports_thinking_binding: bool = False
    """The model binds its thinking to what stands before it; it is asked to drop blocks that do not fit any more
    instead of refusing the request. What version 1.6.0 of the reference sends for Claude from Opus 4.7 on."""
    requires_thinking_signature: bool = False
    """Thinking is taken back only with the signature it came with: from "Extended thinking" of Anthropic's
    documentation. What has none is sent as text."""
    supports_temperature: bool = True
    """It takes `temperature`. Claude from Opus 4.7 on refuses any other value than the default."""
    supports_temperature_while_thinking: bool = True
    """It takes `temperature` in a request that asks for thinking. Claude does not: from "Extended thinking" of
    Anthropic's documentation."""
    supports_prompt_caching: bool = False
    """It caches what stands before a `cachePoint`. Models without it refuse the block or cache by themselves: from
    "Prompt caching" of AWS's documentation."""
    supports_long_cache_retention: bool = False
    """A `cachePoint` may have the `ttl` `1h`: Claude from 4.5 on, by the same page."""
    supports_images_in_error_results: bool = True
    """A `toolResult` with the status `error` may hold images. Claude refuses such; they then follow the results."""
    supports_forced_tools_while_thinking: bool = True
    """A tool may be demanded in a request that asks for thinking. Claude refuses that; it then does not think."""


_CLAUDE: Final[Mapping[str, Json]] = {
    "supportsPromptCaching": True,
    "requiresThinkingSignature": True,
    "supportsTemperatureWhileThinking": False,
    "supportsImagesInErrorResults": False,
    "supportsForcedToolsWhileThinking": False,
}
_ADAPTIVE: Final[Mapping[str, Json]] = {
    **_CLAUDE,
    "thinkingFormat": "adaptive",
    "supportsLongCacheRetention": True,
}
_NAME = r"(?:^|[./])anthropic\.claude-(?:[a-z]+-)?"
_FAMILIES: Final[tuple[tuple[re.Pattern[str], Mapping[str, Json]], ...]] = (
    (
        re.compile(_NAME + r"(?:[5-9](?!\d)|4-[7-9](?!\d))"),
        {**_ADAPTIVE, "supportsThinkingBinding": True, "supportsTemperature": False},
    ),
    (re.compile(_NAME + r"4-6(?!\d)"), _ADAPTIVE),
    (
        re.compile(_NAME + r"4-5(?!\d)"),
        {**_CLAUDE, "thinkingFormat": "budget", "supportsLongCacheRetention": True},
    ),
    (re.compile(_NAME + r"(?:4|3-7)(?!\d)"), {**_CLAUDE, "thinkingFormat": "budget"}),
    (
        re.compile(
            r"(?:^|[./])anthropic\.claude-(?:v?[12](?!\d)|instant|3-(?:haiku|opus|sonnet)|3-5-sonnet)"
        ),
        {**_CLAUDE, "supportsPromptCaching": False},
    ),
    (re.compile(r"(?:^|[./])anthropic\.claude"), _CLAUDE),
    (re.compile(r"(?:^|[./])openai\.gpt-oss"), {"thinkingFormat": "reasoning-effort"}),
    (re.compile(r"(?:^|[./])openai\.gpt-\d"), {"thinkingFormat": "reasoning"}),
    (re.compile(r"(?:^|[./])amazon\.nova-2"), {"thinkingFormat": "nova"}),
)
"""What is known by a model's id; the first that is found in it holds."""


def compat_of(model: Model) -> BedrockConverseCompat:
    """The quirks of a model: what its row says, over what is known by its id.

    Names that belong to other APIs are passed over. Raises :class:`ConfigurationError` for a value of the wrong type.
    """
    known = next((quirks for pattern, quirks in _FAMILIES if pattern.search(model.id)), {})
    return model_quirks(model, BedrockConverseCompat, known)
