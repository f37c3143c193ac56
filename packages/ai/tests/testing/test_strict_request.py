"""What the strict server refuses: each rule once, and the requests that break none."""

import base64
import json
from typing import Any

import pytest

from cantle_ai.testing.server.body import read_body
from cantle_ai.testing.server.dialects.openai_completions_request import check_request
from cantle_ai.testing.server.dialects.port import Asked
from cantle_ai.testing.server.prefix import PrefixRule, elements
from cantle_ai.testing.server.refusal import Refusal
from cantle_ai.testing.server.strictness import Strictness

HEADERS = {"content-type": "application/json", "authorization": "Bearer key"}
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n....").decode()
USER = {"role": "user", "content": "hi"}
SYSTEM = {"role": "system", "content": "Be brief."}


def call(id: str = "call_1", name: str = "read", arguments: str = '{"path":"a"}') -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def asks(*calls: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": list(calls) or [call()], **more}


def answers(id: str = "call_1", content: Any = "fine") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id, "content": content}


def image(url: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}


def tool(parameters: Any = None, name: str = "read", **more: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": {}} if parameters is None else parameters
    return {
        "type": "function",
        "function": {"name": name, "description": "Reads.", "parameters": schema, **more},
    }


def request(*messages: dict[str, Any], **fields: Any) -> bytes:
    body = {"model": "m", "stream": True, "messages": list(messages) or [USER], **fields}
    return json.dumps({name: value for name, value in body.items() if value is not ...}).encode()


STRICT = {
    "type": "object",
    "properties": {"a": {"type": "string"}},
    "required": ["a"],
    "additionalProperties": False,
}
REFERRING = {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"type": "string"}}}

ACCEPTED = {
    "a question": request(),
    "instructions": request(SYSTEM, USER),
    "a developer's instructions": request({"role": "developer", "content": "Be brief."}, USER),
    "parts": request({"role": "user", "content": [{"type": "text", "text": "hi"}]}),
    "an image": request(image(f"data:image/png;base64,{PNG}")),
    "an image by address": request(image("https://example.org/a.png")),
    "an answer before": request(USER, {"role": "assistant", "content": "yes"}, USER),
    "two questions": request(USER, USER),
    "a call": request(USER, asks(), answers(), tools=[tool()]),
    "two calls, answered in another order": request(
        USER, asks(call("1"), call("2")), answers("2"), answers("1")
    ),
    "a call with words": request(USER, asks(content="I look."), answers()),
    "thoughts played back": request(USER, asks(reasoning_content="hm"), answers()),
    "every field": request(
        stream_options={"include_usage": True},
        tools=[tool(), tool(name="write")],
        tool_choice="auto",
        parallel_tool_calls=True,
        max_completion_tokens=1000,
        temperature=0.5,
        top_p=1,
        reasoning_effort="high",
        prompt_cache_key="session",
        store=False,
    ),
    "a strict tool": request(tools=[tool(STRICT, strict=True)]),
    "references in a schema": request(tools=[tool(REFERRING)]),
}

REFUSED: dict[str, tuple[str, bytes]] = {
    "not json": ("json", b"nonsense"),
    "no body": ("json", b""),
    "a list": ("json", b"[]"),
    "half": ("json", request()[:-1]),
    "more than one value": ("json", request() + b"{}"),
    "not utf-8": ("utf-8", request().replace(b"hi", b"\xff")),
    "a name twice": ("json", request().replace(b'"stream"', b'"model"')),
    "a name twice below": ("json", request().replace(b'"role": "user"', b'"role": "user", "role": "user"')),
    "nan": ("json", request(temperature=float("nan"))),
    "a lone surrogate": ("json", request({"role": "user", "content": "\ud800"})),
    "no model": ("type", request(model=...)),
    "an empty model": ("empty", request(model=" ")),
    "an unknown field": ("unknown-field", request(thinking=True)),
    "no stream": ("stream", request(stream=False)),
    "unknown stream options": ("unknown-field", request(stream_options={"usage": True})),
    "odd stream options": ("type", request(stream_options={"include_usage": 1})),
    "no messages": ("type", request(messages=...)),
    "empty messages": ("empty", request(messages=[])),
    "a message that is none": ("type", request(messages=["hi"])),
    "an unknown role": ("role", request({"role": "toolResult", "content": "x"})),
    "no role": ("role", request({"content": "x"})),
    "an unknown message field": ("unknown-field", request({**USER, "timestamp": 1})),
    "instructions later": ("order", request(USER, SYSTEM, USER)),
    "instructions twice": ("order", request(SYSTEM, SYSTEM, USER)),
    "instructions alone": ("order", request(SYSTEM)),
    "an answer first": ("order", request(SYSTEM, {"role": "assistant", "content": "x"}, USER)),
    "a result first": ("order", request(answers())),
    "two answers": ("order", request(USER, *[{"role": "assistant", "content": "x"}] * 2, USER)),
    "an answer last": ("order", request(USER, {"role": "assistant", "content": "x"})),
    "empty content": ("empty", request({"role": "user", "content": ""})),
    "blank content": ("empty", request({"role": "user", "content": " \n"})),
    "no content": ("type", request({"role": "user"})),
    "no parts": ("empty", request({"role": "user", "content": []})),
    "an empty text part": ("empty", request({"role": "user", "content": [{"type": "text", "text": ""}]})),
    "an unknown part": ("part", request({"role": "user", "content": [{"type": "audio"}]})),
    "an empty answer": ("type", request(USER, {"role": "assistant", "content": None}, USER)),
    "an empty answer with calls": ("empty", request(USER, asks(content=""), answers())),
    "no calls": ("empty", request(USER, asks(tool_calls=[]), answers())),
    "an empty result": ("empty", request(USER, asks(), answers(content=""))),
    "an image in a result": ("part", request(USER, asks(), answers(content=image("https://a")["content"]))),
    "an image that is no address": ("image", request(image("http://a/b.png"))),
    "an image that is no image": ("image", request(image(f"data:text/plain;base64,{PNG}"))),
    "an image of another type": ("image", request(image(f"data:image/jpeg;base64,{PNG}"))),
    "broken base64": ("image", request(image("data:image/png;base64,iVBOR=w0"))),
    "no result": ("unanswered", request(USER, asks(), USER)),
    "no result at the end": ("unanswered", request(USER, asks())),
    "one result of two": ("unanswered", request(USER, asks(call("1"), call("2")), answers("1"))),
    "a result after a question": ("unanswered", request(USER, asks(), USER, answers())),
    "a result twice": ("call-id", request(USER, asks(), answers(), answers())),
    "a result of nothing": ("call-id", request(USER, asks(), answers("other"))),
    "one id for two calls": ("call-id", request(USER, asks(call(), call()), answers())),
    "one id in two turns": ("call-id", request(USER, asks(), answers(), asks(), answers())),
    "an id with a bar": ("pattern", request(USER, asks(call("a|b")), answers("a|b"))),
    "a long id": ("pattern", request(USER, asks(call("x" * 41)), answers("x" * 41))),
    "a name with a dot": ("pattern", request(USER, asks(call(name="a.b")), answers())),
    "arguments that are no json": ("arguments", request(USER, asks(call(arguments="{")), answers())),
    "arguments that are no object": ("arguments", request(USER, asks(call(arguments="[]")), answers())),
    "no arguments": ("empty", request(USER, asks(call(arguments="")), answers())),
    "arguments as an object": ("type", request(USER, asks(call(arguments={})), answers())),  # type: ignore[arg-type]
    "a call of another type": ("type", request(USER, asks({**call(), "type": "custom"}), answers())),
    "a call with more": ("unknown-field", request(USER, asks({**call(), "index": 0}), answers())),
    "empty tools": ("empty", request(tools=[])),
    "a tool twice": ("tool-name", request(tools=[tool(), tool()])),
    "a tool with a space": ("pattern", request(tools=[tool(name="a b")])),
    "a tool without a schema": ("type", request(tools=[tool(parameters=[])])),
    "a schema of a string": ("schema", request(tools=[tool({"type": "string"})])),
    "a schema of nothing": ("schema", request(tools=[tool({})])),
    "an unknown type": ("schema", request(tools=[tool({"type": "object", "properties": {"a": {"type": "text"}}})])),
    "a property that is none": ("type", request(tools=[tool({"type": "object", "properties": {"a": 1}})])),
    "required that is no property": ("schema", request(tools=[tool({"type": "object", "required": ["a"]})])),
    "a reference to nothing": ("schema", request(tools=[tool({**REFERRING, "$defs": {}})])),
    "a reference outwards": (
        "schema",
        request(tools=[tool({"type": "object", "properties": {"a": {"$ref": "file:///etc/hosts"}}})]),
    ),
    "a strict tool that is open": (
        "schema",
        request(tools=[tool({**STRICT, "additionalProperties": True}, strict=True)]),
    ),
    "a strict tool with an option": ("schema", request(tools=[tool({**STRICT, "required": []}, strict=True)])),
    "a strict tool without a type": (
        "schema",
        request(tools=[tool({**STRICT, "properties": {"a": {"description": "any"}}}, strict=True)]),
    ),
    "a choice without tools": ("tools", request(tool_choice="auto")),
    "no tokens": ("max-tokens", request(max_tokens=0)),
    "half a token": ("max-tokens", request(max_tokens=1.5)),
    "too many tokens": ("max-tokens", request(max_completion_tokens=10**9)),
    "two limits": ("max-tokens", request(max_tokens=1, max_completion_tokens=1)),
    "hot": ("range", request(temperature=3)),
    "odd effort": ("effort", request(reasoning_effort="huge")),
    "a long cache key": ("cache-key", request(prompt_cache_key="x" * 65)),
}  # fmt: skip


@pytest.mark.parametrize("name", ACCEPTED)
def test_accepted(name: str):
    body = check_request(HEADERS, ACCEPTED[name], Strictness())
    assert body.values == json.loads(ACCEPTED[name])


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str):
    rule, data = REFUSED[name]
    with pytest.raises(Refusal) as caught:
        check_request(HEADERS, data, Strictness())
    assert caught.value.rule == rule
    assert caught.value.status == 400
    assert caught.value.text


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"content-type": "text/plain"}, 415),
        ({"authorization": ""}, 401),
        ({"authorization": "Bearer "}, 401),
        ({"authorization": "key"}, 401),
        ({"authorization": "Bearer wrong"}, 401),
    ],
)
def test_headers(headers: dict[str, str], status: int):
    with pytest.raises(Refusal) as caught:
        check_request({**HEADERS, **headers}, request(), Strictness(api_key="key"))
    assert caught.value.status == status


def test_what_a_server_asks_for_beside():
    check_request({"content-type": "application/json; charset=utf-8"}, request(), Strictness(need_key=False))
    check_request(HEADERS, request(thinking=1), Strictness(extra_fields=["thinking"]))
    check_request(HEADERS, request(max_tokens=100), Strictness(context_window=200))
    with pytest.raises(Refusal, match="maximum context length of 200 tokens") as caught:
        check_request(HEADERS, request(max_tokens=200), Strictness(context_window=200))
    assert caught.value.rule == "context_length_exceeded"


def test_the_text_of_each_field_is_the_text_that_was_sent():
    text = ' { "messages" : [ {"role":"user", "content":"a]b"} ] ,\n"tools":[],"n":1.50 } '
    body = read_body(text.encode())
    assert body.raw == {"messages": '[ {"role":"user", "content":"a]b"} ]', "tools": "[]", "n": "1.50"}


def asked(data: bytes, conversation: str = "") -> Asked:
    """A request as the rule sees it, whatever else is wrong with it."""
    messages = elements(read_body(data).raw["messages"])
    system = messages.pop(0) if '"system"' in messages[0] else ""
    head = {"system": system, "tools": read_body(data).raw.get("tools", "")}
    return Asked(body=read_body(data), model="m", head=head, pieces=messages, conversation=conversation)


def refused(rule: PrefixRule, data: bytes, conversation: str = "") -> str | None:
    try:
        rule.check(asked(data, conversation))
    except Refusal as refusal:
        return refusal.rule
    return None


FIRST = request(SYSTEM, USER, tools=[tool()])
MORE = [{"role": "assistant", "content": "yes"}, USER]


@pytest.mark.parametrize(
    ("second", "broken"),
    [
        (FIRST, None),
        (request(SYSTEM, USER, *MORE, tools=[tool()]), None),
        (request(SYSTEM, USER, *MORE, tools=[tool()], temperature=0), None),
        (request(SYSTEM, tools=[tool()]), "prefix-messages"),
        (request(SYSTEM, {**USER, "content": "ho"}, *MORE, tools=[tool()]), "prefix-messages"),
        (FIRST.replace(b'"role": "user"', b'"role":"user"'), "prefix-messages"),
        (FIRST.replace(b"hi", b"\\u0068i"), "prefix-messages"),
        (request({**SYSTEM, "content": "Be long."}, USER, tools=[tool()]), "prefix-system"),
        (request(USER, tools=[tool()]), "prefix-system"),
        (request(SYSTEM, USER), "prefix-tools"),
        (request(SYSTEM, USER, tools=[tool(), tool(name="b")]), "prefix-tools"),
        (FIRST.replace(b'"type": "object"', b'"type":"object"'), "prefix-tools"),
    ],
)
def test_the_prefix_rule(second: bytes, broken: str | None):
    rule = PrefixRule()
    assert refused(rule, FIRST) is None
    assert refused(rule, second) == broken
    assert refused(rule, second, "another conversation") is None


def test_a_refused_request_is_not_what_the_next_is_held_against():
    rule = PrefixRule()
    refused(rule, FIRST)
    assert refused(rule, request(SYSTEM, USER)) == "prefix-tools"
    assert refused(rule, FIRST) is None


def test_a_new_conversation_begins_anew():
    rule = PrefixRule()
    refused(rule, FIRST)
    rule.forget()
    assert refused(rule, request()) is None


def test_the_prefix_rule_says_where():
    rule = PrefixRule()
    rule.check(asked(FIRST))
    changed = request(SYSTEM, {**USER, "content": "ho"}, tools=[tool()])
    with pytest.raises(Refusal, match=r"hi.*became.*ho"):
        rule.check(asked(changed))
