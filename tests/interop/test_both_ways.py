"""Both programs open, continue, fork, compact and branch what the other wrote, with entries of every type in it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cantle.sdk import create_agent_session
from cantle_agent.messages import AgentMessage
from cantle_ai.content import ImageContent, TextContent, ThinkingContent, ToolCall
from cantle_ai.messages import AssistantMessage, ToolResultMessage, UserMessage
from cantle_ai.testing.server.server import StrictServer
from cantle_ai.usage import Usage
from cantle_session.entries import UnknownEntry
from cantle_session.messages import BashExecutionMessage
from cantle_session.session import Session
from tests.interop.case import Case
from tests.interop.normalisers import plain_summary
from tests.interop.programs import MODEL, Program, cantle, reference
from tests.interop.rpc import EXTENSION, Rpc
from tests.support.reference import evaluated, reference_program

pytestmark = [pytest.mark.reference, pytest.mark.slow]

CASE = Case(
    name="both-ways",
    model={"contextWindow": 30_000, "input": ["text", "image"]},
    settings={"compaction": {"keepRecentTokens": 60}, "retry": {"baseDelayMs": 1}},
)

LONG = " ".join(["A long road."] * 40)

OVERFLOW = {"error": {"status": 400, "message": "The prompt is too long.", "code": "context_length_exceeded"}}

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


@dataclass
class Both:
    """One project and one server for both programs."""

    cantle: Program
    reference: Program
    project: Path
    server: StrictServer
    failures: list[Any]
    """What the next requests of turns get instead of an answer."""

    def run(self, *words: str) -> None:
        """Run Cantle to a good end."""
        step = self.cantle.run([*MODEL, *words], self.project, {})
        assert step.code == 0, step.stderr

    def rpc(self, *words: str) -> Rpc:
        """The reference, with commands for what its protocol has none."""
        extension = self.project.parent / "extension.ts"
        extension.write_text(EXTENSION, "utf-8")
        return Rpc(self.reference, self.project, "-e", str(extension), *words)

    def told(self) -> list[str]:
        """The conversation that the last request told, a line for each message."""
        body: Any = self.server.requests[-1].json
        return [
            line_of(message) for message in body["messages"] if message["role"] not in ("system", "developer")
        ]


class Answers:
    """Numbers its answers. Gives a summary where no tools are offered."""

    def __init__(self) -> None:
        self.failures: list[Any] = []
        self._turns = self._summaries = 0

    def __call__(self, body: Any) -> Any:
        usage = {"input": 100, "output": 10}
        if "tools" not in body:
            self._summaries += 1
            return {"content": f"## Goal\nSummary {self._summaries}.", "usage": usage}
        if self.failures:
            return self.failures.pop(0)
        self._turns += 1
        return {"content": f"Answer {self._turns}. {LONG}", "usage": usage}


@pytest.fixture
def both(tmp_path: Path) -> Iterator[Both]:
    project = tmp_path / "project"
    project.mkdir()
    ours, theirs = cantle(tmp_path / "ours"), reference(tmp_path / "theirs", reference_program())
    answers = Answers()
    with StrictServer(answers, prefix=False) as server:
        for program in (ours, theirs):
            program.configure(server.base_url_for, CASE)
        yield Both(ours, theirs, project, server, answers.failures)
        server.assert_clean()


def line_of(message: Any) -> str:
    content = message.get("content") or ""
    if isinstance(content, list):
        content = "".join(part.get("text", "<image>") for part in content)
    calls = "".join(f" calls {call['function']['name']}" for call in message.get("tool_calls", ()))
    return f"{message['role']}{calls}: {plain_summary(content)}"


def lines_of(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_bytes().split(b"\n") if line]


def user_entry(file: Path, text: str) -> str:
    (found,) = [
        line["id"]
        for line in lines_of(file)
        if line["type"] == "message" and line["message"]["role"] == "user" and text in str(line["message"])
    ]
    return str(found)


# --- every type of entry -------------------------------------------------------------------------


def write_all(folder: Path, cwd: Path) -> Path:
    """A session by Cantle with every type of entry, three roots, and branches."""
    cost = Usage(input=5, output=7)

    def answer(*blocks: Any, reason: Any = "stop") -> AssistantMessage:
        return AssistantMessage(
            list(blocks), "openai-completions", "loop", "m", usage=cost, stop_reason=reason, timestamp=5
        )

    def add(message: AgentMessage) -> str:
        return session.append_message(message).id

    with Session.create(cwd, folder) as session:
        session.append_model_change("loop", "m")
        session.append_thinking_level_change("off")
        session.append_session_info("A job")
        first = add(UserMessage([TextContent("One."), ImageContent(PIXEL, "image/png")], timestamp=1))
        add(
            answer(
                ThinkingContent("Hm."),
                TextContent("I look."),
                ToolCall("c1", "read", {"path": "a.txt"}),
                reason="toolUse",
            )
        )
        result = add(ToolResultMessage("c1", "read", [TextContent("milk\u2028")], timestamp=2))
        kept = add(answer(TextContent("Milk.")))
        session.append_label(first, "begin")
        session.append_custom("ext", {"ä": [1, 2.5, None]})
        session.append_custom_message("ext", "A note.", display=False, details={"n": 1})
        add(BashExecutionMessage(command="ls", output="a.txt\n", exit_code=0, timestamp=3))
        add(BashExecutionMessage(command="id", output="me", exclude_from_context=True, timestamp=3))
        session.append_usage("cache_warm", "loop", "m", cost, note="warm")
        session.append_context_edit(result, {"content": "cut"})
        left = add(UserMessage("Two.", timestamp=4))
        session.branch(kept)
        session.append_branch_summary(
            left, "Two was said.", details={"readFiles": [], "modifiedFiles": []}, usage=cost
        )
        add(UserMessage("Three.", timestamp=6))
        failed = add(answer(reason="error"))
        session.append_context_edit(failed)
        session.append_compaction(
            "It was about milk.",
            kept,
            1234,
            details={"readFiles": ["a.txt"], "modifiedFiles": []},
            usage=cost,
        )
        add(UserMessage("Four.", timestamp=7))
        session.append_label(first, None)
        session.reset_leaf()
        add(UserMessage("A second root.", timestamp=8))
        session.append_compaction("Nothing stays.", None, 10, from_hook=True)
        session.reset_leaf()
        session.append_branch_summary(left, "From afar.")
        add(UserMessage("A third root.", timestamp=9))
        add(answer(TextContent("Yes.")))
        assert session.file is not None
        return session.file


_WRITE = """
    import {SessionManager} from "@earendil-works/pi-coding-agent";
    const session = SessionManager.create(CWD, FOLDER);
    const text = (text) => ({type: "text", text});
    const cost = {input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0};
    const usage = {input: 5, output: 7, cacheRead: 0, cacheWrite: 0, totalTokens: 12, cost};
    const user = (content) => session.appendMessage({role: "user", content, timestamp: 1});
    const answer = (content, stopReason = "stop") => session.appendMessage({
        role: "assistant", content, api: "openai-completions", provider: "loop", model: "m", usage, stopReason,
        timestamp: 2,
    });
    const shell = (fields) => session.appendMessage({
        role: "bashExecution", command: "ls", output: "a.txt", exitCode: 0, cancelled: false, truncated: false,
        timestamp: 3, ...fields,
    });
    session.appendModelChange("loop", "m");
    session.appendThinkingLevelChange("off");
    session.appendMessage({role: "system", content: "", sections: {preamble: "Be kind."}, toolsAdded: [], timestamp: 0});
    session.appendSessionInfo("A job");
    const first = user([text("One."), {type: "image", data: PIXEL, mimeType: "image/png"}]);
    answer([{type: "thinking", thinking: "Hm."}, {type: "toolCall", id: "c1", name: "read", arguments: {path: "a.txt"}}],
        "toolUse");
    const result = session.appendMessage({role: "toolResult", toolCallId: "c1", toolName: "read",
        content: [text("milk\\u2028")], isError: false, timestamp: 2});
    const kept = answer([text("Milk.")]);
    session.appendLabelChange(first, "begin");
    session.appendCustomEntry("ext", {"ä": [1, 2.5, null]});
    session.appendCustomMessageEntry("ext", "A note.", false, {n: 1});
    shell({});
    shell({command: "id", excludeFromContext: true});
    session.appendUsage("cache_warm", "loop", "m", usage, "warm");
    session.appendContextEdit(result, {content: "cut"});
    const left = user("Two.");
    session.branch(left);
    session.branchWithSummary(kept, "Two was said.", {readFiles: [], modifiedFiles: []}, false, usage);
    user("Three.");
    session.appendContextEdit(answer([], "error"), null);
    session.appendCompaction("It was about milk.", kept, 1234, {readFiles: ["a.txt"], modifiedFiles: []}, false, usage);
    user("Four.");
    session.appendLabelChange(first, undefined);
    session.resetLeaf();
    user("A second root.");
    session.appendCompaction("Nothing stays.", null, 10, undefined, true);
    session.branchWithSummary(null, "From afar.");
    user("A third root.");
    answer([text("Yes.")]);
    console.log(JSON.stringify(session.getSessionFile()));
"""


def reference_writes_all(folder: Path, cwd: Path) -> Path:
    """The same session by the reference."""
    head = f"const CWD = {json.dumps(str(cwd))}, FOLDER = {json.dumps(str(folder))}, PIXEL = {json.dumps(PIXEL)};"
    return Path(evaluated(head + _WRITE))


TYPES = {
    *("session", "message", "custom_message", "compaction", "branch_summary", "context_edit", "model_change"),
    *("thinking_level_change", "session_info", "custom", "label", "usage"),
}


@pytest.mark.parity("sessions.every-type")
def test_the_reference_goes_on_with_a_session_of_every_type(both: Both) -> None:
    file = write_all(both.project.parent / "written", both.project)
    before = file.read_bytes()
    assert {line["type"] for line in lines_of(file)} == TYPES
    with both.rpc("--session", str(file)) as rpc:
        found = rpc.ask("get_entries")
        assert [entry["id"] for entry in found["entries"]] == [line["id"] for line in lines_of(file)[1:]]
        assert [
            {**entry, "label": None} if entry["type"] == "label" else entry for entry in found["entries"]
        ] == [{**line, "label": None} if line["type"] == "label" else line for line in lines_of(file)[1:]]
        assert found["leafId"] == lines_of(file)[-1]["id"]
        assert len(rpc.ask("get_tree")["tree"]) == 3
        assert rpc.ask("get_state")["sessionName"] == "A job"
        rpc.prompt("Go on.")
    assert file.read_bytes().startswith(before)
    assert both.told() == [
        "user: <summary>From afar.",
        "user: A third root.",
        "assistant: Yes.",
        "user: Go on.",
    ]


@pytest.mark.parity("sessions.every-type")
def test_cantle_goes_on_with_a_session_of_every_type(both: Both) -> None:
    file = reference_writes_all(both.project.parent / "written", both.project)
    before = file.read_bytes()
    lines = lines_of(file)
    assert {line["type"] for line in lines} == TYPES
    with Session.open(file) as session:
        entries = session.entries()
        assert session.name == "A job"
        assert len(session.roots()) == 3
        assert session.labels() == {}
        assert not session.warnings
    assert not [entry for entry in entries if isinstance(entry, UnknownEntry)]
    for entry, line in zip(entries, lines[1:], strict=True):
        assert entry.to_json() == line
    both.run("--session", str(file), "-p", "Go on.")
    assert file.read_bytes().startswith(before)
    assert both.told() == [
        "user: <summary>From afar.",
        "user: A third root.",
        "assistant: Yes.",
        "user: Go on.",
    ]


@pytest.mark.parity("sessions.every-type")
def test_what_one_wrote_into_the_session_of_the_other_is_read_by_both(both: Both) -> None:
    folder = both.project.parent / "written"
    for file in (write_all(folder, both.project), reference_writes_all(folder, both.project)):
        with both.rpc("--session", str(file)) as rpc:
            rpc.prompt("By the reference.")
            rpc.ask("set_session_name", name="Another")
            rpc.ask("prompt", message='/note {"customType": "ext", "content": "Noted.", "display": true}')
            leaf = rpc.ask("get_entries")["leafId"]
            rpc.ask("prompt", message="/mark " + json.dumps({"id": leaf, "label": "here"}))
        both.run("--session", str(file), "-p", "By Cantle.")
        with both.rpc("--session", str(file)) as rpc:
            rpc.prompt("Once more.")
            assert rpc.ask("get_state")["sessionName"] == "Another"
        with Session.open(file) as session:
            assert session.labels() == {leaf: "here"}
            assert not session.warnings
        assert [line for line in both.told() if line.startswith("user")] == [
            "user: <summary>From afar.",
            "user: A third root.",
            "user: By the reference.",
            "user: Noted.",
            "user: By Cantle.",
            "user: Once more.",
        ]


# --- forks ---------------------------------------------------------------------------------------


def talk_of(both: Both, writer: str) -> Path:
    """A session of three turns by one of them."""
    prompts = ["First.", "Second.", "Third."]
    if writer == "cantle":
        both.run("-p", *prompts)
        return both.cantle.sessions()[0]
    with both.rpc() as rpc:
        for prompt in prompts:
            rpc.prompt(prompt)
    return both.reference.sessions()[0]


def users_told(both: Both) -> list[str]:
    return [line for line in both.told() if line.startswith("user")]


@pytest.mark.parity("sessions.forks-both-ways")
def test_the_reference_forks_clones_and_copies_what_cantle_wrote(both: Both) -> None:
    file = talk_of(both, "cantle")
    before = file.read_bytes()
    with both.rpc("--session", str(file)) as rpc:
        assert rpc.ask("fork", entryId=user_entry(file, "Third."))["text"] == "Third."
        fork = Path(rpc.ask("get_state")["sessionFile"])
        rpc.prompt("Another third.")
    with both.rpc("--session", str(file)) as rpc:
        rpc.ask("clone")
        clone = Path(rpc.ask("get_state")["sessionFile"])
        rpc.prompt("Fourth.")
    with both.rpc("--fork", str(file)) as rpc:
        copy = Path(rpc.ask("get_state")["sessionFile"])
        rpc.prompt("Another fourth.")
    assert file.read_bytes() == before
    for made, said in [
        (fork, ["First.", "Second.", "Another third.", "On."]),
        (clone, ["First.", "Second.", "Third.", "Fourth.", "On."]),
        (copy, ["First.", "Second.", "Third.", "Another fourth.", "On."]),
    ]:
        assert lines_of(made)[0]["parentSession"] == str(file)
        both.run("--session", str(made), "-p", "On.")
        assert users_told(both) == [f"user: {text}" for text in said]


@pytest.mark.parity("sessions.forks-both-ways")
def test_cantle_forks_clones_and_copies_what_the_reference_wrote(both: Both) -> None:
    file = talk_of(both, "reference")
    before = file.read_bytes()
    made = [
        forked(both, "fork", str(file), "--before", user_entry(file, "Third.")),
        forked(both, "fork", str(file)),
    ]
    both.run("--fork", str(file), "-p", "Copied.")
    made.append(newest(both))
    assert file.read_bytes() == before
    for session, said in zip(
        made,
        [["First.", "Second."], ["First.", "Second.", "Third."], ["First.", "Second.", "Third.", "Copied."]],
        strict=True,
    ):
        assert lines_of(session)[0]["parentSession"] == str(file)
        with both.rpc("--session", str(session)) as rpc:
            rpc.prompt("On.")
        assert users_told(both) == [f"user: {text}" for text in [*said, "On."]]


def forked(both: Both, *words: str) -> Path:
    step = both.cantle.run(["sessions", *words], both.project, {})
    assert step.code == 0, step.stderr
    return newest(both)


def newest(both: Both) -> Path:
    return max(both.cantle.sessions(), key=lambda file: file.name)


# --- compaction ----------------------------------------------------------------------------------


def compact(both: Both, who: str, file: Path, instructions: str = "") -> None:
    if who == "cantle":
        both.run("--session", str(file), "-p", f"/compact {instructions}")
    else:
        with both.rpc("--session", str(file)) as rpc:
            rpc.ask("compact", **({"customInstructions": instructions} if instructions else {}))


def say(both: Both, who: str, file: Path, text: str) -> None:
    if who == "cantle":
        both.run("--session", str(file), "-p", text)
    else:
        with both.rpc("--session", str(file)) as rpc:
            rpc.prompt(text)


@pytest.mark.parity("compaction.both-ways")
@pytest.mark.parametrize(("writer", "compactor"), [("cantle", "reference"), ("reference", "cantle")])
def test_each_compacts_what_the_other_wrote_and_both_go_on(both: Both, writer: str, compactor: str) -> None:
    file = talk_of(both, writer)
    before = file.read_bytes()
    compact(both, compactor, file, "Mind the birds.")
    assert file.read_bytes().startswith(before)
    assert "Mind the birds." in json.dumps(both.server.requests[-1].json)
    assert lines_of(file)[-1]["type"] == "compaction"

    say(both, writer, file, "Fourth.")
    first = both.told()
    assert first[0].startswith("user: <summary>## Goal\nSummary 1.")
    assert [line.partition(".")[0] for line in first[1:]] == ["assistant: Answer 3", "user: Fourth"]

    compact(both, writer, file)
    say(both, compactor, file, "Fifth.")
    second = both.told()
    assert "Summary 3." in second[0]
    assert [line.partition(".")[0] for line in second[1:]] == ["assistant: Answer 4", "user: Fifth"]
    asked: list[Any] = [request.json for request in both.server.requests]
    summing = [json.dumps(body) for body in asked if "tools" not in body]
    assert "Summary 1." in summing[2], "the second writer carries on what the first summed up"
    assert "Answer 3." in summing[2], "what the first kept is summed up again"


@pytest.mark.parity("compaction.both-ways")
@pytest.mark.parametrize(("failing", "next_one"), [("cantle", "reference"), ("reference", "cantle")])
def test_what_one_recovered_from_an_overflow_the_other_goes_on_with(
    both: Both, failing: str, next_one: str
) -> None:
    file = talk_of(both, failing)
    both.failures.append(OVERFLOW)
    say(both, failing, file, "Too much.")
    assert [line["type"] for line in lines_of(file)][-4:] == [
        "message",
        "context_edit",
        "compaction",
        "message",
    ]
    recovered = both.told()
    say(both, next_one, file, "On.")
    assert both.told()[: len(recovered)] == recovered
    assert [line.partition(".")[0] for line in both.told()[len(recovered) :]] == [
        "assistant: Answer 4",
        "user: On",
    ]


def shape(value: Any) -> Any:
    """The names of a record's fields in their order, and what stands in those that hold no words or numbers."""
    if isinstance(value, dict):
        return {name: shape(inner) for name, inner in value.items() if name not in ("cost", "details")}
    return value if isinstance(value, bool) else type(value).__name__


@pytest.mark.parity("events.compaction")
def test_both_tell_of_a_compaction_that_is_asked_for_in_the_same_records(both: Both) -> None:
    told: list[list[Any]] = []
    for who in ("cantle", "reference"):
        file = talk_of(both, who)
        if who == "cantle":
            words = ["--session", str(file), "--mode", "json", "/compact"]
            steps = [both.cantle.run([*MODEL, *words], both.project, {}) for _ in range(2)]
            assert [step.code for step in steps] == [0, 1]
            records = [record for step in steps for record in step.records if record["type"] != "session"]
        else:
            with both.rpc("--session", str(file)) as rpc:
                rpc.ask("compact")
                rpc.refused("compact")
                records = [record for record in rpc.said if record["type"] != "response"]
        assert [record["type"] for record in records] == ["compaction_start", "compaction_end"] * 2
        assert {record["reason"] for record in records} == {"manual"}
        told.append([list(record.items()) for record in map(shape, records)])
    assert told[0] == told[1]


# --- branches ------------------------------------------------------------------------------------


async def go(both: Both, who: str, file: Path, entry_id: str, *, summarize: bool) -> None:
    """Move in the tree, and say something there."""
    if who == "reference":
        with both.rpc("--session", str(file)) as rpc:
            rpc.ask("prompt", message="/go " + json.dumps({"id": entry_id, "summarize": summarize}))
            rpc.prompt("Another way.")
        return
    async with create_agent_session(
        config_dir=both.cantle.config, session=Session.open(file), provider="loop", model="m"
    ) as session:
        await session.navigate(entry_id, summarize=summarize)
        await session.prompt("Another way.")


@pytest.mark.parity("sessions.branches-both-ways")
@pytest.mark.parametrize("summarize", [True, False])
@pytest.mark.parametrize(("writer", "mover"), [("cantle", "reference"), ("reference", "cantle")])
async def test_each_branches_what_the_other_wrote_and_both_go_on(
    both: Both, writer: str, mover: str, summarize: bool
) -> None:
    file = talk_of(both, writer)
    lines = lines_of(file)
    await go(both, mover, file, user_entry(file, "Third."), summarize=summarize)
    after = lines_of(file)
    assert after[: len(lines)] == lines
    summaries = [line for line in after if line["type"] == "branch_summary"]
    if summarize:
        (summary,) = summaries
        third = next(line for line in lines if line["id"] == user_entry(file, "Third."))
        assert (summary["parentId"], summary["fromId"]) == (third["parentId"], lines[-1]["id"])
        assert summary["details"] == {"readFiles": [], "modifiedFiles": []}
    else:
        assert not summaries
    say(both, writer, file, "On.")
    told = users_told(both)
    assert told[:2] == ["user: First.", "user: Second."]
    assert told[-2:] == ["user: Another way.", "user: On."]
    assert len(told) == 4 + summarize
    assert not summarize or "Summary 1." in told[2]
