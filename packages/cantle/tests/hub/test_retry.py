"""Failed requests are tried again by the hub, and only there: when, how often, and what is left of it."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from cantle.hub.events import AgentSettled, AutoRetryEnd, AutoRetryStart, RunEnd, SessionEvent
from cantle.hub.retry import pause
from cantle.settings import Settings
from cantle_ai.abort import AbortController, AbortSignal
from cantle_session.session import Session

NewStage = Callable[..., Awaitable[Any]]

BUSY = {"error": {"message": "Overloaded, try again later", "status": 503}}
QUOTA = {"error": {"message": "You exceeded your current quota", "status": 429, "code": "insufficient_quota"}}
CALL = {"content": [{"type": "toolCall", "name": "bash", "arguments": {"command": "true"}}]}


def retries(it: Any) -> list[SessionEvent]:
    return [event for event in it.events if isinstance(event, AutoRetryStart | AutoRetryEnd)]


@pytest.mark.parity("events.auto-retry")
async def test_a_failure_that_may_pass_is_tried_again_until_it_does(stage: Any) -> None:
    it = await stage([BUSY, BUSY, "There."])
    await it.session.prompt("go")
    text = "Overloaded, try again later"
    assert retries(it) == [
        AutoRetryStart(1, 3, 2000, text),
        AutoRetryStart(2, 3, 4000, text),
        AutoRetryEnd(True, 2),
    ]
    assert it.waits == [2, 4]
    failed = ["turn_start", "message_start", "message_end", "turn_end", "agent_end", "auto_retry_start"]
    assert it.kinds == [
        *["agent_start", "turn_start", "message_start", "message_end", *failed[1:], "entry_appended"],
        *["agent_start", *failed, "entry_appended"],
        *["agent_start", "turn_start", "message_start", "message_end", "auto_retry_end", "turn_end"],
        *["agent_end", "agent_settled"],
    ]
    assert [event.will_retry for event in it.events if isinstance(event, RunEnd)] == [True, True, False]
    assert [m.text for m in it.session.messages] == ["go", "There."]


@pytest.mark.parity("config.provider-retries")
async def test_at_most_three_times_after_two_four_and_eight_seconds(stage: Any) -> None:
    it = await stage([BUSY] * 5)
    await it.session.prompt("go")
    assert it.waits == [2, 4, 8]
    assert len(it.scripted.requests) == 4
    assert retries(it)[-1] == AutoRetryEnd(False, 3, "Overloaded, try again later")
    assert it.kinds[-3:] == ["agent_end", "auto_retry_end", "agent_settled"]
    assert it.events[-1] == AgentSettled(False)
    last = it.session.messages[-1]
    assert (last.stop_reason, last.error_message) == ("error", "Overloaded, try again later")
    assert [m.role for m in it.session.messages] == ["user", "assistant"]


@pytest.mark.fault("D07")
async def test_d07_what_the_server_asks_for_is_obeyed_up_to_a_cap(stage: Any) -> None:
    asked = {"error": {"message": "slow down", "status": 429, "retryAfterMs": 7000}}
    too_long = {"error": {"message": "slow down", "status": 429, "retryAfterMs": 10_000_000}}
    it = await stage([asked, too_long, "There."])
    await it.session.prompt("go")
    assert it.waits == [7, 60]


@pytest.mark.fault("D08")
async def test_d08_every_answer_starts_the_count_anew(stage: Any) -> None:
    it = await stage([BUSY, BUSY, CALL, BUSY, BUSY, "There."])
    await it.session.prompt("go")
    assert it.waits == [2, 4, 2, 4]
    assert it.session.messages[-1].text == "There."


async def test_the_count_starts_anew_with_each_prompt(stage: Any) -> None:
    it = await stage([BUSY] * 4 + [BUSY, "There."])
    await it.session.prompt("go")
    await it.session.prompt("again")
    assert it.waits == [2, 4, 8, 2]
    assert it.session.messages[-1].text == "There."


@pytest.mark.fault("D09")
async def test_d09_a_prompt_returns_when_the_whole_cycle_is_over(stage: Any) -> None:
    it = await stage([BUSY, CALL, BUSY, "There."])
    await it.session.prompt("go")
    assert it.kinds[-1] == "agent_settled"
    assert it.kinds.count("agent_settled") == 1
    assert it.scripted.left == 0
    assert it.session.messages[-1].text == "There."


@pytest.mark.parametrize("failure", [QUOTA, {"error": {"message": "bad request", "status": 400}}])
async def test_what_would_fail_again_is_not_tried_again(stage: Any, failure: Any) -> None:
    it = await stage([failure, "never"])
    await it.session.prompt("go")
    assert (it.waits, retries(it)) == ([], [])
    assert it.session.messages[-1].stop_reason == "error"
    assert it.kinds[-1] == "agent_settled"


async def test_settings_turn_it_off_or_tune_it(stage: Any) -> None:
    it = await stage([BUSY, "never"], settings=Settings({"retry": {"enabled": False}}))
    await it.session.prompt("go")
    assert it.waits == []
    tuned = Settings({"retry": {"maxRetries": 2, "baseDelayMs": 100, "maxAgentDelayMs": 150}})
    it = await stage([BUSY] * 4, settings=tuned)
    await it.session.prompt("go")
    assert it.waits == [0.1, 0.15]


@pytest.mark.parity("sessions.retried-answers-are-hidden")
async def test_a_failed_answer_stays_in_the_file_and_is_told_to_no_model(stage: Any) -> None:
    broken = {
        "content": "Half of an",
        "error": {"message": "connection reset", "kind": "network"},
        "after": 1,
    }
    it = await stage([broken, "Whole.", "Next."])
    await it.session.prompt("go")
    await it.session.prompt("on")
    assert [[m.text for m in request.messages] for request in it.scripted.requests] == [
        ["go"],
        ["go"],
        ["go", "Whole.", "on"],
    ]
    assert it.saved() == ["user", "assistant:error", "assistant:stop", "user", "assistant:stop"]
    entries = it.entries()
    failed = next(e for e in entries if e["type"] == "message" and e["message"].get("stopReason") == "error")
    edit = next(e for e in entries if e["type"] == "context_edit")
    assert edit["targetId"] == failed["id"]
    assert edit["replacement"] is None
    resumed: list[Any] = Session.open(it.session.session.file).context().messages
    assert [m.text for m in resumed] == ["go", "Whole.", "on", "Next."]


async def test_usage_of_failed_answers_counts(stage: Any) -> None:
    broken = {"content": "Half", "usage": {"input": 5, "output": 1}, "error": {"status": 500}, "after": 1}
    it = await stage([broken, {"content": "Whole.", "usage": {"input": 5, "output": 2}}])
    await it.session.prompt("go")
    assert it.session.usage.output == 3


# --- abort in the wait -------------------------------------------------------------------------


async def test_abort_ends_the_wait_and_the_cycle(stage: Any) -> None:
    waiting = asyncio.Event()

    async def real_pause(seconds: float, signal: AbortSignal) -> None:
        waiting.set()
        await pause(1000, signal)

    it = await stage([BUSY, "never"], pause=real_pause)
    run = asyncio.create_task(it.session.prompt("go"))
    await waiting.wait()
    assert it.session.running
    async with asyncio.timeout(10):
        await it.session.abort()
        await run
    assert it.kinds[-2:] == ["auto_retry_end", "agent_settled"]
    assert retries(it)[-1] == AutoRetryEnd(False, 1, "The retry was cancelled")
    assert it.events[-1] == AgentSettled(True)
    assert len(it.scripted.requests) == 1
    assert it.session.messages[-1].stop_reason == "error"


async def test_steering_in_the_wait_enters_with_the_next_attempt(stage: Any) -> None:
    async def steer(seconds: float, signal: AbortSignal) -> None:
        it.session.steer("rather that")

    it = await stage([BUSY, "There."], pause=steer)
    await it.session.prompt("go")
    assert [m.text for m in it.scripted.requests[1].messages] == ["go", "rather that"]


async def test_an_abort_by_a_listener_of_the_failure_prevents_the_retry(stage: Any) -> None:
    it = await stage([BUSY, "never"])

    async def stop(event: SessionEvent) -> None:
        if isinstance(event, RunEnd):
            await it.session.abort()

    it.session.subscribe(stop)
    await it.session.prompt("go")
    assert len(it.scripted.requests) == 1
    assert it.kinds[-1] == "agent_settled"
    assert it.events[-1] == AgentSettled(True)


async def test_the_clock_waits_and_obeys_an_abort() -> None:
    controller = AbortController()
    await pause(0, controller.signal)
    asyncio.get_running_loop().call_soon(controller.abort)
    async with asyncio.timeout(10):
        await pause(1000, controller.signal)
    await pause(1000, controller.signal)


async def test_every_event_of_a_retry_has_its_json(stage: Any) -> None:
    from cantle.modes.json_events import EventEncoder

    it = await stage([BUSY, "There."])
    await it.session.prompt("go")
    encoder = EventEncoder()
    records = [json.loads(encoder.encode(event)) for event in it.events]
    start = next(record for record in records if record["type"] == "auto_retry_start")
    assert start == {
        "type": "auto_retry_start",
        "attempt": 1,
        "maxAttempts": 3,
        "delayMs": 2000,
        "errorMessage": "Overloaded, try again later",
    }
    assert {"type": "auto_retry_end", "success": True, "attempt": 1} in records
    appended = next(record for record in records if record["type"] == "entry_appended")
    assert appended["entry"]["type"] == "context_edit"
