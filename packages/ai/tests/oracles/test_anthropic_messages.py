"""Anthropic's own SDK reads Messages as we do, and knows the requests that we make."""

from __future__ import annotations

from typing import Any

from cantle_ai.testing.server.exchange import Call as HttpCall
from packages.ai.tests.conformance.columns.anthropic_messages import COLUMN
from packages.ai.tests.oracles.answers import Kinds
from packages.ai.tests.oracles.canonical import Call, Canonical
from packages.ai.tests.oracles.oracle import check_answers, check_requests
from packages.ai.tests.oracles.sdk_types import check_type
from tests.support.extras import needs

pytestmark = needs("oracles")


def read(base_url: str) -> Canonical:
    """By the SDK's accumulator of streamed messages."""
    from anthropic import Anthropic

    with Anthropic(base_url=base_url, api_key="k", max_retries=0) as client:
        with client.messages.stream(
            model="m-1", max_tokens=100, messages=[{"role": "user", "content": "Hi"}]
        ) as stream:
            for _ in stream:
                pass
            message = stream.current_message_snapshot
    usage = message.usage
    thoughts = [block for block in message.content if block.type == "thinking"]
    return Canonical(
        text="".join(block.text for block in message.content if block.type == "text"),
        thinking="".join(thought.thinking for thought in thoughts),
        signatures=[thought.signature for thought in thoughts],
        calls=[
            Call.of(block.id, block.name, block.input)
            for block in message.content
            if block.type == "tool_use"
        ],
        stop=message.stop_reason,
        model=message.model,
        response_id=message.id,
        input=usage.input_tokens,
        output=usage.output_tokens,
        cache_read=usage.cache_read_input_tokens,
        cache_write=usage.cache_creation_input_tokens,
        reasoning=usage.output_tokens_details.thinking_tokens if usage.output_tokens_details else 0,
    )


def validate(body: dict[str, Any], call: HttpCall) -> None:
    """The parameters of a streamed message, and nothing beside them."""
    from anthropic.types.message_create_params import MessageCreateParamsStreaming

    check_type(MessageCreateParamsStreaming, body)


async def test_answers_agree():
    await check_answers(COLUMN, read, kinds=Kinds(call_id="toolu_{:09d}"))


async def test_requests_are_what_the_sdk_knows():
    await check_requests(COLUMN, validate)
