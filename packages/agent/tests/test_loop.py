"""The loop: what happens in a run, and in which order."""

import asyncio
from contextlib import aclosing
from typing import Any

import pytest

from cantle_agent.config import AgentContext, FinishedTurn, LoopConfig, NextTurn
from cantle_agent.errors import ContinueError
from cantle_agent.events import AgentEnd, AgentEvent, MessageEnd, MessageStart, MessageUpdate, TurnEnd
from cantle_agent.loop import agent_loop, run_loop
from cantle_agent.messages import AgentMessage, CustomMessage
from cantle_agent.queues import MessageQueue
from cantle_agent.tool import ToolContext, ToolResult
from cantle_ai.abort import AbortController, AbortSignal
from cantle_ai.content import TextContent, ToolCall
from cantle_ai.history import INTERRUPTED
from cantle_ai.messages import AssistantMessage, Message, ToolResultMessage, UserMessage
from cantle_ai.model import Model, StreamOptions
from cantle_ai.stream import AssistantMessageStream
from cantle_ai.testing.response import Answer, Failure, response_of
from cantle_ai.testing.scripted import AnswerFunction, ScriptedModel, scripted_model
from packages.agent.tests.support import (
    Told,
    answers,
    call,
    check_events,
    last_answer,
    make_tool,
    results,
    run,
    says,
    shape,
)


def queue(*texts: str, mode: Any = "one-at-a-time") -> MessageQueue:
    made = MessageQueue(mode)
    for text in texts:
        made.put(UserMessage(text))
    return made


@pytest.mark.parity("loop.order")
async def test_a_run_tells_its_events_in_the_order_of_the_architecture():
    _, told, _ = await run([says("let me see", call()), "done"], [make_tool()])
    assert told.types == [
        "agent_start",
        "turn_start",
        "message_start user",
        "message_end user",
        "message_start assistant",
        "message_update",
        "message_end assistant",
        "tool_execution_start",
        "tool_execution_end",
        "message_start toolResult",
        "message_end toolResult",
        "turn_end",
        "turn_start",
        "message_start assistant",
        "message_update",
        "message_end assistant",
        "turn_end",
        "agent_end",
    ]
    check_events(told.events)


async def test_the_context_has_prompt_messages_and_tools():
    tool = make_tool()
    _, _, model = await run(["done"], [tool])
    (request,) = model.requests
    assert request.system_prompt == "Be brief."
    assert [message.role for message in request.messages] == ["user"]
    assert list(request.tools) == [tool.definition()]


async def test_the_run_returns_and_tells_the_messages_that_it_added():
    model = ScriptedModel([says("", call()), "done"])
    context = AgentContext(messages=[UserMessage("before"), answer()], tools=[make_tool()])
    told = Told()
    added = await run_loop(
        [UserMessage("go")], context, LoopConfig(stream=model.stream, model=model.model), told
    )
    assert shape(added) == ["user go", "assistant toolUse", "toolResult echo: {}", "assistant stop"]
    assert context.messages[2:] == added
    assert told.of(AgentEnd)[0].messages == added


async def test_updates_carry_the_growing_message_and_ends_the_final_one():
    context, told, _ = await run(["some words that come in deltas"])
    (start,) = [event for event in told.of(MessageStart) if event.message.role == "assistant"]
    updates = told.of(MessageUpdate)
    assert {update.event.type for update in updates} == {"text_start", "text_delta", "text_end"}
    assert all(update.message is start.message for update in updates)
    assert told.of(MessageEnd)[-1].message is context.messages[-1]
    assert context.messages[-1].stop_reason == "stop"


async def test_there_is_no_round_limit():
    context, _, model = await run([*[says("", call()) for _ in range(300)], "done"], [make_tool()])
    assert len(model.requests) == 301
    assert len(results(context.messages)) == 300


async def test_a_stop_with_calls_runs_them():
    context, _, _ = await run([says("", call(), stop_reason="stop"), "done"], [make_tool()])
    assert shape(context.messages) == ["user go", "assistant stop", "toolResult echo: {}", "assistant stop"]


# --- failing answers


@pytest.mark.parity("loop.failed-answer")
async def test_a_failure_before_the_answer_begins_is_a_whole_message():
    context, told, _ = await run([says("", error=Failure(message="no luck", status=500))])
    assert told.types[-5:] == [
        "message_end user",
        "message_start assistant",
        "message_end assistant",
        "turn_end",
        "agent_end",
    ]
    last = last_answer(context.messages)
    assert (last.stop_reason, last.error_message) == ("error", "no luck")


@pytest.mark.parametrize("fault", [{"error": {"message": "broke"}}, {"cut": True}])
async def test_an_answer_that_fails_runs_no_calls_closes_the_run_and_leaves_queues(fault: dict[str, Any]):
    ran: list[str] = []

    async def execute(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        ran.append(context.tool_name)
        return ToolResult()

    steering, follow_up = queue(), queue()

    async def emit(event: AgentEvent) -> None:
        if event.type == "message_update" and not steering:
            steering.put(UserMessage("steer"))
            follow_up.put(UserMessage("later"))

    content = [{"type": "toolCall", "name": "echo", "arguments": {}}, {"type": "text", "text": "and more"}]
    response = response_of({"content": content, "after": 2, **fault})
    context, told, model = await run(
        [response, "never"], [make_tool(execute=execute)], emit=emit, steering=steering, follow_up=follow_up
    )
    assert not ran and len(model.requests) == 1
    assert last_answer(context.messages).stop_reason == "error"
    assert told.types[-3:] == ["message_end assistant", "turn_end", "agent_end"]
    assert len(steering) == len(follow_up) == 1


async def test_a_stream_function_that_raises_is_a_failed_answer():
    def broken(*_: object) -> AssistantMessageStream:
        raise OSError("no route to the model")

    context = AgentContext()
    await run_loop([UserMessage("go")], context, LoopConfig(stream=broken, model=scripted_model()), Told())
    assert last_answer(context.messages).error_message == "no route to the model"


@pytest.mark.parity("loop.length")
async def test_an_answer_cut_at_the_output_limit_runs_none_of_its_calls_and_goes_on():
    ran: list[str] = []

    async def execute(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        ran.append(context.tool_name)
        return ToolResult()

    cut = says("", call("a"), call("missing"), stop_reason="length")
    context, told, model = await run([cut, "done"], [make_tool("a", execute)])
    assert not ran
    assert all(
        result.is_error and "Make the call again" in result.text for result in results(context.messages)
    )
    assert len(results(context.messages)) == 2 and len(model.requests) == 2
    assert told.types[6:14] == [
        "message_end assistant",
        *["tool_execution_start", "tool_execution_end", "message_start toolResult", "message_end toolResult"],
        *["tool_execution_start", "tool_execution_end", "message_start toolResult"],
    ]


# --- continuing


def answer(text: str = "hello") -> AssistantMessage:
    return AssistantMessage([TextContent(text)], "scripted", "scripted", "scripted")


def asks(*ids: str) -> AssistantMessage:
    calls = [ToolCall(id, "echo") for id in ids]
    return AssistantMessage([*calls], "scripted", "scripted", "scripted", stop_reason="toolUse")


class Note(CustomMessage, frozen=True, kw_only=True):
    """A message that no model is shown."""

    @property
    def role(self) -> str:
        return "note"

    def to_json(self) -> dict[str, Any]:
        return {"role": "note", "timestamp": self.timestamp}


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [Note()],
        [UserMessage("hi"), answer()],
        [UserMessage("hi"), answer(), Note()],
        [UserMessage("hi"), answer(), ToolResultMessage("c1", "bash", [TextContent("out")])],
    ],
    ids=[
        "empty",
        "nothing shown",
        "answer",
        "answer and a note",
        "answer and a result that it did not ask for",
    ],
)
async def test_continue_refuses_where_there_is_nothing_to_answer(messages: list[AgentMessage]):
    with pytest.raises(ContinueError, match="Nothing to continue: the transcript"):
        await run(["never"], prompts=[], messages=messages)


async def test_continue_asks_again_where_a_user_message_or_a_result_waits():
    done: list[AgentMessage] = [
        UserMessage("hi"),
        asks("1"),
        ToolResultMessage("1", "echo", [TextContent("ok")]),
    ]
    for waiting in (done[:1], done):
        context, told, _ = await run(["done"], prompts=[], messages=waiting)
        assert shape(context.messages) == [*shape(waiting), "assistant stop"]
        assert told.types[:3] == ["agent_start", "turn_start", "message_start assistant"]


@pytest.mark.parametrize("kind", ["steering", "follow_up"])
async def test_queued_messages_open_a_continued_run(kind: str):
    waiting: dict[str, Any] = {kind: queue("queued")}
    context, told, _ = await run(["done"], prompts=[], messages=[UserMessage("hi"), answer()], **waiting)
    assert shape(context.messages)[2:] == ["user queued", "assistant stop"]
    assert told.types[:3] == ["agent_start", "turn_start", "message_start user"]


async def test_steering_opens_a_continued_run_before_follow_ups():
    context, _, _ = await run(
        ["one", "two"],
        prompts=[],
        messages=[UserMessage("hi"), answer()],
        steering=queue("now"),
        follow_up=queue("later"),
    )
    assert shape(context.messages)[2:] == ["user now", "assistant stop", "user later", "assistant stop"]


@pytest.mark.parametrize("prompts", [[], [UserMessage("and now?")]], ids=["continue", "prompt"])
async def test_calls_that_a_crash_left_without_results_get_them_first(prompts: list[AgentMessage]):
    first = ToolResultMessage("1", "echo", [TextContent("ok")])
    context, told, model = await run(
        ["done"], prompts=prompts, messages=[UserMessage("hi"), asks("1", "2"), first]
    )
    assert [result.text for result in results(context.messages)] == ["ok", INTERRUPTED]
    assert told.types[2] == "message_start toolResult"
    shown = model.requests[0].messages[3]
    assert isinstance(shown, ToolResultMessage) and shown.is_error


# --- queues


async def test_steering_enters_after_the_batch_and_before_the_next_generation():
    steering = queue(mode="all")

    async def emit(event: AgentEvent) -> None:
        if event.type == "tool_execution_start":
            steering.put(UserMessage(f"about {event.tool_name}"))

    context, told, model = await run(
        [says("", call("a"), call("b")), "done"],
        [make_tool("a"), make_tool("b")],
        emit=emit,
        steering=steering,
    )
    assert shape(context.messages) == [
        "user go",
        "assistant toolUse",
        "toolResult a: {}",
        "toolResult b: {}",
        "user about a",
        "user about b",
        "assistant stop",
    ]
    assert len(model.requests[1].messages) == 6
    entered = told.types.index("turn_start", 3)
    assert told.types[entered + 1] == "message_start user"


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("all", ["user go", "user 1", "user 2", "assistant stop"]),
        ("one-at-a-time", ["user go", "user 1", "assistant stop", "user 2", "assistant stop"]),
    ],
)
async def test_steering_lets_in_all_or_one_at_a_time(mode: Any, expected: list[str]):
    context, _, _ = await run(["one", "two"], steering=queue("1", "2", mode=mode))
    assert shape(context.messages) == expected


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("all", ["user go", "assistant stop", "user 1", "user 2", "assistant stop"]),
        (
            "one-at-a-time",
            ["user go", "assistant stop", "user 1", "assistant stop", "user 2", "assistant stop"],
        ),
    ],
)
async def test_follow_ups_enter_only_where_the_run_would_end(mode: Any, expected: list[str]):
    context, told, _ = await run(["one", "two", "three"], follow_up=queue("1", "2", mode=mode))
    assert shape(context.messages) == expected
    assert told.types.count("agent_end") == 1


async def test_follow_ups_wait_for_tools_and_steering():
    context, _, _ = await run(
        [says("", call()), "one", "two", "three"],
        [make_tool()],
        steering=queue("s1", "s2"),
        follow_up=queue("f"),
    )
    assert shape(context.messages) == [
        *["user go", "user s1", "assistant toolUse", "toolResult echo: {}", "user s2", "assistant stop"],
        *["user f", "assistant stop"],
    ]


async def test_a_message_steered_while_the_next_turn_is_prepared_enters_it():
    steering = queue()

    async def prepare(turn: FinishedTurn) -> None:
        steering.put(UserMessage("late"))

    context, _, _ = await run(
        [says("", call()), "one"], [make_tool()], steering=steering, prepare_next_turn=prepare
    )
    assert shape(context.messages)[-2:] == ["user late", "assistant stop"]


# --- terminate


async def terminating(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
    return ToolResult(content=[TextContent("bye")], terminate=True)


async def test_a_batch_that_terminates_ends_the_run():
    context, told, model = await run([says("", call("end"), call("end"))], [make_tool("end", terminating)])
    assert len(model.requests) == 1
    assert told.types[-2:] == ["turn_end", "agent_end"]
    assert shape(context.messages)[-1] == "toolResult bye"


async def test_a_batch_goes_on_unless_every_result_terminates():
    _, _, model = await run(
        [says("", call("end"), call("echo")), "on"], [make_tool("end", terminating), make_tool()]
    )
    assert len(model.requests) == 2


@pytest.mark.parametrize("kind", ["steering", "follow_up"])
async def test_queued_messages_run_after_a_batch_that_terminates(kind: str):
    waiting: dict[str, Any] = {kind: queue()}

    async def emit(event: AgentEvent) -> None:
        if event.type == "tool_execution_start":
            waiting[kind].put(UserMessage("more"))

    context, _, model = await run(
        [says("", call("end")), "on"], [make_tool("end", terminating)], emit=emit, **waiting
    )
    assert len(model.requests) == 2
    assert shape(context.messages)[-2:] == ["user more", "assistant stop"]


# --- hooks


@pytest.mark.parametrize("plain", [True, False], ids=["function", "coroutine function"])
async def test_hooks_may_be_plain_or_coroutine_functions(plain: bool):
    def transform(messages: list[AgentMessage], signal: AbortSignal) -> list[AgentMessage]:
        return messages[-1:]

    async def transform_async(messages: list[AgentMessage], signal: AbortSignal) -> list[AgentMessage]:
        return transform(messages, signal)

    _, _, model = await run(
        ["done"],
        messages=[UserMessage("old"), answer()],
        transform_context=transform if plain else transform_async,
    )
    assert [message.text for message in model.requests[0].messages] == ["go"]


async def test_transform_context_gets_a_copy_and_the_signal():
    def transform(messages: list[AgentMessage], signal: AbortSignal) -> list[AgentMessage]:
        assert isinstance(signal, AbortSignal) and not signal.aborted
        messages.clear()
        return [UserMessage("instead")]

    context, _, model = await run(["done"], transform_context=transform)
    assert model.requests[0].messages == (UserMessage("instead", model.requests[0].messages[0].timestamp),)
    assert shape(context.messages) == ["user go", "assistant stop"]


async def test_convert_to_llm_makes_the_model_messages():
    def convert(messages: Any) -> list[Message]:
        return [UserMessage(f"{len(messages)} messages")]

    _, _, model = await run(["done"], convert_to_llm=convert)
    assert model.requests[0].messages[0].text == "1 messages"


async def test_each_request_asks_for_the_key_and_carries_level_signal_and_options():
    seen: list[StreamOptions] = []
    keys = iter(["first", None])
    scripted = ScriptedModel([says("", call()), "done"])

    def stream(model: Model, context: Any, options: StreamOptions) -> AssistantMessageStream:
        seen.append(options)
        return scripted.stream(model, context, options)

    async def key(provider: str) -> str | None:
        assert provider == "scripted"
        return next(keys)

    context = AgentContext(tools=[make_tool()])
    config = LoopConfig(
        stream=stream,
        model=scripted.model,
        thinking_level="high",
        options=lambda: StreamOptions(session_id="s", api_key="given"),
        get_api_key=key,
    )
    await run_loop([UserMessage("go")], context, config, Told())
    assert [options.api_key for options in seen] == ["first", "given"]
    assert all(o.thinking == "high" and o.session_id == "s" and o.signal is not None for o in seen)


async def test_prepare_next_turn_may_swap_context_model_and_level():
    asked: list[tuple[str, str]] = []
    scripted = ScriptedModel([says("", call()), "done"])
    fresh = AgentContext(system_prompt="New.", messages=[UserMessage("summary")])

    def stream(model: Model, context: Any, options: StreamOptions) -> AssistantMessageStream:
        asked.append((model.id, options.thinking))
        return scripted.stream(model, context, options)

    def prepare(turn: FinishedTurn) -> NextTurn:
        assert [result.text for result in turn.tool_results] == ["echo: {}"]
        assert not turn.signal.aborted and len(turn.added) == 3 and turn.model is scripted.model
        return NextTurn(context=fresh, model=scripted_model("other"), thinking_level="low")

    old = AgentContext(tools=[make_tool()])
    config = LoopConfig(stream=stream, model=scripted.model, prepare_next_turn=prepare)
    await run_loop([UserMessage("go")], old, config, Told())
    assert asked == [("scripted", "off"), ("other", "low")]
    assert scripted.requests[1].system_prompt == "New."
    assert shape(fresh.messages) == ["user summary", "assistant stop"]
    assert shape(old.messages) == ["user go", "assistant toolUse", "toolResult echo: {}"]


async def test_should_stop_after_turn_ends_the_run_and_leaves_what_is_queued():
    steering, follow_up = queue(), queue("later")

    def stop(turn: FinishedTurn) -> bool:
        steering.put(UserMessage("too late"))
        return True

    _context, told, model = await run(
        [says("", call()), "never"],
        [make_tool()],
        should_stop_after_turn=stop,
        steering=steering,
        follow_up=follow_up,
    )
    assert len(model.requests) == 1 and len(steering) == 1 and len(follow_up) == 1
    assert told.types[-2:] == ["turn_end", "agent_end"]


@pytest.mark.parametrize(
    "hook",
    ["transform_context", "convert_to_llm", "get_api_key", "prepare_next_turn", "should_stop_after_turn"],
)
async def test_a_hook_that_raises_ends_the_run_with_an_answer_that_names_it(hook: str):
    def broken(*_: object) -> Any:
        raise ValueError("it is broken")

    config: dict[str, Any] = {hook: broken}
    context, told, _ = await run([says("", call()), "two"], [make_tool()], **config)
    last = last_answer(context.messages)
    assert (last.stop_reason, last.error_message) == ("error", f"{hook} failed: it is broken")
    check_events(told.events)


async def test_messages_noted_in_a_turn_join_after_its_end():
    notes = MessageQueue("all")

    async def emit(event: AgentEvent) -> None:
        if event.type == "tool_execution_start":
            notes.put(Note())

    context, told, model = await run([says("", call()), "done"], [make_tool()], emit=emit, notes=notes)
    assert shape(context.messages) == [
        "user go",
        "assistant toolUse",
        "toolResult echo: {}",
        "note",
        "assistant stop",
    ]
    assert told.types[told.types.index("turn_end") + 1] == "message_start note"
    assert len(model.requests) == 2


# --- the iterator


def config_of(model: ScriptedModel, **fields: Any) -> LoopConfig:
    return LoopConfig(stream=model.stream, model=model.model, **fields)


async def test_the_iterator_has_the_events_of_the_awaited_call():
    script: list[Answer | AnswerFunction] = [says("hm", call()), "done"]
    _, told, _ = await run(script, [make_tool()])
    model = ScriptedModel(script)
    context = AgentContext(tools=[make_tool()])
    seen = [event async for event in agent_loop([UserMessage("go")], context, config_of(model))]
    assert [event.type for event in seen] == [event.type for event in told.events]
    assert [
        event
        async for event in agent_loop(
            [], AgentContext(messages=[UserMessage("x")]), config_of(ScriptedModel(["y"]))
        )
    ]


async def test_the_iterator_lets_the_loop_go_on_only_when_the_next_event_is_asked_for():
    model = ScriptedModel(["a long answer that would come in many deltas"])
    context = AgentContext()
    events = agent_loop([UserMessage("go")], context, config_of(model))
    async with aclosing(events):
        for _ in range(4):
            await anext(events)
        for _ in range(50):
            await asyncio.sleep(0)
        assert shape(context.messages) == ["user go"] and not model.requests
        assert (await anext(events)).type == "message_start"
        assert len(model.requests) == 1


async def test_leaving_the_iterator_early_aborts_and_awaits_the_run():
    async def patient(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        await context.signal.wait()
        return ToolResult.of("told to stop")

    model = ScriptedModel([says("", call(), call("quick")), "never"])
    context = AgentContext(tools=[make_tool(execute=patient), make_tool("quick")])
    before = asyncio.all_tasks()
    async with aclosing(agent_loop([UserMessage("go")], context, config_of(model))) as events:
        async for event in events:
            if event.type == "tool_execution_end":  # of the quick one: the other has started
                break
    assert [result.text for result in results(context.messages)] == ["told to stop", "quick: {}"]
    assert asyncio.all_tasks() == before


async def test_a_forgotten_iterator_leaves_no_task():
    model = ScriptedModel(["an answer in several deltas"])
    before = asyncio.all_tasks()
    async for _ in agent_loop([UserMessage("go")], AgentContext(), config_of(model)):
        break
    async with asyncio.timeout(5):
        while asyncio.all_tasks() != before:
            await asyncio.sleep(0)


async def test_the_iterator_follows_its_signal_and_raises_what_the_call_would():
    controller = AbortController()
    model = ScriptedModel(["an answer in several deltas"])
    context = AgentContext()
    async for event in agent_loop([UserMessage("go")], context, config_of(model), controller.signal):
        if event.type == "message_update":
            controller.abort("enough")
    assert answers(context.messages)[0].error_message == "enough"
    with pytest.raises(ContinueError):
        await anext(agent_loop([], AgentContext(), config_of(model)))


async def test_turn_end_has_the_answer_and_its_results_in_order():
    _, told, _ = await run([says("", call("a"), call("b")), "done"], [make_tool("a"), make_tool("b")])
    first, second = told.of(TurnEnd)
    assert [result.tool_name for result in first.tool_results] == ["a", "b"]
    assert (second.message.text, list(second.tool_results)) == ("done", [])
