"""Any sequence of operations on a session keeps every line, replays to the same tree, and projects to a request that strict servers take."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from cantle_agent.messages import AgentMessage
from cantle_ai.codec import JsonObject
from cantle_ai.content import TextContent, ToolCall
from cantle_ai.messages import AssistantMessage, ToolResultMessage, UserMessage
from cantle_ai.usage import Usage
from cantle_session.compaction.plan import NothingToCompact, plan_compaction, record
from cantle_session.compaction.settings import CompactionSettings
from cantle_session.compaction.summary import Summary
from cantle_session.exports import export_jsonl
from cantle_session.fates import fates
from cantle_session.forks import fork_session
from cantle_session.imports import import_session
from cantle_session.repair import repair_session
from cantle_session.session import Session
from cantle_session.tokens import sent_messages
from packages.session.tests.proof import drawn, plain_reading
from packages.session.tests.proof.places import PLACES, Place
from packages.session.tests.proof.strict_request import APIS, check_request
from tests.support.samples import samples


class Operations(RuleBasedStateMachine):
    """A session and, beside it, its entries as plain JSON in the order in which they were added."""

    make_place: Callable[[], Place]
    from_its_end: bool
    """Whether the session is left unread, as a long one is; then others tell its tree."""

    def __init__(self) -> None:
        super().__init__()
        self.place = self.make_place()
        self.entries: list[dict[str, Any]] = []
        self.leaf: str | None = None
        self.kept: list[bytes] = []
        self.steps = 0

    @initialize()
    def begin(self) -> None:
        self.session = self.place.create()

    # --- what may happen

    @rule(message=drawn.messages)
    def say(self, message: AgentMessage) -> None:
        self.added(self.session.append_message(message))

    @rule(text=drawn.texts, data=drawn.payloads)
    def prompt_and_answer_with_a_call(self, text: str, data: dict[str, Any]) -> None:
        call = ToolCall(f"call_{len(self.entries)}", "read", data)
        answer = AssistantMessage([call], "openai-completions", "p", "m-1", stop_reason="toolUse")
        for message in (
            UserMessage(text),
            answer,
            ToolResultMessage(call.id, "read", [TextContent(text)]),
            AssistantMessage([TextContent(text)], "openai-completions", "p", "m-1"),
        ):
            self.added(self.session.append_message(message))

    @rule(what=st.integers(0, 5), text=drawn.texts, data=drawn.payloads, content=drawn.blocks)
    def note(self, what: int, text: str, data: dict[str, Any], content: Any) -> None:
        session = self.session
        match what:
            case 0:
                entry: Any = session.append_model_change("p", text)
            case 1:
                entry = session.append_thinking_level_change(text)
            case 2:
                entry = session.append_session_info(text)
            case 3:
                entry = session.append_custom(text, data)
            case 4:
                entry = session.append_custom_message(text, content, display=bool(data), details=data or None)
            case _:
                entry = session.append_usage("cache_warm", "p", "m-1", Usage(input=5), note=text or None)
        self.added(entry)

    @precondition(lambda self: self.entries)
    @rule(data=st.data(), label=st.one_of(st.none(), drawn.texts))
    def label(self, data: st.DataObject, label: str | None) -> None:
        self.added(self.session.append_label(self.any_id(data), label))

    @precondition(lambda self: self.entries)
    @rule(data=st.data(), replacement=drawn.replacements)
    def edit(self, data: st.DataObject, replacement: Any) -> None:
        self.added(self.session.append_context_edit(self.any_id(data), replacement))

    @precondition(lambda self: self.leaf)
    @rule(data=st.data(), text=drawn.texts)
    def compact(self, data: st.DataObject, text: str) -> None:
        kept = data.draw(st.sampled_from([None, *self.ids_on_path()]))
        details: JsonObject = {"readFiles": ["a.py"], "modifiedFiles": []}
        entry = self.session.append_compaction(text, kept, 90_000, details=details, usage=Usage(output=9))
        assert entry.first_kept_entry_id == (kept or entry.id)
        self.added(entry)

    @rule(text=drawn.texts, keep=st.integers(1, 60))
    def compact_as_planned(self, text: str, keep: int) -> None:
        before = sent(self.session)
        try:
            plan = plan_compaction(self.session, CompactionSettings(keep_recent_tokens=keep))
        except NothingToCompact:
            return
        entry = record(self.session, plan, Summary(text))
        self.added(entry)
        summary, *kept = sent(self.session)
        assert summary == ("compactionSummary", text)
        # Nothing is dropped: what is not summed up stays, but for an earlier summary, which is carried on.
        earlier = [text for role, text in before[:1] if role == "compactionSummary"]
        assert plan.previous_summary in (*earlier, None)
        assert bool(plan.previous_summary) == any(earlier)
        summed_up = [told(message) for message in (*plan.messages, *plan.turn)]
        assert [*summed_up, *kept] == before[len(earlier) :]
        assert [role for role, _ in kept[:1]] != ["toolResult"]

    @precondition(lambda self: self.entries)
    @rule(data=st.data(), text=drawn.texts)
    def go_back_with_a_summary(self, data: st.DataObject, text: str) -> None:
        left = self.leaf
        self.branch(data)
        self.added(self.session.append_branch_summary(left, text, from_hook=True))

    @precondition(lambda self: self.entries)
    @rule(data=st.data())
    def branch(self, data: st.DataObject) -> None:
        self.leaf = self.any_id(data)
        self.session.branch(self.leaf)

    @rule()
    def begin_another_tree(self) -> None:
        self.session.reset_leaf()
        self.leaf = None

    @precondition(lambda self: self.entries)
    @rule()
    def ask_for_what_is_not_there(self) -> None:
        for ask in (
            self.session.branch,
            self.session.entry,
            lambda entry_id: self.session.append_label(entry_id, "x"),
            self.session.append_context_edit,
        ):
            with pytest.raises(KeyError):
                ask("not-there")

    @precondition(lambda self: self.session.saved)
    @rule()
    def close_and_open(self) -> None:
        session = self.place.again(self.session)
        if session is not None:
            self.session.close()
            self.session = session
            self.leaf = self.entries[-1]["id"]

    @precondition(lambda self: self.session.saved)
    @rule(message=drawn.messages, data=st.data())
    def somebody_else_adds(self, message: AgentMessage, data: st.DataObject) -> None:
        other = self.place.again(self.session)
        if other is None:
            return
        with other:
            other.branch(self.any_id(data))
            theirs = other.append_message(message).to_json()
        self.entries.append(theirs)
        assert [entry.to_json() for entry in self.session.pull()] == [theirs]
        assert self.session.pull() == []

    @precondition(lambda self: self.session.saved)
    @rule(data=st.data())
    def fork(self, data: st.DataObject) -> None:
        asked = [entry for entry in self.entries if is_prompt(entry)]
        entry = data.draw(st.sampled_from(asked))
        with tempfile.TemporaryDirectory() as folder:
            fork = fork_session(self.session, entry["id"], folder)
            with fork.session as forked:
                assert fork.message.to_json() == entry["message"]
                assert forked.id != self.session.id
                check_same(forked, self.entries, entry["parentId"])
            assert len(os.listdir(folder)) == (entry["parentId"] is not None)

    @precondition(lambda self: self.leaf)
    @rule(data=st.data())
    def export_and_import(self, data: st.DataObject) -> None:
        leaf = self.any_id(data)
        with tempfile.TemporaryDirectory() as folder:
            file = export_jsonl(self.session, f"{folder}/exported.jsonl", leaf=leaf)
            assert repair_session(file).problems == []
            imported = import_session(file, f"{folder}/sessions", new_id=True)
            with Session.open(imported.location) as session:
                assert session.id == imported.id != self.session.id
                check_same(session, self.entries, leaf)

    # --- what must hold

    @invariant()
    def no_line_is_lost_or_changed(self) -> None:
        lines = self.place.lines(self.session)
        assert lines[: len(self.kept)] == self.kept
        self.kept = lines
        if lines:
            assert len(lines) == 1 + len(self.entries)

    @invariant()
    def the_tree_is_that_of_the_links(self) -> None:
        assert self.session.leaf_id == self.leaf
        if self.from_its_end and self.session.saved:
            self.check_as_read_anew()
        else:
            check_tree(self.session, self.entries, self.leaf)

    @invariant()
    def the_context_is_that_of_the_path(self) -> None:
        check_context(self.session, self.entries, self.leaf)

    @invariant()
    def a_strict_server_takes_the_request(self) -> None:
        self.steps += 1
        check_request(self.session.context().messages, APIS[self.steps % len(APIS)])

    @invariant()
    def each_entry_of_the_path_has_its_fate(self) -> None:
        if self.steps % 3:
            return
        found = list(fates(self.session))
        assert [each.entry.id for each in found] == self.ids_on_path()
        shown = {each.entry.id for each in found if each.fate in ("sent", "replaced")}
        assert shown == {place.entry.id for place in sent_messages(self.session.projected())}

    def teardown(self) -> None:
        session = getattr(self, "session", None)
        if session is not None:
            self.check_the_end(session)
            session.close()
        self.place.close()

    def check_the_end(self, session: Session) -> None:
        for api in APIS:
            check_request(session.context().messages, api)
        again = self.place.again(session) if session.saved else None
        if again is None:
            return
        with again:
            last = self.entries[-1]["id"]
            # Lazily first: what is asked for must not depend on what was asked before.
            check_context(again, self.entries, last)
            check_tree(again, self.entries, last)
            assert [warning for warning in again.warnings if warning.line is not None] == []

    def check_as_read_anew(self) -> None:
        again = self.place.again(self.session)
        assert again is not None
        with again:
            check_context(again, self.entries, self.entries[-1]["id"])
            check_tree(again, self.entries, self.entries[-1]["id"])
            assert again.usage() == self.session.usage()
            assert again.name == self.session.name

    # --- the hands of the rules

    def added(self, entry: Any) -> None:
        raw = entry.to_json()
        assert raw["parentId"] == self.leaf
        assert raw["id"] not in {known["id"] for known in self.entries}
        self.entries.append(raw)
        self.leaf = raw["id"]

    def any_id(self, data: st.DataObject) -> str:
        return data.draw(st.sampled_from([entry["id"] for entry in self.entries]))

    def ids_on_path(self) -> list[str]:
        return [entry["id"] for entry in plain_reading.path(self.entries, self.leaf)]


def check_tree(session: Session, entries: plain_reading.Entries, leaf: str | None) -> None:
    """The session's tree is that of `entries`, and stands at `leaf`."""
    ids = [entry["id"] for entry in entries]
    assert session.leaf_id == leaf
    assert [(link.type, link.id, link.parent_id) for link in session.links()] == [
        (entry["type"], entry["id"], entry["parentId"]) for entry in entries
    ]
    assert [entry.to_json() for entry in session.entries()] == list(entries)
    assert [entry.id for entry in session.path()] == [
        entry["id"] for entry in plain_reading.path(entries, leaf)
    ]
    assert session.roots() == plain_reading.roots(entries)
    assert session.labels() == plain_reading.labels(entries)
    for one in ids[-3:] + ids[:2]:
        assert session.children(one) == plain_reading.children(entries, one)
        assert session.parent(one) == plain_reading.path(entries, one)[-1]["parentId"]
        assert [entry.id for entry in session.path(one)] == [
            entry["id"] for entry in plain_reading.path(entries, one)
        ]
        for other in ids[-2:]:
            expected = plain_reading.common_ancestor(entries, one, other)
            assert session.common_ancestor(one, other) == expected


def check_context(session: Session, entries: plain_reading.Entries, leaf: str | None) -> None:
    """The session's context at `leaf` is what the format says of `entries`."""
    context = session.context()
    assert [told(message) for message in context.messages] == plain_reading.messages(entries, leaf)
    assert (context.model, context.thinking_level) == plain_reading.model_and_level(entries, leaf)
    projected = session.projected()
    assert [each.message for each in projected] == context.messages
    by_id = {entry["id"]: entry for entry in entries}
    assert all(by_id[each.entry.id] == each.entry.to_json() for each in projected)


def check_same(session: Session, entries: plain_reading.Entries, leaf: str | None) -> None:
    """Another session knows what `entries` say at `leaf`."""
    context = session.context()
    assert [told(message) for message in context.messages] == plain_reading.messages(entries, leaf)
    assert (context.model, context.thinking_level) == plain_reading.model_and_level(entries, leaf)
    assert session.warnings == []


def sent(session: Session) -> list[tuple[str, Any]]:
    """What a request of the session includes."""
    return [told(place.message) for place in sent_messages(session.projected())]


def told(message: AgentMessage) -> tuple[str, Any]:
    raw: Any = message.to_json()
    return raw["role"], raw.get("content", raw.get("summary", raw.get("command")))


def is_prompt(entry: dict[str, Any]) -> bool:
    return entry["type"] == "message" and entry["message"]["role"] == "user"


@pytest.mark.timeout(1200)
@pytest.mark.fault("F05")
@pytest.mark.fault("G01")
@pytest.mark.parametrize("from_its_end", [False, True], ids=["whole", "from its end"])
@pytest.mark.parametrize("name", PLACES)
def test_any_sequence_of_operations_keeps_the_tree(
    name: str, from_its_end: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Here(Operations):
        make_place = staticmethod(PLACES[name])

    Here.from_its_end = from_its_end
    if from_its_end:
        monkeypatch.setattr("cantle_session.kept.LARGE", 0)
    examples, steps = samples(150, 8), samples(40, 25)
    run_state_machine_as_test(
        Here, settings=settings(max_examples=examples, stateful_step_count=steps, deadline=None)
    )
