"""Google's own SDK reads Gemini's answers as we do, and knows the requests that we make."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace
from typing import Any

from cantle_ai.content import TextContent, ThinkingContent, ToolCall
from cantle_ai.messages import AssistantMessage
from cantle_ai.testing.server.exchange import Call as HttpCall
from packages.ai.tests.conformance.columns.google_generative_ai import COLUMN
from packages.ai.tests.conformance.columns.google_vertex import COLUMN as VERTEX
from packages.ai.tests.oracles.answers import Kinds
from packages.ai.tests.oracles.canonical import Call, Canonical, of_message
from packages.ai.tests.oracles.oracle import check_answers, check_requests
from tests.support.extras import needs

pytestmark = needs("oracles")


class Sdk:
    """The SDK's own iterator over a stream. It accumulates nothing: the parts are all there is."""

    def __init__(self, *, vertexai: bool) -> None:
        self._vertexai = vertexai
        self._clients: dict[str, Any] = {}

    def __call__(self, base_url: str) -> Canonical:
        client = self._clients.get(base_url)
        if client is None:
            client = self._clients[base_url] = self._client(base_url)
        return _canonical(list(client.models.generate_content_stream(model="m-1", contents="Hi")))

    def close(self) -> None:
        for client in self._clients.values():
            client.close()

    def _client(self, base_url: str) -> Any:
        from google import genai
        from google.genai import types

        version = "v1" if self._vertexai else "v1beta"
        options = types.HttpOptions(base_url=base_url.removesuffix("/v1beta"), api_version=version)
        return genai.Client(vertexai=self._vertexai, api_key="k", http_options=options)


def _canonical(chunks: list[Any]) -> Canonical:
    contents = [chunk.candidates[0].content for chunk in chunks]
    parts = [part for content in contents if content is not None for part in content.parts or []]
    last = chunks[-1]
    usage = last.usage_metadata
    cached, thought = usage.cached_content_token_count or 0, usage.thoughts_token_count or 0
    dumped = [part.model_dump(mode="json", exclude_none=True) for part in parts]
    return Canonical(
        text="".join(part.text for part in parts if part.text and not part.thought),
        thinking="".join(part.text for part in parts if part.text and part.thought),
        signatures=[part["thought_signature"] for part in dumped if "thought_signature" in part],
        calls=[
            Call.of(part.function_call.id, part.function_call.name, part.function_call.args)
            for part in parts
            if part.function_call is not None
        ],
        stop=last.candidates[0].finish_reason.value,
        model=last.model_version,
        response_id=last.response_id,
        input=usage.prompt_token_count - cached,
        output=usage.candidates_token_count + thought,
        cache_read=cached,
        reasoning=thought,
    )


def reduce(message: AssistantMessage) -> Canonical:
    """Every part may have a signature, not thoughts alone."""
    signatures: list[str] = []
    for block in message.content:
        match block:
            case TextContent(signature=str(signature)) | ThinkingContent(signature=str(signature)):
                signatures.append(signature)
            case ToolCall(thought_signature=str(signature)):
                signatures.append(signature)
    return replace(of_message(message), signatures=signatures)


def validate(body: dict[str, Any], call: HttpCall) -> None:
    """Every object of the request is of the SDK's types, which know no fields beside theirs."""
    from google.genai import types

    known = {"contents", "systemInstruction", "tools", "toolConfig", "generationConfig"}
    assert body.keys() <= known
    for content in body["contents"]:
        types.Content.model_validate(content)
    if "systemInstruction" in body:
        types.Content.model_validate(body["systemInstruction"])
    for tool in body.get("tools", []):
        types.Tool.model_validate(tool)
    if "toolConfig" in body:
        types.ToolConfig.model_validate(body["toolConfig"])
    types.GenerationConfig.model_validate(body["generationConfig"])
    assert json.loads(json.dumps(body)) == body


KINDS = Kinds(cache_write=False)


async def test_answers_agree():
    with closing(Sdk(vertexai=False)) as sdk:
        await check_answers(COLUMN, sdk, kinds=KINDS, reduce=reduce)


async def test_answers_of_vertex_agree():
    with closing(Sdk(vertexai=True)) as sdk:
        await check_answers(VERTEX, sdk, kinds=KINDS, reduce=reduce)


async def test_requests_are_what_the_sdk_knows():
    await check_requests(COLUMN, validate)


async def test_requests_to_older_models_are_what_the_sdk_knows():
    """They are taken by a server that holds them against the rules of that generation."""
    older = replace(COLUMN, model={**COLUMN.model, "id": "gemini-2.5-flash"})
    await check_requests(older, validate)


async def test_requests_to_vertex_are_what_the_sdk_knows():
    await check_requests(VERTEX, validate)
