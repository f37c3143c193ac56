"""What Google's `streamGenerateContent` sends: one chunk of a stream, each a whole `GenerateContentResponse`.

    {"responseId", "modelVersion", "candidates": [{"content": {"role": "model", "parts": [part]},
        "finishReason"?, "finishMessage"?, "index"?}],
     "promptFeedback"?: {"blockReason", "blockReasonMessage"}, "usageMetadata"?, "error"?}
    part: {"text", "thought"?: true} | {"functionCall": {"id"?, "name", "args": {…}}}, each with "thoughtSignature"?

Fields that are not listed are passed over, and so are parts of other kinds (code that ran on the server, audio).
What does not have the type it should have goes through :func:`_lenient`, which takes what it can.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from cantle_ai.apis.lenient_json import as_count, as_counts, as_list, as_text
from cantle_ai.codec import Json, decode_json, encode_json
from cantle_ai.usage import Usage

__all__ = ["Candidate", "Chunk", "Content", "Counts", "Feedback", "FunctionCall", "Part", "decode_chunks"]


class FunctionCall(Struct, gc=False, rename="camel"):
    """`args` stays the JSON text that it came as, so that it is parsed once, where the arguments are."""

    id: str | None = None
    name: str | None = None
    args: msgspec.Raw = msgspec.Raw()


class Part(Struct, gc=False, rename="camel"):
    text: str | None = None
    thought: bool | None = None
    thought_signature: str | None = None
    function_call: FunctionCall | None = None


class Content(Struct, gc=False):
    parts: list[Part | None] | None = None


class Candidate(Struct, gc=False, rename="camel"):
    content: Content | None = None
    finish_reason: str | None = None
    finish_message: str | None = None
    index: int | None = None


class Feedback(Struct, gc=False, rename="camel"):
    """Sent when the prompt was refused; there are no candidates then."""

    block_reason: str | None = None
    block_reason_message: str | None = None


class Counts(Struct, gc=False, rename="camel"):
    """`usageMetadata`, the whole of it in every chunk. `prompt_token_count` contains the cached tokens, and
    `candidates_token_count` does not contain those of thinking."""

    prompt_token_count: int | None = None
    cached_content_token_count: int | None = None
    candidates_token_count: int | None = None
    thoughts_token_count: int | None = None
    tool_use_prompt_token_count: int | None = None
    total_token_count: int | None = None

    @property
    def output(self) -> int:
        return (self.candidates_token_count or 0) + (self.thoughts_token_count or 0)

    def to_usage(self) -> Usage:
        prompt = self.prompt_token_count or 0
        read = min(prompt, self.cached_content_token_count or 0)
        given = prompt - read + (self.tool_use_prompt_token_count or 0)
        output = self.output
        total = self.total_token_count or given + read + output
        return Usage(
            input=given,
            output=output,
            cache_read=read,
            reasoning=self.thoughts_token_count or 0,
            total_tokens=total,
        )


class Chunk(Struct, gc=False, rename="camel"):
    response_id: str | None = None
    model_version: str | None = None
    candidates: list[Candidate | None] | None = None
    prompt_feedback: Feedback | None = None
    usage_metadata: Counts | None = None
    error: Any = None


_decode = msgspec.json.Decoder(Chunk).decode


def decode_chunks(data: bytes) -> tuple[Chunk, ...]:
    """The chunks in one event's data, or in a body that was not streamed: one, or those of a list.

    Empty for what says nothing (`null`, a number). Raises ValueError for what is not JSON.
    """
    try:
        return (_decode(data),)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raw = decode_json(data)
        objects = raw if isinstance(raw, list) else [raw]
        return tuple(_lenient(each) for each in objects if isinstance(each, dict))


def _lenient(raw: dict[str, Json]) -> Chunk:
    return Chunk(
        response_id=as_text(raw.get("responseId")),
        model_version=as_text(raw.get("modelVersion")),
        candidates=[_candidate(each) for each in as_list(raw.get("candidates"))],
        prompt_feedback=_feedback(raw.get("promptFeedback")),
        usage_metadata=as_counts(raw.get("usageMetadata"), Counts),
        error=raw.get("error"),
    )


def _candidate(raw: Json) -> Candidate | None:
    if not isinstance(raw, dict):
        return None
    content = raw.get("content")
    parts = as_list(content.get("parts")) if isinstance(content, dict) else []
    return Candidate(
        content=Content(parts=[_part(part) for part in parts]),
        finish_reason=as_text(raw.get("finishReason")),
        finish_message=as_text(raw.get("finishMessage")),
        index=as_count(raw.get("index")),
    )


def _part(raw: Json) -> Part | None:
    if not isinstance(raw, dict):
        return None
    return Part(
        text=as_text(raw.get("text")),
        thought=raw.get("thought") is True,
        thought_signature=as_text(raw.get("thoughtSignature")),
        function_call=_call(raw.get("functionCall")),
    )


def _call(raw: Json) -> FunctionCall | None:
    if not isinstance(raw, dict):
        return None
    arguments = msgspec.Raw(encode_json(raw.get("args")))
    return FunctionCall(id=as_text(raw.get("id")), name=as_text(raw.get("name")), args=arguments)


def _feedback(raw: Json) -> Feedback | None:
    if not isinstance(raw, dict):
        return None
    return Feedback(
        block_reason=as_text(raw.get("blockReason")),
        block_reason_message=as_text(raw.get("blockReasonMessage")),
    )
