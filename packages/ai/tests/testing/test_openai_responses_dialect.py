"""What the strict server refuses of the Responses API: each rule once, and the requests that break none."""

import base64
import json
from typing import Any

import pytest

from cantle_ai.testing.server.dialects import azure_openai_responses, openai_codex_responses, openai_responses
from cantle_ai.testing.server.dialects.port import Asked, Dialect
from cantle_ai.testing.server.exchange import Call
from cantle_ai.testing.server.refusal import Refusal
from cantle_ai.testing.server.strictness import Strictness

HEADERS = {"content-type": "application/json", "authorization": "Bearer key"}
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n....").decode()
USER = {"role": "user", "content": [{"type": "input_text", "text": "hi"}]}
THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"}
CALL = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "read", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "call_1", "output": "found"}
SAID = {"type": "message", "role": "assistant", "id": "msg_1", "status": "completed",
        "content": [{"type": "output_text", "text": "yes", "annotations": []}]}  # fmt: skip
PATCH = {"type": "custom_tool_call", "id": "ctc_1", "call_id": "call_1", "name": "patch", "input": "x"}
LOOSE = {"type": "object", "properties": {"a": {"type": "string"}}}
STRICT = {**LOOSE, "required": ["a"], "additionalProperties": False}
TOOL = {"type": "function", "name": "read", "description": "Reads.", "parameters": LOOSE, "strict": False}


def image(url: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "input_image", "detail": "auto", "image_url": url}]}


def body(*items: Any, **fields: Any) -> bytes:
    values = {"model": "m", "stream": True, "store": False, "input": list(items) or [USER], **fields}
    return json.dumps({name: value for name, value in values.items() if value is not ...}).encode()


def form(**fields: Any) -> dict[str, Any]:
    return {"format": {"type": "json_schema", "name": "city", "schema": STRICT, "strict": True, **fields}}


def check(data: bytes, dialect: Dialect = openai_responses.DIALECT, **call: Any) -> Asked:
    fields = {"headers": HEADERS, "query": "", **call}
    return dialect.check(Call("POST", "/v1/responses", body=data, **fields), Strictness())


ACCEPTED = {
    "a question": body(),
    "as text": body({"role": "user", "content": "hi"}),
    "instructions": body({"role": "developer", "content": "Be brief."}, USER),
    "instructions in their field": body(instructions="Be brief."),
    "an image": body(image(f"data:image/png;base64,{PNG}")),
    "a whole turn": body(USER, THOUGHT, SAID, CALL, OUTPUT, USER),
    "an answer without ids": body(USER, {"role": "assistant", "content": "yes", "phase": "final_answer"}, USER),
    "an answer that goes on after its call": body(USER, CALL, SAID, OUTPUT),
    "two calls, answered in another order": body(
        USER, CALL, {**CALL, "id": "fc_2", "call_id": "b"}, {**OUTPUT, "call_id": "b"}, OUTPUT
    ),
    "a call without an id": body(USER, {key: CALL[key] for key in CALL if key != "id"}, OUTPUT),
    "a custom tool": body(USER, PATCH, {**OUTPUT, "type": "custom_tool_call_output"}),
    "reasoning before a search": body(USER, THOUGHT, {"type": "web_search_call", "id": "ws_1"}, SAID),
    "reasoning in plain text": body(
        USER, {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "a"}]}, SAID
    ),
    "reasoning that is stored": body(USER, {"type": "reasoning", "id": "rs_1", "summary": []}, SAID, store=True),
    "tools": body(tools=[TOOL, {"type": "custom", "name": "patch"}], tool_choice={"type": "function", "name": "read"}),
    "a strict tool": body(tools=[{**TOOL, "parameters": STRICT, "strict": True}], tool_choice="required"),
    "a form": body(text=form()),
    "much else": body(
        max_output_tokens=16, temperature=0.5, reasoning={"effort": "none"}, include=["reasoning.encrypted_content"],
        prompt_cache_key="k" * 64, prompt_cache_options={"ttl": "12h"}, prompt_cache_retention="24h",
        service_tier="flex", text={"verbosity": "low"},
    ),
}  # fmt: skip

REFUSED = {
    "an unknown field": ("unknown-field", body(messages=[])),
    "no model": ("type", body(model=...)),
    "a whole answer": ("stream", body(stream=False)),
    "nothing": ("empty", body(input=[])),
    "instructions alone": ("empty", body({"role": "developer", "content": "Be brief."})),
    "instructions later": ("order", body(USER, {"role": "system", "content": "Be brief."})),
    "a blank text": ("empty", body({"role": "user", "content": [{"type": "input_text", "text": " "}]})),
    "blank instructions": ("empty", body({"role": "developer", "content": ""}, USER)),
    "no content": ("empty", body({"role": "user", "content": []})),
    "an unknown role": ("role", body({"role": "tool", "content": "x"})),
    "a phase of the user's": ("unknown-field", body({**USER, "phase": "commentary"})),
    "an unknown phase": ("value", body(USER, {**SAID, "phase": "middle"}, USER)),
    "a part of another side": (
        "part",
        body({"role": "user", "content": [{"type": "output_text", "text": "x"}]}),
    ),
    "a part of the other side": ("part", body(USER, {**SAID, "content": USER["content"]})),
    "no annotations": ("type", body(USER, {**SAID, "content": [{"type": "output_text", "text": "x"}]})),
    "an odd id of a message": ("pattern", body(USER, {**SAID, "id": "x1"})),
    "a message without a status": ("value", body(USER, {**SAID, "status": None})),
    "an image that is none": ("image", body(image("data:image/png;base64,AAAA"))),
    "an image nowhere": ("image", body(image("a.png"))),
    "an unknown item": ("type", body(USER, {"type": "novelty", "id": "n_1"})),
    "an id twice": ("item-id", body(USER, SAID, SAID)),
    "reasoning at the end": ("reasoning", body(USER, THOUGHT)),
    "reasoning before the user": ("reasoning", body(USER, THOUGHT, USER)),
    "reasoning before an output": ("reasoning", body(USER, CALL, THOUGHT, OUTPUT)),
    "reasoning that nobody has": (
        "reasoning",
        body(USER, {"type": "reasoning", "id": "rs_1", "summary": []}, SAID),
    ),
    "an odd id of reasoning": ("pattern", body(USER, {**THOUGHT, "id": "x"}, SAID)),
    "no summary": ("type", body(USER, {**THOUGHT, "summary": None}, SAID)),
    "an odd summary": ("part", body(USER, {**THOUGHT, "summary": [{"type": "text"}]}, SAID)),
    "a call without an output": ("unanswered", body(USER, CALL, USER)),
    "a call without an output at the end": ("unanswered", body(USER, CALL)),
    "an output without a call": ("call-id", body(USER, OUTPUT)),
    "an output twice": ("call-id", body(USER, CALL, OUTPUT, OUTPUT)),
    "an output of another kind": ("call-id", body(USER, PATCH, OUTPUT)),
    "a blank output": ("empty", body(USER, CALL, {**OUTPUT, "output": "\n"})),
    "an id of a call twice": ("call-id", body(USER, CALL, OUTPUT, {**CALL, "id": "fc_2"}, OUTPUT)),
    "an id of a call with a stroke": ("pattern", body(USER, {**CALL, "call_id": "a|b"}, OUTPUT)),
    "a long id of a call": ("pattern", body(USER, {**CALL, "call_id": "a" * 65}, OUTPUT)),
    "an odd id of an item": ("pattern", body(USER, {**CALL, "id": "call_1"}, OUTPUT)),
    "an odd name": ("pattern", body(USER, {**CALL, "name": "functions.read"}, OUTPUT)),
    "arguments that are no JSON": ("arguments", body(USER, {**CALL, "arguments": "{"}, OUTPUT)),
    "arguments that are a list": ("arguments", body(USER, {**CALL, "arguments": "[]"}, OUTPUT)),
    "no tools": ("empty", body(tools=[])),
    "a tool twice": ("tool-name", body(tools=[TOOL, TOOL])),
    "a tool of chat completions": ("unknown-field", body(tools=[{"type": "function", "function": {}}])),
    "a strict tool that is not": ("schema", body(tools=[{**TOOL, "strict": True}])),
    "a choice of nothing": ("tool-choice", body(tool_choice="required")),
    "a choice of another tool": (
        "tool-choice",
        body(tools=[TOOL], tool_choice={"type": "function", "name": "x"}),
    ),
    "an unknown choice": ("tool-choice", body(tools=[TOOL], tool_choice="any")),
    "too low a limit": ("max-tokens", body(max_output_tokens=15)),
    "a temperature too high": ("range", body(temperature=3)),
    "a temperature beside reasoning": ("temperature", body(temperature=1, reasoning={"effort": "low"})),
    "an unknown effort": ("value", body(reasoning={"effort": "huge"})),
    "an unknown inclusion": ("include", body(include=["everything"])),
    "a long key": ("cache-key", body(prompt_cache_key="k" * 65)),
    "an unknown life of the cache": ("value", body(prompt_cache_options={"ttl": "1h"})),
    "an unknown retention": ("value", body(prompt_cache_retention="1h")),
    "an unknown tier": ("value", body(service_tier="cheap")),
    "an unknown form": ("format", body(text={"format": {"type": "xml"}})),
    "a form without a name": ("type", body(text=form(name=None))),
    "a loose form that is strict": ("schema", body(text=form(schema=LOOSE))),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_a_request_that_breaks_no_rule(name):
    asked = check(ACCEPTED[name])
    assert asked.model == "m"


@pytest.mark.parametrize("name", REFUSED)
def test_a_rule_is_enforced(name):
    rule, data = REFUSED[name]
    with pytest.raises(Refusal) as refused:
        check(data)
    assert refused.value.rule == rule, refused.value.text


def test_what_a_request_says_is_told_apart():
    asked = check(body({"role": "system", "content": "Be brief."}, USER, CALL, OUTPUT, prompt_cache_key="k"))
    assert "Be brief." in asked.head["system"]
    assert len(asked.pieces) == 3
    assert asked.conversation == "k"
    assert asked.last is not None
    assert (asked.last.role, asked.last.text, asked.last.tool) == ("toolResult", "found", "read")
    said = check(body(USER)).last
    assert said is not None
    assert (said.role, said.text) == ("user", "hi")


@pytest.mark.parametrize(("headers", "query", "rule"), [
    ({"api-key": "k"}, "api-version=v1", None),
    ({"authorization": "Bearer k"}, "api-version=v1", None),
    ({}, "api-version=v1", "authorization"),
    ({"api-key": "k"}, "", "api-version"),
    ({"api-key": "k"}, "api-version=a&api-version=b", "api-version"),
])  # fmt: skip
def test_what_azure_asks_for(headers, query, rule):
    given = {"content-type": "application/json", **headers}
    _door(azure_openai_responses.DIALECT, body(), given, query, rule)


@pytest.mark.parametrize(("headers", "fields", "rule"), [
    ({"chatgpt-account-id": "a"}, {}, None),
    ({}, {}, "account"),
    ({"chatgpt-account-id": " "}, {}, "account"),
    ({"chatgpt-account-id": "a"}, {"store": ...}, "field"),
    ({"chatgpt-account-id": "a"}, {"store": True}, "field"),
])  # fmt: skip
def test_what_a_subscription_asks_for(headers, fields, rule):
    _door(openai_codex_responses.DIALECT, body(**fields), {**HEADERS, **headers}, "", rule)


def _door(dialect: Dialect, data: bytes, headers: dict[str, str], query: str, rule: str | None) -> None:
    if rule is None:
        check(data, dialect, headers=headers, query=query)
        return
    with pytest.raises(Refusal) as refused:
        check(data, dialect, headers=headers, query=query)
    assert refused.value.rule == rule
