"""OpenAI's own SDK reads responses as we do, and knows the requests that we make, at each door."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from cantle_ai.content import ThinkingContent
from cantle_ai.messages import AssistantMessage
from cantle_ai.testing.server.exchange import Call as HttpCall
from packages.ai.tests.conformance.column import Column
from packages.ai.tests.conformance.columns import (
    azure_openai_responses,
    openai_codex_responses,
    openai_responses,
)
from packages.ai.tests.oracles.answers import Kinds
from packages.ai.tests.oracles.canonical import Call, Canonical, of_message
from packages.ai.tests.oracles.oracle import check_answers, check_requests
from tests.support.extras import needs
from tests.support.samples import samples

pytestmark = needs("oracles")

KINDS = Kinds(cache_write=True, empty_texts=False)


def _options(base_url: str) -> dict[str, Any]:
    """For a client of the SDK. Without certificates, which take most of the time to load and are of no use here."""
    from openai import DefaultHttpxClient

    http = DefaultHttpxClient(verify=False, trust_env=False)
    return {"base_url": base_url, "api_key": "k", "max_retries": 0, "http_client": http}


def by_openai(base_url: str) -> Canonical:
    from openai import OpenAI

    with OpenAI(**_options(base_url)) as client:
        return _read(client)


def by_azure(base_url: str) -> Canonical:
    from openai import AzureOpenAI

    with AzureOpenAI(**_options(base_url), api_version="v1") as client:
        return _read(client)


def by_codex(base_url: str) -> Canonical:
    from openai import OpenAI

    headers = {"chatgpt-account-id": "account-1"}
    with OpenAI(base_url=f"{base_url}/codex", api_key="k", max_retries=0, default_headers=headers) as client:
        return _read(client)


def _read(client: Any) -> Canonical:
    """By the SDK's accumulator of streamed responses, which an incomplete one leaves without a final one."""
    final = None
    with client.responses.stream(
        model="m-1", input=[{"role": "user", "content": "Hi"}], store=False
    ) as stream:
        for event in stream:
            if event.type in ("response.completed", "response.incomplete"):
                final = event.response
    assert final is not None
    text, thinking, signatures, calls = "", "", [], []
    for item in final.output:
        match item.type:
            case "message":
                text += "".join(part.text for part in item.content)
            case "reasoning":
                thinking += "\n\n".join(part.text for part in item.summary)
                signatures.append(item.encrypted_content)
            case "function_call":
                calls.append(Call.of(f"{item.call_id}|{item.id}", item.name, item.arguments))
    reason = final.incomplete_details.reason if final.incomplete_details else None
    read = final.usage.input_tokens_details
    return Canonical(
        text=text,
        thinking=thinking,
        signatures=signatures,
        calls=calls,
        stop=f"{final.status}.{reason}" if reason else final.status,
        model=final.model,
        response_id=final.id,
        input=final.usage.input_tokens - read.cached_tokens - read.cache_write_tokens,
        output=final.usage.output_tokens,
        cache_read=read.cached_tokens,
        cache_write=read.cache_write_tokens,
        reasoning=final.usage.output_tokens_details.reasoning_tokens,
    )


def ours(message: AssistantMessage) -> Canonical:
    """Our message, with what is encrypted in place of the item around it."""
    canonical = of_message(message)
    items = [json.loads(b.signature or "{}") for b in message.content if isinstance(b, ThinkingContent)]
    assert canonical.signatures is not None
    canonical.signatures[:] = [item["encrypted_content"] for item in items]
    return canonical


def validate(body: dict[str, Any], call: HttpCall) -> None:
    """The parameters of a streamed response, each item of the input one of its types, and nothing beside them."""
    known, of_request, of_item = _types()
    assert not body.keys() - known
    of_request.validate_python({**body, "input": []})
    for item in body["input"]:
        of_item.validate_python(item)


@cache
def _types() -> tuple[set[str], Any, Any]:
    """Names of the parameters, and what validates them and one item of the input. They take a second to make."""
    from openai.types.responses import ResponseInputItemParam
    from openai.types.responses.response_create_params import ResponseCreateParamsStreaming
    from pydantic import TypeAdapter

    known = {*ResponseCreateParamsStreaming.__annotations__}
    return known, TypeAdapter(ResponseCreateParamsStreaming), TypeAdapter(ResponseInputItemParam)


DOORS: list[tuple[Column, Callable[[str], Canonical], int]] = [
    (openai_responses.COLUMN, by_openai, samples(250, 40)),
    (azure_openai_responses.COLUMN, by_azure, samples(60, 10)),
    (openai_codex_responses.COLUMN, by_codex, samples(60, 10)),
]


@pytest.mark.parametrize(("column", "sdk", "count"), DOORS, ids=[column.api for column, _, _ in DOORS])
async def test_answers_agree(column, sdk, count):
    await check_answers(column, sdk, kinds=KINDS, count=count, reduce=ours)


@pytest.mark.parametrize(("column", "sdk", "count"), DOORS, ids=[column.api for column, _, _ in DOORS])
async def test_requests_are_what_the_sdk_knows(column, sdk, count):
    await check_requests(column, validate, count=count)
