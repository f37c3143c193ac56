"""The way of one call: each step, and what goes wrong on it, as the model reads it."""

from typing import Any

import pytest

from cantle_agent.config import (
    AfterToolCall,
    BeforeToolCall,
    Block,
    ChangeArguments,
    FinishedToolCall,
    RequestedToolCall,
    ResultChange,
)
from cantle_agent.events import ToolExecutionEnd, ToolExecutionStart
from cantle_agent.tool import Tool, ToolContext, ToolError, ToolResult
from cantle_ai.abort import AbortSignal
from cantle_ai.content import ImageContent, TextContent
from cantle_ai.messages import ToolResultMessage
from cantle_ai.usage import Usage
from packages.agent.tests.support import call, make_tool, results, run, says

NUMBER: dict[str, Any] = {
    "type": "object",
    "properties": {"n": {"type": "integer", "minimum": 0}},
    "required": ["n"],
    "additionalProperties": False,
}


class Spy:
    """A tool that remembers the arguments it ran with."""

    def __init__(self, result: ToolResult | None = None, error: BaseException | None = None) -> None:
        self.ran: list[dict[str, Any]] = []
        self._result = result or ToolResult.of("ran")
        self._error = error

    def tool(self, **fields: Any) -> Tool:
        return make_tool("spy", self._execute, parameters=fields.pop("parameters", NUMBER), **fields)

    async def _execute(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        self.ran.append(arguments)
        if self._error is not None:
            raise self._error
        return self._result


async def one_call(tool: Tool, arguments: Any, **config: Any) -> ToolResultMessage:
    """The result of one call of `tool`."""
    context, _, _ = await run([says("", call("spy", arguments)), "done"], [tool], **config)
    (result,) = results(context.messages)
    return result


async def test_a_call_runs_with_validated_arguments():
    spy = Spy()
    result = await one_call(spy.tool(), {"n": 1})
    assert spy.ran == [{"n": 1}]
    assert (result.text, result.is_error, result.tool_name) == ("ran", False, "spy")


async def test_an_unknown_tool_is_an_error_that_lists_those_there_are():
    context, _, _ = await run([says("", call("nope")), "done"], [make_tool("a"), make_tool("b")])
    (result,) = results(context.messages)
    assert result.is_error and result.text == "There is no tool 'nope'. Available tools: a, b."
    context, _, _ = await run([says("", call("nope")), "done"])
    assert results(context.messages)[0].text.endswith("Available tools: none.")


async def test_arguments_are_coerced_before_they_are_validated():
    spy = Spy()
    result = await one_call(spy.tool(), {"n": "5"})
    assert spy.ran == [{"n": 5}] and not result.is_error


async def test_arguments_that_do_not_fit_are_an_error_that_says_where_and_what():
    spy = Spy()
    result = await one_call(spy.tool(), {"m": 1})
    assert not spy.ran and result.is_error
    assert "- n: missing" in result.text and "- m: not a known argument" in result.text


async def test_arguments_that_are_no_json_are_an_error_that_quotes_them():
    spy = Spy()
    result = await one_call(spy.tool(), '{"n": 1')
    assert not spy.ran and result.is_error
    assert '{"n": 1' in result.text and "character 8 of 7" in result.text
    result = await one_call(spy.tool(), "[1]")
    assert "a value of type list" in result.text
    result = await one_call(spy.tool(), '{"n": "' + "x" * 100_000)
    assert len(result.text) < 1000


async def test_prepare_mends_the_arguments_before_validation():
    spy = Spy()
    tool = spy.tool(prepare=lambda arguments: {"n": arguments["old"]})
    assert not (await one_call(tool, {"old": 3})).is_error
    assert spy.ran == [{"n": 3}]


@pytest.mark.parametrize(
    "prepare",
    [lambda arguments: arguments["missing"], lambda arguments: None],
    ids=["raises", "returns none"],
)
async def test_a_prepare_that_fails_fails_the_call(prepare: Any):
    spy = Spy()
    assert (await one_call(spy.tool(prepare=prepare), {"n": 1})).is_error
    assert not spy.ran


async def test_a_schema_that_is_none_fails_its_calls_and_says_so():
    broken = make_tool("spy", parameters={"type": "object", "properties": {"a": {"pattern": "("}}})
    result = await one_call(broken, {})
    assert result.is_error and "not a valid JSON schema" in result.text and "regex" in result.text


async def test_a_schema_never_fetches(tmp_path: Any):
    file = tmp_path / "schema.json"
    file.write_text("{}", encoding="utf-8")
    for reference in (file.as_uri(), "http://127.0.0.1:9/schema.json", "other.json"):
        outside = make_tool("spy", parameters={"type": "object", "properties": {"a": {"$ref": reference}}})
        result = await one_call(outside, {"a": 1})
        assert result.is_error and "nothing is fetched" in result.text


# --- before hooks and the gate


async def test_before_hooks_are_asked_in_order_and_each_sees_what_the_one_before_changed():
    seen: list[dict[str, Any]] = []

    def hook(step: int) -> BeforeToolCall:
        async def ask(request: RequestedToolCall) -> ChangeArguments:
            seen.append(dict(request.arguments))
            assert isinstance(request.signal, AbortSignal) and request.tool.name == "spy"
            assert request.call.arguments == {"n": "1"} and request.message.tool_calls == [request.call]
            return ChangeArguments({"n": request.arguments["n"] + step})  # type: ignore[operator]

        return ask

    spy = Spy()
    await one_call(spy.tool(), {"n": "1"}, before_tool_call=[hook(10), hook(100)])
    assert seen == [{"n": 1}, {"n": 11}] and spy.ran == [{"n": 111}]


async def test_a_hook_may_block_with_a_reason_and_no_later_hook_is_asked():
    asked: list[str] = []

    def first(request: RequestedToolCall) -> Block:
        asked.append("first")
        return Block(reason="not on a Sunday")

    def second(request: RequestedToolCall) -> None:
        asked.append("second")

    spy = Spy()
    result = await one_call(spy.tool(), {"n": 1}, before_tool_call=[first, second])
    assert (result.text, result.is_error) == ("not on a Sunday", True)
    assert asked == ["first"] and not spy.ran


async def test_a_block_without_a_reason_still_says_something():
    assert (
        await one_call(Spy().tool(), {"n": 1}, gate=lambda request: Block())
    ).text == "The call was blocked."


async def test_a_block_may_terminate_the_run():
    blocks = [lambda request: Block(reason="stop here", terminate=True)]
    _context, _, model = await run(
        [says("", call("spy", {"n": 1})), "never"], [Spy().tool()], before_tool_call=blocks
    )
    assert len(model.requests) == 1


async def test_changed_arguments_are_coerced_and_validated_again():
    spy = Spy()
    await one_call(spy.tool(), {"n": 1}, before_tool_call=[lambda request: ChangeArguments({"n": "7"})])
    assert spy.ran == [{"n": 7}]
    result = await one_call(
        spy.tool(), {"n": 1}, before_tool_call=[lambda request: ChangeArguments({"n": -1})]
    )
    assert result.is_error and "- n: " in result.text and len(spy.ran) == 1


async def test_a_hook_that_changes_its_copy_changes_nothing():
    def meddle(request: RequestedToolCall) -> None:
        request.arguments["n"] = "overwritten"

    spy = Spy()
    _context, told, _ = await run(
        [says("", call("spy", {"n": 1})), "done"], [spy.tool()], before_tool_call=[meddle], gate=meddle
    )
    assert spy.ran == [{"n": 1}]
    assert told.of(ToolExecutionStart)[0].args == {"n": 1}


async def test_start_event_and_transcript_keep_the_arguments_as_asked():
    def prepare(arguments: dict[str, Any]) -> dict[str, Any]:
        arguments["n"] = 2
        return arguments

    spy = Spy()
    context, told, _ = await run([says("", call("spy", {"n": "1"})), "done"], [spy.tool(prepare=prepare)])
    assert spy.ran == [{"n": 2}]
    assert told.of(ToolExecutionStart)[0].args == {"n": "1"}
    assert context.messages[1].tool_calls[0].arguments == {"n": "1"}  # type: ignore[union-attr]


async def test_the_gate_comes_last_and_sees_the_final_arguments():
    seen: list[dict[str, Any]] = []

    def gate(request: RequestedToolCall) -> Block | None:
        seen.append(request.arguments)
        return Block(reason="no") if request.arguments["n"] == 9 else None

    spy = Spy()
    change = [lambda request: ChangeArguments({"n": request.arguments["n"] + 1})]
    assert (await one_call(spy.tool(), {"n": 8}, before_tool_call=change, gate=gate)).text == "no"
    assert (await one_call(spy.tool(), {"n": 1}, before_tool_call=change, gate=gate)).text == "ran"
    assert seen == [{"n": 9}, {"n": 2}] and spy.ran == [{"n": 2}]


async def test_the_gate_may_only_block():
    spy = Spy()
    result = await one_call(spy.tool(), {"n": 1}, gate=lambda request: ChangeArguments({"n": 2}))
    assert result.is_error and not spy.ran


@pytest.mark.parametrize("place", ["before_tool_call", "gate"])
@pytest.mark.parametrize(
    ("error", "text"),
    [(ValueError("hook broke"), "hook broke"), (KeyError(), "KeyError")],
    ids=["text", "no text"],
)
async def test_a_hook_that_raises_fails_its_call_alone(place: str, error: Exception, text: str):
    def broken(request: RequestedToolCall) -> None:
        if request.call.arguments["n"] == 1:
            raise error

    spy = Spy()
    hooks: dict[str, Any] = {place: broken if place == "gate" else [broken]}
    context, _, _ = await run(
        [says("", call("spy", {"n": 1}), call("spy", {"n": 2})), "done"],
        [spy.tool()],
        **hooks,
    )
    first, second = results(context.messages)
    assert (first.text, first.is_error) == (text, True)
    assert (second.text, second.is_error) == ("ran", False)


async def test_a_hook_that_returns_nonsense_fails_the_call():
    spy = Spy()
    result = await one_call(spy.tool(), {"n": 1}, before_tool_call=[lambda request: True])
    assert result.is_error and "bool" in result.text and not spy.ran


# --- execution


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("went wrong"), "went wrong"),
        (KeyError(), "KeyError"),
        (ToolError("told so"), "told so"),
        (RecursionError("deep"), "deep"),
        (SystemExit(3), "tried to exit the program"),
    ],
    ids=["text", "no text", "tool error", "recursion", "exit"],
)
async def test_an_exception_in_a_tool_is_its_result(error: BaseException, text: str):
    result = await one_call(Spy(error=error).tool(), {"n": 1})
    assert result.is_error and text in result.text


async def test_details_of_a_tool_error_are_kept_for_people():
    result = await one_call(Spy(error=ToolError("no", details={"code": 7})).tool(), {"n": 1})
    assert result.details == {"code": 7}


async def test_a_tool_may_return_a_failure():
    spy = Spy(ToolResult(content=[TextContent("half")], is_error=True, details={"got": 1}))
    result = await one_call(spy.tool(), {"n": 1})
    assert (result.text, result.is_error, result.details) == ("half", True, {"got": 1})


@pytest.mark.parametrize("returned", ["text", None, {"content": []}])
async def test_a_tool_that_returns_something_else_fails_its_call(returned: Any):
    async def execute(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        return returned

    result = await one_call(make_tool("spy", execute), {})
    assert result.is_error and "not a ToolResult" in result.text


async def test_details_that_are_no_json_are_replaced_by_a_note():
    spy = Spy(ToolResult(content=[TextContent("ran")], details={"file": object()}))  # type: ignore[dict-item]
    result = await one_call(spy.tool(), {"n": 1})
    assert result.text == "ran" and not result.is_error
    assert "not JSON" in result.details["lost"]  # type: ignore[index,operator,call-overload]


@pytest.mark.fault("J03")
async def test_j03_an_image_that_is_not_base64_never_enters_the_transcript():
    good = ImageContent("iVBORw0KGgoAAAAN", "image/png")
    spy = Spy(ToolResult(content=[good, ImageContent("not base64!", "image/png")]))
    result = await one_call(spy.tool(), {"n": 1})
    assert result.content[0] is good
    assert isinstance(result.content[1], TextContent) and "left out" in result.content[1].text


async def test_events_tell_how_long_a_tool_ran_and_nothing_where_none_did():
    _, told, _ = await run([says("", call("spy", {"n": 1}), call("nope")), "done"], [Spy().tool()])
    nope, spy = told.of(ToolExecutionEnd)
    assert nope.duration_ms is None and nope.is_error
    assert isinstance(spy.duration_ms, int) and not spy.is_error and spy.duration_ms >= 0


async def test_a_tool_knows_its_call_and_the_signal():
    seen: list[Any] = []

    async def execute(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        seen.extend([context.tool_call_id, context.tool_name, context.signal.aborted])
        return ToolResult()

    await run([says("", call("spy", id="c1")), "done"], [make_tool("spy", execute)])
    assert seen == ["c1", "spy", False]


# --- after hooks


async def test_after_hooks_replace_a_result_field_by_field_and_in_order():
    usage = Usage(input=5, total_tokens=5)
    spy = Spy(ToolResult(content=[TextContent("secret")], details={"kept": True}, usage=usage))
    seen: list[ToolResult] = []

    def redact(finished: FinishedToolCall) -> ResultChange:
        seen.append(finished.result)
        assert finished.arguments == {"n": 1} and finished.duration_ms >= 0 and not finished.signal.aborted
        return ResultChange(content=[TextContent("***")])

    async def mark(finished: FinishedToolCall) -> ResultChange:
        seen.append(finished.result)
        return ResultChange(is_error=True, details=None)

    result = await one_call(spy.tool(), {"n": 1}, after_tool_call=[redact, mark])
    assert [r.content[0].text for r in seen] == ["secret", "***"]  # type: ignore[union-attr]
    assert (result.text, result.is_error, result.details, result.usage) == ("***", True, None, usage)


async def test_an_after_hook_may_replace_usage_and_terminate():
    def change(finished: FinishedToolCall) -> ResultChange:
        return ResultChange(usage=Usage(input=1, total_tokens=1), terminate=True)

    context, _, model = await run(
        [says("", call("spy", {"n": 1})), "never"], [Spy().tool()], after_tool_call=[change]
    )
    assert len(model.requests) == 1 and results(context.messages)[0].usage == Usage(input=1, total_tokens=1)


async def test_after_hooks_see_what_a_tool_raised_and_not_calls_that_did_not_run():
    seen: list[str] = []

    def watch(finished: FinishedToolCall) -> None:
        assert finished.result.is_error
        seen.append(finished.call.name)

    await run(
        [says("", call("spy", {"n": 1}), call("spy", {}), call("nope")), "done"],
        [Spy(error=ValueError("no")).tool()],
        after_tool_call=[watch],
    )
    assert seen == ["spy"]


@pytest.mark.parametrize(
    "broken", [lambda finished: 1 / 0, lambda finished: "nonsense"], ids=["raises", "nonsense"]
)
async def test_an_after_hook_that_fails_fails_the_call_and_hides_its_content(broken: AfterToolCall):
    usage = Usage(input=5, total_tokens=5)
    spy = Spy(ToolResult(content=[TextContent("secret")], usage=usage))
    result = await one_call(spy.tool(), {"n": 1}, after_tool_call=[broken])
    assert result.is_error and "The call ran, but a hook on its result failed" in result.text
    assert "secret" not in result.text and result.usage == usage
