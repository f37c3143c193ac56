"""What the strict server refuses of a Messages request: one row for each rule."""

import json
from copy import deepcopy
from typing import Any

import pytest

from cantle_ai.testing.server.dialects.anthropic_messages_request import check_request
from cantle_ai.testing.server.refusal import Refusal
from cantle_ai.testing.server.strictness import Strictness

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
HEADERS = {"content-type": "application/json", "x-api-key": "k", "anthropic-version": "2023-06-01"}
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
MARK = {"type": "ephemeral"}
GOOD: dict[str, Any] = {
    "model": "m",
    "max_tokens": 4096,
    "stream": True,
    "system": [{"type": "text", "text": "Be brief."}],
    "tools": [{"name": "read", "description": "Reads.", "input_schema": {"type": "object", "properties": {}}}],
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "look"}, IMAGE]},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "", "signature": "c2ln"},
                {"type": "redacted_thinking", "data": "b3A="},
                {"type": "text", "text": "reading"},
                {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {}},
                {"type": "tool_use", "id": "toolu_2", "name": "read", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "toolu_2", "content": "bad", "is_error": True},
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "x"}, IMAGE]},
                {"type": "text", "text": "and?"},
            ],
        },
    ],
}  # fmt: skip
ASKS, ANSWERS = ("messages", 1, "content"), ("messages", 2, "content")


def changed(path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    """The good request with one place changed; `...` takes it out."""
    body = deepcopy(GOOD)
    place: Any = body
    for step in path[:-1]:
        place = place[step]
    if value is ...:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return body


def check(body: dict[str, Any], headers: dict[str, str] = HEADERS) -> None:
    check_request(headers, json.dumps(body).encode(), Strictness())


def test_a_good_request_is_taken():
    check(GOOD)
    check(GOOD, {**HEADERS, "anthropic-beta": "a-2026-01-01,b-2026-01-01"})
    check(
        GOOD,
        {"content-type": "application/json", "authorization": "Bearer t", "anthropic-version": "2023-06-01"},
    )


@pytest.mark.parametrize(
    ("path", "value", "rule"),
    [
        (("model",), "", "empty"),
        (("max_tokens",), ..., "max-tokens"),
        (("max_tokens",), 0, "max-tokens"),
        (("stream",), False, "stream"),
        (("novelty",), 1, "unknown-field"),
        (("system",), " ", "empty"),
        (("system",), [], "empty"),
        (("temperature",), 1.1, "range"),
        (("thinking",), {"type": "on"}, "thinking"),
        (("thinking",), {"type": "disabled", "budget_tokens": 1}, "unknown-field"),
        (("thinking",), {"type": "enabled", "budget_tokens": 1023}, "budget"),
        (("thinking",), {"type": "enabled", "budget_tokens": 4096}, "budget"),
        (("thinking",), {"type": "adaptive", "display": "none"}, "thinking"),
        (("thinking",), {"type": "adaptive", "block_binding": {}}, "beta"),
        (("tool_choice",), {"type": "some"}, "tool-choice"),
        (("tool_choice",), {"type": "tool", "name": "write"}, "tool-choice"),
        (("output_config",), {"effort": "minimal"}, "effort"),
        (("output_config",), {"format": {"type": "json"}}, "format"),
        (("output_config",), {"format": {"type": "json_schema", "schema": {"type": "object"}}}, "schema"),
        (("tools",), [], "empty"),
        (("tools", 0, "name"), "a.b", "pattern"),
        (("tools",), [GOOD["tools"][0]] * 2, "tool-name"),
        (("tools", 0, "input_schema"), {}, "schema"),
        (("tools", 0, "strict"), True, "schema"),
        (("tools", 0, "cache_control"), {"type": "ephemeral", "ttl": "1d"}, "cache-control"),
        (("messages",), [], "empty"),
        (("messages", 0, "role"), "system", "role"),
        (("messages", 0), ..., "order"),
        (("messages", 1), ..., "order"),
        (("messages", 2), ..., "order"),
        (("messages", 0, "content"), "", "empty"),
        (("messages", 0, "content"), [], "empty"),
        (("messages", 0, "content", 0, "text"), "\n", "empty"),
        (("messages", 0, "content", 1, "source", "data"), "***", "image"),
        (("messages", 0, "content", 1, "source", "media_type"), "image/gif", "image"),
        ((*ASKS, 0, "signature"), "", "empty"),
        ((*ASKS, 0, "cache_control"), MARK, "unknown-field"),
        ((*ASKS, 1, "data"), "", "empty"),
        ((*ASKS, 3, "id"), "a|b", "pattern"),
        ((*ASKS, 3, "id"), "x" * 65, "pattern"),
        ((*ASKS, 3, "id"), "toolu_2", "call-id"),
        ((*ASKS, 3, "name"), "", "empty"),
        ((*ASKS, 3, "input"), "{}", "type"),
        ((*ASKS, 3), IMAGE, "block"),
        ((*ANSWERS, 0), ..., "unanswered"),
        ((*ANSWERS, 0, "tool_use_id"), "toolu_9", "call-id"),
        ((*ANSWERS, 1, "tool_use_id"), "toolu_2", "call-id"),
        ((*ANSWERS, 0, "content"), "", "empty"),
        ((*ANSWERS, 0, "content"), [IMAGE], "block"),
        ((*ANSWERS, 1, "is_error"), 1, "type"),
        (ANSWERS, [GOOD["messages"][2]["content"][2], *GOOD["messages"][2]["content"][:2]], "order"),
        (ASKS, GOOD["messages"][1]["content"][:1], "thinking"),
    ],
)  # fmt: skip
def test_what_is_refused(path, value, rule):
    with pytest.raises(Refusal) as refused:
        check(changed(path, value))
    assert refused.value.rule == rule, refused.value.text


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        ({"thinking": {"type": "adaptive"}, "temperature": 0.5}, "temperature"),
        ({"thinking": {"type": "adaptive"}, "top_k": 5}, "temperature"),
        ({"thinking": {"type": "adaptive"}, "tool_choice": {"type": "any"}}, "tool-choice"),
    ],
)
def test_fields_that_do_not_go_together(fields, rule):
    with pytest.raises(Refusal) as refused:
        check({**GOOD, **fields})
    assert refused.value.rule == rule


def test_a_choice_without_tools():
    with pytest.raises(Refusal, match="tools"):
        check({**changed(("tools",), ...), "tool_choice": {"type": "auto"}})


@pytest.mark.parametrize(
    ("marks", "taken"), [((MARK,) * 4, True), ((MARK,) * 5, False), (({**MARK, "ttl": "1h"}, MARK), True), ((MARK, {**MARK, "ttl": "1h"}), False)]
)  # fmt: skip
def test_cache_marks(marks, taken):
    blocks = [{"type": "text", "text": "x", "cache_control": mark} for mark in marks]
    body = changed(("system",), blocks)
    if taken:
        check(body)
    else:
        with pytest.raises(Refusal, match="cache_control"):
            check(body)


@pytest.mark.parametrize(
    "headers",
    [
        {"x-api-key": ""},
        {"authorization": "Bearer t"},
        {"anthropic-version": ""},
        {"anthropic-version": "latest"},
        {"anthropic-beta": "a-2026-01-01,a-2026-01-01"},
        {"anthropic-beta": "a-2026-01-01, b-2026-01-01"},
        {"content-type": "text/plain"},
    ],
)
def test_headers_that_are_refused(headers):
    with pytest.raises(Refusal):
        check(GOOD, {**HEADERS, **headers})


@pytest.mark.parametrize(
    ("schema", "taken"),
    [
        ({"type": "object", "properties": {}, "additionalProperties": False}, True),
        ({"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}, "additionalProperties": False}, False),
        ({"type": "object", "properties": {"o": {"type": "object"}}, "additionalProperties": False}, False),
        ({"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(25)}, "additionalProperties": False}, False),
    ],
)  # fmt: skip
def test_strict_schemas(schema, taken):
    body = changed(("tools", 0), {"name": "read", "strict": True, "input_schema": schema})
    if taken:
        check(body)
    else:
        with pytest.raises(Refusal):
            check(body)
