"""What comes back: chunks, in all the forms that endpoints give them, become one answer."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cantle_ai.content import TextContent, ThinkingContent, ToolCall
from cantle_ai.retry import retryable
from cantle_ai.usage import Price
from packages.ai.tests.apis.completions import DONE, ask, call, delta, event
from packages.ai.tests.http_peer import Link
from tests.support.samples import samples


async def test_a_text_answer():
    asked = await ask(
        [
            delta(role="assistant", content=""),
            delta(content="Hel"),
            delta(content="lo"),
            delta("stop"),
            event({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}}),
            DONE,
        ],
        price=Price(input=1, output=2, cache_read=0.1, cache_write=0),
    )
    message = asked.message
    assert asked.types == ["start", "text_start", "text_delta", "text_delta", "text_end", "done"]
    assert message.content == [TextContent("Hello")]
    assert (message.stop_reason, message.raw_stop_reason, message.response_id) == ("stop", "stop", "c1")
    assert (message.usage.input, message.usage.output, message.usage.total_tokens) == (7, 2, 9)
    assert message.usage.cost.total == pytest.approx(11e-6)


async def test_the_model_that_answered_is_named_if_it_is_another():
    assert (await ask([delta("stop", content="x"), DONE])).message.response_model is None
    served = event({"model": "m-2026-01", "choices": [{"delta": {"content": "x"}, "finish_reason": "stop"}]})
    assert (await ask([served, DONE])).message.response_model == "m-2026-01"


@pytest.mark.fault("A01", "A02")
async def test_a01_a02_framing_of_other_servers():
    for stream in (
        b'data:{"choices":[{"delta":{"content":"ok"},"finish_reason":"stop"}]}',
        b'data: {"choices":[{"delta":{"content":"ok"},"finish_reason":"stop"}]}\r\rdata: [DONE]\r\r',
        b'\xef\xbb\xbf: hi\r\ndata: {"choices":[{"delta":{"content":"ok"},"finish_reason":"stop"}]}\r\n\r\n',
    ):
        assert (await ask([stream])).message.text == "ok"


@pytest.mark.fault("A03")
async def test_a03_events_of_proxies_are_passed_over():
    asked = await ask(
        [
            b"event: ping\ndata: keep-alive\n\n",
            b"event: done\ndata: {}\n\n",
            b'event: message\ndata: {"choices":[{"delta":{"content":"ok"},"finish_reason":"stop"}]}\n\n',
            DONE,
        ]
    )
    assert asked.message.text == "ok"
    assert asked.message.stop_reason == "stop"


@pytest.mark.fault("A04")
@pytest.mark.parametrize("odd", ["null", "[]", "3", '"x"', "{}", '{"choices":null}', '{"choices":[]}',
                                 '{"choices":[null]}', '{"choices":[{"delta":null}]}', '{"choices":[{}]}',
                                 '{"choices":{}}', '{"choices":[{"delta":{"tool_calls":[null]}}]}',
                                 '{"choices":[{"delta":{"tool_calls":[{"index":null}]}}]}', '{"error":null}'])  # fmt: skip
async def test_a04_chunks_that_say_nothing_are_skipped(odd):
    asked = await ask([b"data: " + odd.encode() + b"\n\n", delta("stop", content="ok"), DONE])
    assert asked.message.content == [TextContent("ok")]
    assert asked.message.stop_reason == "stop"


@pytest.mark.fault("A05")
async def test_a05_null_content_before_tool_calls():
    asked = await ask(
        [
            delta(role="assistant", content=None, tool_calls=[call("{}", index=0, id="c", name="go")]),
            delta("tool_calls", content=None, tool_calls=None),
            DONE,
        ]
    )
    assert asked.message.content == [ToolCall("c", "go", {})]
    assert asked.message.stop_reason == "toolUse"


@pytest.mark.fault("A06")
async def test_a06_interleaved_deltas_go_each_to_its_block():
    asked = await ask(
        [
            delta(content="a", tool_calls=[call('{"x":', index=0, id="c0", name="one")]),
            delta(tool_calls=[call('{"y":', index=1, id="c1", name="two"), call("1", index=0)]),
            delta(content="b", tool_calls=[call("2}", index=1), call("}", index=0)], reasoning="hm"),
            delta("tool_calls"),
            DONE,
        ]
    )
    assert asked.message.content == [
        TextContent("ab"),
        ToolCall("c0", "one", {"x": 1}),
        ToolCall("c1", "two", {"y": 2}),
        ThinkingContent("hm", signature="reasoning"),
    ]


@pytest.mark.fault("A07")
@pytest.mark.parametrize("name", ["reasoning_content", "reasoning", "reasoning_text"])
async def test_a07_reasoning_comes_before_the_text_of_the_same_chunk(name):
    asked = await ask([delta("stop", content="answer", **{name: "thought"}), DONE])
    assert asked.message.content == [ThinkingContent("thought", signature=name), TextContent("answer")]
    assert asked.types.index("thinking_start") < asked.types.index("text_start")


async def test_reasoning_that_comes_twice_in_a_chunk_is_taken_once():
    asked = await ask([delta("stop", content="a", reasoning="t", reasoning_content="t"), DONE])
    assert asked.message.content[0] == ThinkingContent("t", signature="reasoning_content")


@pytest.mark.fault("D01")
@pytest.mark.parametrize(
    "usage",
    [
        {"prompt_tokens": 10, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 4}},
        {"prompt_tokens": 10, "completion_tokens": 3, "cached_tokens": 4},
        {
            "prompt_tokens": 10,
            "completion_tokens": 3,
            "prompt_cache_hit_tokens": 4,
            "prompt_cache_miss_tokens": 6,
        },
        {"prompt_tokens": "10", "completion_tokens": 3.0, "prompt_tokens_details": {"cached_tokens": "4"}},
    ],
)
async def test_d01_cached_tokens_are_counted_once(usage):
    asked = await ask([delta("stop", content="x"), event({"choices": [], "usage": usage}), DONE])
    counted = asked.message.usage
    assert (counted.input, counted.cache_read, counted.output, counted.total_tokens) == (6, 4, 3, 13)


@pytest.mark.fault("A09")
async def test_a09_nothing_of_the_way_it_came_is_left_in_an_answer():
    asked = await ask(
        [
            delta(reasoning_content="hm"),
            delta(content="ok"),
            delta(tool_calls=[call('{"a":', index=0, id="c", name="go")]),
            delta("tool_calls", tool_calls=[call("1}", index=0)]),
            DONE,
        ]
    )
    raw = asked.message.to_json()
    assert raw["content"] == [
        {"type": "thinking", "thinking": "hm", "thinkingSignature": "reasoning_content"},
        {"type": "text", "text": "ok"},
        {"type": "toolCall", "id": "c", "name": "go", "arguments": {"a": 1}},
    ]
    known = {"role", "content", "api", "provider", "model", "usage", "stopReason", "timestamp", "responseId"}
    assert raw.keys() - known <= {"rawStopReason", "durationMs", "thinkingLevel"}


@pytest.mark.fault("A10")
async def test_a10_usage_in_the_choice_is_read():
    choice = {"delta": {}, "finish_reason": "stop", "usage": {"prompt_tokens": 5, "completion_tokens": 1}}
    asked = await ask([delta(content="x"), event({"choices": [choice]}), DONE])
    assert asked.message.usage.input == 5


@pytest.mark.parametrize("later", [{}, {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}])
async def test_counts_of_nothing_do_not_replace_what_was_counted(later):
    usage = {"prompt_tokens": 5, "completion_tokens": 1}
    chunks = [event({"choices": [], "usage": each}) for each in (usage, later)]
    asked = await ask([delta("stop", content="x"), *chunks, DONE])
    assert (asked.message.usage.input, asked.message.usage.output) == (5, 1)


async def test_counts_below_zero_are_none():
    details = {"cached_tokens": -1, "cache_write_tokens": -1}
    usage = {
        "prompt_tokens": -5,
        "completion_tokens": 7,
        "total_tokens": -1,
        "prompt_tokens_details": details,
    }
    asked = await ask(
        [
            delta("stop", content="x"),
            event({"choices": [], "usage": {**usage, "completion_tokens_details": {"reasoning_tokens": -3}}}),
            DONE,
        ]
    )
    counted = asked.message.usage
    assert (counted.input, counted.output, counted.cache_read, counted.cache_write) == (0, 7, 0, 0)
    assert (counted.reasoning, counted.total_tokens) == (0, 7)


async def test_reasoning_that_is_counted_beside_the_output_is_part_of_it():
    details = {"completion_tokens_details": {"reasoning_tokens": 94}}
    usage = {"prompt_tokens": 32, "completion_tokens": 9, "total_tokens": 135, **details}
    asked = await ask([delta("stop", content="x"), event({"choices": [], "usage": usage}), DONE])
    counted = asked.message.usage
    assert (counted.output, counted.reasoning, counted.total_tokens) == (103, 94, 135)


@pytest.mark.parity("completions.billed-cost")
@pytest.mark.parametrize(
    ("told", "total", "from_provider"),
    [
        ({"cost": 0.5, "is_byok": False}, 0.5, True),
        ({"cost": 0.02, "is_byok": True, "cost_details": {"upstream_inference_cost": 0.3}}, 0.32, True),
        ({"cost": 0.02, "is_byok": True}, 0.0001, False),  # half of it
        ({"cost": 0, "is_byok": False}, 0, True),
        ({"cost": True, "is_byok": False}, 0.0001, False),
        ({"cost": -1, "is_byok": False}, 0.0001, False),
        ({"cost": 0.5}, 0.0001, False),
        ({"cost": "0.5", "is_byok": False}, 0.0001, False),
        ({"cost": {"total_cost": 1}}, 0.0001, False),
    ],
)
async def test_compat_reports_cost(told, total, from_provider):
    counts = event({"choices": [], "usage": {"prompt_tokens": 90, "completion_tokens": 10, **told}})
    price = Price(input=1.0, output=1.0, cache_read=0.0)
    events = [delta("stop", content="ok"), counts, DONE]
    cost = (await ask(events, price=price, compat={"reportsCost": True})).message.usage.cost
    assert cost.total == pytest.approx(total)
    assert (cost.to_json().get("totalFromProvider") is True) == from_provider
    plain = (await ask(events, price=price)).message.usage.cost
    assert plain.total == pytest.approx(0.0001)
    unpriced = (await ask(events, compat={"reportsCost": True})).message.usage.cost
    assert unpriced.unknown != from_provider


@pytest.mark.fault("B21")
async def test_b21_usage_that_grows_is_taken_at_its_last_word():
    chunks = [
        event(
            {"choices": [{"delta": {"content": "x"}}], "usage": {"prompt_tokens": 5, "completion_tokens": n}}
        )
        for n in (1, 2, 3)
    ]
    asked = await ask([*chunks, delta("stop"), DONE])
    assert (asked.message.usage.output, asked.message.usage.total_tokens) == (3, 8)


async def test_reasoning_tokens_are_part_of_the_output_and_written_ones_not_of_the_input():
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 20,
        "prompt_tokens_details": {"cached_tokens": 30, "cache_write_tokens": 50},
        "completion_tokens_details": {"reasoning_tokens": 15},
    }
    counted = (
        await ask([delta("stop", content="x"), event({"choices": [], "usage": usage}), DONE])
    ).message.usage
    assert (counted.input, counted.cache_read, counted.cache_write) == (20, 30, 50)
    assert (counted.output, counted.reasoning, counted.total_tokens) == (20, 15, 120)


@pytest.mark.fault("A11")
async def test_a11_a_stream_that_ends_early_is_an_error_that_keeps_the_text():
    for end in ([], [DONE]):
        asked = await ask([delta(content="half an ans"), *end])
        assert asked.message.stop_reason == "error"
        assert asked.message.text == "half an ans"
        assert "cut off" in (asked.message.error_message or "")
        assert asked.details["kind"] == "network"


@pytest.mark.fault("A11")
async def test_a11_a_connection_that_breaks_is_an_error_that_keeps_the_text():
    def serve(link: Link) -> None:
        link.request()
        link.head("content-type: text/event-stream", "transfer-encoding: chunked")
        link.chunk(delta(content="half"))

    asked = await ask(serve)
    assert (asked.message.stop_reason, asked.message.text) == ("error", "half")
    assert asked.details == {"status": None, "code": None, "retryAfterMs": None, "kind": "network"}


async def test_a_connection_that_breaks_after_the_last_word_does_no_harm():
    def serve(link: Link) -> None:
        link.request()
        link.head("content-type: text/event-stream", "transfer-encoding: chunked")
        link.chunk(delta("stop", content="whole"))

    assert (await ask(serve)).message.stop_reason == "stop"


@pytest.mark.fault("A12")
async def test_a12_a_malformed_delta_merges_and_replaces_nothing():
    asked = await ask(
        [
            delta(tool_calls=[call('{"a":', index=0, id="c", name="go")]),
            delta(tool_calls=[{"index": 0, "custom": {}, "function": {}}]),
            delta(tool_calls=[{"index": 0, "custom": {}, "function": None, "id": "", "type": None}]),
            delta(tool_calls=[{"index": 0, "function": {"name": "", "arguments": "1}"}}]),
            delta("tool_calls"),
            DONE,
        ]
    )
    assert asked.message.content == [ToolCall("c", "go", {"a": 1})]


# --- which call a piece belongs to


def calls_of(asked):
    return [(made.name, made.arguments) for made in asked.message.tool_calls]


TWO = [("one", {"a": 1}), ("two", {"b": 2})]


@pytest.mark.parametrize(
    "pieces",
    [
        # by index
        [[call('{"a":', index=0, id="x", name="one")], [call("1}", index=0)],
         [call('{"b":2}', index=1, id="y", name="two")]],
        # by id alone
        [[call('{"a":', id="x", name="one")], [call('{"b":', id="y", name="two")], [call("1}", id="x")],
         [call("2}", id="y")]],
        # neither: a name begins a call
        [[call('{"a":', name="one")], [call("1}")], [call('{"b":', name="two")], [call("2}")]],
        # whole calls in one delta, without index or id
        [[call('{"a":1}', name="one"), call('{"b":2}', name="two")]],
        # every call numbered 0, with ids of their own
        [[call('{"a":1}', index=0, id="x", name="one")], [call('{"b":2}', index=0, id="y", name="two")]],
        # the id and the name said again with each piece
        [[call('{"a":', index=0, id="x", name="one")], [call("1}", index=0, id="x", name="one")],
         [call('{"b":2}', index=1, id="y", name="two")]],
        # names in pieces
        [[call(index=0, id="x", name="o")], [call(index=0, name="ne")], [call('{"a":1}', index=0)],
         [call(index=1, id="y", name="tw")], [call('{"b":2}', index=1, name="o")]],
        # the id comes late
        [[call(index=0, name="one")], [call('{"a":1}', index=0, id="x")], [call('{"b":2}', index=1, name="two")]],
        # arguments as an object, an index as a string
        [[{"index": "0", "id": "x", "function": {"name": "one", "arguments": {"a": 1}}}],
         [{"index": "1", "id": "y", "function": {"name": "two", "arguments": {"b": 2}}}]],
    ],
)  # fmt: skip
async def test_pieces_of_two_calls(pieces):
    asked = await ask([*[delta(tool_calls=piece) for piece in pieces], delta("tool_calls"), DONE])
    assert calls_of(asked) == TWO
    ids = [made.id for made in asked.message.tool_calls]
    assert len(set(ids)) == 2
    assert all(ids)


async def test_a_missing_or_repeated_id_is_replaced_by_one_of_our_own():
    asked = await ask(
        [
            delta(
                "tool_calls",
                tool_calls=[call("{}", index=n, id=i, name="go") for n, i in enumerate(["", "x", "x"])],
            )
        ]
    )
    ids = [made.id for made in asked.message.tool_calls]
    assert ids[1] == "x"
    assert ids[0].startswith("call_")
    assert ids[2].startswith("call_")
    assert len(set(ids)) == 3


@pytest.mark.fault("A15")
async def test_a15_the_start_of_a_call_carries_its_id_and_whole_name():
    asked = await ask(
        [
            delta(tool_calls=[call(index=0, id="x", name="re")]),
            delta(tool_calls=[call(index=0, name="ad")]),
            delta(tool_calls=[call('{"path":"a"}', index=0)]),
            delta("tool_calls"),
        ]
    )
    start = next(made for made in asked.events if made.type == "toolcall_start")
    assert (start.id, start.tool_name) == ("x", "read")


async def test_calls_without_arguments_still_become_calls():
    asked = await ask(
        [
            delta(
                "tool_calls",
                tool_calls=[call(index=0, id="x", name="one"), call(index=1, id="y", name="two")],
            )
        ]
    )
    assert calls_of(asked) == [("one", {}), ("two", {})]


async def test_the_old_function_call_is_read_too():
    asked = await ask(
        [
            delta(function_call={"name": "go", "arguments": '{"a"'}),
            delta(function_call={"arguments": ":1}"}),
            delta("function_call"),
        ]
    )
    assert calls_of(asked) == [("go", {"a": 1})]
    assert (asked.message.stop_reason, asked.message.raw_stop_reason) == ("toolUse", "function_call")


async def test_a_refusal_is_text():
    assert (await ask([delta("stop", refusal="I will not."), DONE])).message.text == "I will not."


# --- ends


@pytest.mark.parametrize(
    ("raw", "with_call", "reason"),
    [
        ("stop", False, "stop"),
        ("stop", True, "toolUse"),
        ("length", False, "length"),
        ("length", True, "length"),
        ("tool_calls", True, "toolUse"),
        ("tool_calls", False, "stop"),
        ("function_call", True, "toolUse"),
        ("eos", False, "stop"),
        ("model_context_window_exceeded", False, "length"),
        ("repetition_truncation", True, "length"),
        ("something_new", True, "toolUse"),
    ],
)
async def test_stop_reasons(raw, with_call, reason):
    chunks = [delta(content="x")]
    if with_call:
        chunks.append(delta(tool_calls=[call("{}", index=0, id="c", name="go")]))
    asked = await ask([*chunks, delta(raw), DONE])
    assert (asked.message.stop_reason, asked.message.raw_stop_reason) == (reason, raw)


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        ("content_filter", "http"),
        ("sensitive", "http"),
        ("error", "http"),
        ("network_error", "network"),
        ("insufficient_system_resource", "network"),
    ],
)
async def test_ends_that_are_failures_keep_what_came(raw, kind):
    asked = await ask([delta(content="some"), delta(raw), DONE])
    assert (asked.message.stop_reason, asked.message.raw_stop_reason, asked.message.text) == (
        "error",
        raw,
        "some",
    )
    assert asked.details["code"] == raw
    assert asked.details["kind"] == kind
    assert retryable(asked.message) is (kind == "network")


async def test_a_choice_that_ends_with_an_error_says_which():
    error = {"code": 502, "message": "Upstream died"}
    choice = {"index": 0, "delta": {}, "finish_reason": "error", "error": error}
    asked = await ask([delta(content="some"), event({"choices": [choice]}), DONE])
    assert (asked.message.text, asked.message.error_message) == ("some", "Upstream died")


@pytest.mark.parametrize("with_call", [False, True])
@pytest.mark.parity("completions.finish-reason")
async def test_supports_finish_reason_false_infers_the_end(with_call):
    chunks = [delta(content="x")]
    if with_call:
        chunks.append(delta(tool_calls=[call("{}", index=0, id="c", name="go")]))
    asked = await ask(chunks, compat={"supportsFinishReason": False})
    assert asked.message.stop_reason == ("toolUse" if with_call else "stop")


# --- other forms


async def test_a_whole_completion_instead_of_a_stream():
    body = {
        "id": "c9",
        "model": "m",
        "choices": [
            {
                "message": {
                    "content": "ok",
                    "reasoning_content": "hm",
                    "tool_calls": [call("{}", id="x", name="go")],
                },
                "finish_reason": "tool_calls",
            }
        ],
        "usage": {"prompt_tokens": 3, "completion_tokens": 4},
    }

    def serve(link: Link) -> None:
        link.answer(json.dumps(body).encode(), "content-type: application/json; charset=utf-8")

    asked = await ask(serve)
    assert asked.message.content == [
        ThinkingContent("hm", signature="reasoning_content"),
        TextContent("ok"),
        ToolCall("x", "go", {}),
    ]
    assert (asked.message.stop_reason, asked.message.usage.output) == ("toolUse", 4)


async def test_content_made_of_parts():
    asked = await ask(
        [delta("stop", content=[{"type": "text", "text": "a"}, {"type": "text", "text": "b"}, "c", 7])]
    )
    assert asked.message.text == "abc"


async def test_a_stream_without_its_content_type_is_read_as_one():
    def serve(link: Link) -> None:
        link.answer(delta("stop", content="ok") + DONE)

    assert (await ask(serve)).message.text == "ok"


async def test_lone_surrogates_and_bad_utf8_are_no_end():
    asked = await ask(
        [
            b'data: {"choices":[{"delta":{"content":"a\\ud800b"}}]}\n\n',
            b'data: {"choices":[{"delta":{"content":"c\xffd"}}]}\n\n',
            b'data: {"choices":[{"delta":{},"finish_reason":"stop"}],"created":1e999}\n\n',
        ]
    )
    assert asked.message.text == "a\ud800bc\ufffdd"


@settings(max_examples=samples(300, 20), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(st.text(max_size=6), min_size=1, max_size=6),
    st.lists(st.integers(1, 40), max_size=12),
)
async def test_the_cut_of_the_body_makes_no_difference(texts, sizes):
    """The same answer, however the network cuts it, inside characters and line ends too."""
    stream = b"".join(delta(content=text) for text in texts) + delta("stop") + DONE

    def serve(link: Link) -> None:
        link.request()
        link.head("content-type: text/event-stream", "transfer-encoding: chunked")
        place = 0
        for size in sizes:
            if place < len(stream):
                link.chunk(stream[place : place + size])
                place += size
        if place < len(stream):
            link.chunk(stream[place:])
        link.chunk(b"")

    assert (await ask(serve)).message.text == "".join(texts)
