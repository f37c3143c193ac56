"""What goes out: the body and the headers of a request, quirk by quirk."""

import inspect
import json
from typing import Any

import pytest

from cantle_ai.apis.openai_responses_compat import OpenAIResponsesCompat, compat_of
from cantle_ai.codec import JsonObject
from cantle_ai.context import Context, ToolDefinition
from cantle_ai.errors import ConfigurationError
from cantle_ai.messages import ThinkingLevel, UserMessage
from cantle_ai.model import NamedTool, ResponseSchema, StreamOptions
from packages.ai.tests.apis.responses import KEY, OK, ask, model

READ = ToolDefinition(
    "read",
    "Reads a file.",
    {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
)
ODD = ToolDefinition("odd", "Takes anything.", {"type": "object", "properties": {"any": {}}})
TOOLS = Context("Be brief.", [UserMessage("hello", timestamp=1)], [READ, ODD])
MINI = {"off": None, "minimal": "minimal", "low": "low", "medium": "medium", "high": "high"}


async def sent(*, options=None, context=TOOLS, **fields):
    asked = await ask(OK, options=options, context=context, **fields)
    assert asked.message.error_message is None
    return asked.body


async def test_a_plain_request():
    asked = await ask(OK)
    assert asked.requests[0].line == "POST /v1/responses HTTP/1.1"
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.headers["content-type"] == "application/json"
    assert asked.body == {
        "model": "m",
        "input": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [{"type": "input_text", "text": "hello"}]},
        ],
        "stream": True,
        "store": False,
        "max_output_tokens": 16384,
    }


async def test_no_key_and_no_session_leave_no_header():
    asked = await ask(OK, key=None)
    assert not {"authorization", "session-id", "x-client-request-id"} & asked.headers.keys()


async def test_configured_headers_go_over_the_apis_own_and_the_requests_over_all():
    asked = await ask(
        OK,
        headers={"X-A": "row", "Authorization": "Basic x"},
        options=StreamOptions(headers={"x-a": "request"}),
    )
    assert (asked.headers["x-a"], asked.headers["authorization"]) == ("request", "Basic x")


@pytest.mark.fault("B01")
async def test_b01_compat_supports_developer_role():
    for compat, reasoning, role in (
        ({}, True, "system"),
        ({"supportsDeveloperRole": True}, False, "system"),
        ({"supportsDeveloperRole": True}, True, "developer"),
    ):
        body = await sent(compat=compat, reasoning=reasoning)
        assert body["input"][0]["role"] == role


async def test_blank_instructions_are_left_out():
    for prompt in ("", " \n"):
        body = await sent(context=Context(prompt, [UserMessage("hi", timestamp=1)]))
        assert [item["role"] for item in body["input"]] == ["user"]


@pytest.mark.fault("B02")
async def test_b02_without_tools_the_field_is_left_out():
    body = await sent(
        context=Context("", [UserMessage("hi", timestamp=1)]), options=StreamOptions(tool_choice="auto")
    )
    assert not {"tools", "tool_choice"} & body.keys()


@pytest.mark.fault("B05")
async def test_b05_compat_supports_strict_mode():
    plain = (await sent())["tools"]
    assert plain[0] == {
        "type": "function",
        "name": "read",
        "description": "Reads a file.",
        "parameters": READ.parameters,
    }
    strict = (await sent(compat={"supportsStrictMode": True}))["tools"]
    assert [tool["strict"] for tool in strict] == [True, False]
    assert strict[0]["parameters"] == {**READ.parameters, "additionalProperties": False}
    assert strict[1]["parameters"] == ODD.parameters


# --- reasoning


@pytest.mark.fault("B11")
@pytest.mark.parametrize(("levels", "level", "reasoning"), [
    ({}, "off", {"effort": "none"}),
    ({"off": "none"}, "off", {"effort": "none"}),
    ({"off": "minimal"}, "off", {"effort": "minimal"}),
    (MINI, "off", None),
    ({}, "low", {"effort": "low", "summary": "auto"}),
    ({"minimal": "low"}, "minimal", {"effort": "low", "summary": "auto"}),
    ({"xhigh": "xhigh"}, "xhigh", {"effort": "xhigh", "summary": "auto"}),
])  # fmt: skip
async def test_b11_how_much_to_reason(levels, level, reasoning):
    body = await sent(reasoning=True, thinking_levels=levels, options=StreamOptions(thinking=level))
    assert body.get("reasoning") == reasoning


@pytest.mark.fault("B12")
async def test_b12_a_level_that_the_model_lacks_becomes_one_that_it_has():
    body = await sent(reasoning=True, options=StreamOptions(thinking="max"))
    assert body["reasoning"]["effort"] == "high"
    body = await sent(
        reasoning=True, thinking_levels={"minimal": None}, options=StreamOptions(thinking="minimal")
    )
    assert body["reasoning"]["effort"] == "low"


async def test_a_model_that_does_not_reason_is_told_nothing_about_it():
    body = await sent(options=StreamOptions(thinking="high"))
    assert not {"reasoning", "include"} & body.keys()


async def test_reasoning_comes_back_encrypted_because_nothing_is_stored():
    cases: list[tuple[dict[str, Any], ThinkingLevel]] = [({}, "low"), (MINI, "off")]
    for levels, level in cases:
        body = await sent(reasoning=True, thinking_levels=levels, options=StreamOptions(thinking=level))
        assert body["include"] == ["reasoning.encrypted_content"]
        assert body["store"] is False
    assert "include" not in await sent(reasoning=True)


async def test_compat_supports_reasoning_effort():
    body = await sent(
        reasoning=True, compat={"supportsReasoningEffort": False}, options=StreamOptions(thinking="high")
    )
    assert "reasoning" not in body
    assert body["include"] == ["reasoning.encrypted_content"]


@pytest.mark.fault("B13")
async def test_b13_a_temperature_is_left_out_while_the_model_reasons():
    cases: list[tuple[bool, ThinkingLevel, float | None]] = [
        (False, "off", 0.5), (True, "off", 0.5), (True, "low", None)
    ]  # fmt: skip
    for reasoning, level, wanted in cases:
        options = StreamOptions(temperature=0.5, thinking=level)
        assert (await sent(reasoning=reasoning, options=options)).get("temperature") == wanted


# --- limits, choices, forms


async def test_the_output_limit_is_never_less_than_the_service_takes():
    for asked, wanted in ((None, 4000), (100, 100), (5, 16)):
        body = await sent(max_tokens=4000, options=StreamOptions(max_tokens=asked))
        assert body["max_output_tokens"] == wanted


@pytest.mark.fault("B08")
async def test_b08_the_output_limit_leaves_room_for_the_input():
    context = Context("", [UserMessage("x" * 35_000, timestamp=1)])
    body = await sent(context=context, max_tokens=20_000, context_window=20_000)
    assert 16 < body["max_output_tokens"] < 20_000 - 10_000


async def test_compat_supports_max_output_tokens():
    body = await sent(compat={"supportsMaxOutputTokens": False}, options=StreamOptions(max_tokens=100))
    assert "max_output_tokens" not in body


@pytest.mark.parametrize(("choice", "wanted"), [
    ("auto", "auto"), ("none", "none"), ("required", "required"),
    (NamedTool("read"), {"type": "function", "name": "read"}),
])  # fmt: skip
async def test_a_tool_is_chosen(choice, wanted):
    assert (await sent(options=StreamOptions(tool_choice=choice)))["tool_choice"] == wanted
    assert "tool_choice" not in await sent()


async def test_an_answer_by_a_schema_beside_what_else_is_said_of_the_text():
    schema: JsonObject = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    options = StreamOptions(
        response_schema=ResponseSchema("city", schema), sampling={"text": {"verbosity": "low"}}
    )
    assert (await sent(options=options))["text"] == {
        "verbosity": "low",
        "format": {
            "type": "json_schema",
            "name": "city",
            "schema": {**schema, "additionalProperties": False},
            "strict": True,
        },
    }
    # What would have to say null for what it leaves out stays what the caller wrote, which is refused as strict.
    loose: JsonObject = {"type": "object", "properties": {"a": {"type": "string"}}}
    for strict in (True, False):
        asked = StreamOptions(response_schema=ResponseSchema("city", loose, strict=strict))
        form = (await sent(options=asked))["text"]["format"]
        assert (form["schema"], form["strict"]) == (loose, False)


async def test_sampling_fields_of_model_level_and_request_in_this_order():
    body = await sent(
        reasoning=True,
        sampling={"top_p": 0.1, "service_tier": "flex", "truncation": "auto"},
        sampling_by_level={"low": {"top_p": 0.2, "service_tier": "default"}},
        options=StreamOptions(
            thinking="low", sampling={"service_tier": "priority", "input": [], "stream": False, "tools": []}
        ),
    )
    assert (body["top_p"], body["service_tier"], body["truncation"]) == (0.2, "priority", "auto")
    assert body["stream"] is True
    assert len(body["input"]) == len(body["tools"]) == 2


# --- cache and session


@pytest.mark.parametrize(("compat", "retention", "wanted"), [
    ({}, "none", {}),
    ({}, "short", {"prompt_cache_key": "s-1"}),
    ({}, "long", {"prompt_cache_key": "s-1", "prompt_cache_retention": "24h"}),
    ({"promptCacheKeyMode": "enabled"}, "short", {"prompt_cache_key": "s-1"}),
    ({"promptCacheKeyMode": "disabled"}, "long", {"prompt_cache_retention": "24h"}),
    ({"supportsLongCacheRetention": False}, "long", {"prompt_cache_key": "s-1"}),
    ({"supportsExplicitPromptCacheMode": True}, "none", {"prompt_cache_options": {"mode": "explicit"}}),
    ({"supportsExplicitPromptCacheMode": True}, "short", {"prompt_cache_key": "s-1"}),
    ({"supportsExplicitPromptCacheMode": True}, "long",
     {"prompt_cache_key": "s-1", "prompt_cache_options": {"ttl": "30m"}}),
])  # fmt: skip
async def test_how_long_a_prompt_is_kept(compat, retention, wanted):
    body = await sent(compat=compat, options=StreamOptions(session_id="s-1", cache_retention=retention))
    assert {key: value for key, value in body.items() if key.startswith("prompt_cache")} == wanted


@pytest.mark.fault("B19")
async def test_b19_a_long_session_id_is_bounded_in_the_body_and_in_headers():
    for length, bounded in ((64, False), (65, True)):
        asked = await ask(OK, options=StreamOptions(session_id="s" * length))
        key = asked.body["prompt_cache_key"]
        assert len(key) == 64
        assert (key != "s" * 64) is bounded
        assert asked.headers["session-id"] == asked.headers["x-client-request-id"] == key


@pytest.mark.fault("B20")
@pytest.mark.parametrize(("form", "names"), [
    ("openai", {"session-id", "x-client-request-id"}),
    ("openai-nosession", {"x-client-request-id"}),
    ("openrouter", {"x-session-id"}),
])  # fmt: skip
async def test_b20_compat_session_affinity_format(form, names):
    compat = {"sessionAffinityFormat": form}
    known = {"session-id", "session_id", "x-client-request-id", "x-session-id", "x-session-affinity"}
    asked = await ask(OK, compat=compat, options=StreamOptions(session_id="s"))
    assert known & asked.headers.keys() == names
    assert asked.body["store"] is False
    asked = await ask(OK, compat=compat, options=StreamOptions(session_id="s", cache_retention="none"))
    assert not known & asked.headers.keys()


# --- quirks as such


def test_quirks_of_other_apis_are_passed_over_and_wrong_ones_named():
    assert compat_of(model(compat={"zaiToolStream": True})) == OpenAIResponsesCompat()
    with pytest.raises(ConfigurationError, match=r"p/m cannot be used: .*compat.promptCacheKeyMode"):
        compat_of(model(compat={"promptCacheKeyMode": "sometimes"}))


async def test_a_wrong_quirk_is_a_message_before_anything_is_sent():
    asked = await ask(OK, compat={"supportsStrictMode": "yes"})
    assert not asked.requests
    assert "compat.supportsStrictMode" in (asked.message.error_message or "")


def test_every_quirk_says_what_it_is():
    source = inspect.getsource(OpenAIResponsesCompat)
    for name in OpenAIResponsesCompat.__struct_fields__:
        after = source.split(f"    {name}: ")[1].split("\n", 1)[1].lstrip()
        assert after.startswith('"""'), name


async def test_half_a_character_is_replaced():
    body = await sent(context=Context("a\ud800", [UserMessage("b\udc00", timestamp=1)]))
    assert body["input"][0]["content"] == "a\ufffd"
    json.dumps(body).encode()
