"""The fields of `models.json`: one table, from which the schema for editors and the page's tables are made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, get_args

from cantle_ai.model import THINKING_LEVELS, LocalServer

__all__ = ["COST", "IMAGES", "INPUT_LIMITS", "MODEL", "PROMPT_CACHE", "PROVIDER", "RESIZE", "Field"]

TEXT: dict[str, Any] = {"type": "string"}
FLAG: dict[str, Any] = {"type": "boolean"}
COUNT: dict[str, Any] = {"type": "integer", "minimum": 1}
PRICE: dict[str, Any] = {"type": "number", "minimum": 0}
FREE: dict[str, Any] = {"type": "object"}
TEXTS: dict[str, Any] = {"type": "object", "additionalProperties": {"type": "string"}}


@dataclass(frozen=True)
class Field:
    """A field: its name, what it may hold as JSON schema, what it is for, what holds without it."""

    name: str
    kind: dict[str, Any]
    text: str
    default: str = ""
    needed: bool = False
    """Whether a whole description has to have it; changes to what is known never have to."""


def part(*fields: Field, whole: bool = False) -> dict[str, Any]:
    """The schema of an object of fields. Others are allowed, and passed over. With `whole` the needed ones must be there."""
    needed = [field.name for field in fields if field.needed and whole]
    return {
        "type": "object",
        "properties": {
            field.name: {"description": plain(field.text), **field.kind}
            | ({"default": _value(field.default)} if _value(field.default) is not None else {})
            for field in fields
        },
        **({"required": needed} if needed else {}),
    }


def plain(text: str) -> str:
    """A text of the page as an editor shows it."""
    return text.replace("`", "").replace(" (below)", "")


def _value(default: str) -> Any:
    literal = default.strip("`")
    if literal in ("true", "false"):
        return literal == "true"
    return int(literal) if literal.isdecimal() else None


_RATES = (
    Field("input", PRICE, "Of a token that is read.", needed=True),
    Field("output", PRICE, "Of a token that is written, thinking included.", needed=True),
    Field("cacheRead", PRICE, "Of a token that the provider's cache had.", "as much as the input"),
    Field("cacheWrite", PRICE, "Of a token that goes into it for minutes.", "1.25 times the input"),
    Field("cacheWrite1h", PRICE, "Of one that goes into it for an hour.", "twice the input"),
)
_TIER = (
    Field(
        "inputTokensAbove",
        COUNT,
        "Requests with more input than this, cached or not, have these prices.",
        needed=True,
    ),
    *_RATES,
)


def cost(*, whole: bool) -> dict[str, Any]:
    """The schema of a model's prices."""
    tiers = Field(
        "tiers",
        {"type": "array", "items": part(*_TIER, whole=True)},
        "Prices of larger requests; the highest tier that a request passes is that of all its tokens.",
    )
    return part(*_RATES, tiers, whole=whole)


COST = (
    *_RATES,
    Field(
        "tiers",
        {},
        "A list of the same with `inputTokensAbove`: the prices of whole requests with more input than that. The highest tier counts.",
    ),
)

RESIZE = (
    Field("maxWidth", COUNT, "Pixels.", "`2000`"),
    Field("maxHeight", COUNT, "Pixels.", "`2000`"),
    Field("maxBytes", COUNT, "Bytes of the image in base64.", "`4718592`"),
    Field("jpegQuality", {**COUNT, "maximum": 100}, "Of images that are made smaller as JPEG.", "`80`"),
)
IMAGES = (
    Field("resize", part(*RESIZE), "What new images are made to fit before they enter a conversation."),
    Field("maxPerMessage", COUNT, "Images that one message may have."),
    Field("maxPerRequest", COUNT, "Images that one request may have."),
)
INPUT_LIMITS = (
    Field("maxRequestBytes", COUNT, "The largest request."),
    Field("images", part(*IMAGES), "Of images: `maxPerMessage`, `maxPerRequest`, `resize`."),
)
PROMPT_CACHE = (
    Field("short", PRICE, "Seconds, where nothing else is asked for."),
    Field("long", PRICE, "Seconds, when a long life is asked for."),
)

_LEVELS: dict[str, Any] = {level: {"type": ["string", "null"]} for level in THINKING_LEVELS}


def model_fields(*, whole: bool) -> tuple[Field, ...]:
    """The fields of a model: of a whole description, or of changes to one that is known."""
    return (
        *(
            (Field("id", {"type": "string", "minLength": 1}, "What the API is sent.", needed=True),)
            if whole
            else ()
        ),
        Field("name", TEXT, "How it is shown and found.", "the id"),
        Field("api", {"$ref": "#/$defs/api"}, "What it speaks.", "the provider's"),
        Field("baseUrl", TEXT, "Where it is.", "the provider's"),
        Field("reasoning", FLAG, "Whether it can think.", "`false`"),
        Field(
            "thinkingLevelMap",
            {"type": "object", "properties": _LEVELS, "additionalProperties": False},
            "By level, the provider's word for it; null for a level that the model does not have. Levels up to "
            "`high` that are not named are there; `xhigh` and `max` are not.",
        ),
        Field(
            "input",
            {"type": "array", "items": {"enum": ["text", "image"]}, "minItems": 1, "uniqueItems": True},
            "What it takes: `text`, `image`.",
            '`["text"]`',
        ),
        Field("contextWindow", COUNT, "Tokens of prompt and answer together.", "`128000`"),
        Field("maxTokens", COUNT, "Tokens of the longest answer.", "`16384`"),
        Field("cost", cost(whole=whole), "Dollars for a million tokens (below).", "not known"),
        Field("inputLimits", part(*INPUT_LIMITS), "What the endpoint takes (below)."),
        Field(
            "promptCache",
            part(*PROMPT_CACHE),
            "Seconds for which the provider keeps a prompt: `short`, `long`.",
        ),
        Field(
            "samplingParams",
            FREE,
            "Fields for the body of each request. Only of OpenAI's APIs, and `llama-cpp`.",
        ),
        Field(
            "samplingParamsByThinkingLevel",
            {
                "type": "object",
                "properties": dict.fromkeys(THINKING_LEVELS, FREE),
                "additionalProperties": False,
            },
            "By level: more of them, over `samplingParams`.",
        ),
        Field("headers", TEXTS, "More headers, over the provider's."),
        Field("compat", {"$ref": "#/$defs/compat"}, "How it differs (below), over what its provider says."),
    )


MODEL = model_fields(whole=True)

PROVIDER = (
    Field("name", TEXT, "How it is shown.", "its id"),
    Field("baseUrl", TEXT, "The address of the API. A new provider needs it, or each of its models does. Of a known one, that of all its models."),
    Field("api", {"$ref": "#/$defs/api"}, "What it speaks. A new provider needs it, or each of its models does. Of a known one, that of models that are added, or that its server lists."),
    Field("apiKey", TEXT, "The key, or where it comes from (below)."),
    Field("headers", TEXTS, "More headers; their values are resolved as keys are."),
    Field("authHeader", FLAG, "Whether the key is sent as `Authorization: Bearer`.", "`false`"),
    Field("server", {"enum": list(get_args(LocalServer))}, "The program there, which is asked for its models and needs no key: `llama.cpp`, `ollama`, `lm-studio`, or `openai` for all that have `/v1/models`. Not in the reference.", "it is not asked"),
    Field("oauth", {"enum": ["radius"]}, "A login of the reference's. It is not built in here, and warned about."),
    Field("compat", {"$ref": "#/$defs/compat"}, "Ways in which the endpoint differs (below)."),
    Field("models", {"type": "array", "items": {"$ref": "#/$defs/model"}}, "Models to add; one with an `id` that is known replaces it."),
    Field("modelOverrides", {"type": "object", "additionalProperties": {"$ref": "#/$defs/change"}}, "By model id: fields to change. Objects merge field by field; ids that are not known are ignored."),
)  # fmt: skip
