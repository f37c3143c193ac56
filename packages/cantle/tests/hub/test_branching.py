"""Going to another place in a session's tree, with and without a summary of what is left."""

import asyncio
from typing import Any

import pytest

from cantle.errors import CompactionError, SessionError
from cantle.hub.events import SessionEvent, SummarizationRetryAttemptStart, SummarizationRetryFinished
from cantle.hub.history_hooks import CallOff, NavigationRequest, OwnSummary
from cantle.settings import Settings
from cantle_ai.usage import Usage
from cantle_session.session import Session
from packages.cantle.tests.hub.history import BUSY, REFUSED, SUMMARY, Held, asked, kinds, said


async def talked(stage: Any, *responses: Any, **options: Any) -> Any:
    it = await stage([said("one"), said("two"), *responses], **options)
    await it.session.prompt("first")
    await it.session.prompt("second")
    it.events.clear()
    return it


def place(it: Any, text: str) -> str:
    """The id of the entry that says `text`."""
    for entry in it.session.session.entries():
        if entry.type == "message" and entry.message.text == text:
            return str(entry.id)
    raise AssertionError(text)


@pytest.mark.parity("sessions.navigate")
async def test_a_users_message_is_said_anew_from_in_front_of_it(stage: Any) -> None:
    it = await talked(stage, said("three"))
    before = it.session.session.file.read_bytes()
    result = await it.session.navigate(place(it, "second"))
    assert (result.editor_text, result.summary) == ("second", None)
    assert result.leaf_id == it.session.session.leaf_id == place(it, "one")
    assert it.session.session.file.read_bytes() == before
    assert [m.text for m in it.session.messages] == ["first", "one"]
    assert it.session.last_answer.text == "one"
    await it.session.prompt("other")
    assert asked(it) == ["first", "one", "other"]
    assert it.session.session.parent(place(it, "other")) == place(it, "one")
    assert len(it.session.session.children(place(it, "one"))) == 2


@pytest.mark.parity("sessions.navigate")
async def test_any_other_entry_is_gone_on_from(stage: Any) -> None:
    it = await talked(stage)
    result = await it.session.navigate(place(it, "one"))
    assert result.editor_text is None
    assert [m.text for m in it.session.messages] == ["first", "one"]
    note = it.session.session.append_custom_message("note", "A note.")
    await it.session.navigate(place(it, "two"))
    result = await it.session.navigate(note.id)
    assert (result.editor_text, result.leaf_id) == ("A note.", place(it, "one"))


async def test_the_first_message_can_be_said_anew_as_another_root(stage: Any) -> None:
    it = await stage([said("one"), said("two")])
    await it.session.prompt("first")
    first = next(entry for entry in it.session.session.entries() if entry.type == "message")
    root = it.session.session.roots()[0]
    result = await it.session.navigate(root)
    assert result.leaf_id == root
    assert it.session.messages == []
    result = await it.session.navigate(first.id)
    assert result.editor_text == "first"
    await it.session.prompt("anew")
    assert asked(it) == ["anew"]


@pytest.mark.fault("F12")
@pytest.mark.parity("sessions.branch-summary-placement")
async def test_f12_the_branch_that_is_left_is_summed_up_where_the_new_one_begins(stage: Any) -> None:
    it = await talked(stage, SUMMARY, said("three"))
    old_leaf = it.session.session.leaf_id
    before = it.session.usage.output
    result = await it.session.navigate(place(it, "second"), summarize=True, instructions="Mind the birds.")
    entry = result.summary
    assert entry is not None
    assert (entry.from_id, entry.parent_id, entry.from_hook) == (old_leaf, place(it, "one"), False)
    assert entry.summary.startswith("## Goal\nTo greet.")
    assert it.session.session.leaf_id == result.leaf_id == entry.id
    assert "Mind the birds." in it.scripted.requests[-1].messages[0].text
    assert "second" in it.scripted.requests[-1].messages[0].text
    assert "first" not in it.scripted.requests[-1].messages[0].text
    assert it.session.usage.output == before + 5
    await it.session.prompt("other")
    assert asked(it)[2].startswith("We tried another way")
    with Session.open(it.session.session.file) as again:
        assert again.context().messages == list(it.session.messages)


async def test_without_anything_to_sum_up_nobody_is_asked(stage: Any) -> None:
    it = await talked(stage)
    await it.session.navigate(place(it, "one"))
    result = await it.session.navigate(place(it, "two"), summarize=True)
    assert (result.summary, len(it.scripted.requests)) == (None, 2)
    result = await it.session.navigate(place(it, "two"), summarize=True)
    assert result.summary is None


async def test_an_unknown_entry_moves_nothing(stage: Any) -> None:
    it = await talked(stage)
    leaf = it.session.session.leaf_id
    with pytest.raises(SessionError, match="no entry 'feedbeef'"):
        await it.session.navigate("feedbeef")
    assert it.session.session.leaf_id == leaf


@pytest.mark.parametrize("response", [REFUSED, {"content": "half", "stopReason": "length"}])
async def test_without_its_summary_the_session_stays(stage: Any, response: Any) -> None:
    it = await talked(stage, response)
    leaf, entries = it.session.session.leaf_id, kinds(it)
    with pytest.raises(CompactionError, match="stays where it is"):
        await it.session.navigate(place(it, "first"), summarize=True)
    session = it.session.session
    assert kinds(it)[: len(entries)] == entries
    assert "branch_summary" not in kinds(it)
    assert leaf in [entry.id for entry in session.path()]
    assert len(it.session.messages) == 4


@pytest.mark.fault("F08")
async def test_f08_a_run_that_is_on_is_ended_and_written_first(stage: Any) -> None:
    held = Held(said("never"))
    it = await talked(stage, held)
    run = asyncio.create_task(it.session.prompt("third"))
    await held.asked.wait()
    async with asyncio.timeout(10):
        await it.session.navigate(place(it, "one"))
        await run
    assert it.saved()[-2:] == ["user", "assistant:aborted"]
    assert [m.text for m in it.session.messages] == ["first", "one"]


async def test_an_abort_stays(stage: Any) -> None:
    held = Held(SUMMARY)
    it = await talked(stage, held)
    leaf = it.session.session.leaf_id
    work = asyncio.create_task(it.session.navigate(place(it, "first"), summarize=True))
    await held.asked.wait()
    assert it.session.running
    assert not it.session.compacting
    async with asyncio.timeout(10):
        await it.session.abort()
    with pytest.raises(CompactionError, match="was stopped") as caught:
        await work
    assert caught.value.aborted
    assert it.session.session.leaf_id == leaf


async def test_what_is_said_meanwhile_comes_afterwards(stage: Any) -> None:
    held = Held(SUMMARY)
    it = await talked(stage, held, said("three"))
    work = asyncio.create_task(it.session.navigate(place(it, "second"), summarize=True))
    await held.asked.wait()
    prompt = asyncio.create_task(it.session.prompt("other"))
    await asyncio.sleep(0)
    held.go.set()
    async with asyncio.timeout(10):
        await asyncio.gather(work, prompt)
    assert [m.text for m in it.session.messages][-2:] == ["other", "three"]


@pytest.mark.parity("events.summarization-retry")
async def test_its_requests_are_retried(stage: Any) -> None:
    it = await talked(stage, BUSY, SUMMARY)
    await it.session.navigate(place(it, "second"), summarize=True)
    assert SummarizationRetryAttemptStart("branchSummary") in it.events
    assert it.waits == [2]


@pytest.mark.parity("config.branch-summary")
async def test_the_budget_leaves_out_the_oldest(stage: Any) -> None:
    settings = Settings({"branchSummary": {"reserveTokens": 127_990}})
    it = await stage([said("one"), said("two"), said("three"), SUMMARY], settings=settings)
    for text in ("first", "old " * 80_000, "new"):
        await it.session.prompt(text)
    await it.session.navigate(place(it, "first"), summarize=True)
    text = it.scripted.requests[-1].messages[0].text
    assert "new" in text
    assert "old old" not in text


# --- hooks


async def test_a_hook_may_call_it_off(stage: Any) -> None:
    it = await talked(stage)
    leaf = it.session.session.leaf_id
    seen: list[NavigationRequest] = []

    def off(request: NavigationRequest) -> CallOff:
        seen.append(request)
        return CallOff("the tree is locked")

    it.session.before_navigate.append(off)
    with pytest.raises(CompactionError, match=r"stays where it is: the tree is locked\.") as caught:
        await it.session.navigate(place(it, "second"))
    assert caught.value.aborted
    assert it.session.session.leaf_id == leaf
    (request,) = seen
    assert (request.target_id, request.new_leaf_id) == (place(it, "second"), place(it, "one"))
    assert (request.old_leaf_id, request.common_ancestor_id) == (leaf, place(it, "one"))
    assert [entry.id for entry in request.entries] == [place(it, "second"), leaf]
    assert not request.summarize


async def test_a_hooks_summary_counts_where_one_is_wanted(stage: Any) -> None:
    it = await talked(stage)

    async def own(request: NavigationRequest) -> OwnSummary:
        return OwnSummary(summary="We tried.", details=[1], usage=Usage(output=2))

    it.session.before_navigate.append(own)
    two = place(it, "two")
    result = await it.session.navigate(place(it, "second"))
    assert result.summary is None
    await it.session.navigate(two)
    result = await it.session.navigate(place(it, "second"), summarize=True)
    assert result.summary is not None
    assert (result.summary.summary, result.summary.details) == ("We tried.", [1])
    assert result.summary.from_hook is True
    assert len(it.scripted.requests) == 2


# --- what goes with it


async def test_the_model_in_use_is_written_down_on_the_new_branch(stage: Any) -> None:
    it = await talked(stage, said("three"))
    await it.session.set_thinking_level("high")
    await it.session.navigate(place(it, "one"))
    await it.session.prompt("other")
    assert it.session.session.context().thinking_level == "high"
    branch = [entry.type for entry in it.session.session.path()][-3:]
    assert branch == ["thinking_level_change", "message", "message"]


async def test_a_session_that_cannot_be_written_stays(stage: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from cantle_session.errors import SessionFileError

    it = await talked(stage, SUMMARY)
    leaf = it.session.session.leaf_id

    def full(*values: Any, **more: Any) -> None:
        raise SessionFileError(it.session.session.file, "no space is left on the disk")

    monkeypatch.setattr(it.session.session, "append_branch_summary", full)
    monkeypatch.setattr(it.session.session, "append_usage", full)
    with pytest.raises(SessionError, match="no space is left"):
        await it.session.navigate(place(it, "first"), summarize=True)
    assert it.session.session.leaf_id == leaf
    assert len(it.session.messages) == 4


async def test_what_a_summary_took_that_came_too_late_counts(stage: Any) -> None:
    it = await talked(stage, BUSY, SUMMARY)
    leaf, before = it.session.session.leaf_id, it.session.usage.output

    def stop(event: SessionEvent) -> None:
        if isinstance(event, SummarizationRetryFinished):
            it.session.request_abort()

    it.session.subscribe(stop)
    with pytest.raises(CompactionError, match="stays where it is: it was stopped"):
        await it.session.navigate(place(it, "first"), summarize=True)
    assert it.session.usage.output == before + 5
    assert it.session.session.parent(it.session.session.leaf_id) == leaf


async def test_whoever_only_goes_elsewhere_reads_nothing_of_what_is_left(
    stage: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    it = await talked(stage)
    kept, loaded, target = it.session.session._kept, [], place(it, "one")
    load = kept.load
    monkeypatch.setattr(kept, "load", lambda positions: loaded.extend(positions) or load(positions))
    await it.session.navigate(target)
    assert loaded == [kept.position(target)]
