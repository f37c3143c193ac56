"""What of a conversation goes out again: own answers as they came, others as anyone can read them."""

import json

import pytest

from cantle_ai.content import ImageContent, TextContent, ThinkingContent, ToolCall
from cantle_ai.context import Context
from cantle_ai.messages import AssistantMessage, ToolResultMessage, UserMessage
from packages.ai.tests.apis.responses import OK, ask, call, completed, done, message, reasoning

PIXEL = ImageContent("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
                     "image/png")  # fmt: skip
SIGNED = json.dumps(reasoning("hm"))
TEXT = TextContent("Hello", signature='{"v":1,"id":"msg_1","phase":"commentary"}')
CALL = ToolCall("call_1|fc_1", "read", {"path": "a"})
GO = UserMessage("go", timestamp=1)


def answer(*blocks, model="m", stop="stop", api="openai-responses"):
    return AssistantMessage([*blocks], api, "p", model, stop_reason=stop)


def result(call_id, *content, is_error=False):
    return ToolResultMessage(call_id, "read", [*content], is_error=is_error, timestamp=1)


async def items(*messages, **fields):
    """The items after the first user message, and what was asked."""
    context = Context("", [UserMessage("hi", timestamp=1), *messages])
    asked = await ask(OK, context=context, reasoning=True, **fields)
    assert asked.message.error_message is None
    return asked.body["input"][1:]


async def test_an_own_answer_goes_back_as_it_came():
    events = [
        done(0, **reasoning("hm")),
        done(1, **message("Hello", phase="commentary")),
        done(2, **call()),
        completed(),
    ]
    first = (await ask(events, reasoning=True)).message
    sent = await items(first, result("call_1|fc_1", TextContent("found")), GO)
    assert sent == [
        reasoning("hm"),
        message("Hello", phase="commentary"),
        {
            "type": "function_call",
            "id": "fc_1",
            "call_id": "call_1",
            "name": "read",
            "arguments": '{"path":"a"}',
        },
        {"type": "function_call_output", "call_id": "call_1", "output": "found"},
        {"role": "user", "content": [{"type": "input_text", "text": "go"}]},
    ]


@pytest.mark.fault("C03")
async def test_c03_an_answer_of_another_model_goes_without_ids_and_its_thinking_as_text():
    sent = await items(answer(ThinkingContent("hm", signature=SIGNED), TEXT, CALL, model="other", stop="toolUse"),
                       result("call_1|fc_1", TextContent("found")))  # fmt: skip
    said, *rest = sent
    assert said == {"role": "assistant", "content": "hm\n\nHello"}
    assert rest == [
        {"type": "function_call", "call_id": "call_1", "name": "read", "arguments": '{"path":"a"}'},
        {"type": "function_call_output", "call_id": "call_1", "output": "found"},
    ]


@pytest.mark.fault("C03")
@pytest.mark.parametrize(
    "call_id", ["toolu_01|odd id!" + "x" * 80, "x" * 70, "", "a:b/c.d", "|", "call 1|fc_1"]
)
async def test_c03_odd_ids_are_made_to_fit_on_both_sides(call_id):
    for model in ("m", "other"):
        sent = await items(answer(ToolCall(call_id, "read", {}), model=model, stop="toolUse"),
                           result(call_id, TextContent("found")))  # fmt: skip
        assert sent[0]["call_id"] == sent[1]["call_id"]
        assert 0 < len(sent[0]["call_id"]) <= 64
        assert set(sent[0]["call_id"]) <= set(
            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
        )
        assert "id" not in sent[0]


@pytest.mark.fault("C03")
async def test_c03_ids_that_differ_only_in_what_is_not_sent_stay_apart():
    ids = ["call_1|fc_1", "call_1|fc_2", "call_1"]
    calls = [ToolCall(call_id, "read", {"path": call_id}) for call_id in ids]
    sent = await items(answer(*calls[:2], stop="toolUse"), *(result(i, TextContent(i)) for i in ids[:2]),
                       answer(calls[2], model="other", stop="toolUse"), result(ids[2], TextContent(ids[2])))  # fmt: skip
    asked = {item["call_id"]: json.loads(item["arguments"])["path"] for item in sent if "arguments" in item}
    given = {item["call_id"]: item["output"] for item in sent if "output" in item}
    assert asked == given
    assert sorted(asked.values()) == sorted(ids)


async def test_an_item_id_that_is_none_is_left_out():
    for item_id in ("x1", "msg_1", "fc_" + "x" * 70, "fc_ö"):
        made = answer(ToolCall(f"call_1|{item_id}", "read", {}), stop="toolUse")
        (asked, _) = await items(made, result(f"call_1|{item_id}", TextContent("found")))
        assert asked == {"type": "function_call", "call_id": "call_1", "name": "read", "arguments": "{}"}


@pytest.mark.fault("C04")
async def test_c04_reasoning_that_nothing_follows_is_left_out():
    thought = ThinkingContent("hm", signature=SIGNED)
    assert await items(answer(thought, stop="length"), GO) == [
        {"role": "user", "content": [{"type": "input_text", "text": "go"}]}
    ]
    sent = await items(answer(TEXT, thought, stop="length"), GO)
    assert [item.get("type", item.get("role")) for item in sent] == [
        "message",
        "user",
    ]
    # A signed text without anything in it is nothing that could follow.
    blank = TextContent("", signature='{"v":1,"id":"msg_1"}')
    assert len(await items(answer(thought, blank), GO)) == 1


@pytest.mark.fault("C04")
async def test_c04_an_answer_that_broke_off_is_not_sent_again():
    for stop in ("aborted", "error"):
        broken = answer(ThinkingContent("hm", signature=SIGNED), CALL, stop=stop)
        sent = await items(broken, result("call_1|fc_1", TextContent("x")), GO)
        assert len(sent) == 1


@pytest.mark.parametrize("signature", [
    None, "", "rs_1", "{", "[]", '{"type":7}', '{"type":"reasoning","id":"rs_1","summary":[]}',
    '{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":null,"content":[]}',
    '{"type":"computer_call","id":"cu_1","call_id":"call_9"}',
])  # fmt: skip
async def test_what_follows_reasoning_that_cannot_go_back_has_no_id(signature):
    thought = ThinkingContent("hm", signature=signature)
    sent = await items(answer(thought, TEXT, CALL, stop="toolUse"), result("call_1|fc_1", TextContent("x")))
    assert sent[0] == {"role": "assistant", "content": "Hello", "phase": "commentary"}
    assert sent[1] == {
        "type": "function_call",
        "call_id": "call_1",
        "name": "read",
        "arguments": '{"path":"a"}',
    }


@pytest.mark.parametrize(("odd", "sent"), [
    ({"summary": "x"}, {"summary": []}), ({"summary": None}, {"summary": []}), ({"summary": [7, {}]}, {"summary": []}),
    ({"content": 7}, {"content": []}), ({"status": "odd"}, {}), ({"status": "completed"}, {"status": "completed"}),
    ({"format": "v2"}, {"format": "v2"}), ({"id": "x" * 400}, {"id": "x" * 400}),
])  # fmt: skip
async def test_what_is_odd_about_a_reasoning_item_is_left_out(odd, sent):
    item = {**reasoning("hm"), **odd}
    (first, _) = await items(answer(ThinkingContent("hm", signature=json.dumps(item)), TEXT))
    assert first == {**{key: value for key, value in reasoning("hm").items() if key not in odd}, **sent}


@pytest.mark.parametrize("odd", [
    {"id": 7}, {"id": None}, {"id": ""}, {"id": "0"}, {"type": None}, {"type": 7}, {"type": "x"}, {"type": "two_words", "id": ""},
    {"encrypted_content": 7}, {"encrypted_content": ""}, {"encrypted_content": None, "content": "x"},
])  # fmt: skip
async def test_an_item_that_makes_no_sense_is_left_out(odd):
    item = {**reasoning("hm"), **odd}
    sent = await items(answer(ThinkingContent("hm", signature=json.dumps(item)), TEXT))
    assert len(sent) == 1


async def test_nulls_of_a_reasoning_item_are_left_out():
    item = {**reasoning("hm"), "content": None, "status": None}
    (sent, _) = await items(answer(ThinkingContent("hm", signature=json.dumps(item)), TEXT))
    assert sent == reasoning("hm")


async def test_items_of_the_services_own_tools_go_back():
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search"}}
    kept = ThinkingContent("", signature=json.dumps(search), redacted=True)
    sent = await items(answer(ThinkingContent("hm", signature=SIGNED), kept, TEXT))
    assert [item["type"] for item in sent] == ["reasoning", "web_search_call", "message"]
    assert sent[1] == search
    assert len(await items(answer(kept, TEXT, model="other"))) == 1
    new = ThinkingContent("", signature='{"type":"brand_new_item","id":"bn_1","novelty":[1]}', redacted=True)
    assert (await items(answer(new, TEXT)))[0] == {"type": "brand_new_item", "id": "bn_1", "novelty": [1]}


@pytest.mark.parametrize(("signature", "wanted"), [
    ('{"v":1,"id":"msg_9"}', {"id": "msg_9"}),
    ("msg_9", {"id": "msg_9"}),
    ('{"v":1,"id":"msg_9","phase":"final_answer"}', {"id": "msg_9", "phase": "final_answer"}),
    ('{"v":1,"id":7}', {}),
    ("{", {}), ("[1]", {}), ("other", {}), ("msg_" + "x" * 70, {}), (None, {}),
    ('{"v":1,"phase":"final_answer"}', {"phase": "final_answer"}),
])  # fmt: skip
async def test_the_id_and_phase_of_a_text(signature, wanted):
    (sent,) = await items(answer(TextContent("Hello", signature=signature)))
    assert {key: sent[key] for key in ("id", "phase") if key in sent} == wanted
    assert ("status" in sent) is ("id" in wanted)


async def test_a_call_of_a_custom_tool_goes_back_as_one():
    made = ToolCall("call_1|ctc_1", "patch", {"input": "*** Begin"})
    sent = await items(answer(made, stop="toolUse"), result("call_1|ctc_1", TextContent("ok")))
    assert sent == [
        {
            "type": "custom_tool_call",
            "id": "ctc_1",
            "call_id": "call_1",
            "name": "patch",
            "input": "*** Begin",
        },
        {"type": "custom_tool_call_output", "call_id": "call_1", "output": "ok"},
    ]
    sent = await items(answer(made, model="other", stop="toolUse"), result("call_1|ctc_1", TextContent("ok")))
    assert [item["type"] for item in sent] == ["function_call", "function_call_output"]
    assert sent[0]["arguments"] == '{"input":"*** Begin"}'


async def test_names_and_namespaces_of_calls():
    made = ToolCall("call_1|fc_1", "functions.read", {}, namespace="crm")
    (asked, _) = await items(answer(made, stop="toolUse"), result("call_1|fc_1", TextContent("x")))
    assert (asked["name"], asked["namespace"]) == ("functions_read", "crm")


@pytest.mark.fault("B03")
@pytest.mark.parametrize(("content", "output"), [
    ([], "(no output)"),
    ([TextContent(" \n")], "(no output)"),
    ([TextContent("a"), TextContent("b")], "a\nb"),
    ([PIXEL], [{"type": "input_image", "detail": "auto", "image_url": f"data:image/png;base64,{PIXEL.data}"}]),
    ([TextContent("see"), PIXEL], [{"type": "input_text", "text": "see"},
     {"type": "input_image", "detail": "auto", "image_url": f"data:image/png;base64,{PIXEL.data}"}]),
])  # fmt: skip
async def test_b03_what_a_tool_gave(content, output):
    made = answer(CALL, stop="toolUse")
    (_, given) = await items(made, result("call_1|fc_1", *content), input=("text", "image"))
    assert given == {"type": "function_call_output", "call_id": "call_1", "output": output}


@pytest.mark.fault("B04")
async def test_b04_an_image_alone_has_no_text_beside_it():
    (said,) = await items(UserMessage([TextContent(""), PIXEL], timestamp=1), input=("text", "image"))
    assert [part["type"] for part in said["content"]] == ["input_image"]


async def test_a_request_begins_as_the_one_before():
    history = [UserMessage("hi", timestamp=1)]
    before = b""
    for number in range(5):
        asked = await ask(OK, context=Context("Be brief.", history), reasoning=True, input=("text", "image"))
        body = asked.requests[0].body
        start = body.partition(b'],"stream"')[0]
        assert start.startswith(before)
        before = start
        call_id = f"call_{number}|fc_{number}"
        history += [
            answer(
                ThinkingContent("hm", signature=SIGNED), TEXT, ToolCall(call_id, "read", {}), stop="toolUse"
            ),
            result(call_id, TextContent("found"), PIXEL),
            answer(TextContent("by another"), model="other"),
        ]


async def test_each_message_is_encoded_once():
    made = answer(TEXT)
    await items(made, GO)
    (kept,) = made.wire.values()
    await items(made, GO)
    assert [*made.wire.values()] == [kept]
    assert next(iter(made.wire.values())) is kept
    await items(made, GO, id="another")
    assert len(made.wire) == 2


@pytest.mark.timeout(20)
async def test_ids_that_come_again_with_other_items_cost_no_more_than_others():
    history = []
    for number in range(6000):
        call_id = f"call_1|fc_{number}"
        history += [answer(ToolCall(call_id, "read", {}), stop="toolUse"), result(call_id, TextContent("ok"))]
    sent = await items(*history)
    calls = [item["call_id"] for item in sent if item["type"] == "function_call"]
    assert len({*calls}) == 6000
    assert [item["call_id"] for item in sent if item["type"] == "function_call_output"] == calls
