"""The column of the Responses API by a subscription to ChatGPT."""

from dataclasses import replace

from packages.ai.tests.conformance.columns import openai_responses

COLUMN = replace(
    openai_responses.COLUMN,
    api="openai-codex-responses",
    model={"reasoning": True, "input": ("text", "image")},
    provider={"headers": {"chatgpt-account-id": "account-1"}},
    cache={"short": '"prompt_cache_key"'},
    schema='"text":{"verbosity":"low","format":{"type":"json_schema"',
)
