"""What goes out: the body and headers of a chat completions request, field by field and quirk by quirk."""

import json
from typing import Any

import pytest

from cantle_ai.apis.openai_completions_compat import OpenAICompletionsCompat, compat_of
from cantle_ai.apis.openai_completions_payload import request_body
from cantle_ai.apis.session_keys import bounded_key
from cantle_ai.codec import JsonObject
from cantle_ai.content import ImageContent, TextContent, ThinkingContent, ToolCall, UnknownContent
from cantle_ai.context import Context, ToolDefinition
from cantle_ai.messages import AssistantMessage, ThinkingLevel, ToolResultMessage, UserMessage
from cantle_ai.model import StreamOptions
from cantle_ai.transport.port import HttpRequest
from packages.ai.tests.apis.asking import HELLO
from packages.ai.tests.apis.completions import DONE, KEY, ask, delta, model

OK = [delta("stop", content="ok"), DONE]
READ = ToolDefinition("read", "Reads a file.", {"type": "object", "properties": {"path": {"type": "string"}}})
PIXEL = ImageContent("iVBORw0KGgoAAAAN", "image/png")
URL = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgoAAAAN"}}


def body(context=HELLO, options=None, **fields):
    asked = model(**fields)
    return json.loads(request_body(asked, context, options or StreamOptions(), compat_of(asked)))


def messages(*history, **fields):
    return body(Context("", list(history)), **fields)["messages"]


def user(content="u"):
    return UserMessage(content, timestamp=1)


def answer(*content, stop="toolUse", provider="p", model="m"):
    return AssistantMessage(
        list(content), "openai-completions", provider, model, stop_reason=stop, timestamp=2
    )


def result(*content, call="c", name="read", is_error=False):
    return ToolResultMessage(call, name, list(content), is_error=is_error, timestamp=3)


READING = answer(ToolCall("c", "read", {"path": "a"}))


# --- the request over the wire


async def test_a_request_on_the_wire():
    asked = await ask(OK, context=Context("Be brief.", [user("hi")], [READ]), headers={"X-Extra": "1"})
    sent = asked.requests[0]
    assert sent.line == "POST /v1/chat/completions HTTP/1.1"
    assert sent.headers["authorization"] == f"Bearer {KEY}"
    assert sent.headers["content-type"] == "application/json"
    assert sent.headers["accept"] == "text/event-stream"
    assert sent.headers["x-extra"] == "1"
    assert json.loads(sent.body) == {
        "model": "m",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}],
        "tools": [
            {
                "type": "function",
                "function": {"name": "read", "description": "Reads a file.", "parameters": READ.parameters},
            }
        ],
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_completion_tokens": 16384,
    }


async def test_headers_of_the_options_win_and_names_know_no_case():
    options = StreamOptions(headers={"Authorization": "Other x"})
    asked = await ask(OK, options=options, headers={"AUTHORIZATION": "Provider y", "User-Agent": "mine"})
    assert asked.requests[0].headers["authorization"] == "Other x"
    assert asked.requests[0].headers["user-agent"] == "mine"


async def test_no_key_sends_no_authorization():
    assert "authorization" not in (await ask(OK, key=None)).requests[0].headers


async def test_the_hooks_see_request_and_response():
    seen: list[Any] = []
    options = StreamOptions(on_request=seen.append, on_response=seen.append)
    await ask(OK, options=options)
    request, response = seen
    assert request.url.endswith("/v1/chat/completions")
    assert json.loads(request.body)["model"] == "m"
    assert (response.status, response.headers["content-type"]) == (200, "text/event-stream")


async def test_a_slash_at_the_end_of_the_base_url_does_no_harm():
    from packages.ai.tests.http_peer import Peer

    with Peer(lambda link: link.events(*OK)) as peer:
        pass
    sent: list[HttpRequest] = []
    await ask(OK, options=StreamOptions(on_request=sent.append), base_url=f"{peer.url}/v1/")
    assert sent[0].url == f"{peer.url}/v1/chat/completions"


# --- messages


def test_no_system_prompt_no_system_message():
    assert messages(user()) == [{"role": "user", "content": "u"}]


def test_user_content():
    assert messages(user([TextContent("a")])) == [{"role": "user", "content": "a"}]
    two = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert messages(user([TextContent("a"), TextContent("b"), UnknownContent({"type": "x"})])) == [
        {"role": "user", "content": two}
    ]
    mixed = messages(user([TextContent("see"), PIXEL]), input=("text", "image"))
    assert mixed == [{"role": "user", "content": [{"type": "text", "text": "see"}, URL]}]


@pytest.mark.fault("B04")
@pytest.mark.parametrize("empty", ["", " \n"])
def test_b04_no_empty_text_beside_an_image(empty):
    sent = messages(user([TextContent(empty), PIXEL]), input=("text", "image"))
    assert sent == [{"role": "user", "content": [URL]}]


@pytest.mark.fault("C08")
def test_c08_an_image_for_a_model_without_eyes_is_named_for_this_request_only():
    message = user([TextContent("see"), PIXEL])
    blind = messages(message)[0]["content"]
    assert [part["type"] for part in blind] == ["text", "text"]
    assert "image" in blind[1]["text"]
    assert messages(message, input=("text", "image"))[0]["content"][1] == URL


@pytest.mark.fault("C08")
def test_c08_images_that_follow_each_other_have_one_note_for_a_model_without_eyes():
    blind = messages(user([TextContent("see"), PIXEL, PIXEL, TextContent("and"), PIXEL]))[0]["content"]
    assert [part["text"][:4] for part in blind] == ["see", "(an ", "and", "(an "]


def test_images_can_be_turned_off_for_a_request():
    message = user([TextContent("see"), PIXEL])
    sees = {"input": ("text", "image"), "context": Context("", [message])}
    off = body(options=StreamOptions(images=False), **sees)["messages"][0]["content"]
    assert [part["type"] for part in off] == ["text", "text"] and "turned off" in off[1]["text"]
    assert body(**sees)["messages"][0]["content"][1] == URL


BROKEN = [
    ImageContent("***", "image/png"),
    ImageContent("", "image/png"),
    ImageContent("aGVsbG8sIHdvcmxk", "image/png"),
    ImageContent("iVBORw0KGgoAAAAN\n", "image/png"),
]


@pytest.mark.fault("J03")
@pytest.mark.parametrize("broken", BROKEN)
def test_j03_what_no_provider_takes_is_a_note_where_it_is_stored_already(broken):
    said = messages(user([TextContent("see"), broken, PIXEL]), input=("text", "image"))
    text, note, url = said[0]["content"]
    assert text["text"] == "see" and "left out" in note["text"] and url == URL
    sent = messages(user(), READING, result(broken), user("and?"), input=("text", "image"))
    assert [message["role"] for message in sent] == ["user", "assistant", "tool", "user"]
    assert "left out" in sent[2]["content"]
    both = messages(user(), READING, result(TextContent("a"), broken, PIXEL), input=("text", "image"))
    assert both[2]["content"].startswith("a\n(an image was left out") and both[3]["content"][1] == URL


@pytest.mark.fault("J01")
def test_j01_the_media_type_is_the_one_that_the_bytes_show():
    wrong = ImageContent(PIXEL.data, "image/jpeg")
    assert messages(user([wrong]), input=("text", "image"))[0]["content"] == [URL]


def test_an_answer_with_calls():
    history = [user(), answer(TextContent("I "), TextContent("look."), ToolCall("c", "read", {"path": "ä"}))]
    sent = messages(*history, result(TextContent("data")))
    assert sent[1] == {
        "role": "assistant",
        "content": "I look.",
        "tool_calls": [
            {"id": "c", "type": "function", "function": {"name": "read", "arguments": '{"path":"ä"}'}}
        ],
    }
    assert sent[2] == {"role": "tool", "tool_call_id": "c", "content": "data"}


def test_an_answer_without_text_has_null_content():
    assert messages(user(), READING)[1]["content"] is None


@pytest.mark.fault("C06")
def test_c06_an_answer_without_anything_is_left_out():
    empty = answer(ThinkingContent("hm"), stop="stop")
    assert [message["role"] for message in messages(user(), empty, user())] == ["user", "user"]


@pytest.mark.fault("C06")
@pytest.mark.parametrize("blank", [" ", "\n", " \t\n"])
def test_c06_white_space_is_no_text(blank):
    said = answer(TextContent(blank), stop="stop")
    assert [message["role"] for message in messages(user(), said, user())] == ["user", "user"]
    calling = answer(TextContent(blank), ToolCall("c", "read", {}))
    assert messages(user(), calling)[1]["content"] is None
    assert messages(user(), calling, compat={"requiresNonNullAssistantContent": True})[1]["content"] == ""


def test_arguments_that_were_no_object_go_out_as_an_empty_one():
    broken = answer(ToolCall("c", "read", invalid_arguments='{"pa'))
    assert messages(user(), broken)[1]["tool_calls"][0]["function"]["arguments"] == "{}"


@pytest.mark.fault("B03")
@pytest.mark.parametrize("content", [[], [TextContent("")], [TextContent(" \n\t")]])
def test_b03_an_empty_tool_output_is_said_in_words(content):
    text = messages(user(), READING, result(*content))[2]["content"]
    assert text.strip()


def test_a_tool_output_is_sent_as_it_is():
    assert (
        messages(user(), READING, result(TextContent(" a\n"), TextContent("b ")))[2]["content"] == " a\n\nb "
    )


@pytest.mark.fault("B17")
def test_b17_images_of_results_follow_after_all_of_them():
    both = answer(ToolCall("c", "read", {}), ToolCall("d", "read", {}))
    history = [
        user(),
        both,
        result(TextContent("one"), PIXEL, call="c", is_error=True),
        result(PIXEL, call="d"),
        user("and?"),
    ]
    sent = messages(*history, input=("text", "image"))
    assert [message["role"] for message in sent] == ["user", "assistant", "tool", "tool", "user", "user"]
    assert sent[2]["content"] == "one"
    assert sent[3]["content"].strip()
    lead, *images = sent[4]["content"]
    assert lead["type"] == "text"
    assert images == [URL, URL]
    assert sent[5] == {"role": "user", "content": "and?"}


def test_images_of_results_for_a_model_without_eyes():
    sent = messages(user(), READING, result(PIXEL))
    assert [message["role"] for message in sent] == ["user", "assistant", "tool"]
    assert "image" in sent[2]["content"]


def test_two_answers_have_a_message_of_the_user_between_them():
    sent = messages(
        user(), answer(TextContent("a"), stop="stop"), answer(TextContent("b"), stop="stop"), user()
    )
    assert [message["role"] for message in sent] == ["user", "assistant", "user", "assistant", "user"]
    assert sent[2]["content"] == "(What was said here has been taken out of the conversation.)"
    sent = messages(user(), READING, result(TextContent("r")), answer(TextContent("b"), stop="stop"), user())
    assert [message["role"] for message in sent] == ["user", "assistant", "tool", "assistant", "user"]


def test_failed_answers_and_orphans_do_not_go_out():
    failed = answer(TextContent("half"), stop="error")
    sent = messages(user("1"), failed, user("2"), READING, user("3"))
    assert [message["role"] for message in sent] == ["user", "user", "assistant", "tool", "user"]
    assert "interrupted" in sent[3]["content"]


@pytest.mark.parametrize("text", ["a\ud800b", "\udc00", "\ud83d\ude00"])
def test_lone_surrogates_become_replacement_characters(text):
    raw = request_body(model(), Context(text, [user(text)]), StreamOptions(), OpenAICompletionsCompat())
    json.loads(raw.decode("utf-8"))
    assert b"\\ud" not in raw


@pytest.mark.fault("B18")
def test_b18_an_answer_is_one_text_and_no_list_of_parts():
    parts = answer(TextContent("a"), ToolCall("c", "read", {}), TextContent("b"))
    assert messages(user(), parts, result(TextContent("r")))[1]["content"] == "ab"


# --- thinking of earlier answers


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning", "reasoning_text"])
def test_thinking_of_this_model_goes_back_in_the_field_it_came_in(name):
    thought = answer(ThinkingContent("a", signature=name), TextContent("t"), stop="stop")
    assert messages(user(), thought)[1] == {"role": "assistant", "content": "t", name: "a"}


@pytest.mark.parametrize(
    "thought",
    [
        answer(ThinkingContent("a", signature="reasoning"), TextContent("t"), provider="other"),
        answer(ThinkingContent("a", signature="reasoning"), TextContent("t"), model="other"),
        answer(ThinkingContent("a"), TextContent(""), TextContent("t"), provider="other"),
    ],
)
def test_thinking_of_another_model_is_a_paragraph_of_text(thought):
    assert messages(user(), thought)[1] == {"role": "assistant", "content": "a\n\nt"}


@pytest.mark.parametrize(
    "thought",
    [
        answer(ThinkingContent("a", signature="opaque"), TextContent("t")),
        answer(ThinkingContent("a"), TextContent("t")),
        answer(ThinkingContent("", signature="reasoning"), TextContent("t")),
    ],
)
def test_other_thinking_does_not_go_out(thought):
    assert messages(user(), thought)[1] == {"role": "assistant", "content": "t"}


@pytest.mark.fault("A14")
def test_a14_encrypted_reasoning_of_older_sessions_goes_back():
    detail = {"type": "reasoning.encrypted", "id": "c", "data": "x"}
    call = ToolCall("c", "read", {}, thought_signature=json.dumps(detail))
    loose = ThinkingContent(signature=json.dumps({**detail, "id": "r"}), redacted=True)
    sent = messages(user(), answer(call, loose))[1]
    assert sent["reasoning_details"] == [detail, {**detail, "id": "r"}]
    foreign = messages(user(), answer(call, loose, provider="other"))[1]
    assert "reasoning_details" not in foreign


# --- quirks, one by one


@pytest.mark.parity("completions.no-guessing")
def test_compat_supports_store():
    assert "store" not in body()
    assert body(compat={"supportsStore": True})["store"] is False


@pytest.mark.fault("B01")
def test_b01_compat_supports_developer_role():
    def role(**fields):
        return body(**fields)["messages"][0]["role"]

    assert role(reasoning=True) == "system"
    assert role(reasoning=True, compat={"supportsDeveloperRole": True}) == "developer"
    assert role(reasoning=False, compat={"supportsDeveloperRole": True}) == "system"


@pytest.mark.parity("completions.usage-in-streaming")
def test_compat_supports_usage_in_streaming():
    assert "stream_options" not in body(compat={"supportsUsageInStreaming": False})


@pytest.mark.fault("B10")
@pytest.mark.parity("completions.max-tokens-field")
def test_b10_compat_max_tokens_field():
    sent = body(compat={"maxTokensField": "max_tokens"})
    assert sent["max_tokens"] == 16384
    assert "max_completion_tokens" not in sent


@pytest.mark.parity("completions.tool-result-quirks")
def test_compat_requires_tool_result_name():
    sent = messages(user(), READING, result(TextContent("x")), compat={"requiresToolResultName": True})
    assert sent[2] == {"role": "tool", "tool_call_id": "c", "content": "x", "name": "read"}


def test_compat_requires_assistant_after_tool_result():
    history = [user(), READING, result(TextContent("x"), PIXEL), user("next")]
    compat = {"requiresAssistantAfterToolResult": True}
    roles = [m["role"] for m in messages(*history, compat=compat)]
    assert roles == ["user", "assistant", "tool", "assistant", "user"]
    seeing = [m["role"] for m in messages(*history, compat=compat, input=("text", "image"))]
    assert seeing == ["user", "assistant", "tool", "assistant", "user", "user"]


@pytest.mark.parity("completions.assistant-quirks")
def test_compat_requires_non_null_assistant_content():
    assert messages(user(), READING, compat={"requiresNonNullAssistantContent": True})[1]["content"] == ""


@pytest.mark.fault("B02")
@pytest.mark.parity("completions.empty-tools")
def test_b02_compat_requires_tools_with_tool_history():
    history = Context("", [user(), READING, result(TextContent("x"))])
    assert "tools" not in body(history)
    assert body(history, compat={"requiresToolsWithToolHistory": True})["tools"] == []
    assert "tools" not in body(compat={"requiresToolsWithToolHistory": True})


@pytest.mark.fault("B06", "B07")
def test_b05_b06_b07_schemas_go_out_as_they_are_where_strict_ones_are_not_known():
    parameters: JsonObject = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {
            "place": {"$ref": "#/$defs/place"},
            "anything": {"description": "has no type"},
            "count": {"type": "integer", "minimum": 1},
        },
        "$defs": {"place": {"type": "string", "const": "here"}},
    }
    tool = ToolDefinition("t", "Does it.", parameters)
    assert body(Context("", [user()], [tool]))["tools"] == [
        {"type": "function", "function": {"name": "t", "description": "Does it.", "parameters": parameters}}
    ]


def test_compat_requires_thinking_as_text():
    thought = answer(ThinkingContent("why", signature="reasoning"), TextContent("t"), stop="stop")
    sent = messages(user(), thought, compat={"requiresThinkingAsText": True})[1]
    assert sent == {"role": "assistant", "content": "<thinking>\nwhy\n</thinking>\n\nt"}


def test_compat_requires_reasoning_content_on_assistant_messages():
    compat = {"requiresReasoningContentOnAssistantMessages": True}
    assert messages(user(), READING, reasoning=True, compat=compat)[1]["reasoning_content"] == ""
    thought = answer(ThinkingContent("why", signature="reasoning_content"), TextContent("t"), stop="stop")
    assert messages(user(), thought, reasoning=True, compat=compat)[1]["reasoning_content"] == "why"
    assert "reasoning_content" not in messages(user(), READING, compat=compat)[1]


@pytest.mark.parity("completions.routing")
def test_compat_routing_priority_and_tool_stream():
    compat = {
        "openRouterRouting": {"only": ["x"]},
        "vercelGatewayRouting": {"order": ["y"]},
        "vllmPriority": 3,
        "zaiToolStream": True,
    }
    sent = body(Context("", [user()], [READ]), compat=compat)
    assert sent["provider"] == {"only": ["x"]}
    assert sent["providerOptions"] == {"gateway": {"order": ["y"]}}
    assert sent["priority"] == 3
    assert sent["tool_stream"] is True
    assert "tool_stream" not in body(compat=compat)


def test_unknown_compat_names_belong_to_somebody_else():
    assert compat_of(model(compat={"supportsTemperature": True})) == OpenAICompletionsCompat()


# --- thinking

EFFORT = {"reasoning_effort": "high"}


@pytest.mark.fault("B11")
@pytest.mark.parametrize(
    ("form", "off", "high"),
    [
        ("openai", {}, EFFORT),
        ("openrouter", {"reasoning": {"effort": "none"}}, {"reasoning": {"effort": "high"}}),
        ("deepseek", {"thinking": {"type": "disabled"}}, {"thinking": {"type": "enabled"}, **EFFORT}),
        ("together", {"reasoning": {"enabled": False}}, {"reasoning": {"enabled": True}, **EFFORT}),
        ("zai", {"thinking": {"type": "disabled"}}, {"thinking": {"type": "enabled", "clear_thinking": False}, **EFFORT}),
        ("qwen", {"enable_thinking": False}, {"enable_thinking": True, **EFFORT}),
        (
            "qwen-chat-template",
            {"chat_template_kwargs": {"enable_thinking": False, "preserve_thinking": True}},
            {"chat_template_kwargs": {"enable_thinking": True, "preserve_thinking": True}},
        ),
        (
            "chat-template",
            {"chat_template_kwargs": {"on": False, "x": 1}},
            {"chat_template_kwargs": {"on": True, "how": "high", "x": 1}},
        ),
        ("baseten", {"chat_template_args": {"on": False}}, {"chat_template_args": {"on": True}, **EFFORT}),
        ("string-thinking", {"thinking": "none"}, {"thinking": "high"}),
        ("ant-ling", {}, {}),
    ],
)  # fmt: skip
@pytest.mark.parity("completions.thinking-formats")
def test_b11_thinking_formats(form, off, high):
    plain = body()
    compat = {
        "thinkingFormat": form,
        "chatTemplateKwargs": {
            "on": {"$var": "thinking.enabled"},
            "how": {"$var": "thinking.effort"},
            "x": 1,
        },
        "chatTemplateArgs": {"on": {"$var": "thinking.enabled"}},
    }
    levels: list[tuple[ThinkingLevel, JsonObject]] = [("off", off), ("high", high)]
    for level, expected in levels:
        sent = body(options=StreamOptions(thinking=level), reasoning=True, compat=compat)
        assert {key: value for key, value in sent.items() if key not in plain} == expected
    assert body(options=StreamOptions(thinking="high"), compat=compat) == plain  # a model without reasoning


@pytest.mark.parametrize("form", ["openai", "baseten"])
def test_off_is_told_by_an_effort_where_the_model_has_a_word_for_it(form):
    fields = {"compat": {"thinkingFormat": form}, "thinking_levels": {"off": "none"}}
    assert effort("off", **fields) == "none"
    assert effort("off", **{**fields, "thinking_levels": {}}) is None


def test_compat_supports_reasoning_effort():
    options = StreamOptions(thinking="high")
    for form in ("openai", "deepseek", "together", "zai", "qwen", "baseten"):
        sent = body(
            options=options, reasoning=True, compat={"thinkingFormat": form, "supportsReasoningEffort": False}
        )
        assert "reasoning_effort" not in sent


def effort(level, **fields):
    return body(options=StreamOptions(thinking=level), reasoning=True, **fields).get("reasoning_effort")


@pytest.mark.fault("B12")
def test_b12_a_level_that_the_model_lacks_is_clamped():
    assert effort("xhigh") == "high"
    assert effort("minimal", thinking_levels={"minimal": None, "off": None}) == "low"
    assert effort("xhigh", thinking_levels={"xhigh": "xhigh"}) == "xhigh"
    assert effort("off", thinking_levels={"off": None}) == "minimal"


@pytest.mark.fault("B14")
def test_b14_levels_go_out_by_the_providers_names():
    assert effort("low", thinking_levels={"low": "default"}) == "default"
    assert effort("off", thinking_levels={"off": "none"}) == "none"
    ling = body(
        options=StreamOptions(thinking="high"),
        reasoning=True,
        thinking_levels={"high": "deep"},
        compat={"thinkingFormat": "ant-ling"},
    )
    assert ling["reasoning"] == {"effort": "deep"}


@pytest.mark.fault("B13")
def test_b13_temperature_goes_out_unless_the_model_reasons():
    options = StreamOptions(temperature=0.5)
    assert body(options=options)["temperature"] == 0.5
    assert body(options=options, reasoning=True)["temperature"] == 0.5
    assert "temperature" not in body(options=StreamOptions(temperature=0.5, thinking="low"), reasoning=True)


# --- the output limit


def test_the_output_limit_is_the_models_or_what_was_asked_for():
    assert body(max_tokens=1000)["max_completion_tokens"] == 1000
    assert body(options=StreamOptions(max_tokens=50))["max_completion_tokens"] == 50


@pytest.mark.fault("B08")
def test_b08_the_output_limit_leaves_room_for_the_input():
    whole = body(max_tokens=10_000, context_window=10_000)["max_completion_tokens"]
    assert 9_900 < whole < 10_000
    long = Context("", [user("x" * 17_500)])  # 5,000 tokens at 3.5 characters, 5,750 with the margin
    left = body(long, max_tokens=10_000, context_window=10_000)["max_completion_tokens"]
    assert 4_100 < left <= 4_250
    assert body(Context("", [user("x" * 99_999)]), context_window=10_000)["max_completion_tokens"] == 625


@pytest.mark.fault("B08")
def test_b08_image_data_does_not_count_as_text():
    picture = ImageContent("iVBORw0KGgoAAAAN" + "A" * 1_000_000, "image/png")
    sent = body(
        Context("", [user([picture])]), max_tokens=10_000, context_window=10_000, input=("text", "image")
    )
    assert 8_000 < sent["max_completion_tokens"] < 9_000


# --- sampling


@pytest.mark.parity("completions.sampling")
def test_sampling_is_merged_in_order_and_cannot_touch_what_is_ours():
    sent = body(
        options=StreamOptions(thinking="high", sampling={"c": 3, "messages": [], "stream": False}),
        reasoning=True,
        sampling={"a": 1, "b": 1, "c": 1, "model": "x", "max_completion_tokens": 7},
        sampling_by_level={"high": {"b": 2, "c": 2}, "low": {"a": 9}},
    )
    assert (sent["a"], sent["b"], sent["c"], sent["max_completion_tokens"]) == (1, 2, 3, 7)
    assert (sent["model"], sent["stream"]) == ("m", True)
    assert sent["messages"]


@pytest.mark.parity("models.sampling-by-level")
@pytest.mark.parametrize(
    ("thinking", "expected"),
    [("xhigh", {"top_k": 1, "top_p": 2}), ("off", {"top_k": 9, "top_p": 2}), ("low", {"top_p": 2})],
)
def test_sampling_is_that_of_the_level_which_the_model_has(thinking, expected):
    sent = body(
        options=StreamOptions(thinking=thinking, sampling={"top_p": 2}),
        reasoning=True,
        sampling_by_level={"high": {"top_k": 1, "top_p": 1}, "off": {"top_k": 9}},
    )
    assert {key: value for key, value in sent.items() if key.startswith("top_")} == expected


# --- caching and sessions


def session(mode="auto", retention="short", long=False, session_id="s1", **compat):
    options = StreamOptions(session_id=session_id, cache_retention=retention)
    return body(
        options=options, compat={"promptCacheKeyMode": mode, "supportsLongCacheRetention": long, **compat}
    )


def test_compat_prompt_cache_key_mode():
    assert session("enabled")["prompt_cache_key"] == "s1"
    assert "prompt_cache_key" not in session("auto")
    assert session("auto", "long", long=True)["prompt_cache_key"] == "s1"
    assert "prompt_cache_key" not in session("auto", "long")
    assert "prompt_cache_key" not in session("disabled", "long", long=True)
    assert "prompt_cache_key" not in session("enabled", "none")
    assert "prompt_cache_key" not in session("enabled", session_id=None)


@pytest.mark.parity("completions.long-retention")
def test_compat_supports_long_cache_retention():
    assert session("enabled", "long", long=True)["prompt_cache_retention"] == "24h"
    assert "prompt_cache_retention" not in session("enabled", "short", long=True)
    assert "prompt_cache_retention" not in session("enabled", "long")


@pytest.mark.fault("B19")
def test_b19_a_long_session_id_is_bounded_by_hash():
    assert bounded_key("x" * 64) == "x" * 64
    keys = {bounded_key("x" * 65), bounded_key("x" * 66)}
    assert len(keys) == 2
    assert all(len(key) == 64 for key in keys)
    assert session("enabled", session_id="y" * 100)["prompt_cache_key"] == bounded_key("y" * 100)


@pytest.mark.fault("B20")
@pytest.mark.parametrize(
    ("form", "names"),
    [
        ("openai", {"session_id", "x-client-request-id", "x-session-affinity"}),
        ("openai-nosession", {"x-client-request-id", "x-session-affinity"}),
        ("openrouter", {"x-session-id"}),
    ],
)
@pytest.mark.parity("completions.session-headers")
async def test_b20_compat_send_session_affinity_headers(form, names):
    options = StreamOptions(session_id="z" * 70)
    compat = {"sendSessionAffinityHeaders": True, "sessionAffinityFormat": form}
    headers = (await ask(OK, options=options, compat=compat)).requests[0].headers
    every = {"session-id", "session_id", "x-client-request-id", "x-session-affinity", "x-session-id"}
    assert {name for name in every if name in headers} == names
    assert {headers[name] for name in names} == {bounded_key("z" * 70)}
    quiet = (await ask(OK, options=options)).requests[0].headers
    assert not every & quiet.keys()
    alone = StreamOptions(session_id="s", cache_retention="none")
    assert not every & (await ask(OK, options=alone, compat=compat)).requests[0].headers.keys()


@pytest.mark.parity("completions.cache-marks")
def test_compat_cache_control_format():
    context = Context(
        "Be brief.", [user("1"), answer(TextContent("2"), stop="stop"), user("3")], [READ, READ]
    )
    mark = {"type": "ephemeral"}
    sent = body(context, compat={"cacheControlFormat": "anthropic"})
    system, one, two, three = sent["messages"]
    assert system["content"] == [{"type": "text", "text": "Be brief.", "cache_control": mark}]
    assert (one["content"], two["content"]) == ("1", "2")
    assert three["content"] == [{"type": "text", "text": "3", "cache_control": mark}]
    assert "cache_control" not in sent["tools"][0]
    assert sent["tools"][1]["cache_control"] == mark
    long = body(
        context,
        options=StreamOptions(cache_retention="long"),
        compat={"cacheControlFormat": "anthropic", "supportsLongCacheRetention": True},
    )
    assert long["messages"][0]["content"][0]["cache_control"] == {"type": "ephemeral", "ttl": "1h"}
    assert "prompt_cache_retention" not in long
    off = body(
        context, options=StreamOptions(cache_retention="none"), compat={"cacheControlFormat": "anthropic"}
    )
    assert "cache_control" not in json.dumps(off)
