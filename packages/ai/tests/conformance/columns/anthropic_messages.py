"""The column of Anthropic's Messages API."""

from packages.ai.tests.conformance.column import Column

COLUMN = Column(
    api="anthropic-messages",
    model={
        "reasoning": True,
        "input": ("text", "image"),
        "compat": {"sendSessionAffinityHeaders": True, "supportsStrictTools": True},
    },
    refusal="refusal",
    length="max_tokens",
    overload={"status": 529, "code": "overloaded_error", "message": "The model is overloaded"},
    overflow={
        "status": 400,
        "code": "invalid_request_error",
        "message": "prompt is too long: 205000 tokens > 200000 maximum",
    },
    counts=("cache_read", "cache_write", "reasoning"),
    replays="signature",
    max_tokens='"max_tokens":77',
    cache={
        "short": '"cache_control":{"type":"ephemeral"}',
        "long": '"cache_control":{"type":"ephemeral","ttl":"1h"}',
    },
    choices={
        "none": '"tool_choice":{"type":"none"}',
        "required": '"tool_choice":{"type":"any"}',
        "named": '"tool_choice":{"type":"tool","name":"read"}',
    },
    schema='"output_config":{"format":{"type":"json_schema"',
)
