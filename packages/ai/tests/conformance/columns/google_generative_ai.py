"""The column of Gemini's API."""

from typing import Any

from packages.ai.tests.conformance.column import Column

__all__ = ["COLUMN", "FIELDS"]

FIELDS: dict[str, Any] = {
    "top_p": "topP",
    "model": {"reasoning": True, "input": ("text", "image")},
    "refusal": "SAFETY",
    "length": "MAX_TOKENS",
    "overload": {
        "status": 503,
        "code": "UNAVAILABLE",
        "message": "The model is overloaded. Please try again later.",
    },
    "overflow": {
        "status": 400,
        "code": "INVALID_ARGUMENT",
        "message": "The input token count (2000000) exceeds the maximum number of tokens allowed (1048576).",
    },
    "replays": "signature",
    "max_tokens": '"maxOutputTokens":77',
    "choices": {
        "none": '"functionCallingConfig":{"mode":"NONE"}',
        "required": '"functionCallingConfig":{"mode":"ANY"}',
        "named": '"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["read"]}',
    },
    "schema": '"responseMimeType":"application/json","responseJsonSchema":{',
}
"""What both doors to Google's models have in common."""

COLUMN = Column(api="google-generative-ai", **FIELDS)
