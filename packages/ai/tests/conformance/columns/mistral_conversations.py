"""The column of Mistral's chat API."""

from packages.ai.tests.conformance.column import Column

COLUMN = Column(
    api="mistral-conversations",
    model={
        "reasoning": True,
        "input": ("text", "image"),
        "thinking_levels": {"off": "none", "minimal": None, "low": None, "medium": None},
    },
    overload={"status": 429, "code": "3505", "message": "Service tier capacity exceeded for this model."},
    overflow={
        "status": 400,
        "code": "3051",
        "message": "Prompt contains 65673 tokens, too large for model with 32768 maximum context length",
    },
    counts=("cache_read",),
    replays="signature",
    max_tokens='"max_tokens":77',
    cache={"short": '"prompt_cache_key"', "long": '"prompt_cache_key"'},
    choices={
        "none": '"tool_choice":"none"',
        "required": '"tool_choice":"any"',
        "named": '"tool_choice":{"type":"function","function":{"name":"read"}}',
    },
    schema='"response_format":{"type":"json_schema"',
    without={"redacted thinking": "the API has no such block"},
)
