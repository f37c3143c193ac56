"""When the hub compacts a history, what it tells, what waits meanwhile, and what stops it."""

import asyncio
import json
from typing import Any

import pytest

from cantle.errors import CompactionError, SessionError
from cantle.hub.events import (
    AgentSettled,
    CompactionEnd,
    CompactionResult,
    CompactionStart,
    SessionEvent,
    SummarizationRetryAttemptStart,
    SummarizationRetryFinished,
    SummarizationRetryScheduled,
)
from cantle.hub.history_hooks import CallOff, CompactionRequest, OwnSummary
from cantle.hub.retry import pause
from cantle.settings import Settings
from cantle_agent.errors import AgentBusyError, ListenerError
from cantle_ai.abort import AbortSignal
from cantle_ai.usage import Usage
from cantle_session.entries import CompactionEntry
from cantle_session.session import Session
from packages.cantle.tests.hub.history import (
    BUSY,
    FULL,
    HELLO,
    MORE,
    NONE,
    REFUSED,
    SUMMARY,
    Held,
    asked,
    call,
    compactions,
    ends,
    keeping,
    kinds,
    model_with,
    said,
)


async def talked(stage: Any, *responses: Any, settings: Settings | None = None, **options: Any) -> Any:
    """A session with two exchanges, and what the model says from then on."""
    it = await stage([said("one"), said("two"), *responses], settings=settings or keeping(), **options)
    await it.session.prompt(HELLO)
    await it.session.prompt(MORE)
    it.events.clear()
    return it


def compaction_of(it: Any) -> CompactionEntry:
    (entry,) = [entry for entry in it.session.session.entries() if isinstance(entry, CompactionEntry)]
    return entry


# --- when asked


@pytest.mark.parity("compaction.when-asked")
async def test_when_asked_the_beginning_becomes_a_summary_and_the_end_stays(stage: Any) -> None:
    it = await talked(stage, SUMMARY, said("three"))
    result = await it.session.compact()
    assert result.summary.startswith("## Goal\nTo greet.")
    assert result.tokens_before == 110
    assert result.estimated_tokens_after > 0
    assert result.usage is not None and result.usage.output == 5
    assert compactions(it) == [CompactionStart("manual"), CompactionEnd("manual", result)]
    entry = compaction_of(it)
    assert (entry.summary, entry.first_kept_entry_id) == (result.summary, result.first_kept_entry_id)
    assert entry.from_hook is False
    await it.session.prompt("third")
    first, *rest = asked(it)
    assert first.startswith("To save room")
    assert rest == [MORE[:40], "two", "third"]
    assert [m.role for m in it.session.messages] == [
        "compactionSummary",
        "user",
        "assistant",
        "user",
        "assistant",
    ]


async def test_the_session_keeps_every_line_and_goes_on_from_the_summary(stage: Any) -> None:
    it = await talked(stage, SUMMARY)
    before = it.session.session.file.read_bytes()
    await it.session.compact()
    assert it.session.session.file.read_bytes().startswith(before)
    with Session.open(it.session.session.file) as again:
        assert again.context().messages == list(it.session.messages)


@pytest.mark.fault("G09")
async def test_g09_instructions_reach_every_request_for_a_summary(stage: Any) -> None:
    it = await stage([call("echo a"), said("done"), SUMMARY, SUMMARY], settings=keeping(1))
    await it.session.prompt(HELLO)
    it.events.clear()
    await it.session.compact("Keep the names of the birds.")
    texts = [request.messages[0].text for request in it.scripted.requests[2:]]
    assert texts
    assert all("Keep the names of the birds." in text for text in texts)


@pytest.mark.fault("G09")
@pytest.mark.parity("compaction.when-asked")
async def test_g09_what_is_short_already_is_not_compacted(stage: Any) -> None:
    it = await stage([said("one")])
    await it.session.prompt("Hi")
    it.events.clear()
    with pytest.raises(CompactionError, match="There is nothing to compact yet"):
        await it.session.compact()
    start, end = compactions(it)
    assert (start, end.result, end.aborted) == (CompactionStart("manual"), None, False)  # type: ignore[union-attr]
    assert "nothing to compact" in ends(it)[0].error_message.casefold()  # type: ignore[union-attr]
    assert "compaction" not in kinds(it)
    assert len(it.scripted.requests) == 1


@pytest.mark.parity("compaction.usage")
async def test_what_a_summary_took_counts(stage: Any) -> None:
    it = await talked(stage, SUMMARY)
    before = it.session.usage
    await it.session.compact()
    assert it.session.usage.output == before.output + 5
    with Session.open(it.session.session.file) as again:
        assert again.usage().output == it.session.usage.output


@pytest.mark.parity("compaction.usage")
async def test_a_summary_asks_with_the_agents_key_and_without_cache(stage: Any) -> None:
    seen: list[Any] = []
    it = await talked(stage, SUMMARY)
    stream = it.session.agent.stream

    def spy(model: Any, context: Any, options: Any) -> Any:
        seen.append(options)
        return stream(model, context, options)

    it.session.agent.stream = spy
    it.session.agent.get_api_key = lambda provider: "sk-own"
    await it.session.compact()
    assert [(options.api_key, options.cache_retention) for options in seen] == [("sk-own", "none")]


@pytest.mark.fault("G02")
async def test_g02_a_summary_that_was_cut_is_a_failure_and_its_cost_counts(stage: Any) -> None:
    it = await talked(
        stage, {"content": "## Goal", "stopReason": "length", "usage": {"input": 9, "output": 7}}
    )
    before = it.session.usage.output
    with pytest.raises(CompactionError, match="cut at the model's output limit"):
        await it.session.compact()
    assert "compaction" not in kinds(it)
    assert kinds(it)[-1] == "usage"
    assert it.session.usage.output == before + 7
    assert [m.role for m in it.session.messages] == ["user", "assistant"] * 2


async def test_what_a_summary_took_that_came_too_late_counts(stage: Any) -> None:
    it = await talked(stage, BUSY, SUMMARY)
    before = it.session.usage.output

    def stop(event: SessionEvent) -> None:
        if isinstance(event, SummarizationRetryFinished):
            it.session.request_abort()

    it.session.subscribe(stop)
    with pytest.raises(CompactionError, match="was stopped"):
        await it.session.compact()
    assert kinds(it)[-1] == "usage"
    assert it.session.usage.output == before + 5
    with Session.open(it.session.session.file) as again:
        assert again.usage() == it.session.usage


async def test_what_a_summary_took_counts_where_the_session_went_to_another_branch(stage: Any) -> None:
    held = Held(SUMMARY)
    it = await talked(stage, held)
    before = it.session.usage.output
    work = asyncio.create_task(it.session.compact())
    await held.asked.wait()
    it.session.session.branch(it.session.session.entries()[2].id)
    held.go.set()
    with pytest.raises(CompactionError, match="went to another branch"):
        await work
    assert "compaction" not in kinds(it)
    assert it.session.usage.output == before + 5


async def test_what_was_used_before_whoever_waits_was_cancelled_counts(stage: Any) -> None:
    held = Held(SUMMARY)
    it = await stage([said("one"), call(), said("two"), SUMMARY, held], settings=keeping(1))
    await it.session.prompt(HELLO)
    await it.session.prompt(MORE)
    before = it.session.usage.output
    work = asyncio.create_task(it.session.compact())
    await held.asked.wait()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert it.session.usage.output == before + 5


async def test_a_summary_that_failed_when_it_was_stopped_was_stopped(stage: Any) -> None:
    held = Held(REFUSED)
    it = await talked(stage, held)
    work = asyncio.create_task(it.session.compact())
    await held.asked.wait()
    held.go.set()
    it.session.request_abort()
    with pytest.raises(CompactionError, match="was stopped"):
        await work
    assert [(end.aborted, end.error_message) for end in ends(it)] == [(True, None)]


@pytest.mark.parity("compaction.when-asked")
async def test_a_run_that_is_on_is_aborted_first(stage: Any) -> None:
    held = Held(said("never"))
    it = await talked(stage, held, SUMMARY)
    run = asyncio.create_task(it.session.prompt("third"))
    await held.asked.wait()
    async with asyncio.timeout(10):
        await it.session.compact()
        await run
    order = [event.type for event in it.events]
    assert order.index("agent_settled") < order.index("compaction_start")
    assert not it.session.running


async def test_a_listener_cannot_compact_what_waits_for_it(stage: Any) -> None:
    it = await talked(stage, said("three"))
    caught: list[BaseException] = []

    async def listener(event: SessionEvent) -> None:
        if isinstance(event, AgentSettled):
            for wish in (it.session.compact(), it.session.navigate("00000000")):
                try:
                    await wish
                except AgentBusyError as error:
                    caught.append(error)

    it.session.subscribe(listener)
    await it.session.prompt("go")
    assert len(caught) == 2


async def test_nor_can_what_waits_inside_the_run(stage: Any) -> None:
    caught: list[BaseException] = []

    async def pausing(seconds: float, signal: AbortSignal) -> None:
        try:
            await it.session.compact()
        except AgentBusyError as error:
            caught.append(error)

    it = await talked(stage, BUSY, said("three"), pause=pausing)
    async with asyncio.timeout(10):
        await it.session.prompt("go")
    assert len(caught) == 1
    assert it.session.last_answer.text == "three"


# --- by itself


@pytest.mark.fault("G04")
@pytest.mark.parity("compaction.by-itself")
async def test_g04_between_turns_after_the_results(stage: Any) -> None:
    it = await stage([said("one"), call(usage=FULL), SUMMARY, said("done")], settings=keeping())
    await it.session.prompt(HELLO)
    it.events.clear()
    await it.session.prompt("run")
    turns = [event.type for event in it.events if event.type in _OUTLINE]
    assert turns == [
        *["agent_start", "turn_start", "turn_end", "compaction_start", "compaction_end"],
        *["turn_start", "turn_end", "agent_end", "agent_settled"],
    ]
    assert ends(it)[0].result is not None
    assert [m.role for m in it.scripted.requests[-1].messages][-2:] == ["assistant", "toolResult"]
    assert asked(it)[0].startswith("To save room")


_OUTLINE = {
    *(
        "agent_start",
        "turn_start",
        "turn_end",
        "compaction_start",
        "compaction_end",
        "agent_end",
        "agent_settled",
    )
}


@pytest.mark.fault("G04")
async def test_g04_one_large_result_is_seen_before_the_next_request(stage: Any) -> None:
    print_much = "yes 'a line of some length, again and again' | head -n 1000"
    it = await stage([said("one"), call(print_much), SUMMARY, SUMMARY, said("done")], row=model_with(12_000))
    await it.session.prompt(HELLO * 10)
    await it.session.prompt("count")
    assert [end.reason for end in ends(it) if end.result] == ["threshold"]
    assert it.session.last_answer.text == "done"


@pytest.mark.parity("compaction.by-itself")
async def test_after_a_run_before_it_settles(stage: Any) -> None:
    it = await stage([said("one"), said("two", FULL), SUMMARY, said("three")], settings=keeping())
    await it.session.prompt(HELLO)
    await it.session.prompt(MORE)
    assert [event.type for event in it.events][-4:] == [
        *["agent_end", "compaction_start", "compaction_end", "agent_settled"]
    ]
    await it.session.prompt("third")
    assert len(ends(it)) == 1


@pytest.mark.parity("compaction.by-itself")
async def test_before_a_prompt_where_it_failed_after_the_run(stage: Any) -> None:
    it = await stage([said("one"), said("two", FULL), REFUSED, SUMMARY, said("three")], settings=keeping())
    await it.session.prompt(HELLO)
    await it.session.prompt(MORE)
    assert it.session.last_answer.text == "two"
    it.events.clear()
    await it.session.prompt("third")
    assert [event.type for event in it.events][:3] == ["compaction_start", "compaction_end", "agent_start"]
    assert asked(it)[0].startswith("To save room")


async def test_before_a_prompt_that_is_long_itself(stage: Any) -> None:
    answers = [said("one", NONE), said("two", NONE), SUMMARY, said("three")]
    it = await stage(answers, row=model_with(20_000), settings=keeping())
    await it.session.prompt(HELLO * 20)
    await it.session.prompt(MORE * 20)
    it.events.clear()
    await it.session.prompt("word " * 6000)
    assert [event.type for event in it.events][:2] == ["compaction_start", "compaction_end"]
    assert ends(it)[0].result is not None


@pytest.mark.fault("G06")
async def test_g06_without_usage_the_size_is_estimated(stage: Any) -> None:
    answers = [said("word " * 4000, NONE) for _ in range(3)]
    it = await stage([*answers, SUMMARY, said("end", NONE)], row=model_with(20_000))
    for _ in range(3):
        await it.session.prompt("go on")
    assert [end.reason for end in ends(it) if end.result] == ["threshold"]


@pytest.mark.parity("compaction.by-itself")
async def test_a_failure_does_not_stop_the_run(stage: Any) -> None:
    it = await stage([said("one"), call(usage=FULL), REFUSED, said("done")], settings=keeping())
    await it.session.prompt(HELLO)
    await it.session.prompt("run")
    (end,) = ends(it)
    assert (end.result, end.aborted) == (None, False)
    assert end.error_message == (
        "The summary failed: no. The session is as it was; try again later, or with another model."
    )
    assert it.session.last_answer.text == "done"


@pytest.mark.parity("compaction.by-itself")
async def test_where_nothing_can_be_summed_up_nothing_is_said(stage: Any) -> None:
    it = await stage([said("one", FULL), said("two", FULL)])
    await it.session.prompt("Hi")
    await it.session.prompt("Ho")
    assert compactions(it) == []


@pytest.mark.parity("config.compaction")
async def test_it_can_be_turned_off(stage: Any) -> None:
    it = await stage([said("one"), said("two", FULL), SUMMARY], settings=keeping(enabled=False))
    assert it.session.auto_compaction is False
    await it.session.prompt(HELLO)
    await it.session.prompt(MORE)
    assert compactions(it) == []
    await it.session.compact()
    it = await stage([said("one"), said("two", FULL)], settings=keeping())
    it.session.auto_compaction = False
    await it.session.prompt(HELLO)
    await it.session.prompt(MORE)
    assert compactions(it) == []


@pytest.mark.parity("config.compaction")
async def test_a_model_may_have_settings_of_its_own(stage: Any) -> None:
    own = {"scripted/scripted": {"reserveTokens": 100}, "other/m": {"reserveTokens": 90_000}}
    it = await stage([said("one"), said("two", FULL)], settings=keeping(modelOverrides=own))
    await it.session.prompt(HELLO)
    await it.session.prompt(MORE)
    assert compactions(it) == []
    own = {"scripted/scripted": {"keepRecentTokens": 100_000}}
    it = await stage([said("one"), said("two", FULL)], settings=keeping(modelOverrides=own))
    await it.session.prompt(HELLO)
    await it.session.prompt(MORE)
    assert compactions(it) == []


async def test_what_failed_is_not_tried_again_at_every_turn(stage: Any) -> None:
    turns = [call(usage=FULL, number=number) for number in range(3)]
    it = await stage([said("one"), turns[0], REFUSED, turns[1], turns[2], said("done")], settings=keeping())
    await it.session.prompt(HELLO)
    await it.session.prompt("run")
    assert len(ends(it)) == 1
    assert it.session.last_answer.text == "done"


async def test_an_applications_hook_between_turns_is_still_asked(stage: Any) -> None:
    turns: list[Any] = []
    it = await stage([said("one"), call(usage=FULL), SUMMARY, said("done")], settings=keeping())
    it.session.agent.prepare_next_turn = turns.append
    await it.session.prompt(HELLO)
    await it.session.prompt("run")
    assert len(turns) == 1
    assert ends(it)[0].result is not None
    assert it.session.agent.prepare_next_turn == turns.append


# --- what waits meanwhile


@pytest.mark.fault("G07")
@pytest.mark.fault("E09")
@pytest.mark.parity("compaction.queue")
async def test_g07_what_is_typed_meanwhile_is_answered_afterwards(stage: Any) -> None:
    held = Held(SUMMARY)
    it = await talked(stage, held, said("to the first"), said("to the second"), said("to the third"))
    work = asyncio.create_task(it.session.compact())
    await held.asked.wait()
    assert it.session.compacting
    assert it.session.running
    it.session.steer("first")
    it.session.follow_up("second")
    third = asyncio.create_task(it.session.prompt("third"))
    await asyncio.sleep(0)
    held.go.set()
    async with asyncio.timeout(10):
        await asyncio.gather(work, third)
    assert [m.text for m in it.session.messages][-6:] == [
        *["first", "to the first", "second", "to the second", "third", "to the third"]
    ]
    assert not it.session.compacting
    assert it.kinds[-1] == "agent_settled"


@pytest.mark.fault("E09")
async def test_e09_what_is_queued_while_a_run_is_compacted_is_not_stuck(stage: Any) -> None:
    held = Held(SUMMARY)
    it = await stage([said("one"), said("two", FULL), held, said("three")], settings=keeping())
    await it.session.prompt(HELLO)
    run = asyncio.create_task(it.session.prompt(MORE))
    await held.asked.wait()
    it.session.follow_up("third")
    held.go.set()
    async with asyncio.timeout(10):
        await run
    assert it.session.last_answer.text == "three"


async def test_what_was_queued_is_answered_also_when_the_compaction_failed(stage: Any) -> None:
    held = Held(REFUSED)
    it = await talked(stage, held, said("three"))
    work = asyncio.create_task(it.session.compact())
    await held.asked.wait()
    it.session.follow_up("third")
    held.go.set()
    async with asyncio.timeout(10):
        with pytest.raises(CompactionError):
            await work
    assert it.session.last_answer.text == "three"


async def test_steering_enters_after_a_compaction_between_turns(stage: Any) -> None:
    held = Held(SUMMARY)
    it = await stage([said("one"), call(usage=FULL), held, said("done")], settings=keeping())
    await it.session.prompt(HELLO)
    run = asyncio.create_task(it.session.prompt("run"))
    await held.asked.wait()
    it.session.steer("rather that")
    held.go.set()
    async with asyncio.timeout(10):
        await run
    assert asked(it)[-1] == "rather that"


# --- what stops it


@pytest.mark.fault("G08")
@pytest.mark.parity("compaction.abort")
async def test_g08_an_abort_returns_when_it_has_ended(stage: Any) -> None:
    held = Held(SUMMARY)
    it = await talked(stage, held)
    work = asyncio.create_task(it.session.compact())
    await held.asked.wait()
    it.session.follow_up("later")
    async with asyncio.timeout(10):
        await it.session.abort()
    assert not it.session.compacting
    assert not it.session.running
    with pytest.raises(CompactionError, match="stopped") as caught:
        await work
    assert caught.value.aborted
    assert compactions(it) == [CompactionStart("manual"), CompactionEnd("manual", aborted=True)]
    assert "compaction" not in kinds(it)
    assert it.session.clear_queue().follow_up == ["later"]


@pytest.mark.fault("G08")
async def test_g08_one_that_is_asked_for_ends_one_that_came_by_itself(stage: Any) -> None:
    held = Held(SUMMARY)
    it = await stage([said("one"), call(usage=FULL), held, SUMMARY, SUMMARY], settings=keeping(1))
    await it.session.prompt(HELLO)
    it.events.clear()
    run = asyncio.create_task(it.session.prompt("run"))
    await held.asked.wait()
    async with asyncio.timeout(10):
        await it.session.compact()
        await run
    assert [(end.reason, end.aborted) for end in ends(it)] == [("threshold", True), ("manual", False)]
    assert kinds(it).count("compaction") == 1


@pytest.mark.parity("compaction.second")
async def test_of_two_that_are_asked_for_the_second_is_refused(stage: Any) -> None:
    held = Held(SUMMARY)
    it = await talked(stage, held)
    first = asyncio.create_task(it.session.compact())
    await held.asked.wait()
    entry = it.session.session.entries()[0].id
    async with asyncio.timeout(10):
        for second in (it.session.compact("again"), it.session.navigate(entry)):
            with pytest.raises(AgentBusyError, match=r"already\. Wait for that, or stop it with abort\(\)"):
                await second
        held.go.set()
        assert (await first).summary
    assert [end.aborted for end in ends(it)] == [False]
    assert kinds(it).count("compaction") == 1
    assert len(it.scripted.requests) == 3


async def test_of_two_that_come_while_a_run_is_on_one_is_made(stage: Any) -> None:
    held = Held(said("three"))
    it = await talked(stage, held, SUMMARY)
    run = asyncio.create_task(it.session.prompt("run"))
    await held.asked.wait()
    async with asyncio.timeout(10):
        both = await asyncio.gather(it.session.compact(), it.session.compact(), return_exceptions=True)
        await run
    assert [type(each) for each in both] == [CompactionResult, AgentBusyError]
    assert kinds(it).count("compaction") == 1


@pytest.mark.parity("compaction.abort")
async def test_an_abort_between_turns_ends_the_run(stage: Any) -> None:
    held = Held(SUMMARY)
    it = await stage([said("one"), call(usage=FULL), held, said("never")], settings=keeping())
    await it.session.prompt(HELLO)
    run = asyncio.create_task(it.session.prompt("run"))
    await held.asked.wait()
    async with asyncio.timeout(10):
        await it.session.abort()
        await run
    assert [end.aborted for end in ends(it)] == [True]
    assert it.session.last_answer.stop_reason == "aborted"
    assert it.events[-1] == AgentSettled(True)
    assert len(it.scripted.requests) == 3


async def test_the_compaction_alone_can_be_stopped(stage: Any) -> None:
    held = Held(SUMMARY)
    it = await stage([said("one"), call(usage=FULL), held, said("done")], settings=keeping())
    await it.session.prompt(HELLO)
    run = asyncio.create_task(it.session.prompt("run"))
    await held.asked.wait()
    it.session.abort_compaction()
    async with asyncio.timeout(10):
        await run
    assert [end.aborted for end in ends(it)] == [True]
    assert it.session.last_answer.text == "done"
    it.session.abort_compaction()


async def test_a_prompt_that_was_stopped_before_it_began_stays_queued(stage: Any) -> None:
    held = Held(SUMMARY)
    it = await stage([said("one"), said("two", FULL), REFUSED, held, said("never")], settings=keeping())
    await it.session.prompt(HELLO)
    await it.session.prompt(MORE)
    run = asyncio.create_task(it.session.prompt("third"))
    await held.asked.wait()
    async with asyncio.timeout(10):
        await it.session.abort()
        await run
    assert it.session.clear_queue().follow_up == ["third"]
    assert it.events[-1] == AgentSettled(True)
    assert len(it.scripted.requests) == 4


async def test_cancelling_whoever_waits_stops_it(stage: Any) -> None:
    for response in (said("two"), call(usage=FULL)):
        held = Held(SUMMARY)
        it = await stage([said("one"), response, held, SUMMARY], settings=keeping())
        await it.session.prompt(HELLO)
        by_itself = response["usage"] == FULL
        if not by_itself:
            await it.session.prompt(MORE)
        work = asyncio.create_task(it.session.prompt("run") if by_itself else it.session.compact())
        await held.asked.wait()
        work.cancel()
        async with asyncio.timeout(10):
            with pytest.raises(asyncio.CancelledError):
                await work
            await it.session.wait_idle()
        assert [end.aborted for end in ends(it)] == [True]
        assert not it.session.compacting


async def test_closing_stops_it(stage: Any) -> None:
    held = Held(SUMMARY)
    it = await talked(stage, held)
    work = asyncio.create_task(it.session.compact())
    await held.asked.wait()
    async with asyncio.timeout(10):
        await it.session.close()
        with pytest.raises(CompactionError):
            await work


# --- the request for the summary fails


@pytest.mark.parity("events.summarization-retry")
async def test_a_failure_that_may_pass_is_tried_again(stage: Any) -> None:
    it = await talked(stage, BUSY, BUSY, SUMMARY)
    await it.session.compact()
    text = "Overloaded, try again later"
    assert it.events[1:-1] == [
        SummarizationRetryScheduled(1, 3, 2000, text),
        SummarizationRetryAttemptStart("compaction", "manual"),
        SummarizationRetryScheduled(2, 3, 4000, text),
        SummarizationRetryAttemptStart("compaction", "manual"),
        SummarizationRetryFinished(),
    ]
    assert it.waits == [2, 4]


async def test_its_retries_count_only_themselves(stage: Any) -> None:
    script = [said("one"), BUSY, call(usage=FULL), BUSY, BUSY, BUSY, SUMMARY, BUSY, said("done")]
    it = await stage(script, settings=keeping())
    await it.session.prompt(HELLO)
    await it.session.prompt("run")
    assert it.waits == [2, 2, 4, 8, 2]
    assert it.session.last_answer.text == "done"


async def test_spent_retries_are_a_failure(stage: Any) -> None:
    it = await talked(stage, *[BUSY] * 4)
    with pytest.raises(CompactionError, match="Overloaded"):
        await it.session.compact()
    assert [event.type for event in it.events][-2:] == ["summarization_retry_finished", "compaction_end"]


async def test_an_abort_ends_the_wait(stage: Any) -> None:
    waiting = asyncio.Event()

    async def real_pause(seconds: float, signal: AbortSignal) -> None:
        waiting.set()
        await pause(1000, signal)

    it = await talked(stage, BUSY, pause=real_pause)
    work = asyncio.create_task(it.session.compact())
    await waiting.wait()
    async with asyncio.timeout(10):
        await it.session.abort()
    with pytest.raises(CompactionError):
        await work
    assert [event.type for event in it.events][-2:] == ["summarization_retry_finished", "compaction_end"]
    assert ends(it)[0].aborted


# --- hooks


@pytest.mark.parity("compaction.hooks")
async def test_a_hook_may_call_it_off(stage: Any) -> None:
    it = await talked(stage)
    it.session.before_compact.append(lambda request: CallOff("not now"))
    with pytest.raises(CompactionError, match=r"called off: not now\.") as caught:
        await it.session.compact()
    assert caught.value.aborted
    assert ends(it) == [CompactionEnd("manual", aborted=True)]
    assert len(it.scripted.requests) == 2


@pytest.mark.parity("compaction.hooks")
async def test_a_hook_may_bring_its_own_summary(stage: Any) -> None:
    it = await talked(stage, said("three"))
    seen: list[CompactionRequest] = []

    async def own(request: CompactionRequest) -> OwnSummary:
        seen.append(request)
        return OwnSummary(summary="We greeted.", details={"by": "hand"}, usage=Usage(output=3))

    it.session.before_compact.append(lambda request: None)
    it.session.before_compact.append(own)
    before = it.session.usage.output
    result = await it.session.compact("mind the birds")
    assert (result.summary, result.details) == ("We greeted.", {"by": "hand"})
    assert it.session.usage.output == before + 3
    entry = compaction_of(it)
    assert entry.from_hook is True
    assert entry.first_kept_entry_id == seen[0].plan.first_kept_entry_id
    assert (seen[0].reason, seen[0].instructions) == ("manual", "mind the birds")
    assert (seen[0].will_retry, seen[0].settings.keep_recent_tokens) == (False, 10)
    assert len(it.scripted.requests) == 2


async def test_a_hook_may_choose_what_is_kept(stage: Any) -> None:
    it = await talked(stage)
    it.session.before_compact.append(lambda request: OwnSummary(summary="All.", first_kept_entry_id=None))
    await it.session.compact()
    assert [m.role for m in it.session.messages] == ["compactionSummary"]
    entry = compaction_of(it)
    assert entry.first_kept_entry_id == entry.id
    it = await talked(stage)
    it.session.before_compact.append(
        lambda request: OwnSummary(summary="No.", first_kept_entry_id="feedbeef")
    )
    with pytest.raises(CompactionError, match="no entry 'feedbeef'"):
        await it.session.compact()
    assert "compaction" not in kinds(it)


async def test_a_hook_that_fails_is_the_compactions_failure(stage: Any) -> None:
    it = await talked(stage)

    def broken(request: CompactionRequest) -> None:
        raise ZeroDivisionError("hm")

    it.session.before_compact.append(broken)
    with pytest.raises(CompactionError, match=r"The hook before_compact failed: hm\."):
        await it.session.compact()
    assert ends(it)[0].error_message == "The hook before_compact failed: hm."


async def test_a_hook_that_decides_nothing_known_is_told_so(stage: Any) -> None:
    it = await talked(stage)
    it.session.before_compact.append(lambda request: {"cancel": True})
    with pytest.raises(CompactionError, match=r"before_compact gave 'dict'"):
        await it.session.compact()


@pytest.mark.parametrize(
    "own",
    [
        {"summary": None},
        {"summary": 5},
        {"summary": ""},
        {"summary": " \n\t"},
        {"summary": "It was.", "usage": {"input": 5}},
    ],
)
async def test_a_hooks_summary_that_is_none_never_reaches_the_session(
    stage: Any, own: dict[str, Any]
) -> None:
    it = await talked(stage)
    it.session.before_compact.append(lambda request: OwnSummary(**own))
    it.session.before_navigate.append(lambda request: OwnSummary(**own))
    before = kinds(it)
    with pytest.raises(CompactionError, match=r"before_compact gave a (summary|usage) that is (no|empty)"):
        await it.session.compact()
    assert [end.aborted for end in ends(it)] == [False]
    with pytest.raises(CompactionError, match=r"before_navigate gave a (summary|usage) that is (no|empty)"):
        await it.session.navigate(it.session.session.entries()[2].id, summarize=True)
    assert kinds(it) == before


async def test_a_key_that_cannot_be_had_is_the_compactions_failure(stage: Any) -> None:
    it = await talked(stage)

    async def locked(provider: str) -> str:
        raise PermissionError(f"the key of {provider} is locked")

    it.session.agent.get_api_key = locked
    with pytest.raises(CompactionError, match=r"get_api_key failed: the key of scripted is locked\."):
        await it.session.compact()


# --- the harness fails


async def test_a_session_that_cannot_be_written_ends_the_run_with_its_error(
    stage: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cantle_session.errors import SessionFileError

    it = await stage([said("one"), call(usage=FULL), SUMMARY, said("never")], settings=keeping())
    await it.session.prompt(HELLO)

    def full(*values: Any, **more: Any) -> None:
        raise SessionFileError(it.session.session.file, "no space is left on the disk")

    monkeypatch.setattr(it.session.session, "append_compaction", full)
    with pytest.raises(SessionError, match="no space is left"):
        await it.session.prompt("run")
    assert "no space is left" in str(ends(it)[0].error_message)
    assert not it.session.running


async def test_a_listener_that_fails_ends_the_run_with_its_error(stage: Any) -> None:
    it = await stage([said("one"), call(usage=FULL), SUMMARY, said("never")], settings=keeping())
    await it.session.prompt(HELLO)

    def broken(event: SessionEvent) -> None:
        if isinstance(event, CompactionEnd):
            raise ZeroDivisionError("hm")

    it.session.subscribe(broken)
    with pytest.raises(ListenerError, match="compaction_end"):
        await it.session.prompt("run")
    assert kinds(it).count("compaction") == 1
    assert not it.session.running


# --- what is told


async def test_the_contexts_size(stage: Any) -> None:
    it = await talked(stage, SUMMARY, said("three", {"input": 300, "output": 20}))
    usage = it.session.context_usage
    assert (usage.tokens, usage.window, usage.reported) == (110, 128_000, True)
    assert usage.percent == pytest.approx(100 * 110 / 128_000)
    result = await it.session.compact()
    assert not it.session.context_usage.reported
    assert it.session.context_usage.tokens == result.estimated_tokens_after
    await it.session.prompt("third")
    assert it.session.context_usage.tokens == 320


@pytest.mark.parity("events.compaction")
async def test_the_events_as_json(stage: Any) -> None:
    from cantle.modes.json_events import EventEncoder

    it = await talked(stage, BUSY, SUMMARY)
    result = await it.session.compact()
    records = [json.loads(EventEncoder().encode(event)) for event in it.events]
    text = "Overloaded, try again later"
    assert records == [
        {"type": "compaction_start", "reason": "manual"},
        {
            "type": "summarization_retry_scheduled",
            "attempt": 1,
            "maxAttempts": 3,
            "delayMs": 2000,
            "errorMessage": text,
        },
        {"type": "summarization_retry_attempt_start", "source": "compaction", "reason": "manual"},
        {"type": "summarization_retry_finished"},
        {
            "type": "compaction_end",
            "reason": "manual",
            "result": {
                "summary": result.summary,
                "firstKeptEntryId": result.first_kept_entry_id,
                "tokensBefore": 110,
                "estimatedTokensAfter": result.estimated_tokens_after,
                "usage": result.usage.to_json(),
                "details": {"readFiles": [], "modifiedFiles": []},
            },
            "aborted": False,
            "willRetry": False,
        },
    ]
    assert list(records[-1]["result"])[:4] == [
        *["summary", "firstKeptEntryId", "tokensBefore", "estimatedTokensAfter"]
    ]
    failed = json.loads(EventEncoder().encode(CompactionEnd("overflow", error_message="no")))
    assert failed == {
        "type": "compaction_end",
        "reason": "overflow",
        "aborted": False,
        "willRetry": False,
        "errorMessage": "no",
    }
