"""The column of Bedrock's Converse, with a model whose quirks are Claude's."""

from packages.ai.tests.conformance.column import Column

COLUMN = Column(
    top_p="topP",
    api="bedrock-converse-stream",
    model={
        "reasoning": True,
        "input": ("text", "image"),
        "compat": {
            "thinkingFormat": "budget",
            "supportsStrictMode": True,
            "supportsPromptCaching": True,
            "supportsLongCacheRetention": True,
            "requiresThinkingSignature": True,
            "supportsTemperatureWhileThinking": False,
            "supportsImagesInErrorResults": False,
            "supportsForcedToolsWhileThinking": False,
        },
    },
    refusal="guardrail_intervened",
    length="max_tokens",
    overload={"status": 429, "code": "ThrottlingException", "message": "Too many tokens, please wait"},
    overflow={
        "status": 400,
        "code": "ValidationException",
        "message": "Input is too long for requested model.",
    },
    counts=("cache_read", "cache_write"),
    replays="signature",
    max_tokens='"maxTokens":77',
    cache={
        "short": '{"cachePoint":{"type":"default"}}',
        "long": '{"cachePoint":{"type":"default","ttl":"1h"}}',
    },
    choices={
        "none": "",
        "required": '"toolChoice":{"any":{}}',
        "named": '"toolChoice":{"tool":{"name":"read"}}',
    },
    schema='"outputConfig":{"textFormat":{"type":"json_schema"',
    without={"facts of the answer": "the id comes in a header; test_bedrock_converse_stream.py has it"},
)
