"""A request that was too long, an answer that crossed the line, and a session that was left in the middle."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from cantle.hub.events import CompactionEnd, CompactionStart, EntryAppended, RunEnd
from cantle.hub.history_hooks import CallOff
from cantle.hub.recovery import overflow_of
from cantle_agent.errors import ContinueError
from cantle_ai.content import TextContent, ToolCall
from cantle_ai.history import INTERRUPTED
from cantle_ai.messages import AssistantMessage, ToolResultMessage, UserMessage
from cantle_ai.testing.scripted import scripted_model
from cantle_ai.usage import Usage
from cantle_session.session import Session
from packages.cantle.tests.hub.history import (
    HELLO,
    MORE,
    NONE,
    OVER,
    REFUSED,
    SUMMARY,
    TOO_LONG,
    Held,
    asked,
    call,
    compactions,
    ends,
    keeping,
    kinds,
    said,
)

CUT = {"content": "half", "stopReason": "length", "usage": {"input": 100, "output": 10}}


# --- overflow


@pytest.mark.parity("compaction.overflow")
async def test_too_long_a_request_is_sent_again_after_the_history_was_compacted(stage: Any) -> None:
    it = await stage([said("one"), TOO_LONG, SUMMARY, said("two")], settings=keeping())
    await it.session.prompt(HELLO)
    it.events.clear()
    await it.session.prompt(MORE)
    outline = [event.type for event in it.events if not event.type.startswith(("message", "turn"))]
    assert outline == [
        *["agent_start", "agent_end", "entry_appended", "compaction_start", "compaction_end"],
        *["agent_start", "agent_end", "agent_settled"],
    ]
    assert [event.will_retry for event in it.events if isinstance(event, RunEnd)] == [False, False]
    (end,) = ends(it)
    assert (end.reason, end.will_retry, end.aborted) == ("overflow", True, False)
    assert it.session.last_answer.text == "two"
    assert it.saved() == ["user", "assistant:stop", "user", "assistant:error", "assistant:stop"]
    edit = next(event.entry for event in it.events if isinstance(event, EntryAppended))
    failed = next(
        entry
        for entry in it.session.session.entries()
        if entry.type == "message" and getattr(entry.message, "failed", False)
    )
    assert (edit["type"], edit["targetId"], edit["replacement"]) == ("context_edit", failed.id, None)
    assert kinds(it)[-3:] == ["context_edit", "compaction", "message"]
    with Session.open(it.session.session.file) as again:
        assert again.context().messages == list(it.session.messages)


@pytest.mark.fault("G05")
@pytest.mark.parity("compaction.overflow")
async def test_g05_it_goes_on_once_and_then_says_what_to_do(stage: Any) -> None:
    it = await stage([said("one"), TOO_LONG, SUMMARY, TOO_LONG, said("never")], settings=keeping())
    await it.session.prompt(HELLO)
    await it.session.prompt(MORE)
    first, second = ends(it)
    assert first.will_retry
    assert (second.reason, second.result, second.will_retry) == ("overflow", None, False)
    assert "larger window" in str(second.error_message)
    assert it.session.last_answer.stop_reason == "error"
    assert it.scripted.left == 1
    assert it.kinds[-1] == "agent_settled"


async def test_every_answer_allows_another_recovery(stage: Any) -> None:
    script = [said("one"), TOO_LONG, SUMMARY, call(), TOO_LONG, SUMMARY, said("done")]
    it = await stage(script, settings=keeping(1))
    await it.session.prompt(HELLO)
    await it.session.prompt(MORE)
    assert [end.will_retry for end in ends(it)] == [True, True]
    assert it.session.last_answer.text == "done"


@pytest.mark.fault("G05")
async def test_g05_an_overflow_of_another_model_is_not_this_ones() -> None:
    model = scripted_model()
    error = {"stop_reason": "error", "error_message": "prompt is too long"}
    own = AssistantMessage([], model.api, model.provider, model.id, **error)  # type: ignore[arg-type]
    other = AssistantMessage([], model.api, model.provider, "other", **error)  # type: ignore[arg-type]
    assert (overflow_of(own, model, 100), overflow_of(other, model, 100)) == ("refused", None)


@pytest.mark.parity("compaction.overflow-alone")
async def test_what_cannot_be_compacted_stays_the_failure(stage: Any) -> None:
    it = await stage([TOO_LONG])
    await it.session.prompt("Hi")
    assert compactions(it) == []
    assert it.session.messages[-1].stop_reason == "error"
    assert kinds(it) == ["message", "message"]


@pytest.mark.parity("compaction.overflow")
async def test_it_is_not_recovered_where_compaction_is_off(stage: Any) -> None:
    it = await stage([said("one"), TOO_LONG, said("never")], settings=keeping(enabled=False))
    await it.session.prompt(HELLO)
    await it.session.prompt(MORE)
    assert (compactions(it), it.scripted.left) == ([], 1)


@pytest.mark.parametrize("way", ["summary fails", "called off"])
@pytest.mark.parity("compaction.overflow")
async def test_where_the_compaction_fails_nothing_is_sent_again(stage: Any, way: str) -> None:
    it = await stage([said("one"), TOO_LONG, REFUSED, REFUSED], settings=keeping())
    if way == "called off":
        it.session.before_compact.append(lambda request: CallOff())
    await it.session.prompt(HELLO)
    await it.session.prompt(MORE)
    (end,) = ends(it)
    assert (end.result, end.will_retry, end.aborted) == (None, False, way == "called off")
    assert kinds(it)[-1] == "context_edit"
    assert it.session.last_answer.stop_reason == "error"


async def test_what_is_queued_comes_after_the_second_attempt(stage: Any) -> None:
    held = Held(SUMMARY)
    it = await stage([said("one"), TOO_LONG, held, said("two"), said("three")], settings=keeping())
    await it.session.prompt(HELLO)
    run = asyncio.create_task(it.session.prompt(MORE))
    await held.asked.wait()
    it.session.follow_up("third")
    held.go.set()
    async with asyncio.timeout(10):
        await run
    assert [m.text for m in it.session.messages][-3:] == ["two", "third", "three"]


async def test_an_abort_while_it_is_compacted_sends_nothing_again(stage: Any) -> None:
    held = Held(SUMMARY)
    it = await stage([said("one"), TOO_LONG, held, said("never")], settings=keeping())
    await it.session.prompt(HELLO)
    run = asyncio.create_task(it.session.prompt(MORE))
    await held.asked.wait()
    async with asyncio.timeout(10):
        await it.session.abort()
        await run
    assert [end.aborted for end in ends(it)] == [True]
    assert it.scripted.left == 1


@pytest.mark.parity("compaction.cut-answers")
async def test_an_answer_that_was_cut_early_is_asked_for_again(stage: Any) -> None:
    it = await stage([said("one"), CUT, SUMMARY, said("whole")], settings=keeping())
    await it.session.prompt(HELLO)
    await it.session.prompt(MORE)
    assert [(end.reason, end.will_retry) for end in ends(it)] == [("overflow", True)]
    assert it.session.last_answer.text == "whole"
    assert "half" not in [m.text for m in it.session.messages]
    assert it.saved()[3] == "assistant:length"


@pytest.mark.parity("compaction.cut-answers")
async def test_an_answer_that_was_cut_at_its_own_limit_stays(stage: Any) -> None:
    at_the_limit = {**CUT, "usage": {"input": 100, "output": scripted_model().max_tokens}}
    it = await stage([said("one"), at_the_limit, said("never")], settings=keeping())
    await it.session.prompt(HELLO)
    await it.session.prompt(MORE)
    assert compactions(it) == []
    assert it.session.last_answer.text == "half"


@pytest.mark.parity("compaction.overflow-alone")
async def test_an_answer_that_was_cut_stays_where_nothing_can_be_compacted(stage: Any) -> None:
    it = await stage([CUT])
    await it.session.prompt("Hi")
    assert it.session.messages[-1].text == "half"
    assert kinds(it) == ["message", "message"]


async def test_an_answer_that_was_cut_is_not_repeated_where_nobody_says_what_it_had(stage: Any) -> None:
    it = await stage([said("one"), {**CUT, "usage": NONE}, said("never")], settings=keeping())
    await it.session.prompt(HELLO)
    await it.session.prompt(MORE)
    assert compactions(it) == []
    assert it.session.last_answer.text == "half"


@pytest.mark.parametrize("way", ["failure", "hook", "stop", "nothing"])
async def test_an_answer_that_was_cut_stays_in_view_where_the_compaction_fails(stage: Any, way: str) -> None:
    nothing = way == "nothing"
    cut = {**CUT, "content": "half " * 40}
    it = await stage(
        [cut if nothing else said("one"), REFUSED if nothing else cut, REFUSED], settings=keeping()
    )
    if way == "hook":
        it.session.before_compact.append(lambda request: CallOff("no"))
    if way == "stop":
        it.session.before_compact.append(lambda request: it.session.request_abort())
    await it.session.prompt(HELLO)
    if not nothing:
        await it.session.prompt(MORE)
    assert it.session.messages[-1].text == it.session.last_answer.text == "half " * 40
    assert [end.result for end in ends(it)] == ([] if nothing else [None])
    with Session.open(it.session.session.file) as again:
        assert again.context().messages == list(it.session.messages)


@pytest.mark.parity("compaction.crossed-line")
async def test_a_good_answer_that_crossed_the_line_is_not_repeated(stage: Any) -> None:
    it = await stage([said("one"), said("two", OVER), SUMMARY, said("three")], settings=keeping())
    await it.session.prompt(HELLO)
    await it.session.prompt(MORE)
    assert compactions(it)[0] == CompactionStart("overflow")
    assert isinstance(compactions(it)[1], CompactionEnd)
    assert (ends(it)[0].will_retry, ends(it)[0].aborted) == (False, False)
    assert it.scripted.left == 1
    assert it.session.last_answer.text == "two"
    await it.session.prompt("third")
    assert asked(it)[-2:] == ["two", "third"]


# --- a session that was left in the middle


def left(folder: Path, *messages: Any) -> Session:
    """A session whose program was killed after these messages."""
    folder.mkdir(exist_ok=True)
    with Session.create(folder, folder / "sessions") as session:
        for message in messages:
            session.append_message(message)
    assert session.file is not None
    return Session.open(session.file)


def answer(*content: Any, **fields: Any) -> AssistantMessage:
    model = scripted_model()
    return AssistantMessage(list(content), model.api, model.provider, model.id, **fields)


CALLS = (ToolCall("a", "bash", {"command": "true"}), ToolCall("b", "bash", {"command": "true"}))


@pytest.mark.fault("C07")
async def test_calls_that_a_kill_orphaned_get_results_that_say_so(stage: Any, tmp_path: Path) -> None:
    done = ToolResultMessage("a", "bash", [TextContent("done")])
    session = left(tmp_path / "work", UserMessage("go"), answer(*CALLS, stop_reason="toolUse"), done)
    it = await stage([said("I see.")], session=session)
    await it.session.continue_()
    results = [m for m in it.scripted.requests[0].messages if isinstance(m, ToolResultMessage)]
    assert [(m.tool_call_id, m.text, m.is_error) for m in results] == [
        ("a", "done", False),
        ("b", INTERRUPTED, True),
    ]
    assert it.saved() == ["user", "assistant:toolUse", "toolResult", "toolResult", "assistant:stop"]
    assert it.session.last_answer.text == "I see."


async def test_a_prompt_that_a_kill_left_unanswered_is_answered(stage: Any, tmp_path: Path) -> None:
    it = await stage([said("There.")], session=left(tmp_path / "work", UserMessage("go")))
    await it.session.continue_()
    assert [m.text for m in it.session.messages] == ["go", "There."]


@pytest.mark.parametrize("how", ["aborted", "error"])
async def test_a_partial_answer_stays_a_fact_and_leaves_the_view(
    stage: Any, tmp_path: Path, how: Any
) -> None:
    partial = answer(TextContent("Half of"), stop_reason=how, error_message="connection reset")
    it = await stage([said("Whole.")], session=left(tmp_path / "work", UserMessage("go"), partial))
    await it.session.continue_()
    assert [m.text for m in it.session.messages] == ["go", "Whole."]
    assert it.saved() == ["user", f"assistant:{how}", "assistant:stop"]
    edits = [entry for entry in it.entries() if entry["type"] == "context_edit"]
    failed = next(e["id"] for e in it.entries() if e.get("message", {}).get("stopReason") == how)
    assert [edit["targetId"] for edit in edits] == [failed]
    with Session.open(it.session.session.file) as again:
        assert [m.text for m in again.context().messages] == ["go", "Whole."]


async def test_after_an_abort_one_can_continue(stage: Any) -> None:
    held = Held(said("never"))
    it = await stage([held, said("There.")])
    run = asyncio.create_task(it.session.prompt("go"))
    await held.asked.wait()
    await it.session.abort()
    await run
    await it.session.continue_()
    assert [m.text for m in it.session.messages] == ["go", "There."]


async def test_a_whole_answer_leaves_nothing_to_continue(stage: Any, tmp_path: Path) -> None:
    session = left(tmp_path / "work", UserMessage("go"), answer(TextContent("There."), usage=Usage()))
    it = await stage([], session=session)
    with pytest.raises(ContinueError):
        await it.session.continue_()
    assert kinds(it)[-1] != "context_edit"


async def test_what_was_too_long_when_the_program_was_killed_is_compacted(stage: Any, tmp_path: Path) -> None:
    refused = answer(stop_reason="error", error_message="prompt is too long")
    old = [UserMessage(HELLO), answer(TextContent("one")), UserMessage(MORE)]
    session = left(tmp_path / "work", *old, refused)
    it = await stage([TOO_LONG, SUMMARY, said("two")], session=session, settings=keeping())
    await it.session.continue_()
    assert [(end.reason, end.will_retry) for end in ends(it)] == [("overflow", True)]
    assert it.session.last_answer.text == "two"
