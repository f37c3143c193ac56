"""Mistral's own SDK reads its chat API as we do, and knows the requests that we make."""

from __future__ import annotations

from functools import cache
from typing import Any

from cantle_ai.testing.server.exchange import Call as HttpCall
from packages.ai.tests.conformance.columns.mistral_conversations import COLUMN
from packages.ai.tests.oracles.answers import Kinds
from packages.ai.tests.oracles.canonical import Call, Canonical
from packages.ai.tests.oracles.oracle import check_answers, check_requests
from tests.support.extras import needs

pytestmark = needs("oracles")


class _Read:
    """Puts the SDK's chunks together: it decodes them, and has no accumulator of its own."""

    def __init__(self) -> None:
        self.text = ""
        self.thinking = ""
        self.signatures: list[str] = []
        self.calls: dict[int, dict[str, str]] = {}
        self.stop: str | None = None
        self.last: Any = None

    def add(self, chunk: Any) -> None:
        self.last = chunk
        for choice in chunk.choices:
            self.stop = choice.finish_reason or self.stop
            content = choice.delta.content
            for part in content if isinstance(content, list) else []:
                if part.type == "thinking":
                    self.thinking += "".join(piece.text for piece in part.thinking)
                    if part.signature:
                        self.signatures.append(part.signature)
            if isinstance(content, str):
                self.text += content
            for call in choice.delta.tool_calls or []:
                kept = self.calls.setdefault(call.index, {"id": "", "name": "", "arguments": ""})
                if call.id not in ("", "null"):
                    kept["id"] = call.id
                kept["name"] += call.function.name
                kept["arguments"] += call.function.arguments


@cache
def _client(base_url: str) -> Any:
    """One for all answers: making it takes longer than asking."""
    from mistralai.client import Mistral

    return Mistral(api_key="k", server_url=base_url)


def read(base_url: str) -> Canonical:
    """By the SDK's stream of completion events."""
    said = _Read()
    with _client(base_url).chat.stream(model="m-1", messages=[{"role": "user", "content": "Hi"}]) as stream:
        for event in stream:
            said.add(event.data)
    usage = said.last.usage
    extra = usage.model_extra or {}
    cached = (extra.get("prompt_tokens_details") or {}).get("cached_tokens", 0)
    return Canonical(
        text=said.text,
        thinking=said.thinking,
        signatures=said.signatures,
        calls=[Call.of(call["id"], call["name"], call["arguments"]) for call in said.calls.values()],
        stop=said.stop,
        model=said.last.model,
        response_id=said.last.id,
        input=usage.prompt_tokens - cached,
        output=usage.completion_tokens,
        cache_read=cached,
    )


def validate(body: dict[str, Any], call: HttpCall) -> None:
    """The SDK's own request takes it, knows each of its parts, and would send the same."""
    from mistralai.client.models import ChatCompletionStreamRequest

    request = ChatCompletionStreamRequest.model_validate(body)
    assert "UNKNOWN" not in repr(request)
    sent = request.model_dump(mode="json", by_alias=True, exclude_unset=True)
    assert sent == body


async def test_answers_agree():
    _client.cache_clear()
    kinds = Kinds(cache_write=False, reasoning=False, call_id="{:09d}")
    await check_answers(COLUMN, read, kinds=kinds)


async def test_requests_are_what_the_sdk_knows():
    await check_requests(COLUMN, validate)
