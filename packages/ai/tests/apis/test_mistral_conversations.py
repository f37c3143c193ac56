"""What Mistral's chat API is asked, and how its answers are read; where it differs from chat completions."""

from __future__ import annotations

import json
import re
import threading
from typing import Any

import pytest

from cantle_ai.content import ImageContent, TextContent, ThinkingContent, ToolCall
from cantle_ai.context import Context, ToolDefinition
from cantle_ai.messages import AssistantMessage, Message, ToolResultMessage, UserMessage
from cantle_ai.model import NamedTool, ResponseSchema, StreamOptions
from cantle_ai.retry import retryable
from packages.ai.tests.apis.asking import HELLO
from packages.ai.tests.apis.mistral import DONE, END, KEY, ask, call, chunk, thought
from packages.ai.tests.conformance.lab import PIXEL
from packages.ai.tests.http_peer import Link

OWN = ("mistral-conversations", "p", "m")
READ = ToolDefinition("read", "Reads.", {"type": "object", "properties": {"path": {"type": "string"}}})


def said(*blocks: object, author: tuple[str, str, str] = OWN) -> AssistantMessage:
    return AssistantMessage(list(blocks), *author, timestamp=1)  # type: ignore[arg-type]


def user(text: str) -> UserMessage:
    return UserMessage(text, timestamp=1)


def result(call_id: str, *blocks: object, name: str = "read") -> ToolResultMessage:
    return ToolResultMessage(call_id, name, list(blocks), timestamp=1)  # type: ignore[arg-type]


# --- requests


@pytest.mark.parametrize("root", ["", "/", "/v1", "/v1/"])
async def test_the_address_may_end_with_the_version_or_not(root):
    asked = await ask(END, root=root)
    assert asked.requests[0].line == "POST /v1/chat/completions HTTP/1.1"
    assert asked.requests[0].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parity("mistral.request", "mistral.defaults")
async def test_a_request_has_what_mistral_calls_it():
    options = StreamOptions(
        max_tokens=77,
        temperature=0.3,
        session_id="s-1",
        tool_choice="required",
        response_schema=ResponseSchema("capital", {"type": "object"}),
        sampling={"top_p": 0.5, "messages": "never"},
    )
    asked = await ask(END, context=Context("Be brief.", [user("hello")], [READ]), options=options)
    assert asked.body == {
        "model": "m",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hello"}],
        "tools": [
            {
                "type": "function",
                "function": {"name": "read", "description": "Reads.", "parameters": READ.parameters},
            }
        ],
        "stream": True,
        "temperature": 0.3,
        "prompt_cache_key": "s-1",
        "tool_choice": "any",
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "capital", "schema": {"type": "object"}, "strict": True},
        },
        "max_tokens": 77,
        "top_p": 0.5,
    }
    assert asked.requests[0].headers["x-affinity"] == "s-1"


@pytest.mark.parity("mistral.request")
async def test_a_request_without_a_next_is_routed_nowhere():
    options = StreamOptions(session_id="s-1", cache_retention="none")
    asked = await ask(END, options=options)
    assert "prompt_cache_key" not in asked.body
    assert "x-affinity" not in asked.requests[0].headers


@pytest.mark.fault("B19")
async def test_b19_a_long_session_id_is_bounded_in_the_body_and_the_header():
    asked = await ask(END, options=StreamOptions(session_id="s" * 65))
    key = asked.body["prompt_cache_key"]
    assert len(key) == 64
    assert asked.requests[0].headers["x-affinity"] == key


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        ("auto", "auto"),
        ("none", "none"),
        ("required", "any"),
        (NamedTool("read"), {"type": "function", "function": {"name": "read"}}),
    ],
)
async def test_a_tool_choice_is_said_in_mistrals_words(choice, sent):
    asked = await ask(
        END, context=Context(messages=[user("a")], tools=[READ]), options=StreamOptions(tool_choice=choice)
    )
    assert asked.body["tool_choice"] == sent
    bare = await ask(END, options=StreamOptions(tool_choice=choice))
    assert "tool_choice" not in bare.body


@pytest.mark.parametrize(
    ("levels", "level", "sent"),
    [
        ({"off": "none", "minimal": None, "low": None, "medium": None}, "off", {"reasoning_effort": "none"}),
        ({"off": "none", "minimal": None, "low": None, "medium": None}, "low", {"reasoning_effort": "high"}),
        ({"off": None}, "medium", {"reasoning_effort": "medium"}),
        ({"high": "high"}, "off", {}),
        ({"max": "max"}, "max", {"reasoning_effort": "max"}),
    ],
)
@pytest.mark.parity("mistral.thinking")
async def test_thinking_is_an_effort_by_the_models_own_names(levels, level, sent):
    asked = await ask(END, options=StreamOptions(thinking=level), reasoning=True, thinking_levels=levels)
    assert {name: value for name, value in asked.body.items() if name == "reasoning_effort"} == sent
    plain = await ask(END, options=StreamOptions(thinking=level), thinking_levels=levels)
    assert "reasoning_effort" not in plain.body


@pytest.mark.parametrize(("level", "sent"), [("off", None), ("high", "reasoning")])
@pytest.mark.parametrize(
    ("levels", "quirk"), [({"high": "high"}, {"promptMode": True}), ({}, {}), ({}, {"promptMode": None})]
)
@pytest.mark.parity("mistral.thinking")
async def test_the_quirk_prompt_mode_asks_for_thinking_in_the_first_way(levels, quirk, level, sent):
    options = StreamOptions(thinking=level)
    asked = await ask(END, options=options, reasoning=True, thinking_levels=levels, compat=quirk)
    assert asked.body.get("prompt_mode") == sent
    assert "reasoning_effort" not in asked.body


async def test_a_model_without_named_levels_may_still_be_asked_by_an_effort():
    options = StreamOptions(thinking="low")
    asked = await ask(END, options=options, reasoning=True, compat={"promptMode": False})
    assert asked.body["reasoning_effort"] == "low"
    assert "prompt_mode" not in asked.body


@pytest.mark.fault("B06")
async def test_b06_the_quirk_supports_strict_mode_makes_tools_strict_and_nothing_else_does():
    odd = ToolDefinition("odd", "Odd.", {"type": "object", "properties": {"n": {"minimum": 1}}})
    context = Context(messages=[user("a")], tools=[READ, odd])
    plain = await ask(END, context=context)
    assert not any("strict" in tool["function"] for tool in plain.body["tools"])
    strict = await ask(END, context=context, compat={"supportsStrictMode": True})
    first, second = (tool["function"] for tool in strict.body["tools"])
    assert (first["strict"], first["parameters"]["additionalProperties"]) == (True, False)
    assert "strict" not in second and second["parameters"] == odd.parameters


async def test_a_quirk_of_the_wrong_type_is_named():
    asked = await ask(END, compat={"promptMode": "yes"})
    assert asked.message.error_message == (
        "The model p/m cannot be used: Expected `bool | null`, got `str` - at `compat.promptMode`"
    )


# --- the conversation


@pytest.mark.fault("C03")
@pytest.mark.parity("mistral.call-ids")
async def test_c03_ids_of_calls_are_nine_letters_and_digits_on_both_sides_and_each_once():
    ids = ["call_abc|fc_1", "call_abc|fc_2", "x" * 70, "abc123def", "0"]
    messages: list[Message] = [
        user("a"),
        said(*(ToolCall(each, "read", {}) for each in ids), author=("openai-responses", "o", "g")),
        *(result(each, TextContent("r")) for each in ids),
    ]
    asked = await ask(END, context=Context(messages=messages))
    calls = [each["id"] for each in asked.body["messages"][1]["tool_calls"]]
    assert all(re.fullmatch(r"[a-zA-Z0-9]{9}", each) for each in calls)
    assert len(set(calls)) == len(ids)
    assert calls[3] == "abc123def"
    assert [each["tool_call_id"] for each in asked.body["messages"][2:]] == calls


@pytest.mark.parity("mistral.roles")
async def test_a_user_who_speaks_after_a_tool_is_led_up_to():
    messages: list[Message] = [
        user("a"),
        said(ToolCall("abc123def", "read", {})),
        result("abc123def", TextContent("r")),
        user("b"),
    ]
    asked = await ask(END, context=Context(messages=messages))
    roles = [each["role"] for each in asked.body["messages"]]
    assert roles == ["user", "assistant", "tool", "assistant", "user"]
    assert asked.body["messages"][2]["name"] == "read"


@pytest.mark.parity("mistral.roles")
async def test_a_last_answer_is_the_beginning_of_the_next():
    asked = await ask(END, context=Context(messages=[user("a"), said(TextContent("Once upon"))]))
    assert asked.body["messages"][-1] == {"role": "assistant", "content": "Once upon", "prefix": True}
    later = await ask(END, context=Context(messages=[user("a"), said(TextContent("Once upon")), user("b")]))
    assert later.body["messages"][1] == {"role": "assistant", "content": "Once upon"}


@pytest.mark.parity("mistral.own-thinking")
async def test_own_thinking_goes_back_in_its_place_and_anothers_is_text():
    answer = [
        ThinkingContent("hm", signature="sig"),
        TextContent("x"),
        ThinkingContent("so"),
        TextContent("y"),
    ]
    own = await ask(END, context=Context(messages=[user("a"), said(*answer), user("b")]))
    assert own.body["messages"][1]["content"] == [
        thought("hm", "sig"),
        {"type": "text", "text": "x"},
        thought("so"),
        {"type": "text", "text": "y"},
    ]
    other = await ask(END, context=Context(messages=[user("a"), said(*answer), user("b")]), id="another")
    assert "sig" not in str(other.body) and "hm" in other.body["messages"][1]["content"]


@pytest.mark.parity("mistral.defaults")
async def test_an_answer_of_calls_alone_has_no_content():
    messages: list[Message] = [user("a"), said(ToolCall("abc123def", "read", {"p": 1})), result("abc123def")]
    asked = await ask(END, context=Context(messages=messages))
    assert asked.body["messages"][1] == {
        "role": "assistant",
        "tool_calls": [
            {"id": "abc123def", "type": "function", "function": {"name": "read", "arguments": '{"p":1}'}}
        ],
    }


@pytest.mark.fault("B03")
@pytest.mark.parity("mistral.failed-results")
async def test_b03_a_blank_result_says_so():
    messages: list[Message] = [
        user("a"),
        said(ToolCall("abc123def", "read", {})),
        result("abc123def", TextContent(" \n")),
    ]
    asked = await ask(END, context=Context(messages=messages))
    assert asked.body["messages"][-1]["content"] == "(no output)"


async def test_images_are_data_urls_also_in_results():
    picture = {"type": "image_url", "image_url": f"data:image/png;base64,{PIXEL.data}"}
    # What a file calls itself is not asked: its data say what it is.
    odd = ImageContent(PIXEL.data, "image/jpeg")
    messages: list[Message] = [
        UserMessage([odd], timestamp=1),
        said(ToolCall("abc123def", "read", {})),
        result("abc123def", TextContent("see"), PIXEL),
    ]
    asked = await ask(END, context=Context(messages=messages), input=("text", "image"))
    assert asked.body["messages"][0]["content"] == [picture]
    assert asked.body["messages"][2]["content"] == [{"type": "text", "text": "see"}, picture]


@pytest.mark.fault("B08")
async def test_b08_the_output_limit_leaves_room_for_the_input_without_the_data_of_images():
    image = ImageContent(PIXEL.data + "A" * 400_000, "image/png")
    fields: dict[str, Any] = {"context_window": 100_000, "max_tokens": 64_000, "input": ("text", "image")}
    pictured = await ask(END, context=Context(messages=[UserMessage([image], timestamp=1)]), **fields)
    assert pictured.body["max_tokens"] == 64_000
    told = await ask(END, context=Context(messages=[user("x" * 200_000)]), **fields)
    assert 0 < told.body["max_tokens"] <= 100_000 - 200_000 // 4


# --- answers


@pytest.mark.parity("mistral.own-thinking")
async def test_thinking_and_text_in_turns_stay_in_their_order():
    asked = await ask(
        [
            chunk(role="assistant", content=""),
            chunk(content=[thought("a")]),
            chunk(content=[thought("b", "s1")]),
            chunk(content=[thought("c")]),
            chunk(content="x"),
            chunk(content=[{"type": "text", "text": "y"}, {"type": "reference", "reference_ids": [1]}]),
            chunk(content=[thought("d")]),
            *END,
        ]
    )
    ends = [kind for kind in asked.types if not kind.endswith("_delta")]
    assert ends[1:5] == ["thinking_start", "thinking_end", "thinking_start", "thinking_end"]
    assert asked.message.content == [
        ThinkingContent("ab", signature="s1"),
        ThinkingContent("c"),
        TextContent("xy"),
        ThinkingContent("d"),
    ]


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        # Whole calls, all numbered 0.
        ([[call("a", "read", '{"n":1}'), call("b", "read", '{"n":2}')]], [("a", 1), ("b", 2)]),
        # In pieces, by index; the word null is no id.
        (
            [
                [call("a", "read", '{"n"', 0), call("b", "read", '{"n"', 1)],
                [call("null", "", ":1}", 0), call("null", "", ":2}", 1)],
            ],
            [("a", 1), ("b", 2)],
        ),
        # In pieces that repeat id and name.
        ([[call("a", "read", '{"n"', 0)], [call("a", "read", ":1}", 0)]], [("a", 1)]),
        # Arguments as an object.
        ([[call("a", "read", {"n": 1})]], [("a", 1)]),
    ],
)
async def test_calls_are_put_together_by_id_and_index(pieces, expected):
    asked = await ask([*(chunk(tool_calls=each) for each in pieces), chunk("tool_calls"), DONE])
    assert [(each.id, each.arguments["n"]) for each in asked.message.tool_calls] == expected
    assert (asked.message.stop_reason, asked.message.raw_stop_reason) == ("toolUse", "tool_calls")


@pytest.mark.parametrize("index", [None, 0])
@pytest.mark.parametrize("said", [None, "null", "abc123def"])
@pytest.mark.parametrize("apart", [True, False])
async def test_calls_of_one_tool_that_nothing_tells_apart_stay_apart(index, said, apart):
    calls = [{**call("a", "read", f'{{"n":{n}}}'), "id": said, "index": index} for n in (1, 2, 3)]
    pieces = [[each] for each in calls] if apart else [calls]
    asked = await ask([*(chunk(tool_calls=each) for each in pieces), chunk("tool_calls"), DONE])
    assert [each.arguments for each in asked.message.tool_calls] == [{"n": 1}, {"n": 2}, {"n": 3}]
    assert len({each.id for each in asked.message.tool_calls}) == 3


async def test_a_piece_that_looks_like_a_beginning_goes_on_with_what_is_not_complete():
    pieces = ['{"n":', '{"m":', "{}", "}}"]
    calls = [{**call("a", "read", piece), "id": None, "index": None} for piece in pieces]
    asked = await ask([*(chunk(tool_calls=[each]) for each in calls), chunk("tool_calls"), DONE])
    assert [each.arguments for each in asked.message.tool_calls] == [{"n": {"m": {}}}]


async def test_a_call_without_an_id_of_its_own_gets_one_that_mistral_takes():
    context = Context(messages=[user("a"), said(ToolCall("abc123def", "read", {})), result("abc123def")])
    calls = [call("null", "read", "{}", 0), call("abc123def", "read", "{}", 1)]
    asked = await ask([chunk(tool_calls=calls), chunk("tool_calls"), DONE], context=context)
    ids = [each.id for each in asked.message.tool_calls]
    assert all(re.fullmatch(r"[a-zA-Z0-9]{9}", each) for each in ids)
    assert len({*ids, "abc123def"}) == 3


@pytest.mark.parametrize(
    ("finish", "reason"),
    [("stop", "stop"), ("length", "length"), ("model_length", "length"), ("something_new", "stop")],
)
async def test_every_reason_to_finish_ends_the_answer(finish, reason):
    asked = await ask([chunk(content="x"), chunk(finish), DONE])
    assert (asked.message.stop_reason, asked.message.raw_stop_reason) == (reason, finish)


@pytest.mark.parametrize(
    ("delta", "finish", "reason"),
    [
        ({"content": "x"}, "tool_calls", "stop"),
        ({"tool_calls": [call("abc123def", "read", "{}")]}, "stop", "toolUse"),
        ({"tool_calls": [call("abc123def", "read", "{}")]}, "length", "length"),
    ],
)
async def test_the_calls_say_better_than_the_word(delta, finish, reason):
    message = (await ask([chunk(**delta), chunk(finish), DONE])).message
    assert (message.stop_reason, message.raw_stop_reason) == (reason, finish)


@pytest.mark.parametrize("finish", ["error", "content_filter"])
async def test_an_answer_that_the_provider_ended_has_failed_with_what_had_come(finish):
    asked = await ask([chunk(content="x"), chunk(finish), DONE])
    message = asked.message
    assert (message.stop_reason, message.raw_stop_reason, message.text) == ("error", finish, "x")
    assert asked.details["code"] == finish


async def test_an_answer_without_a_reason_to_finish_was_cut():
    asked = await ask([chunk(content="x"), DONE])
    assert asked.message.stop_reason == "error"
    assert retryable(asked.message)


@pytest.mark.parametrize(
    "cached",
    [
        {"prompt_tokens_details": {"cached_tokens": 40}},
        {"prompt_token_details": {"cached_tokens": 40}},
        {"num_cached_tokens": 40},
        {"num_cached_tokens": "40", "prompt_tokens": "100"},
    ],
)
async def test_cached_tokens_are_counted_once_wherever_they_are_told(cached):
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110, **cached}
    asked = await ask([chunk("stop", usage, content="x"), DONE])
    counted = asked.message.usage
    assert (counted.input, counted.cache_read, counted.output, counted.total_tokens) == (60, 40, 10, 110)


async def test_no_more_is_read_from_a_cache_than_was_sent():
    usage = {"prompt_tokens": 5, "completion_tokens": 1, "num_cached_tokens": 9}
    counted = (await ask([chunk("stop", usage, content="x"), DONE])).message.usage
    assert (counted.input, counted.cache_read, counted.total_tokens) == (0, 5, 6)


async def test_reasoning_is_part_of_the_output():
    usage = {
        "prompt_tokens": 1,
        "completion_tokens": 10,
        "total_tokens": 11,
        "completion_tokens_details": {"reasoning_tokens": 4},
    }
    asked = await ask([chunk("stop", usage, content="x"), DONE])
    assert (asked.message.usage.output, asked.message.usage.reasoning) == (10, 4)


async def test_an_error_inside_the_stream_has_its_code():
    flat = b'data: {"object":"error","message":"boom","type":"internal_server_error","code":"1000"}\n\n'
    asked = await ask([chunk(content="half"), flat])
    assert asked.message.error_message == "boom"
    assert asked.details["code"] == "1000"
    assert asked.message.text == "half"


async def test_a_completion_that_is_not_streamed_is_an_answer_as_well():
    body = (
        b'{"id":"c1","object":"chat.completion","model":"other","choices":[{"index":0,"finish_reason":"stop",'
        b'"message":{"role":"assistant","content":[{"type":"thinking","thinking":"hm"},"plain"]}}],'
        b'"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}'
    )

    def serve(link: Link) -> None:
        link.answer(body, "content-type: application/json")

    message = (await ask(serve)).message
    assert message.content == [ThinkingContent("hm"), TextContent("plain")]
    assert (message.response_id, message.response_model, message.usage.input) == ("c1", "other", 3)


@pytest.mark.fault("B22")
async def test_b22_an_answer_that_takes_longer_than_the_timeout_is_not_cut():
    """The time-out is for each wait, never for the whole answer."""

    def serve(link: Link) -> None:
        link.request()
        link.head("content-type: text/event-stream", "transfer-encoding: chunked")
        for _ in range(8):
            link.chunk(chunk(content="x"))
            slow.wait(0.1)
        link.chunk(chunk("stop") + DONE)
        link.send(b"0\r\n\r\n")

    slow = threading.Event()  # never set: the server takes its time
    asked = await ask(serve, options=StreamOptions(timeout=0.5))
    assert (asked.message.stop_reason, asked.message.text) == ("stop", "x" * 8)


async def test_requests_of_one_task_begin_alike():
    messages: list[Message] = [
        user("a"),
        said(ThinkingContent("hm"), TextContent("x"), ToolCall("c|1", "read", {})),
    ]
    first = await ask(END, context=Context("S", [user("a")]))
    second = await ask(END, context=Context("S", [*messages, result("c|1", TextContent("r"))]))
    third = await ask(END, context=Context("S", [*messages, result("c|1", TextContent("r")), user("b")]))
    bodies = [asked.requests[-1].body.partition(b'],"stream"')[0] for asked in (first, second, third)]
    assert bodies[1].startswith(bodies[0])
    assert bodies[2].startswith(bodies[1])


@pytest.mark.parametrize("wrapped", [True, False])
async def test_what_is_wrong_with_a_request_is_told_with_its_place(wrapped):
    mistakes = [
        {"type": "missing", "loc": ["body", "messages", 0, "content"], "msg": "Field required", "input": {}},
        {"type": "extra_forbidden", "loc": ["body", "foo"], "msg": "Extra inputs are not permitted"},
        "odd",
    ]
    body: dict[str, object] = {"detail": mistakes}
    if wrapped:
        body = {"object": "error", "message": body, "type": "invalid_request_error", "code": None}

    def serve(link: Link) -> None:
        kind = "content-type: application/json"
        link.answer(json.dumps(body).encode(), kind, status="422 Unprocessable Entity")

    asked = await ask(serve)
    assert asked.message.error_message == (
        "422 body.messages.0.content: Field required; body.foo: Extra inputs are not permitted"
    )


async def test_nothing_of_a_key_is_in_a_refusal():
    def serve(link: Link) -> None:
        body = f'{{"object":"error","message":"Bad key {KEY}","code":"1"}}'
        link.answer(body.encode(), "content-type: application/json", status="401 Unauthorized")

    asked = await ask(serve, context=HELLO)
    assert KEY not in str(asked.message.to_json())
    assert asked.message.error_message == "401 Bad key …"
