"""The rows of the table: what every wire API must do alike. A case is named by its function."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

from msgspec.structs import replace

from cantle_ai.abort import AbortController
from cantle_ai.codec import JsonObject
from cantle_ai.content import TextContent, ThinkingContent, ToolCall
from cantle_ai.events import AssistantMessageEvent
from cantle_ai.messages import Message, ToolResultMessage
from cantle_ai.model import THINKING_LEVELS, NamedTool, ResponseSchema
from cantle_ai.overflow import is_overflow
from cantle_ai.retry import delay_ms, retryable
from cantle_ai.retry_policy import RetryPolicy
from cantle_ai.sse import ServerSentEvent
from cantle_ai.transport.port import HttpRequest, HttpResponse
from packages.ai.tests.conformance.lab import PIXEL, READ, Lab, result, user

__all__ = ["CASES", "Case"]

Case: TypeAlias = Callable[[Lab], Awaitable[None]]

TEXT = "plain, Ünïcödé, 漢字, 👩‍👩‍👧 and \u2028 too\n"
SIGNATURE = "c2lnbmF0dXJlIG9mIHRoaW5raW5n"


def thinking(text: str = "I should look. 🤔", **fields: Any) -> dict[str, Any]:
    return {"type": "thinking", "thinking": text, "thinkingSignature": SIGNATURE, **fields}


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def call(path: str = "ä/😀", **fields: Any) -> dict[str, Any]:
    return {"type": "toolCall", "name": "read", "arguments": {"path": path}, **fields}


async def plain(lab: Lab) -> None:
    async with lab.serving("Hello, you.") as server:
        answer = await lab.ask(server, "Hi")
    assert (answer.message.stop_reason, answer.message.text) == ("stop", "Hello, you.")
    assert answer.message.raw_stop_reason
    assert answer.message.error_message is None


async def empty(lab: Lab) -> None:
    async with lab.serving({"content": []}, "Go on.") as server:
        answer = await lab.ask(server, "Hi")
        assert (answer.message.stop_reason, answer.message.content) == ("stop", [])
        again = await lab.ask(server, "Hi", answer.message, "Hello?")
    assert again.message.text == "Go on."


async def unicode_cut_at_every_byte(lab: Lab) -> None:
    said = TEXT * 3
    async with lab.serving(
        {"content": [text(said), call(TEXT)]}, slices=(1, 1), chunk=1, newline="\r\n"
    ) as server:
        answer = await lab.ask(server, TEXT, tools=[READ], system=TEXT)
    assert answer.message.text == said
    assert answer.message.tool_calls[0].arguments == {"path": TEXT}


async def tools(lab: Lab) -> None:
    async with lab.serving({"content": [text("Looking."), call()]}, "It says: found") as server:
        first = await lab.ask(server, "Look", tools=[READ])
        asked = first.message.tool_calls[0]
        assert (first.message.stop_reason, asked.name) == ("toolUse", "read")
        assert asked.arguments == {"path": "ä/😀"}
        history: list[Message] = [user("Look"), first.message, result(asked.id, "found 🎉")]
        last = await lab.ask(server, *history, tools=[READ])
        assert "found 🎉" in json.dumps(json.loads(server.bodies[-1]), ensure_ascii=False)
    assert (last.message.stop_reason, last.message.text) == ("stop", "It says: found")


async def parallel_tools(lab: Lab) -> None:
    calls = [call(path, id=f"call{number}abcd") for number, path in enumerate("abc")]
    async with lab.serving({"content": calls}, "Done.") as server:
        first = await lab.ask(server, "Look", tools=[READ])
        asked = first.message.tool_calls
        assert [each.arguments for each in asked] == [{"path": path} for path in "abc"]
        assert len({each.id for each in asked}) == 3
        results = [result(each.id, f"of {each.arguments}", is_error=each is asked[1]) for each in asked]
        last = await lab.ask(server, user("Look"), first.message, *results, tools=[READ])
    assert last.message.text == "Done."


async def call_without_arguments(lab: Lab) -> None:
    async with lab.serving({"content": [call(arguments={})]}, "Done.") as server:
        first = await lab.ask(server, "Look", tools=[READ])
        (asked,) = first.message.tool_calls
        assert (asked.arguments, asked.invalid_arguments) == ({}, None)
        last = await lab.ask(server, user("Look"), first.message, result(asked.id, "no path"), tools=[READ])
    assert last.message.text == "Done."


async def bad_arguments(lab: Lab) -> None:
    async with lab.serving({"content": [call(arguments='{"path": ')]}, "Done.") as server:
        first = await lab.ask(server, "Look", tools=[READ])
        (asked,) = first.message.tool_calls
        assert (asked.arguments, asked.invalid_arguments) == ({}, '{"path": ')
        history: list[Message] = [user("Look"), first.message, result(asked.id, "not JSON", is_error=True)]
        last = await lab.ask(server, *history, tools=[READ])
    assert last.message.text == "Done."


async def missing_result(lab: Lab) -> None:
    async with lab.serving({"content": [call("a"), call("b")]}, "Done.") as server:
        first = await lab.ask(server, "Look", tools=[READ])
        asked = first.message.tool_calls
        history: list[Message] = [user("Look"), first.message, result(asked[1].id, "of b")]
        last = await lab.ask(server, *history, user("Go on"), tools=[READ])
    assert last.message.text == "Done."


async def blank_results_and_texts(lab: Lab) -> None:
    async with lab.serving({"content": [text(""), call()]}, "Done.") as server:
        first = await lab.ask(server, user("", PIXEL), tools=[READ], system="")
        (asked,) = first.message.tool_calls
        history: list[Message] = [user("", PIXEL), first.message, result(asked.id, " \n")]
        last = await lab.ask(server, *history, tools=[READ], system="")
    assert last.message.text == "Done."


async def blank_system_prompt(lab: Lab) -> None:
    async with lab.serving("One.", "Two.") as server:
        for system in ("", " \n\t"):
            await lab.ask(server, "Hi", system=system)
        assert server.bodies[0] == server.bodies[1]


async def output_limit(lab: Lab) -> None:
    async with lab.serving({"content": "half an ans", "stopReason": "length"}) as server:
        answer = await lab.ask(server, "Hi", max_tokens=77)
        assert lab.column.max_tokens in server.bodies[-1].decode()
    assert (answer.message.stop_reason, answer.message.text) == ("length", "half an ans")
    assert answer.message.raw_stop_reason == lab.column.length


async def refusal(lab: Lab) -> None:
    async with lab.serving({"content": "I", "rawStopReason": lab.column.refusal}, "Well.") as server:
        answer = await lab.ask(server, "Hi")
        assert (answer.message.stop_reason, answer.message.text) == ("error", "I")
        assert answer.message.raw_stop_reason == lab.column.refusal
        assert answer.message.error_message and not retryable(answer.message)
        again = await lab.ask(server, user("Hi"), answer.message, user("Another question"))
    assert again.message.text == "Well."


async def overload(lab: Lab) -> None:
    async with lab.serving({"error": {**lab.column.overload, "retryAfterMs": 1500}}) as server:
        answer = await lab.ask(server, "Hi")
    assert (answer.message.stop_reason, answer.details.status) == ("error", lab.column.overload["status"])
    assert str(lab.column.overload["message"]) in str(answer.message.error_message)
    assert retryable(answer.message)
    assert delay_ms(answer.message, 1, RetryPolicy()) == 1500


async def error_in_the_stream(lab: Lab) -> None:
    fault = {**lab.column.overload, "message": "The server is overloaded, try again later"}
    async with lab.serving({"content": "half", "error": fault}) as server:
        answer = await lab.ask(server, "Hi")
    assert (answer.message.stop_reason, answer.message.text) == ("error", "half")
    assert "overloaded" in str(answer.message.error_message)
    assert retryable(answer.message)


async def overflow(lab: Lab) -> None:
    async with lab.serving({"error": lab.column.overflow}) as server:
        answer = await lab.ask(server, "Hi")
    assert is_overflow(answer.message, None), answer.message.error_message
    assert not retryable(answer.message)


async def wrong_key(lab: Lab) -> None:
    fault = {"status": 401, "code": "invalid_api_key", "message": f"Wrong key {lab.column.api_key}"}
    async with lab.serving({"error": fault}) as server:
        answer = await lab.ask(server, "Hi")
    assert answer.details.status == 401
    assert lab.column.api_key is None or lab.column.api_key not in str(answer.message.to_json())
    assert not retryable(answer.message)


async def cut_stream(lab: Lab) -> None:
    for cut in (True, "quiet"):
        async with lab.serving(
            {"content": [text("0123456789")], "chunk": 1, "cut": cut, "after": 4, "rate": 200}
        ) as server:
            answer = await lab.ask(server, "Hi")
        assert answer.message.stop_reason == "error"
        assert "0123".startswith(answer.message.text)
        assert retryable(answer.message), answer.message.error_message
        if cut == "quiet":
            assert answer.message.text == "0123"


async def garbage(lab: Lab) -> None:
    page = "<html><title>Bad gateway</title></html>"
    answers: list[Any] = [
        {"content": "said", "noise": ["garbage"]},
        {"http": {"body": page, "contentType": "text/html"}},
        {"http": {"body": page, "contentType": "text/html", "status": 502}},
        {"http": {"body": ""}},
        {"http": {"body": "data: [1]\n\ndata: 3\n\ndata: null\n\n"}},
        {"http": {"drop": True}},
    ]
    for number, response in enumerate(answers):
        async with lab.serving(response) as server:
            answer = await lab.ask(server, "Hi")
        assert answer.message.stop_reason == "error" or number == 0, response
        assert number == 0 or answer.message.error_message


async def noise(lab: Lab) -> None:
    for newline in ("\n", "\r\n", "\r"):
        kinds = ["comment", "unknown", "empty", "repeated"]
        said = {"content": [thinking(), text("said"), call()], "noise": kinds}
        async with lab.serving(said, newline=newline) as server:
            answer = await lab.ask(server, "Hi", tools=[READ])
        assert answer.message.stop_reason == "toolUse", answer.message.error_message
        assert answer.message.text == "said"
        assert [each.arguments for each in answer.message.tool_calls] == [{"path": "ä/😀"}]


async def abort_at_each_event(lab: Lab) -> None:
    said = {"content": [thinking("hm"), text("abcdefgh"), call()], "chunk": 3, "stall": True}
    async with lab.serving({**said, "stall": False}, *[said] * 60, prefix=False) as server:
        whole = await lab.ask(server, "Hi", tools=[READ])
        # The stalled answer has all but its ending.
        for place in range(_told(whole.events)):
            controller, seen = AbortController(), 0

            def see(event: AssistantMessageEvent, place: int = place, at: Any = controller) -> None:
                nonlocal seen
                if seen == place:
                    at.abort()
                seen += 1

            async with asyncio.timeout(10):
                answer = await lab.ask(server, "Hi", tools=[READ], see=see, signal=controller.signal)
            assert answer.message.stop_reason == "aborted", place
            assert whole.message.text.startswith(answer.message.text)
            assert not retryable(answer.message)


def _told(events: list[AssistantMessageEvent]) -> int:
    """How many events come before the first that only the end of the answer brings."""
    ends = [place for place, event in enumerate(events) if event.type in ("text_delta", "toolcall_delta")]
    return ends[-1]


async def abort_before_anything(lab: Lab) -> None:
    controller = AbortController()
    controller.abort()
    async with lab.serving() as server:
        answer = await lab.ask(server, "Hi", signal=controller.signal)
        assert not server.requests
    assert answer.message.stop_reason == "aborted"


async def images(lab: Lab) -> None:
    async with lab.serving("A dot.", "Nothing.") as server:
        answer = await lab.ask(server, user("What is it?", PIXEL))
        assert answer.message.text == "A dot."
        assert PIXEL.data.encode() in server.bodies[-1]
        server.new_conversation()
        blind = await lab.ask(server, user("What is it?", PIXEL), model={"input": ("text",)})
        assert PIXEL.data.encode() not in server.bodies[-1]
    assert blind.message.text == "Nothing."


async def image_in_a_tool_result(lab: Lab) -> None:
    async with lab.serving({"content": [call("a"), call("b")]}, "Dots.", "Nothing.") as server:
        first = await lab.ask(server, "Look", tools=[READ])
        asked = first.message.tool_calls
        history: list[Message] = [
            user("Look"),
            first.message,
            result(asked[0].id, PIXEL),
            result(asked[1].id, "and text", PIXEL, is_error=True),
        ]
        seen = await lab.ask(server, *history, tools=[READ])
        assert server.bodies[-1].count(PIXEL.data.encode()) == 2
        server.new_conversation()
        blind = await lab.ask(server, *history, tools=[READ], model={"input": ("text",)})
        assert PIXEL.data.encode() not in server.bodies[-1]
    assert (seen.message.text, blind.message.text) == ("Dots.", "Nothing.")


async def thinking_and_replay(lab: Lab) -> None:
    async with lab.serving({"content": [thinking(), call()]}, "Done.", "Also done.") as server:
        first = await lab.ask(server, "Look", tools=[READ], thinking="high")
        thought = next(block for block in first.message.content if isinstance(block, ThinkingContent))
        assert thought.thinking == "I should look. 🤔"
        (asked,) = first.message.tool_calls
        history: list[Message] = [user("Look"), first.message, result(asked.id, "found")]
        last = await lab.ask(server, *history, tools=[READ], thinking="high")
        sent = json.dumps(json.loads(server.bodies[-1]), ensure_ascii=False)
        replays = lab.column.replays
        assert (SIGNATURE in sent) == (replays == "signature")
        assert replays != "text" or "I should look. 🤔" in sent
        server.new_conversation()
        other = await lab.ask(server, *history, tools=[READ], model={"id": "another"})
        assert SIGNATURE not in server.bodies[-1].decode()
    assert (last.message.text, other.message.text) == ("Done.", "Also done.")


async def redacted_thinking(lab: Lab) -> None:
    hidden = thinking("", redacted=True)
    async with lab.serving({"content": [hidden, call()]}, "Done.", "Also done.") as server:
        first = await lab.ask(server, "Look", tools=[READ], thinking="high")
        (asked,) = first.message.tool_calls
        assert isinstance(first.message.content[0], ThinkingContent)
        history: list[Message] = [user("Look"), first.message, result(asked.id, "found")]
        last = await lab.ask(server, *history, tools=[READ], thinking="high")
        assert SIGNATURE in server.bodies[-1].decode()
        server.new_conversation()
        other = await lab.ask(server, *history, tools=[READ], model={"id": "another"})
        assert SIGNATURE not in server.bodies[-1].decode()
    assert (last.message.text, other.message.text) == ("Done.", "Also done.")


async def usage(lab: Lab) -> None:
    given = {"input": 10, "cacheRead": 20, "cacheWrite": 30, "output": 40, "reasoning": 5}
    wire = {"cacheRead": "cache_read", "cacheWrite": "cache_write", "reasoning": "reasoning"}
    told = {name: n for name, n in given.items() if name not in wire or wire[name] in lab.column.counts}
    async with lab.serving({"content": "x", "usage": told}) as server:
        answer = await lab.ask(server, "Hi")
    counted = answer.message.usage
    assert (counted.input, counted.output) == (10, 40)
    assert (counted.cache_read, counted.cache_write) == (told.get("cacheRead", 0), told.get("cacheWrite", 0))
    assert (counted.reasoning or 0) == told.get("reasoning", 0)
    assert counted.total_tokens == counted.input + 40 + counted.cache_read + counted.cache_write
    assert counted.cost.unknown


async def cache(lab: Lab) -> None:
    marks = lab.column.cache
    async with lab.serving(*["ok"] * 3, prefix=False) as server:
        for retention in ("none", "short", "long"):
            await lab.ask(server, "Hi", tools=[READ], session_id="s" * 100, cache_retention=retention)
    none, short, long = (body.decode() for body in server.bodies)
    assert all(mark not in none for mark in marks.values())
    assert marks.get("short", "") in short
    assert marks.get("long", "") in long


async def prefix(lab: Lab) -> None:
    """Eight requests of one task: the server holds each against the one before."""
    asks = [{"content": [thinking(), text(f"turn {n}"), call(f"{n}a"), call(f"{n}b")]} for n in range(6)]
    async with lab.serving(*asks, "Done.", "Bye.") as server:
        history: list[Message] = [user("Look", PIXEL)]
        for turn in range(8):
            answer = await lab.ask(server, *history, tools=[READ], session_id="s", thinking="low")
            assert answer.message.error_message is None
            history.append(answer.message)
            for each in answer.message.tool_calls:
                blocks = [TextContent(f"line {turn}"), PIXEL] if turn % 2 else [TextContent("")]
                history.append(ToolResultMessage(each.id, each.name, [*blocks], timestamp=1))
            if not answer.message.tool_calls:
                history.append(user("And now?"))
        assert len(server.requests) == 8


async def hooks(lab: Lab) -> None:
    shown: list[Any] = []

    async def on_request(request: HttpRequest) -> HttpRequest:
        shown.append(request)
        return replace(request, headers={**request.headers, "x-changed": "yes"})

    async def on_event(event: ServerSentEvent) -> None:
        shown.append(event)

    def on_response(response: HttpResponse) -> None:
        shown.append(response.status)

    async with lab.serving("ok") as server:
        answer = await lab.ask(
            server, "Hi", on_request=on_request, on_response=on_response, on_event=on_event
        )
        assert answer.message.text == "ok", answer.message.error_message
        assert server.requests[0].call.headers["x-changed"] == "yes"
    assert isinstance(shown[0], HttpRequest)
    assert shown[0].url.startswith(server.base_url_for(lab.column.api))
    assert shown[1] == 200
    assert len(shown) > 3 and all(isinstance(event, ServerSentEvent) for event in shown[2:])


async def headers(lab: Lab) -> None:
    async with lab.serving("ok") as server:
        row = {"headers": {"x-model": "1", "x-both": "model"}}
        await lab.ask(server, "Hi", model=row, headers={"x-request": "2", "x-both": "request"})
        sent = server.requests[0].call.headers
    assert (sent["x-model"], sent["x-request"], sent["x-both"]) == ("1", "2", "request")


async def every_thinking_level(lab: Lab) -> None:
    """Those that the model has, and those that become the nearest one that it has."""
    async with lab.serving(*["ok"] * 2 * len(THINKING_LEVELS), prefix=False) as server:
        for level in THINKING_LEVELS:
            for limit in (None, 2000):
                answer = await lab.ask(server, "Hi", thinking=level, max_tokens=limit)
                assert answer.message.text == "ok", (level, limit, answer.message.error_message)


async def sampling(lab: Lab) -> None:
    name = lab.column.top_p
    async with lab.serving("ok", "ok", prefix=False) as server:
        row = {"reasoning": False, "sampling": {name: 0.75}}
        await lab.ask(server, "Hi", model=row, temperature=0.5, sampling={name: 0.25})
        first = server.bodies[-1].decode()
        await lab.ask(server, "Hi", model=row)
        assert f'"{name}":0.75' in server.bodies[-1].decode()
        assert '"temperature"' not in server.bodies[-1].decode()
    assert f'"{name}":0.25' in first and '"temperature":0.5' in first


async def no_attribution(lab: Lab) -> None:
    async with lab.serving("ok") as server:
        await lab.ask(server, "Hi")
        sent = server.requests[0].call.headers
    assert not {"http-referer", "x-title", "x-client-name"} & sent.keys()


async def time_out(lab: Lab) -> None:
    async with lab.serving(
        {"http": {"stall": True}}, {"content": "half", "stall": True}, prefix=False
    ) as server:
        for said in ("", "half"):
            async with asyncio.timeout(10):
                answer = await lab.ask(server, "Hi", timeout=0.3)
            assert (answer.message.stop_reason, answer.message.text) == ("error", said)
            assert answer.details.kind == "timeout"
            assert retryable(answer.message)


async def tool_choice(lab: Lab) -> None:
    choices: dict[str, Any] = {"none": "none", "required": "required", "named": NamedTool("read")}
    async with lab.serving(*["ok"] * 4, prefix=False) as server:
        for name, choice in choices.items():
            answer = await lab.ask(server, "Hi", tools=[READ], tool_choice=choice)
            if name in lab.column.choices:
                assert answer.message.text == "ok", answer.message.error_message
                assert lab.column.choices[name] in server.bodies[-1].decode()
        # Without tools there is nothing to choose, and servers refuse the field.
        await lab.ask(server, "Hi", tool_choice="auto")
    assert lab.column.choices


async def response_schema(lab: Lab) -> None:
    schema: JsonObject = {
        "type": "object",
        "properties": {"capital": {"type": "string"}},
        "required": ["capital"],
        "additionalProperties": False,
    }
    async with lab.serving('{"capital": "Rome"}') as server:
        answer = await lab.ask(server, "Italy?", response_schema=ResponseSchema("city", schema))
        assert answer.message.error_message is None
        sent = server.bodies[-1].decode()
    assert lab.column.schema and lab.column.schema in sent
    assert "capital" in sent


async def facts_of_the_answer(lab: Lab) -> None:
    async with lab.serving("ok") as server:
        answer = await lab.ask(server, "Hi")
    message = answer.message
    assert (message.api, message.provider, message.model) == (lab.column.api, "p", "m-1")
    assert message.response_id


async def nothing_of_the_stream_is_kept(lab: Lab) -> None:
    async with lab.serving({"content": [thinking(), text("x"), call()]}) as server:
        answer = await lab.ask(server, "Hi", tools=[READ])
    stored = answer.message.to_json()
    assert json.loads(json.dumps(stored)) == stored
    blocks = [block for block in answer.message.content if isinstance(block, ToolCall)]
    known = {"type", "id", "name", "arguments", "thoughtSignature", "namespace"}
    assert not blocks[0].to_json().keys() - known


CASES: Mapping[str, Case] = {
    function.__name__.replace("_", " "): function
    for function in (
        plain, empty, facts_of_the_answer, unicode_cut_at_every_byte, tools, parallel_tools,
        call_without_arguments, bad_arguments, missing_result, blank_results_and_texts, blank_system_prompt, output_limit, refusal,
        overload, overflow, wrong_key, error_in_the_stream, cut_stream, garbage, noise, abort_at_each_event,
        abort_before_anything, images, image_in_a_tool_result, thinking_and_replay, redacted_thinking, usage,
        cache, prefix, hooks, headers, every_thinking_level, sampling, no_attribution, time_out, tool_choice, response_schema,
        nothing_of_the_stream_is_kept,
    )
}  # fmt: skip
