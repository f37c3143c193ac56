"""OpenAI's own SDK reads chat completions as we do, and knows the requests that we make."""

from __future__ import annotations

from typing import Any

from cantle_ai.testing.server.exchange import Call as HttpCall
from packages.ai.tests.conformance.columns.openai_completions import COLUMN
from packages.ai.tests.oracles.answers import Kinds
from packages.ai.tests.oracles.canonical import Call, Canonical
from packages.ai.tests.oracles.oracle import check_answers, check_requests
from tests.support.extras import needs

pytestmark = needs("oracles")


def read(base_url: str) -> Canonical:
    """By the SDK's accumulator of streamed completions."""
    from openai import OpenAI

    thinking: list[str] = []
    with OpenAI(base_url=base_url, api_key="k", max_retries=0) as client:
        with client.chat.completions.stream(
            model="m-1",
            messages=[{"role": "user", "content": "Hi"}],
            stream_options={"include_usage": True},
        ) as stream:
            for event in stream:
                if event.type == "chunk" and event.chunk.choices:
                    thinking.append(getattr(event.chunk.choices[0].delta, "reasoning_content", None) or "")
            # Not the final one: that is an error where the limit was reached.
            completion = stream.current_completion_snapshot
    (choice,) = completion.choices
    usage = completion.usage
    return Canonical(
        text=choice.message.content or "",
        thinking="".join(thinking),
        calls=[
            Call.of(call.id, call.function.name, call.function.arguments)
            for call in choice.message.tool_calls or []
        ],
        stop=choice.finish_reason,
        model=completion.model,
        response_id=completion.id,
        input=usage.prompt_tokens - usage.prompt_tokens_details.cached_tokens,
        output=usage.completion_tokens,
        cache_read=usage.prompt_tokens_details.cached_tokens,
        reasoning=usage.completion_tokens_details.reasoning_tokens,
    )


def validate(body: dict[str, Any], call: HttpCall) -> None:
    """The parameters of a streamed completion, and nothing beside them."""
    from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming
    from pydantic import TypeAdapter

    TypeAdapter(CompletionCreateParamsStreaming).validate_python(body)
    assert not body.keys() - CompletionCreateParamsStreaming.__annotations__.keys()


async def test_answers_agree():
    await check_answers(COLUMN, read, kinds=Kinds(signatures=False, cache_write=False))


async def test_requests_are_what_the_sdk_knows():
    await check_requests(COLUMN, validate)
