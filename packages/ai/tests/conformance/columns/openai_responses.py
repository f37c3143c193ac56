"""The column of OpenAI's Responses API."""

from packages.ai.tests.conformance.column import Column

COLUMN = Column(
    api="openai-responses",
    model={
        "reasoning": True,
        "input": ("text", "image"),
        "compat": {"supportsDeveloperRole": True, "supportsStrictMode": True},
    },
    refusal="incomplete.content_filter",
    length="incomplete.max_output_tokens",
    counts=("cache_read", "cache_write", "reasoning"),
    replays="signature",
    max_tokens='"max_output_tokens":77',
    cache={"short": '"prompt_cache_key"', "long": '"prompt_cache_retention":"24h"'},
    choices={
        "none": '"tool_choice":"none"',
        "required": '"tool_choice":"required"',
        "named": '"tool_choice":{"type":"function","name":"read"}',
    },
    schema='"text":{"format":{"type":"json_schema"',
)
