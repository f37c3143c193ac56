"""Puts the chunks of a local model's answer together: plain text, or the JSON that its grammar allows.

{"answer": "…"}                     text, told as it comes, without the escapes
{"tool": "read", "arguments": {…}}  a call: it begins when its head is whole, and its arguments are told as they come
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec
from msgspec import Struct

from cantle_ai.apis.llama_cpp_grammar import ANSWER_HEAD, call_head
from cantle_ai.builder import AnswerBuilder
from cantle_ai.context import ToolDefinition
from cantle_ai.errors import ProviderError
from cantle_ai.messages import StopReason
from cantle_ai.usage import Usage

__all__ = ["Answer"]

_PLAIN_END = re.compile(r'(?:[^"\\]|\\(?:u[0-9a-fA-F]{4}|[^u]))*')
"""As much of a JSON string's inside as is whole."""
_STRUCTURE = re.compile(r'["\\{}]')


class Answer:
    """Takes chunks and tells the builder. `finish` must follow the last."""

    def __init__(self, builder: AnswerBuilder, tools: Sequence[ToolDefinition]) -> None:
        """`tools` are those that the grammar was made of."""
        self._builder = builder
        self._reader: _Reader = _Json(builder, tools) if tools else _Text(builder)
        self._thinking: int | None = None
        self._finish_reason: str | None = None

    def add(self, data: bytes) -> None:
        """Take a chunk. Raises :class:`ProviderError` for one that says what went wrong."""
        chunk = _decode(data)
        if chunk.error is not None:
            raise _failure(chunk.error)
        for choice in chunk.choices:
            self._finish_reason = choice.finish_reason or self._finish_reason
            self._delta(choice.delta)
        if chunk.usage is not None:
            self._builder.usage(chunk.usage.to_usage())

    def finish(self) -> None:
        """All chunks have come: close the answer. Raises :class:`ProviderError` if its end did not come."""
        raw, whole = self._finish_reason, self._reader.whole
        if raw is None:
            raise ProviderError("The local model stopped before its answer was complete", kind="protocol")
        end: StopReason = "length" if raw == "length" or not whole else "stop"
        if end == "stop" and self._reader.called:
            end = "toolUse"
        self._builder.done(end, raw=raw)

    def _delta(self, delta: _Delta) -> None:
        if delta.reasoning_content:
            if self._thinking is None:
                self._thinking = self._builder.thinking_start()
            self._builder.thinking_delta(self._thinking, delta.reasoning_content)
        if delta.content:
            self._reader.feed(delta.content)


class _Reader(Protocol):
    """Reads what the model says."""

    called: bool
    """Whether it calls a tool."""
    whole: bool
    """Whether it may end here."""

    def feed(self, text: str) -> None: ...


class _Text:
    """Words, as they are."""

    called = False
    whole = True

    def __init__(self, builder: AnswerBuilder) -> None:
        self._builder = builder
        self._block: int | None = None

    def feed(self, text: str) -> None:
        if self._block is None:
            self._block = self._builder.text_start()
        self._builder.text_delta(self._block, text)


class _Json:
    """One of the objects that the grammar allows."""

    def __init__(self, builder: AnswerBuilder, tools: Sequence[ToolDefinition]) -> None:
        self.called = False
        self.whole = False
        self._builder = builder
        self._heads: Mapping[str, str] = {call_head(tool.name): tool.name for tool in tools}
        self._head = ""
        self._block: int | None = None
        self._held = ""
        """The beginning of an escape whose rest has not come."""
        self._depth = 0
        self._in_string = False
        self._escaped = False
        """Whether a backslash was the last that came."""

    def feed(self, text: str) -> None:
        if self.whole:
            return
        if self._block is None:
            self._head += text
            text = self._begin()
        if self._block is None or not text:
            return
        if self.called:
            self._arguments(self._block, text)
        else:
            self._words(self._block, text)

    def _begin(self) -> str:
        """Open the block if what has come says which. Returns what has come of its content."""
        if self._head.startswith(ANSWER_HEAD):
            self._block = self._builder.text_start()
            return self._head[len(ANSWER_HEAD) :]
        for head, name in self._heads.items():
            if self._head.startswith(head):
                self.called = True
                self._block = self._builder.tool_call_start(f"call_{os.urandom(12).hex()}", name)
                return self._head[len(head) :]
        return ""

    def _words(self, block: int, text: str) -> None:
        text = self._held + text
        found = _PLAIN_END.match(text)
        end = 0 if found is None else found.end()
        self._held = text[end:]
        self.whole = self._held.startswith('"')
        self._builder.text_delta(block, json.loads(f'"{text[:end]}"', strict=False))

    def _arguments(self, block: int, text: str) -> None:
        """Tell of them what belongs to the object: its last bracket ends it."""
        place = 1 if self._escaped else 0
        self._escaped = False
        while (found := _STRUCTURE.search(text, place)) is not None:
            place = found.end()
            match found.group():
                case "\\":
                    self._escaped = place == len(text)
                    place += 1
                case '"':
                    self._in_string = not self._in_string
                case "{" if not self._in_string:
                    self._depth += 1
                case "}" if not self._in_string:
                    self._depth -= 1
                    if self._depth == 0:
                        self.whole = True
                        text = text[:place]
                        break
        self._builder.tool_call_delta(block, text)


class _Delta(Struct, frozen=True, gc=False):
    content: str | None = None
    reasoning_content: str | None = None


class _Choice(Struct, frozen=True, gc=False):
    delta: _Delta = _Delta()
    finish_reason: str | None = None


class _PromptDetails(Struct, frozen=True, gc=False):
    cached_tokens: int = 0


class _Counts(Struct, frozen=True, gc=False):
    """`usage`; `prompt_tokens` contains the cached ones."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    prompt_tokens_details: _PromptDetails = _PromptDetails()

    def to_usage(self) -> Usage:
        prompt, output = self.prompt_tokens, self.completion_tokens
        cached = min(prompt, self.prompt_tokens_details.cached_tokens)
        return Usage(input=prompt - cached, output=output, cache_read=cached, total_tokens=prompt + output)


class _Error(Struct, frozen=True, gc=False):
    message: str = "an error without a text"
    type: str | None = None
    n_prompt_tokens: int | None = None
    n_ctx: int | None = None


class _Chunk(Struct, frozen=True, gc=False):
    choices: list[_Choice] = []
    usage: _Counts | None = None
    error: _Error | None = None


_decode = msgspec.json.Decoder(_Chunk).decode


def _failure(error: _Error) -> ProviderError:
    if error.type == "exceed_context_size_error":
        return ProviderError(
            f"The prompt is too long for the local model: {error.n_prompt_tokens} tokens, and its context window "
            f"has {error.n_ctx}",
            code="context_length_exceeded",
        )
    return ProviderError(f"llama.cpp: {error.message}", code=error.type)
