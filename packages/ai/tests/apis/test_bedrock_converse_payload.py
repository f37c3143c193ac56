"""What Bedrock is asked, for the models of each vendor behind it."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import pytest

from cantle_ai.apis.bedrock_converse_compat import BedrockConverseCompat, compat_of
from cantle_ai.content import ImageContent, TextContent, ThinkingContent, ToolCall
from cantle_ai.context import Context, ToolDefinition
from cantle_ai.messages import AssistantMessage, Message, ToolResultMessage, UserMessage
from cantle_ai.model import NamedTool, ResponseSchema, StreamOptions
from packages.ai.tests.apis.asking import HELLO
from packages.ai.tests.apis.bedrock import CLAUDE, END, ask, model
from packages.ai.tests.conformance.lab import PIXEL

READ = ToolDefinition("read", "Reads.", {"type": "object", "properties": {"path": {"type": "string"}}})
OLD_CLAUDE = "us.anthropic.claude-sonnet-4-20250514-v1:0"
NEW_CLAUDE = "global.anthropic.claude-opus-4-7"
NOVA = "amazon.nova-2-lite-v1:0"
PICTURE = {"image": {"format": "png", "source": {"bytes": PIXEL.data}}}


def user(*blocks: object) -> UserMessage:
    content = [TextContent(block) if isinstance(block, str) else block for block in blocks]
    return UserMessage(content, timestamp=1)  # type: ignore[arg-type]


def answer(*blocks: object, model_id: str = CLAUDE) -> AssistantMessage:
    return AssistantMessage(list(blocks), "bedrock-converse-stream", "p", model_id, timestamp=1)  # type: ignore[arg-type]


def result(call_id: str, *blocks: object, is_error: bool = False) -> ToolResultMessage:
    content = [TextContent(block) if isinstance(block, str) else block for block in blocks]
    return ToolResultMessage(call_id, "read", content, is_error=is_error, timestamp=1)  # type: ignore[arg-type]


async def messages_of(*messages: Message, **fields: Any) -> list[Any]:
    asked = await ask(
        END, context=Context(messages=messages), options=StreamOptions(cache_retention="none"), **fields
    )
    said: list[Any] = asked.body["messages"]
    return said


@pytest.mark.parity("bedrock.request")
async def test_a_request_has_everything_in_its_place():
    options = StreamOptions(
        max_tokens=77,
        temperature=0.3,
        tool_choice=NamedTool("read"),
        response_schema=ResponseSchema("capital", {"type": "object"}),
    )
    asked = await ask(END, context=Context("Be brief.", [user("hello")], [READ]), options=options)
    assert asked.requests[0].line == f"POST /model/{CLAUDE}/converse-stream HTTP/1.1"
    assert asked.requests[0].headers["accept"] == "application/vnd.amazon.eventstream"
    assert asked.body == {
        "messages": [{"role": "user", "content": [{"text": "hello"}, {"cachePoint": {"type": "default"}}]}],
        "system": [{"text": "Be brief."}, {"cachePoint": {"type": "default"}}],
        "toolConfig": {
            "tools": [
                {
                    "toolSpec": {
                        "name": "read",
                        "description": "Reads.",
                        "inputSchema": {"json": READ.parameters},
                    }
                }
            ],
            "toolChoice": {"tool": {"name": "read"}},
        },
        "inferenceConfig": {"maxTokens": 77, "temperature": 0.3},
        "outputConfig": {
            "textFormat": {
                "type": "json_schema",
                "structure": {"jsonSchema": {"name": "capital", "schema": '{"type":"object"}'}},
            }
        },
    }


# --- what is known by a model's id


@pytest.mark.parametrize(
    ("model_id", "thinking", "caches", "long", "temperature"),
    [
        ("anthropic.claude-v2:1", "none", False, False, True),
        ("anthropic.claude-3-haiku-20240307-v1:0", "none", False, False, True),
        ("us.anthropic.claude-3-5-sonnet-20241022-v2:0", "none", False, False, True),
        ("us.anthropic.claude-3-5-haiku-20241022-v1:0", "none", True, False, True),
        ("anthropic.claude-of-tomorrow", "none", True, False, True),
        ("us.anthropic.claude-3-7-sonnet-20250219-v1:0", "budget", True, False, True),
        (OLD_CLAUDE, "budget", True, False, True),
        ("anthropic.claude-opus-4-1-20250805-v1:0", "budget", True, False, True),
        ("jp.anthropic.claude-haiku-4-5-20251001-v1:0", "budget", True, True, True),
        (CLAUDE, "adaptive", True, True, True),
        ("eu.anthropic.claude-opus-4-6-v1", "adaptive", True, True, True),
        (NEW_CLAUDE, "adaptive", True, True, False),
        ("anthropic.claude-fable-5-1", "adaptive", True, True, False),
        ("arn:aws:bedrock:us-east-1::foundation-model/anthropic.claude-sonnet-5", "adaptive", True, True, False),
        ("us-gov.openai.gpt-oss-120b-1:0", "reasoning-effort", False, False, True),
        ("us.openai.gpt-5.6-sol", "reasoning", False, False, True),
        ("eu.amazon.nova-2-lite-v1:0", "nova", False, False, True),
        ("amazon.nova-pro-v1:0", "none", False, False, True),
        ("moonshot.kimi-k2-thinking", "none", False, False, True),
        ("arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/abc", "none", False, False, True),
    ],
)  # fmt: skip
@pytest.mark.parity("bedrock.thinking", "bedrock.quirks")
def test_what_is_known_by_an_id(model_id, thinking, caches, long, temperature):
    compat = compat_of(model(id=model_id))
    assert compat.thinking_format == thinking
    assert (compat.supports_prompt_caching, compat.supports_long_cache_retention) == (caches, long)
    assert compat.supports_temperature == temperature
    assert compat.supports_thinking_binding == (not temperature)
    assert compat.requires_thinking_signature == ("anthropic." in model_id)


@pytest.mark.parity("bedrock.quirks")
def test_a_row_goes_over_what_is_known():
    row = {"thinkingFormat": "none", "supportsPromptCaching": False, "cacheControlFormat": "of another API"}
    compat = compat_of(model(compat=row))
    assert compat == BedrockConverseCompat(
        requires_thinking_signature=True,
        supports_temperature_while_thinking=False,
        supports_long_cache_retention=True,
        supports_images_in_error_results=False,
        supports_forced_tools_while_thinking=False,
    )


async def test_a_quirk_of_the_wrong_type_is_named():
    asked = await ask(END, compat={"thinkingFormat": "loud"})
    assert "`compat.thinkingFormat`" in str(asked.message.error_message)


# --- thinking


@pytest.mark.parametrize(
    ("model_id", "level", "fields"),
    [
        (CLAUDE, "off", None),
        (
            CLAUDE,
            "minimal",
            {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": "low"}},
        ),
        (
            CLAUDE,
            "max",
            {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": "max"}},
        ),
        (
            NEW_CLAUDE,
            "high",
            {
                "thinking": {
                    "type": "adaptive",
                    "display": "summarized",
                    "block_binding": {"prefix_mismatch_behavior": "drop_block"},
                },
                "output_config": {"effort": "high"},
                "anthropic_beta": ["thinking-binding-controls-2026-08-01"],
            },
        ),
        (
            OLD_CLAUDE,
            "low",
            {
                "thinking": {"type": "enabled", "budget_tokens": 2048, "display": "summarized"},
                "anthropic_beta": ["interleaved-thinking-2025-05-14"],
            },
        ),
        ("openai.gpt-oss-120b-1:0", "medium", {"reasoning_effort": "medium"}),
        ("us.openai.gpt-5.6-sol", "low", {"reasoning": {"effort": "low"}}),
        (NOVA, "low", {"reasoningConfig": {"type": "enabled", "maxReasoningEffort": "low"}}),
        ("moonshot.kimi-k2-thinking", "high", None),
    ],
)
@pytest.mark.parity("bedrock.thinking", "bedrock.nova-thinking")
async def test_thinking_is_asked_for_in_the_vendors_way(model_id, level, fields):
    asked = await ask(END, options=StreamOptions(thinking=level), id=model_id)
    assert asked.body.get("additionalModelRequestFields") == fields
    plain = await ask(END, options=StreamOptions(thinking=level), id=model_id, reasoning=False)
    assert "additionalModelRequestFields" not in plain.body


@pytest.mark.fault("B09")
@pytest.mark.parametrize(
    ("limit", "largest", "budgets", "budget", "sent"),
    [
        (None, 64_000, {}, 16_384, 64_000),
        (None, 8_000, {}, 6_976, 8_000),
        (1_000, 64_000, {}, 16_384, 17_384),
        (100, 64_000, {"high": 1_024}, 1_024, 1_124),
        (3_000, 64_000, {"high": 5_000}, 5_000, 8_000),
        (60_000, 64_000, {}, 16_384, 64_000),
    ],
)
@pytest.mark.parity("bedrock.thinking")
async def test_b09_the_output_limit_is_greater_than_the_budget(limit, largest, budgets, budget, sent):
    options = StreamOptions(thinking="high", max_tokens=limit, thinking_budgets=budgets)
    asked = await ask(END, options=options, id=OLD_CLAUDE, max_tokens=largest)
    assert asked.body["additionalModelRequestFields"]["thinking"]["budget_tokens"] == budget
    assert asked.body["inferenceConfig"]["maxTokens"] == sent > budget


@pytest.mark.fault("B09")
async def test_b09_where_there_is_no_room_to_think_nothing_is_thought():
    asked = await ask(END, options=StreamOptions(thinking="high"), id=OLD_CLAUDE, max_tokens=1_500)
    assert "additionalModelRequestFields" not in asked.body
    assert asked.body["inferenceConfig"] == {"maxTokens": 1_500}


@pytest.mark.fault("B09")
@pytest.mark.parametrize("model_id", [CLAUDE, "meta.llama4-scout-17b-instruct-v1:0", "amazon.nova-pro-v1:0"])
@pytest.mark.parity("bedrock.request")
async def test_b09_the_output_limit_is_always_sent(model_id):
    asked = await ask(END, id=model_id, reasoning=False)
    assert asked.body["inferenceConfig"]["maxTokens"] == 64_000


@pytest.mark.fault("B08")
async def test_b08_the_output_limit_leaves_room_for_the_input():
    asked = await ask(END, context=Context(messages=[user("x" * 70_000)]), context_window=64_000)
    assert 0 < asked.body["inferenceConfig"]["maxTokens"] <= 64_000 - 70_000 // 4


@pytest.mark.fault("B08")
@pytest.mark.parametrize("is_error", [False, True])
async def test_b08_the_data_of_images_are_no_text_that_needs_room(is_error):
    image = ImageContent(PIXEL.data + "A" * 400_000, "image/png")
    messages: list[Message] = [
        UserMessage([image], timestamp=1),
        answer(ToolCall("c1", "read", {})),
        ToolResultMessage("c1", "read", [image], is_error=is_error, timestamp=1),
    ]
    asked = await ask(END, context=Context(messages=messages), context_window=100_000, max_tokens=64_000)
    assert asked.body["inferenceConfig"]["maxTokens"] == 64_000


@pytest.mark.parity("bedrock.nova-thinking")
async def test_novas_highest_effort_goes_without_limits():
    asked = await ask(END, options=StreamOptions(thinking="high", temperature=0.5), id=NOVA)
    assert asked.body["additionalModelRequestFields"]["reasoningConfig"]["maxReasoningEffort"] == "high"
    assert "inferenceConfig" not in asked.body


@pytest.mark.fault("B13")
@pytest.mark.parametrize(
    ("model_id", "level", "sent"),
    [(CLAUDE, "off", True), (CLAUDE, "low", False), (NEW_CLAUDE, "off", False), (NOVA, "low", True)],
)
@pytest.mark.parity("bedrock.temperature")
async def test_b13_temperature_goes_only_where_it_is_taken(model_id, level, sent):
    asked = await ask(END, options=StreamOptions(thinking=level, temperature=0.5), id=model_id)
    assert ("temperature" in asked.body["inferenceConfig"]) == sent


@pytest.mark.parametrize("choice", ["required", NamedTool("read")])
@pytest.mark.parity("bedrock.forced-calls")
async def test_claude_does_not_think_when_a_tool_is_demanded(choice):
    options = StreamOptions(thinking="high", tool_choice=choice)
    context = Context(messages=[user("a")], tools=[READ])
    asked = await ask(END, context=context, options=options)
    assert "additionalModelRequestFields" not in asked.body
    other = await ask(END, context=context, options=options, id="us.openai.gpt-5.6-sol")
    assert other.body["additionalModelRequestFields"] == {"reasoning": {"effort": "high"}}


# --- caches


@pytest.mark.parametrize(
    ("model_id", "retention", "point"),
    [
        (CLAUDE, "none", None),
        (CLAUDE, "short", {"type": "default"}),
        (CLAUDE, "long", {"type": "default", "ttl": "1h"}),
        (OLD_CLAUDE, "long", {"type": "default"}),
        ("amazon.nova-pro-v1:0", "short", None),
    ],
)
@pytest.mark.parity("bedrock.cache-points")
async def test_cache_points_stand_after_what_stays_the_same(model_id, retention, point):
    asked = await ask(END, options=StreamOptions(cache_retention=retention), id=model_id)
    for blocks in (asked.body["system"], asked.body["messages"][-1]["content"]):
        assert blocks[1:] == ([] if point is None else [{"cachePoint": point}])


async def test_requests_of_one_task_begin_alike_but_for_the_cache_points():
    call = ToolCall("c1", "read", {})
    history: list[Message] = [
        user("a"),
        answer(ThinkingContent("hm", signature="s"), call),
        result("c1", "r"),
    ]
    bodies = []
    for messages in (
        [user("a")],
        history,
        [*history, user("b")],
        [*history, user("b"), answer(TextContent("c")), user("d")],
    ):
        asked = await ask(END, context=Context("S", messages))
        text = asked.requests[-1].body.decode().partition(',"system"')[0]
        bodies.append(re.sub(r',\{"cachePoint":\{[^{}]*\}\}', "", text).rstrip("]}"))
    for before, after in pairwise(bodies):
        assert after.startswith(before)


# --- tools


async def test_the_quirk_supports_strict_mode_makes_tools_strict():
    odd = ToolDefinition("odd", " ", {"type": "object", "properties": {"n": {"minimum": 1}}})
    context = Context(messages=[user("a")], tools=[READ, odd])
    plain = await ask(END, context=context)
    assert not any("strict" in each["toolSpec"] for each in plain.body["toolConfig"]["tools"])
    asked = await ask(END, context=context, compat={"supportsStrictMode": True})
    first, second = (each["toolSpec"] for each in asked.body["toolConfig"]["tools"])
    assert (first["strict"], first["inputSchema"]["json"]["additionalProperties"]) == (True, False)
    assert "strict" not in second
    assert second["description"] == "odd"  # a blank one is refused


@pytest.mark.parametrize(
    ("kind", "required"),
    [("string", []), (["string", "null"], [f"p{n}" for n in range(10)])],
    ids=["optional", "unions"],
)
async def test_strict_tools_stay_below_what_a_request_may_have_of_them(kind, required):
    count = len(required) or 20
    properties = {f"p{n}": {"type": kind} for n in range(count)}
    schema = {"type": "object", "properties": properties, "required": required}
    tools = [ToolDefinition(f"t{n}", "T.", schema) for n in range(3)]
    asked = await ask(
        END, context=Context(messages=[user("a")], tools=tools), compat={"supportsStrictMode": True}
    )
    strict = [each["toolSpec"].get("strict", False) for each in asked.body["toolConfig"]["tools"]]
    assert strict == [True, False, False]
    many = [ToolDefinition(f"t{n}", "T.", {"type": "object", "properties": {}}) for n in range(22)]
    asked = await ask(
        END, context=Context(messages=[user("a")], tools=many), compat={"supportsStrictMode": True}
    )
    assert sum("strict" in each["toolSpec"] for each in asked.body["toolConfig"]["tools"]) == 20


@pytest.mark.parametrize(
    ("choice", "sent"),
    [("auto", None), ("required", {"any": {}}), (NamedTool("read"), {"tool": {"name": "read"}}), (None, None)],
)  # fmt: skip
async def test_a_tool_choice_is_said_where_it_is_not_the_default(choice, sent):
    context = Context(messages=[user("a")], tools=[READ])
    asked = await ask(END, context=context, options=StreamOptions(tool_choice=choice))
    assert asked.body["toolConfig"].get("toolChoice") == sent


async def test_without_a_choice_of_none_the_tools_are_not_offered():
    context = Context(messages=[user("a")], tools=[READ])
    asked = await ask(END, context=context, options=StreamOptions(tool_choice="none"))
    assert "toolConfig" not in asked.body


@pytest.mark.parametrize("tools", [(), (READ,)])
@pytest.mark.parity("bedrock.tool-history")
async def test_a_conversation_that_has_called_tools_always_names_them(tools):
    messages: list[Message] = [user("a"), answer(ToolCall("c1", "read", {})), result("c1", "r")]
    options = StreamOptions(tool_choice="none")
    asked = await ask(END, context=Context(messages=messages, tools=tools), options=options)
    (tool,) = asked.body["toolConfig"]["tools"]
    assert tool["toolSpec"]["name"] == "read"
    assert tool["toolSpec"]["inputSchema"]["json"]["type"] == "object"
    assert "toolChoice" not in asked.body["toolConfig"]


@pytest.mark.fault("B02")
async def test_b02_without_tools_there_is_no_list_of_them():
    assert "toolConfig" not in (await ask(END)).body


# --- the conversation


@pytest.mark.parity("bedrock.turns")
async def test_what_one_side_says_in_turn_is_one_message():
    said = await messages_of(
        user("a"),
        user("b"),
        answer(ToolCall("c1", "read", {"p": 1}), ToolCall("c2", "read", {})),
        result("c2", "second"),
        result("c1", "first", is_error=True),
        user("c"),
        answer(TextContent("x")),
        answer(TextContent("y")),
        user("d"),
    )
    assert said == [
        {"role": "user", "content": [{"text": "a"}, {"text": "b"}]},
        {
            "role": "assistant",
            "content": [
                {"toolUse": {"toolUseId": "c1", "name": "read", "input": {"p": 1}}},
                {"toolUse": {"toolUseId": "c2", "name": "read", "input": {}}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"toolResult": {"toolUseId": "c2", "content": [{"text": "second"}], "status": "success"}},
                {"toolResult": {"toolUseId": "c1", "content": [{"text": "first"}], "status": "error"}},
                {"text": "c"},
            ],
        },
        {"role": "assistant", "content": [{"text": "x"}, {"text": "y"}]},
        {"role": "user", "content": [{"text": "d"}]},
    ]


@pytest.mark.fault("B03")
@pytest.mark.parity("bedrock.blank-texts")
async def test_b03_nothing_blank_is_sent():
    said = await messages_of(
        user(" "), answer(TextContent(" "), ToolCall("c1", "read", {})), result("c1", " \n"), user("", PIXEL)
    )
    texts = re.findall(r"'text': '([^']*)'", str(said))
    assert texts == ["(empty message)", "(no output)"]
    blank = await ask(END, context=Context("  \n", [user("a")]))
    assert "system" not in blank.body


@pytest.mark.fault("C01", "C02")
@pytest.mark.parity("bedrock.foreign-thinking")
async def test_c01_c02_thinking_goes_back_with_its_signature_and_to_claude_only_so():
    blocks = [
        ThinkingContent("", signature="UkVE", redacted=True),
        ThinkingContent("", signature="only"),
        ThinkingContent("hm", signature="sig"),
        ThinkingContent("unsigned"),
        TextContent("x"),
    ]
    claude = await messages_of(user("a"), answer(*blocks), user("b"))
    assert claude[1]["content"] == [
        {"reasoningContent": {"redactedContent": "UkVE"}},
        {"reasoningContent": {"reasoningText": {"text": "", "signature": "only"}}},
        {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "sig"}}},
        {"text": "unsigned"},
        {"text": "x"},
    ]
    kimi = "moonshot.kimi-k2-thinking"
    own = await messages_of(user("a"), answer(*blocks[3:], model_id=kimi), user("b"), id=kimi)
    assert own[1]["content"][0] == {"reasoningContent": {"reasoningText": {"text": "unsigned"}}}
    foreign = await messages_of(user("a"), answer(*blocks), user("b"), id=NEW_CLAUDE)
    assert "reasoningContent" not in str(foreign) and "sig'" not in str(foreign)


@pytest.mark.fault("B17")
@pytest.mark.parity("bedrock.images-of-failures")
async def test_b17_images_of_a_failed_call_follow_the_results_for_claude():
    history: list[Message] = [
        user("a"),
        answer(ToolCall("c1", "read", {}), ToolCall("c2", "read", {})),
        result("c1", PIXEL, is_error=True),
        result("c2", "fine", PIXEL),
        user("b"),
    ]
    claude = await messages_of(*history)
    failed, fine, picture, last = claude[2]["content"]
    assert failed["toolResult"]["content"] == [{"text": "(images follow the results)"}]
    assert fine["toolResult"]["content"] == [{"text": "fine"}, PICTURE]
    assert (picture, last) == (PICTURE, {"text": "b"})
    nova = await messages_of(*history, id="amazon.nova-pro-v1:0")
    assert nova[2]["content"][0]["toolResult"]["content"] == [PICTURE]


async def test_arguments_go_back_without_members_that_have_no_name():
    call = ToolCall("c1", "read", {"": 1, "a": {"": 2, "b": [{"": 3, "c": None}]}})
    said = await messages_of(user("a"), answer(call), result("c1", "r"))
    assert said[1]["content"][0]["toolUse"]["input"] == {"a": {"b": [{"c": None}]}}


async def test_an_image_is_what_its_data_say():
    (said,) = await messages_of(user("a", ImageContent(PIXEL.data, "image/jpeg")))
    assert said["content"] == [{"text": "a"}, PICTURE]


@pytest.mark.fault("C03")
async def test_c03_ids_of_calls_fit_on_both_sides_and_are_there_once():
    ids = ["call_abc|fc_1", "x" * 70, "tooluse_ok-1", "call_abc|fc_2"]
    foreign = AssistantMessage(
        [ToolCall(each, "functions.read", {}) for each in ids], "openai-responses", "o", "g", timestamp=1
    )
    said = await messages_of(user("a"), foreign, *(result(each, "r") for each in ids))
    calls = [block["toolUse"] for block in said[1]["content"]]
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", call["toolUseId"]) for call in calls)
    assert len({call["toolUseId"] for call in calls}) == len(ids)
    assert calls[2]["toolUseId"] == "tooluse_ok-1"
    assert {call["name"] for call in calls} == {"functions_read"}
    results = [block["toolResult"]["toolUseId"] for block in said[2]["content"]]
    assert results == [call["toolUseId"] for call in calls]


@pytest.mark.parity("bedrock.turns")
async def test_a_conversation_that_ends_with_an_answer_is_gone_on_with():
    said = await messages_of(user("a"), answer(TextContent("Once upon")))
    assert said[-1] == {"role": "user", "content": [{"text": "Go on."}]}


# --- sampling


async def test_sampling_parameters_go_where_converse_has_them():
    options = StreamOptions(
        thinking="low",
        sampling={
            "top_p": 0.5,
            "stop": ["END"],
            "top_k": 5,
            "anthropic_beta": ["context-1m-2025-08-07"],
            "serviceTier": {"type": "flex"},
            "requestMetadata": {"team": "a"},
            "messages": "never",
            "additionalModelRequestFields": {"anthropic_beta": ["one"], "other": True},
        },
    )
    asked = await ask(END, options=options, id=OLD_CLAUDE)
    assert asked.body["inferenceConfig"] == {"maxTokens": 64_000, "topP": 0.5, "stopSequences": ["END"]}
    assert asked.body["serviceTier"] == {"type": "flex"}
    assert asked.body["requestMetadata"] == {"team": "a"}
    assert asked.body["messages"][0]["role"] == "user"
    fields = asked.body["additionalModelRequestFields"]
    assert "messages" not in fields
    assert (fields["top_k"], fields["other"], fields["thinking"]["type"]) == (5, True, "enabled")
    assert fields["anthropic_beta"] == ["interleaved-thinking-2025-05-14", "context-1m-2025-08-07", "one"]


async def test_sampling_of_the_level_goes_over_the_models():
    asked = await ask(
        END,
        context=HELLO,
        options=StreamOptions(thinking="low"),
        sampling={"top_k": 1, "top_p": 0.1},
        sampling_by_level={"low": {"top_k": 2}},
    )
    assert asked.body["additionalModelRequestFields"]["top_k"] == 2
    assert asked.body["inferenceConfig"]["topP"] == 0.1
