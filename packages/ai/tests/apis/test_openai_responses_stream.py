"""What comes back: events, in all the forms that endpoints give them, become one answer."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cantle_ai.content import TextContent, ThinkingContent, ToolCall
from cantle_ai.context import Context, ToolDefinition
from cantle_ai.messages import AssistantMessage, UserMessage
from cantle_ai.overflow import is_overflow
from cantle_ai.quota import is_quota_exhausted
from cantle_ai.retry import retryable
from cantle_ai.usage import Price
from packages.ai.tests.apis.responses import (
    added,
    arguments,
    ask,
    call,
    completed,
    created,
    done,
    event,
    message,
    reasoning,
    response,
    text,
)
from tests.support.samples import samples

READ = ToolCall("call_1|fc_1", "read", {"path": "a"})
USAGE = {
    "input_tokens": 100,
    "input_tokens_details": {"cached_tokens": 40, "cache_write_tokens": 10},
    "output_tokens": 50,
    "output_tokens_details": {"reasoning_tokens": 30},
    "total_tokens": 150,
}


def thought(delta: str, part: int = 0, **fields: object) -> bytes:
    return event(
        "response.reasoning_summary_text.delta",
        **{"item_id": "rs_1", "output_index": 0, "summary_index": part, "delta": delta, **fields},
    )


async def test_a_text_answer():
    asked = await ask(
        [
            created(model="m-2026"),
            added(0, type="message", id="msg_1", role="assistant", content=[]),
            text("Hel"),
            text("lo"),
            done(0, **message("Hello", phase="final_answer")),
            completed(usage=USAGE),
        ],
        price=Price(input=1, output=2, cache_read=0.1, cache_write=4),
    )
    answer = asked.message
    assert asked.types == ["start", "text_start", "text_delta", "text_delta", "text_end", "done"]
    signature = '{"v":1,"id":"msg_1","phase":"final_answer"}'
    assert answer.content == [TextContent("Hello", signature=signature)]
    assert (answer.stop_reason, answer.raw_stop_reason) == ("stop", "completed")
    assert (answer.response_id, answer.response_model) == ("resp_1", "m-2026")
    usage = answer.usage
    assert (usage.input, usage.cache_read, usage.cache_write, usage.output) == (50, 40, 10, 50)
    assert (usage.reasoning, usage.total_tokens) == (30, 150)
    assert usage.cost.total == pytest.approx((50 + 40 * 0.1 + 10 * 4 + 50 * 2) / 1e6)


async def test_reasoning_keeps_its_item_and_shows_its_summary():
    whole = reasoning("First.", "Second.", encrypted_content="whole")
    asked = await ask(
        [
            created(),
            added(0, type="reasoning", id="rs_1", summary=[], encrypted_content="half"),
            thought("Fir"),
            thought("st."),
            thought("Second.", 1),
            done(0, **whole),
            added(1, type="message", id="msg_1"),
            text("Done.", 1),
            done(1, **message("Done.")),
            completed(),
        ]
    )
    first, second = asked.message.content
    assert isinstance(first, ThinkingContent)
    assert first.thinking == "First.\n\nSecond."
    assert json.loads(first.signature or "") == whole
    assert second == TextContent("Done.", signature='{"v":1,"id":"msg_1"}')


async def test_reasoning_that_nobody_may_read_is_kept():
    asked = await ask([added(0, type="reasoning", id="rs_1"), done(0, **reasoning()), completed()])
    (block,) = asked.message.content
    assert isinstance(block, ThinkingContent)
    assert (block.thinking, json.loads(block.signature or "")) == ("", reasoning())


async def test_half_of_what_is_encrypted_is_not_kept():
    half = added(0, type="reasoning", id="rs_1", summary=[], encrypted_content="half")
    asked = await ask([half, done(0, **reasoning("hm", encrypted_content=None)), completed()])
    (block,) = asked.message.content
    assert isinstance(block, ThinkingContent)
    assert "half" not in (block.signature or "")
    # One that was never finished has nothing that could go back.
    end = event("response.incomplete", response=response(status="incomplete"))
    asked = await ask([half, thought("hm"), end])
    assert asked.message.content == [ThinkingContent("hm")]


async def test_reasoning_in_plain_text_of_open_models():
    content = [{"type": "reasoning_text", "text": "raw"}]
    whole = reasoning(encrypted_content=None, content=content)
    delta = event("response.reasoning_text.delta", output_index=0, content_index=0, delta="raw")
    for events in ([added(0, type="reasoning", id="rs_1"), delta, done(0, **whole)], [done(0, **whole)]):
        asked = await ask([*events, completed()])
        (block,) = asked.message.content
        assert isinstance(block, ThinkingContent)
        assert block.thinking == "raw"
        assert json.loads(block.signature or "")["content"] == content


async def test_calls_side_by_side_go_each_to_its_block():
    asked = await ask(
        [
            added(0, **call(1, arguments="")),
            added(1, **call(2, arguments="")),
            arguments('{"path":', 0, item_id="fc_1"),
            arguments('{"path":"b"', 1, item_id="fc_2"),
            arguments('"a"}', 0, item_id="fc_1"),
            arguments("}", 1, item_id="fc_2"),
            done(0, **call(1)),
            done(1, **call(2, arguments='{"path":"b"}')),
            completed(),
        ]
    )
    assert asked.message.content == [READ, ToolCall("call_2|fc_2", "read", {"path": "b"})]
    assert asked.message.stop_reason == "toolUse"


async def test_an_item_whose_id_changes_on_the_way_is_found_by_its_place():
    asked = await ask(
        [
            added(0, **call(1, id="fc_a", arguments="")),
            arguments('{"path"', 0, item_id="x1"),
            arguments(':"a"}', 0, item_id="x2"),
            done(0, **call(1, id="fc_z")),
            completed(output=[call(1, id="fc_y")]),
        ]
    )
    assert asked.message.content == [ToolCall("call_1|fc_a", "read", {"path": "a"})]


async def test_an_item_without_a_place_is_found_by_its_id_or_is_the_last():
    asked = await ask(
        [
            event("response.output_item.added", item=call(1, arguments="")),
            event("response.output_item.added", item=call(2, arguments="")),
            event("response.function_call_arguments.delta", item_id="fc_1", delta='{"path":"a"}'),
            event("response.function_call_arguments.delta", delta='{"path":"b"}'),
            completed(),
        ]
    )
    assert [each.arguments for each in asked.message.tool_calls] == [{"path": "a"}, {"path": "b"}]


async def test_items_that_all_have_the_same_place_are_told_apart():
    asked = await ask(
        [
            added(0, type="message", id="msg_1"),
            text("a"),
            done(0, **message("a")),
            added(0, **call(1, arguments="")),
            arguments('{"path":"a"}', 0, item_id="fc_1"),
            done(0, **call(1)),
            completed(),
        ]
    )
    assert asked.message.text == "a"
    assert asked.message.tool_calls == [READ]


async def test_a_null_that_strict_mode_asked_for_never_reaches_the_tool():
    optional = ToolDefinition("read", "d", {"type": "object", "properties": {"path": {"type": "string"}}})
    context = Context("", [UserMessage("u", timestamp=1)], [optional])
    whole = [
        added(0, **call(arguments="")),
        arguments('{"path":nu'),
        done(0, **call(arguments='{"path":null}')),
    ]
    strict = await ask([*whole, completed()], context=context, compat={"supportsStrictMode": True})
    assert [each.arguments for each in strict.message.tool_calls] == [{}]
    plain = await ask([*whole, completed()], context=context)
    assert [each.arguments for each in plain.message.tool_calls] == [{"path": None}]


async def test_whole_items_that_all_have_the_same_place_are_told_apart():
    asked = await ask([done(0, **call(1)), done(0, **call(1)), done(0, **call(2)), completed()])
    assert [each.id for each in asked.message.tool_calls] == ["call_1|fc_1", "call_2|fc_2"]


async def test_the_last_event_may_name_everything_anew():
    asked = await ask(
        [
            added(7, type="reasoning", id="rs_a"),
            thought("hm", output_index=7, item_id="rs_b"),
            added(7, type="message", id="msg_a"),
            text("Hello", 7, item_id="msg_a"),
            added(8, **call(1, id="fc_a", arguments="")),
            added(9, **call(2, id="fc_b", arguments="")),
            completed(
                output=[
                    reasoning("hm", id="rs_z"),
                    message("Hello!", id="msg_z"),
                    call(2, id="fc_y", arguments='{"path":"b"}'),
                    call(1, id="fc_z"),
                    message("More.", id="msg_y"),
                ]
            ),
        ]
    )
    blocks = asked.message.content
    assert [type(block) for block in blocks] == [
        ThinkingContent,
        TextContent,
        ToolCall,
        ToolCall,
        TextContent,
    ]
    assert asked.message.text == "Hello!More."
    assert [(each.id, each.arguments) for each in asked.message.tool_calls] == [
        ("call_1|fc_a", {"path": "a"}),
        ("call_2|fc_b", {"path": "b"}),
    ]


@pytest.mark.parametrize("events", [
    [done(0, **reasoning("hm")), done(1, **message("Hello")), done(2, **call()), completed()],
    [completed(output=[reasoning("hm"), message("Hello"), call()])],
    [added(0, type="reasoning", id="rs_1"), added(1, **message("", content=[])), added(2, **call(arguments="")),
     completed(output=[reasoning("hm"), message("Hello"), call()])],
    [thought("hm"), text("Hello", 1), added(2, **call(arguments="")), arguments('{"path":', 2),
     done(0, **reasoning("hm")), done(1, **message("Hello")), done(2, **call()), completed(output=[])],
    [event("response.output_text.done", output_index=1, item_id="msg_1", text="Hello"),
     event("response.function_call_arguments.done", output_index=2, arguments='{"path":"a"}'),
     completed(output=[reasoning("hm"), message("Hello"), call()])],
], ids=["items only", "the last event only", "no deltas", "nothing announced", "ends of parts only"])  # fmt: skip
async def test_what_has_not_come_in_deltas_is_taken_from_what_comes_later(events):
    asked = await ask(events)
    message_ = asked.message
    assert message_.error_message is None
    assert sorted(type(block).__name__ for block in message_.content) == [
        "TextContent", "ThinkingContent", "ToolCall"
    ]  # fmt: skip
    assert message_.text == "Hello"
    assert message_.tool_calls == [READ]
    assert message_.stop_reason == "toolUse"


async def test_an_answer_that_is_not_streamed():
    whole = response(status="completed", output=[reasoning("hm"), message("Hi"), call()], usage=USAGE)
    asked = await ask(lambda link: link.answer(json.dumps(whole).encode(), "content-type: application/json"))
    assert asked.message.text == "Hi"
    assert asked.message.tool_calls == [READ]
    assert asked.message.usage.output == 50
    assert (asked.message.response_id, asked.message.stop_reason) == ("resp_1", "toolUse")


@pytest.mark.parametrize("body", [b'{"error": {"message": "no such model", "code": "model_not_found"}}',
                                  b'{"hello": 1}', b"[1]"])  # fmt: skip
async def test_json_that_is_no_response_is_an_error(body):
    asked = await ask(lambda link: link.answer(body, "content-type: application/json"))
    assert asked.message.stop_reason == "error"
    assert not retryable(asked.message)


@pytest.mark.fault("A12")
@pytest.mark.parametrize("odd", [
    done(0, **call(arguments="")), done(0, **call(arguments=None, custom={})), done(0, **call(arguments="{}")),
    event("response.function_call_arguments.done", output_index=0, arguments=""),
    event("response.function_call_arguments.done", output_index=0, custom={}, arguments=None),
    event("response.function_call_arguments.delta", output_index=0, delta="", custom={}),
    event("response.function_call_arguments.delta", output_index=0, delta={}, custom={}),
])  # fmt: skip
async def test_a12_a_malformed_event_replaces_nothing(odd):
    asked = await ask([added(0, **call(arguments="")), arguments('{"path":"a"}'), odd, completed()])
    assert asked.message.tool_calls == [READ]


async def test_a_custom_tool_gets_its_input_as_an_argument():
    pieces = ["*** Begin\n", '"Ü\\', "\ud83d", "\ude00 end"]
    item = {"type": "custom_tool_call", "id": "ctc_1", "call_id": "call_1", "name": "patch"}
    for deltas in (pieces, pieces[:2], []):
        asked = await ask(
            [
                added(0, **item, input=""),
                *(
                    event("response.custom_tool_call_input.delta", output_index=0, delta=each)
                    for each in deltas
                ),
                done(0, **item, input='*** Begin\n"Ü\\😀 end'),
                completed(),
            ]
        )
        (made,) = asked.message.tool_calls
        assert (made.id, made.name) == ("call_1|ctc_1", "patch")
        assert made.arguments == {"input": '*** Begin\n"Ü\\😀 end'}
    asked = await ask([done(0, **item, input=""), completed()])
    assert asked.message.tool_calls[0].arguments == {"input": ""}


async def test_items_of_the_services_own_tools_are_kept_and_events_of_them_passed_over():
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search"}}
    asked = await ask(
        [
            added(0, type="web_search_call", id="ws_1", status="in_progress"),
            event("response.web_search_call.searching", output_index=0, item_id="ws_1"),
            done(0, **search),
            event("response.brand_new", novelty=[1, None]),
            done(1, **message("Found.")),
            completed(),
        ]
    )
    first, second = asked.message.content
    assert isinstance(first, ThinkingContent)
    assert first.redacted
    assert json.loads(first.signature or "") == search
    assert isinstance(second, TextContent)
    assert asked.message.stop_reason == "stop"


async def test_a_refusal_is_what_the_model_says():
    refusal = {"type": "refusal", "refusal": "I won't."}
    delta = event("response.refusal.delta", output_index=0, item_id="msg_1", delta="I won't.")
    for events in ([delta], []):
        asked = await ask([*events, done(0, **message("", content=[refusal])), completed()])
        assert (asked.message.text, asked.message.stop_reason) == ("I won't.", "stop")


async def test_the_namespace_of_a_call_is_kept():
    asked = await ask([done(0, **call(namespace="crm")), completed()])
    assert asked.message.tool_calls[0].namespace == "crm"


async def test_a_call_whose_id_is_taken_gets_another():
    earlier = AssistantMessage([ToolCall("call_1|fc_0", "read", {})], "a", "p", "m", stop_reason="toolUse")
    context = Context("", [UserMessage("x", timestamp=1), earlier])
    asked = await ask(
        [done(0, **call(1)), done(1, **call(2)), done(2, **call(2, id="fc_3")), done(3, **call(call_id=None, id=None)),
         completed()],
        context=context,
    )  # fmt: skip
    ids = [each.id for each in asked.message.tool_calls]
    assert ids[1] == "call_2|fc_2"
    assert len({"call_1", *(id.partition("|")[0] for id in ids)}) == 5
    assert all(id.startswith("call_") for id in ids)


# --- how a response ends


@pytest.mark.parametrize(("end", "reason", "raw"), [
    ({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, "length", "incomplete.max_output_tokens"),
    ({"status": "incomplete", "incomplete_details": {"reason": "steered"}}, "length", "incomplete.steered"),
    ({"status": "incomplete", "incomplete_details": None}, "length", "incomplete"),
    ({"status": None}, "length", "incomplete"),
    ({"status": "completed"}, "stop", "completed"),
])  # fmt: skip
async def test_an_incomplete_response_is_cut_short(end, reason, raw):
    asked = await ask([text("half"), event("response.incomplete", response=response(**end, usage=USAGE))])
    assert (asked.message.text, asked.message.stop_reason) == ("half", reason)
    assert asked.message.raw_stop_reason == raw
    assert asked.message.usage.output == 50


async def test_a_call_that_was_cut_short_is_no_call_to_run():
    end = response(status="incomplete", incomplete_details={"reason": "max_output_tokens"})
    asked = await ask(
        [added(0, **call(arguments="")), arguments('{"pa'), event("response.incomplete", response=end)]
    )
    assert asked.message.stop_reason == "length"
    assert asked.message.tool_calls[0].invalid_arguments == '{"pa'


async def test_what_a_filter_stopped_is_an_error():
    end = response(status="incomplete", incomplete_details={"reason": "content_filter"}, usage=USAGE)
    asked = await ask([text("I"), event("response.incomplete", response=end)])
    assert (asked.message.text, asked.message.stop_reason) == ("I", "error")
    assert asked.message.raw_stop_reason == "incomplete.content_filter"
    assert not retryable(asked.message)
    assert asked.message.usage.output == 50


@pytest.mark.parametrize(("events", "said", "again"), [
    ([event("response.failed", response=response(status="failed", error={"code": "server_error", "message": "Boom"}))],
     "Boom", True),
    ([event("response.failed", response=response(status="failed", error=None))], "did not say why", True),
    ([event("response.failed", response=response(error={"code": "invalid_prompt", "message": "Odd prompt"}))],
     "Odd prompt", False),
    ([event("response.failed", response=response(error={"code": "rate_limit_exceeded", "message": "Slow down"}))],
     "Slow down", True),
    ([event("error", code="server_error", message="Oh dear", param=None)], "Oh dear", True),
    ([event("error", error={"type": "overloaded_error", "message": "Too busy"})], "Too busy", True),
    ([b'data: {"error": {"message": "bad key", "code": "invalid_api_key"}}\n\n'], "bad key", False),
    ([b'event: error\ndata: {"message": "named", "code": "server_error"}\n\n'], "named", True),
    ([event("error")], "did not say which", True),
    ([event("error", error={})], "did not say which", True),
    ([event("response.cancelled", response=response(status="cancelled"))], "cancelled", False),
])  # fmt: skip
async def test_failures_inside_the_stream(events, said, again):
    asked = await ask([created(), text("half"), *events])
    assert asked.message.stop_reason == "error"
    assert asked.message.text == "half"
    assert said in (asked.message.error_message or "")
    assert retryable(asked.message) is again


async def test_failures_that_the_runtime_knows_are_known_by_their_codes():
    failed = response(error={"code": "context_length_exceeded", "message": "Your input exceeds the window"})
    assert is_overflow((await ask([event("response.failed", response=failed)])).message, None)
    body = b'{"error":{"type":"usage_limit_reached","message":"The usage limit has been reached"}}'
    asked = await ask(lambda link: link.answer(body, status="429 Too Many Requests"))
    assert is_quota_exhausted(asked.message)
    assert not retryable(asked.message)


@pytest.mark.fault("A11")
async def test_a11_a_stream_without_its_closing_event_is_tried_again():
    for events in ([created()], [created(), text("half")], [created(), done(0, **message("half"))],
                   [created(), done(0, **call()), b"data: [DONE]\n\n"]):  # fmt: skip
        asked = await ask(events)
        assert asked.message.stop_reason == "error"
        assert "ended without" in (asked.message.error_message or "")
        assert retryable(asked.message)
        assert asked.message.text == ("half" if events[-1] != events[0] and len(events) == 2 else "")


async def test_nothing_is_read_after_the_end():
    asked = await ask(
        [
            done(0, **message("Hi")),
            completed(),
            completed(status="failed"),
            b"data: [DONE]\n\n",
            b"data: {\n\n",
        ]
    )
    assert (asked.message.stop_reason, asked.message.text) == ("stop", "Hi")


async def test_a_connection_that_breaks_after_the_end_has_done_no_harm():
    def serve(link):
        link.request()
        link.head("content-type: text/event-stream", "transfer-encoding: chunked")
        link.chunk(done(0, **message("Hi")))
        link.chunk(completed())
        link.reset()

    assert (await ask(serve)).message.stop_reason == "stop"


@pytest.mark.parametrize("odd", [
    "null", "[]", "3", '"x"', "{}", '{"type":null}', '{"type":7}', '{"type":"response.output_text.delta"}',
    '{"type":"response.output_text.delta","delta":null}', '{"type":"response.output_text.delta","delta":[1]}',
    '{"type":"response.output_item.added"}', '{"type":"response.output_item.added","item":null}',
    '{"type":"response.output_item.added","item":[],"output_index":"x"}', '{"type":"response.created"}',
    '{"type":"response.created","response":{"id":7}}', '{"type":"response.in_progress","response":null}',
    '{"type":"response.function_call_arguments.done"}', '{"error":null}', "[DONE]", "", " ",
])  # fmt: skip
async def test_events_that_say_nothing_are_skipped(odd):
    asked = await ask([f"data: {odd}\n\n".encode(), done(5, **message("ok")), completed()])
    assert asked.message.text == "ok"
    assert asked.message.stop_reason in ("stop", "toolUse")


async def test_events_of_proxies_are_passed_over():
    asked = await ask(
        [
            b"event: ping\ndata: keep-alive\n\n",
            b"event: done\ndata: {}\n\n",
            done(0, **message("ok")),
            completed(),
        ]
    )
    assert (asked.message.text, asked.message.stop_reason) == ("ok", "stop")


async def test_figures_of_other_types_are_read():
    events = [
        '{"type":"response.output_text.delta","output_index":"0","delta":"ok","item_id":5}',
        '{"type":"response.completed","response":{"usage":{"input_tokens":"7","output_tokens":2.0,"output_tokens_details":[]}}}',
    ]
    asked = await ask([f"data: {each}\n\n".encode() for each in events])
    assert asked.message.text == "ok"
    assert (asked.message.usage.input, asked.message.usage.output, asked.message.usage.total_tokens) == (
        7,
        2,
        9,
    )
    assert asked.message.usage.reasoning is None


# --- what it costs


@pytest.mark.parametrize(
    ("tier", "factor"), [(None, 1), ("default", 1), ("flex", 0.5), ("priority", 2), ("fast", 2)]
)
async def test_a_service_tier_has_its_price(tier, factor):
    price = Price(input=1, output=2, cache_read=0.1, cache_write=4)
    asked = await ask([text("x"), completed(usage=USAGE, service_tier=tier)], price=price)
    assert asked.message.usage.cost.total == pytest.approx(factor * 194e-6)


async def test_the_cost_of_an_unknown_tier_is_unknown():
    price = Price(input=1, output=2, cache_read=0.1, cache_write=4)
    events = [text("x"), completed(usage=USAGE, service_tier="ultrafast")]
    assert (await ask(events, price=price)).message.usage.cost.unknown
    assert (await ask([text("x"), completed(usage=USAGE, service_tier="flex")])).message.usage.cost.unknown


async def test_compat_service_tier_prices():
    price = Price(input=1, output=0, cache_read=0, cache_write=0)
    events = [text("x"), completed(usage=USAGE, service_tier="priority")]
    asked = await ask(events, price=price, compat={"serviceTierPrices": {"priority": 2.5}})
    assert asked.message.usage.cost.total == pytest.approx(2.5 * 50e-6)


# --- any order of any events

EVENTS = st.sampled_from(
    [
        created(), added(0, type="message", id="msg_1"), added(1, **call(arguments="")), added(2, type="reasoning", id="rs_1"),
        added(0, **call(2, arguments="")), text("a"), text("b", 1), text("\ud83d"), arguments('{"path"', 1), arguments(":1}", 1),
        arguments("x", 9, item_id="fc_1"), thought("hm"), thought("so", 3), done(0, **message("ab")), done(1, **call()),
        done(2, **reasoning("hm")), done(3, type="computer_call", id="cu_1"), event("response.custom_tool_call_input.delta", delta="i"),
        event("response.output_item.done", item=call(3, name=None)), event("response.incomplete", response=response()),
        event("error", message="no"), completed(output=[message("z"), call(4), 7, {}]), b"data: {\n\n", b"data: [DONE]\n\n",
    ]
)  # fmt: skip


@settings(
    max_examples=samples(400, 40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(EVENTS, max_size=12))
async def test_any_order_of_events_makes_a_legal_stream(events):
    asked = await ask(events)
    assert asked.types[0] == "start"
    assert asked.types[-1] in ("done", "error")
    json.dumps(asked.message.to_json())
    assert "Error" not in (asked.message.error_message or "")
