"""The column of the Responses API at Azure."""

from dataclasses import replace

from packages.ai.tests.conformance.columns import openai_responses

COLUMN = replace(
    openai_responses.COLUMN,
    api="azure-openai-responses",
    model={"reasoning": True, "input": ("text", "image")},
    cache={"short": '"prompt_cache_key"'},
)
