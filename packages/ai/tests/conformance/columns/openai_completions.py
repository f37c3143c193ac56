"""The column of chat completions."""

from packages.ai.tests.conformance.column import Column

COLUMN = Column(
    api="openai-completions",
    model={
        "reasoning": True,
        "input": ("text", "image"),
        "compat": {"promptCacheKeyMode": "enabled", "supportsLongCacheRetention": True},
    },
    replays="text",
    max_tokens='"max_completion_tokens":77',
    cache={"short": '"prompt_cache_key"', "long": '"prompt_cache_retention":"24h"'},
    choices={
        "none": '"tool_choice":"none"',
        "required": '"tool_choice":"required"',
        "named": '"tool_choice":{"type":"function","function":{"name":"read"}}',
    },
    schema='"response_format":{"type":"json_schema"',
    without={"redacted thinking": "the API has no such block; what gateways send as details is tested apart"},
)
