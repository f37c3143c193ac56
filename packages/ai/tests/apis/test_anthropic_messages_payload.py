"""What a Messages request says: its fields, and each quirk of the endpoints that imitate the API."""

import json
from itertools import product
from typing import Any

import msgspec
import pytest

from cantle_ai.apis.anthropic_messages_compat import AnthropicMessagesCompat, compat_of
from cantle_ai.apis.anthropic_messages_payload import payload_of
from cantle_ai.call_ids import fitting_name
from cantle_ai.codec import JsonObject
from cantle_ai.content import ImageContent, TextContent, ThinkingContent, ToolCall
from cantle_ai.context import Context, ToolDefinition
from cantle_ai.errors import ConfigurationError
from cantle_ai.messages import AssistantMessage, ToolResultMessage, UserMessage
from cantle_ai.model import THINKING_LEVELS, NamedTool, ResponseSchema, StreamOptions
from cantle_ai.models import Models
from cantle_ai.testing.server.dialects.anthropic_messages_request import check_request
from cantle_ai.testing.server.strictness import Strictness
from packages.ai.tests.apis.asking import HELLO
from packages.ai.tests.apis.messages import READ, model

PIXEL = ImageContent("iVBORw0KGgoAAAAN", "image/png")
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL.data}}
MARK = {"type": "ephemeral"}
HOUR = {"type": "ephemeral", "ttl": "1h"}


def payload(context=HELLO, options=None, **fields):
    asked = model(**fields)
    return payload_of(asked, context, options or StreamOptions(cache_retention="none"), compat_of(asked))


def body(context=HELLO, options=None, **fields):
    return json.loads(payload(context, options, **fields).body)


def sent(*history, **fields):
    """The messages of a request."""
    return body(Context("", history, [READ]), **fields)["messages"]


def user(*blocks):
    return UserMessage([TextContent(each) if isinstance(each, str) else each for each in blocks], timestamp=1)


def answer(*content, model="m", **fields):
    calls = any(isinstance(block, ToolCall) for block in content)
    given = {"stop_reason": "toolUse" if calls else "stop", "timestamp": 1, **fields}
    return AssistantMessage([*content], "anthropic-messages", "p", model, **given)


def result(call_id, *blocks, is_error=False):
    content = [TextContent(each) if isinstance(each, str) else each for each in blocks]
    return ToolResultMessage(call_id, "read", content, is_error=is_error, timestamp=1)


def text(said):
    return {"type": "text", "text": said}


# --- the whole


def test_a_plain_request():
    assert body() == {
        "model": "m",
        "system": [{"type": "text", "text": "Be brief."}],
        "messages": [{"role": "user", "content": [text("hello")]}],
        "max_tokens": 64_000,
        "stream": True,
    }


def test_a_blank_system_prompt_is_left_out():
    assert "system" not in body(Context(" \n", HELLO.messages))


def test_tools_and_no_tools():
    (tool,) = body(Context("", HELLO.messages, [READ]))["tools"]
    assert tool == {
        "name": "read",
        "description": "Reads.",
        "eager_input_streaming": True,
        "input_schema": READ.parameters,
    }
    assert "tools" not in body()
    bare = ToolDefinition("go", " ", {})
    (tool,) = body(Context("", HELLO.messages, [bare]))["tools"]
    assert "description" not in tool
    assert tool["input_schema"] == {"type": "object"}


def test_sampling_fields_go_over_each_other_and_never_over_the_conversation():
    options = StreamOptions(sampling={"top_k": 3, "stop_sequences": ["x"], "messages": [], "stream": False})
    made = body(
        options=options, sampling={"top_k": 1, "top_p": 0.5}, sampling_by_level={"off": {"top_k": 2, "a": 1}}
    )
    assert (made["top_k"], made["top_p"], made["a"], made["stop_sequences"]) == (3, 0.5, 1, ["x"])
    assert made["messages"] and made["stream"] is True


# --- limits


def test_the_output_limit_leaves_room_for_the_input():
    assert body(options=StreamOptions(max_tokens=100))["max_tokens"] == 100
    assert body(options=StreamOptions(max_tokens=10**6))["max_tokens"] == 64_000
    long = Context("", [user("x" * 500_000)])
    assert 30_000 < body(long)["max_tokens"] < 40_000
    assert body(Context("", [user("x" * 10**6)]))["max_tokens"] == 4096


def test_an_image_counts_as_tokens_and_not_as_its_bytes():
    image = ImageContent("iVBORw0KGgoAAAAN" * 50_000, "image/png")
    assert body(Context("", [user(image)]), input=("text", "image"))["max_tokens"] == 64_000


# --- thinking


@pytest.mark.fault("B11")
def test_b11_off_is_said_where_it_can_be():
    assert body(reasoning=True)["thinking"] == {"type": "disabled"}
    assert body(reasoning=True, compat={"forceAdaptiveThinking": True})["thinking"] == {"type": "disabled"}
    assert "thinking" not in body(reasoning=True, thinking_levels={"off": None})
    assert "thinking" not in body(options=StreamOptions(thinking="high"), reasoning=False)


@pytest.mark.parametrize(
    ("level", "budget"), [("minimal", 1024), ("low", 2048), ("medium", 8192), ("high", 16_384)]
)
def test_a_level_is_a_budget(level, budget):
    made = payload(options=StreamOptions(thinking=level), reasoning=True)
    assert json.loads(made.body)["thinking"] == {
        "type": "enabled",
        "budget_tokens": budget,
        "display": "summarized",
    }
    assert made.betas == ("interleaved-thinking-2025-05-14",)


def test_budgets_of_the_caller():
    options = StreamOptions(thinking="high", thinking_budgets={"high": 5000})
    assert body(options=options, reasoning=True)["thinking"]["budget_tokens"] == 5000


@pytest.mark.fault("B12")
def test_b12_a_level_that_the_model_lacks_is_the_nearest():
    assert body(options=StreamOptions(thinking="max"), reasoning=True)["thinking"]["budget_tokens"] == 16_384


@pytest.mark.fault("B09")
def test_b09_the_limit_is_greater_than_the_budget():
    levels = [level for level in THINKING_LEVELS if level != "off"]
    wanted = [None, 1, 500, 1024, 2000, 20_000, 10**6]
    for level, answer, most, size in product(levels, wanted, (1, 1500, 2048, 64_000), (1, 600_000)):
        options = StreamOptions(thinking=level, max_tokens=answer, thinking_budgets={"low": 10**6})
        made = body(
            Context("", [user("x" * size)]),
            options,
            reasoning=True,
            max_tokens=most,
            thinking_levels={"xhigh": "xhigh", "max": "max"},
        )
        limit, thinking = made["max_tokens"], made["thinking"]
        assert 1 <= limit <= most
        if thinking["type"] == "enabled":
            room = 1024 if answer is None else min(1024, answer)
            assert 1024 <= thinking["budget_tokens"] <= limit - room
        else:
            assert thinking == {"type": "disabled"}
            assert most < 2048 or size > 1


def test_a_limit_of_the_caller_is_for_the_answer_beside_the_thinking():
    made = body(options=StreamOptions(thinking="high", max_tokens=2000), reasoning=True)
    assert (made["max_tokens"], made["thinking"]["budget_tokens"]) == (18_384, 16_384)


@pytest.mark.parametrize(
    ("level", "effort"),
    [("minimal", "low"), ("low", "low"), ("high", "high"), ("xhigh", "xhigh"), ("max", "most")],
)
def test_force_adaptive_thinking(level, effort):
    made = payload(
        options=StreamOptions(thinking=level),
        reasoning=True,
        compat={"forceAdaptiveThinking": True},
        thinking_levels={"xhigh": "xhigh", "max": "most"},
    )
    fields = json.loads(made.body)
    assert fields["thinking"] == {"type": "adaptive", "display": "summarized"}
    assert fields["output_config"] == {"effort": effort}
    assert made.betas == ()


def test_supports_mid_convo_effort_lets_bound_thinking_be_dropped():
    compat = {"supportsMidConvoEffort": True, "forceAdaptiveThinking": True}
    made = payload(options=StreamOptions(thinking="low"), reasoning=True, compat=compat)
    assert json.loads(made.body)["thinking"]["block_binding"] == {"prefix_mismatch_behavior": "drop_block"}
    assert made.betas == ("thinking-binding-controls-2026-08-01",)
    assert payload(reasoning=True, compat=compat).betas == ()


@pytest.mark.fault("B13")
@pytest.mark.parametrize(
    ("fields", "level", "goes_out"),
    [
        ({}, "off", True),
        ({"reasoning": True}, "off", True),
        ({"reasoning": True}, "low", False),
        ({"reasoning": True, "compat": {"forceAdaptiveThinking": True}}, "low", False),
        ({"reasoning": True, "thinking_levels": {"off": None}}, "off", False),
        ({"compat": {"supportsTemperature": False}}, "off", False),
    ],
)
def test_b13_temperature_is_left_out_with_thinking_and_where_it_is_refused(fields, level, goes_out):
    made = body(options=StreamOptions(temperature=0.3, thinking=level), **fields)
    assert made.get("temperature") == (0.3 if goes_out else None)


# --- replay of thinking


def thought(said="hm", signature="c2ln", **fields):
    return ThinkingContent(said, signature=signature, **fields)


def test_signed_thinking_goes_back_as_it_came():
    replayed = sent(user("a"), answer(thought(), TextContent("x")), user("b"))[1]["content"]
    assert replayed == [{"type": "thinking", "thinking": "hm", "signature": "c2ln"}, text("x")]


@pytest.mark.fault("C02")
def test_c02_empty_thinking_with_a_signature_goes_back():
    replayed = sent(user("a"), answer(thought(""), TextContent("x")), user("b"))[1]["content"]
    assert replayed[0] == {"type": "thinking", "thinking": "", "signature": "c2ln"}


@pytest.mark.fault("C01")
@pytest.mark.parametrize("signature", [None, ""])
def test_c01_thinking_without_a_signature_is_text_without_tags(signature):
    history = user("a"), answer(thought(signature=signature), TextContent("x")), user("b")
    assert sent(*history)[1]["content"] == [text("hm"), text("x")]
    blank = user("a"), answer(thought(" ", signature=signature), TextContent("x")), user("b")
    assert sent(*blank)[1]["content"] == [text("x")]


@pytest.mark.fault("C02")
@pytest.mark.parametrize("signature", [None, ""])
def test_c02_allow_empty_signature(signature):
    history = user("a"), answer(thought(signature=signature), TextContent("x")), user("b")
    replayed = sent(*history, compat={"allowEmptySignature": True})[1]["content"]
    assert replayed == [{"type": "thinking", "thinking": "hm", "signature": ""}, text("x")]


@pytest.mark.fault("A13")
def test_a13_redacted_thinking_goes_back_to_its_own_model_alone():
    hidden = thought("", signature="b3BhcXVl", redacted=True)
    replayed = sent(user("a"), answer(hidden, TextContent("x")), user("b"))[1]["content"]
    assert replayed == [{"type": "redacted_thinking", "data": "b3BhcXVl"}, text("x")]
    foreign = sent(user("a"), answer(hidden, TextContent("x"), model="other"), user("b"))[1]["content"]
    assert foreign == [text("x")]


def test_thinking_of_another_model_is_text():
    foreign = sent(user("a"), answer(thought(), TextContent("x"), model="other"), user("b"))[1]["content"]
    assert {block["type"] for block in foreign} == {"text"}
    assert [block["text"].strip() for block in foreign] == ["hm", "x"]


# --- turns


def test_a_task_with_calls():
    history = [
        user("look"),
        answer(TextContent("reading"), ToolCall("toolu_1", "read", {"path": "a"}), ToolCall("toolu_2", "read", {})),
        result("toolu_1", "one", "more"),
        result("toolu_2", "bad", is_error=True),
    ]  # fmt: skip
    assert sent(*history)[1:] == [
        {
            "role": "assistant",
            "content": [
                text("reading"),
                {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "a"}},
                {"type": "tool_use", "id": "toolu_2", "name": "read", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": "one\nmore", "is_error": False},
                {"type": "tool_result", "tool_use_id": "toolu_2", "content": "bad", "is_error": True},
            ],
        },
    ]


def test_roles_alternate():
    made = sent(
        user("a"), user("b"), answer(TextContent("c")), answer(TextContent("d")), user("e"), answer(TextContent(" ")), user("f")
    )  # fmt: skip
    assert made == [
        {"role": "user", "content": [text("a"), text("b")]},
        {"role": "assistant", "content": [text("c"), text("d")]},
        {"role": "user", "content": [text("e"), text("f")]},
    ]


def test_what_is_said_after_results_stands_in_their_message():
    history = user("a"), answer(ToolCall("toolu_1", "read", {})), result("toolu_1", "x"), user("and?")
    made = sent(*history)[2]
    assert [block["type"] for block in made["content"]] == ["tool_result", "text"]


def test_images_of_prompts_and_results():
    history = [
        user(PIXEL),
        answer(ToolCall("toolu_1", "read", {})),
        result("toolu_1", "a dot", PIXEL),
    ]
    made = sent(*history, input=("text", "image"))
    assert made[0]["content"] == [IMAGE]
    assert made[2]["content"][0]["content"] == [text("a dot"), IMAGE]


@pytest.mark.fault("B17")
def test_b17_images_of_failed_results_follow_after_all_results():
    history = [
        user("a"),
        answer(*(ToolCall(f"toolu_{n}", "read", {}) for n in range(3))),
        result("toolu_0", "bad", PIXEL, is_error=True),
        result("toolu_1", "fine", PIXEL),
        result("toolu_2", PIXEL, is_error=True),
        user("and?"),
    ]
    content = sent(*history, input=("text", "image"))[2]["content"]
    kinds = [block["type"] for block in content]
    assert kinds == ["tool_result"] * 3 + ["text", "image", "text", "image", "text"]
    assert isinstance(content[0]["content"], str) and content[0]["content"].startswith("bad\n")
    assert content[1]["content"] == [text("fine"), IMAGE]
    assert isinstance(content[2]["content"], str) and content[2]["content"].strip()
    assert "toolu_0" in content[3]["text"] and "toolu_2" in content[5]["text"]
    assert content[7] == text("and?")
    blind = sent(*history)[2]["content"]
    assert [block["type"] for block in blind] == ["tool_result"] * 3 + ["text"]


@pytest.mark.fault("C03")
def test_c03_ids_fit_the_alphabet_and_stay_pairs():
    odd = ["call_a|fc_b", "x" * 65, "ä", "toolu_ok"]
    calls = answer(*(ToolCall(each, "read", {}) for each in odd), model="other")
    made = sent(user("a"), calls, *(result(each, each) for each in odd))
    asked = [block["id"] for block in made[1]["content"]]
    answered = [block["tool_use_id"] for block in made[2]["content"]]
    assert asked == answered
    assert len(set(asked)) == 4 and asked[3] == "toolu_ok"
    assert all(
        len(each) <= 64 and each.replace("_", "").replace("-", "").isalnum() and each.isascii()
        for each in asked
    )


@pytest.mark.parametrize(
    ("name", "fitting"),
    [("read", "read"), ("functions.read", "functions_read"), ("", "unnamed"), ("x" * 65, "x" * 64)],
)
def test_names_of_calls_fit(name, fitting):
    assert fitting_name(name) == fitting
    made = sent(user("a"), answer(ToolCall("t", name, {})), result("t", "x"))
    assert made[1]["content"][0]["name"] == fitting


@pytest.mark.fault("B03")
@pytest.mark.parametrize("blank", [(), ("",), (" \n",)])
def test_b03_a_blank_result_is_said_in_words(blank):
    made = sent(user("a"), answer(ToolCall("t", "read", {})), result("t", *blank))
    assert made[2]["content"][0]["content"].strip()


def test_arguments_that_were_no_json_are_an_empty_object():
    call = ToolCall("t", "read", {}, invalid_arguments="{oops")
    made = sent(user("a"), answer(call), result("t", "no JSON", is_error=True))
    assert made[1]["content"][0]["input"] == {}


# --- the cache


def marks(made):
    """Where the marks of a request are: the tool, the system prompt, and message and block."""
    found: list[tuple[Any, int, Any]] = [
        ("tool", n, t["cache_control"]) for n, t in enumerate(made.get("tools", ())) if "cache_control" in t
    ]
    found += (
        [("system", 0, made["system"][0]["cache_control"])] if "cache_control" in made["system"][0] else []
    )
    for place, message in enumerate(made["messages"]):
        for number, block in enumerate(message["content"]):
            if "cache_control" in block:
                found.append((place, number, block["cache_control"]))
    return found


GO = ToolDefinition("go", "Goes.", {"type": "object"})
TALK = Context(
    "Be brief.",
    [
        user("a"),
        answer(ToolCall("t", "read", {})),
        result("t", "x"),
        answer(TextContent("ok")),
        user("b", "c"),
    ],
    [READ, GO],
)


@pytest.mark.parametrize(
    ("retention", "compat", "mark"),
    [
        ("short", {}, MARK),
        ("long", {}, HOUR),
        ("long", {"supportsLongCacheRetention": False}, MARK),
    ],
)
def test_the_last_tool_the_system_prompt_and_the_last_user_message_are_marked(retention, compat, mark):
    made = body(TALK, StreamOptions(cache_retention=retention), compat=compat)
    assert marks(made) == [("tool", 1, mark), ("system", 0, mark), (4, 1, mark)]


def test_no_marks_without_a_cache():
    assert marks(body(TALK, StreamOptions(cache_retention="none"))) == []


def test_supports_cache_control_on_tools():
    made = body(TALK, StreamOptions(), compat={"supportsCacheControlOnTools": False})
    assert marks(made) == [("system", 0, MARK), (4, 1, MARK)]


def test_a_result_and_an_image_can_carry_the_mark():
    history = [user("a"), answer(ToolCall("t", "read", {})), result("t", "bad", PIXEL, is_error=True)]
    made = body(Context("s", history), StreamOptions(), input=("text", "image"))
    assert marks(made)[-1] == (2, 2, MARK)
    made = body(Context("s", history), StreamOptions())
    assert marks(made)[-1] == (2, 0, MARK)


@pytest.mark.parametrize(("calls", "marked"), [(9, [2]), (10, [0, 2]), (30, [0, 2])])
def test_a_turn_beyond_the_caches_sight_is_marked_at_both_ends(calls, marked):
    """The cache looks back 20 blocks from a mark for what the request before had."""
    ids = [f"toolu_{n}" for n in range(calls)]
    history = [
        user("a"),
        answer(*(ToolCall(each, "read", {}) for each in ids)),
        *(result(each, "x") for each in ids),
    ]
    made = body(Context("s", history, [READ]), StreamOptions())
    assert [place for place, *_ in marks(made)] == ["tool", "system", *marked]


def test_images_of_failed_results_count_for_the_caches_sight():
    calls = [ToolCall(f"toolu_{n}", "read", {}) for n in range(7)]
    failed = [result(call.id, "x", PIXEL, is_error=call is calls[0]) for call in calls]
    history = [user("a"), answer(TextContent("t"), *calls), *failed, user("b", "c", "d")]
    made = body(Context("s", history, [READ]), StreamOptions(), input=("text", "image"))
    assert sum(len(message["content"]) for message in made["messages"][1:]) == 20
    assert [place for place, *_ in marks(made)] == ["tool", "system", 0, 2]


def test_an_answer_at_the_end_leaves_the_mark_on_the_last_user_message():
    made = body(Context("s", [user("a"), answer(TextContent("x"))]), StreamOptions())
    assert marks(made) == [("system", 0, MARK), (0, 0, MARK)]


# --- tools


def test_supports_eager_tool_input_streaming():
    context = Context("", HELLO.messages, [READ])
    made = payload(context, compat={"supportsEagerToolInputStreaming": False})
    assert "eager_input_streaming" not in json.loads(made.body)["tools"][0]
    assert made.betas == ("fine-grained-tool-streaming-2025-05-14",)
    assert payload(compat={"supportsEagerToolInputStreaming": False}).betas == ()


@pytest.mark.fault("B05")
def test_b05_tools_are_strict_where_the_endpoint_and_their_schema_allow_it():
    bounded = ToolDefinition(
        "wait", "Waits.", {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}}
    )
    context = Context("", HELLO.messages, [READ, bounded])
    strict, loose = body(context, compat={"supportsStrictTools": True})["tools"]
    assert strict["strict"] is True
    assert strict["input_schema"]["additionalProperties"] is False
    assert "strict" not in loose and loose["input_schema"] == bounded.parameters
    assert all("strict" not in tool for tool in body(context)["tools"])


@pytest.mark.parametrize(("optional", "many", "strict"), [(0, 25, 20), (1, 25, 20), (5, 10, 4), (25, 3, 0)])
def test_no_more_tools_are_strict_than_a_request_may_have(optional, many, strict):
    properties: JsonObject = {f"p{n}": {"type": "string"} for n in range(optional)}
    tools = [
        ToolDefinition(f"t{n}", "x", {"type": "object", "properties": dict(properties)}) for n in range(many)
    ]
    made = body(Context("", HELLO.messages, tools), compat={"supportsStrictTools": True})["tools"]
    assert sum(tool.get("strict", False) for tool in made) == strict
    assert [tool.get("strict", False) for tool in made] == [True] * strict + [False] * (many - strict)


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        (None, None),
        ("auto", {"type": "auto"}),
        ("none", {"type": "none"}),
        ("required", {"type": "any"}),
        (NamedTool("read"), {"type": "tool", "name": "read"}),
    ],
)
def test_tool_choice(choice, said):
    options = StreamOptions(tool_choice=choice)
    assert body(Context("", HELLO.messages, [READ]), options).get("tool_choice") == said
    assert "tool_choice" not in body(options=options)


@pytest.mark.parametrize("choice", ["required", NamedTool("read")])
@pytest.mark.parametrize("compat", [{}, {"forceAdaptiveThinking": True}])
def test_a_forced_call_is_made_without_thinking(choice, compat):
    """The API refuses both together."""
    options = StreamOptions(tool_choice=choice, thinking="high", max_tokens=500)
    made = body(Context("", HELLO.messages, [READ]), options, reasoning=True, compat=compat)
    assert (made["thinking"], made["max_tokens"]) == ({"type": "disabled"}, 500)
    assert "output_config" not in made


def test_a_response_schema():
    schema: JsonObject = {
        "type": "object",
        "properties": {"capital": {"type": "string"}},
        "required": ["capital"],
    }
    options = StreamOptions(response_schema=ResponseSchema("city", schema), thinking="low")
    made = body(options=options, reasoning=True, compat={"forceAdaptiveThinking": True})
    assert made["output_config"] == {
        "effort": "low",
        "format": {"type": "json_schema", "schema": {**schema, "additionalProperties": False}},
    }
    odd: JsonObject = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}}
    options = StreamOptions(response_schema=ResponseSchema("n", odd))
    assert body(options=options)["output_config"]["format"]["schema"] == odd


# --- quirks as a whole


def test_each_quirk_is_named_as_in_models_json():
    named = {"supportsTemperature": False, "sessionAffinityFormat": "openrouter", "thinkingFormat": "zai"}
    assert compat_of(model(compat=named)) == AnthropicMessagesCompat(
        supports_temperature=False, session_affinity_format="openrouter"
    )


def test_a_quirk_of_the_wrong_type_is_named():
    with pytest.raises(ConfigurationError, match=r"p/m cannot be used.*compat\.supportsTemperature"):
        compat_of(model(compat={"supportsTemperature": "no"}))


def test_every_model_of_the_catalog_can_be_asked_at_every_level():
    """Held against the strictest server's rules, without the network between."""
    models = Models(environ={})
    asked = [
        msgspec.structs.replace(row, compat={**provider.compat, **row.compat})
        for provider in models.providers
        for row in models.list(provider.id)
        if row.api == "anthropic-messages"
    ]
    assert {row.provider for row in asked} >= {"anthropic", "minimax", "fireworks", "vercel-ai-gateway"}
    for one, level in [(each, level) for each in asked for level in ("off", *each.levels())]:
        options = StreamOptions(thinking=level, temperature=0.5, cache_retention="long", session_id="s")
        made = payload_of(one, TALK, options, compat_of(one))
        headers = {"content-type": "application/json", "x-api-key": "k", "anthropic-version": "2023-06-01"}
        if made.betas:
            headers["anthropic-beta"] = ",".join(made.betas)
        check_request(headers, made.body, Strictness())
