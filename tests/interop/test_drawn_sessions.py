"""Sessions drawn by chance mean the same to both: tree, context at every leaf, forks, and where they are cut."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cantle_session.branch_summary import plan_branch_summary
from cantle_session.compaction.plan import CompactionPlan, NothingToCompact, plan_compaction
from cantle_session.compaction.settings import CompactionSettings
from cantle_session.forks import clone_session
from cantle_session.session import Session
from tests.interop.drawn_sessions import Line, draw_session, write_session
from tests.support.reference import evaluated
from tests.support.samples import samples

pytestmark = [pytest.mark.reference, pytest.mark.slow, pytest.mark.timeout(600)]

DRAWN = samples(40, 8)

KEEP = (30, 200, 600)

_PACKAGE = "@earendil-works/pi-coding-agent"

_READ = """
    const found = FILES.map((file) => {
        const session = SessionManager.open(file);
        const ids = session.getEntries().map((entry) => entry.id);
        const marked = ids.filter((id) => session.getLabel(id));
        const leaves = ids.map((id) => {
            session.branch(id);
            const {messages, model, thinkingLevel} = session.buildSessionContext();
            const path = session.getBranch().map((entry) => entry.id);
            return {messages, model: model && [model.provider, model.modelId], thinkingLevel, path};
        });
        return {
            entries: session.getEntries().map((entry) => [entry.type, entry.id, entry.parentId]),
            labels: Object.fromEntries(marked.map((id) => [id, session.getLabel(id)])),
            name: session.getSessionName() ?? null,
            leaves,
        };
    });
"""

_CUT = """
    const found = FILES.map((file) => {
        const session = SessionManager.open(file);
        return session.getEntries().map((entry) => KEEP.map((keepRecentTokens) => {
            session.branch(entry.id);
            const settings = {enabled: true, reserveTokens: 1000, keepRecentTokens};
            const plan = prepareCompaction(session.getBranch(), settings);
            return plan ? {
                kept: plan.firstKeptEntryId,
                before: plan.tokensBefore,
                history: plan.messagesToSummarize,
                turn: plan.turnPrefixMessages,
                previous: plan.previousSummary ?? null,
                read: [...plan.fileOps.read],
                changed: [...plan.fileOps.written, ...plan.fileOps.edited],
            } : null;
        }));
    });
"""

_LEAVE = """
    const found = FILES.map((file) => {
        const session = SessionManager.open(file);
        const ids = session.getEntries().map((entry) => entry.id);
        return ids.map((left, number) => {
            const target = ids[(number * STEP) % ids.length];
            session.branch(left);
            const {entries, commonAncestorId} = collectEntriesForBranchSummary(session, left, target);
            const {messages, fileOps} = prepareBranchEntries(entries, 0);
            return {
                left,
                target,
                ancestor: commonAncestorId ?? null,
                entries: entries.map((entry) => entry.id),
                messages,
                read: [...fileOps.read],
                changed: [...fileOps.written, ...fileOps.edited],
            };
        });
    });
"""

_FORK = """
    const found = FILES.map((file) => SessionManager.open(file).getEntries().map((entry) => {
        const session = SessionManager.open(file);
        session.createBranchedSession(entry.id);
        return [session.getHeader(), ...session.getEntries()];
    }));
"""


def asked(script: str, files: list[Path]) -> Any:
    """What the reference finds in the files."""
    head = f"""
        import {{
            SessionManager, collectEntriesForBranchSummary, prepareBranchEntries
        }} from "{_PACKAGE}";
        import {{prepareCompaction}} from "./node_modules/{_PACKAGE}/dist/core/compaction/index.js";
        const STEP = 7, KEEP = {json.dumps(KEEP)}, FILES = {json.dumps([str(file) for file in files])};
    """
    return evaluated(f"{head}{script}; console.log(JSON.stringify(found));")


def drawn(folder: Path, *, sound: bool = False) -> list[Path]:
    """Files with a session in each."""
    return [
        write_session(folder / f"{seed}.jsonl", draw_session(seed, 60 if sound else 40, sound=sound))
        for seed in range(DRAWN)
    ]


@pytest.mark.parity("sessions.tree")
def test_both_see_the_same_tree_and_the_same_context_from_every_entry(tmp_path: Path) -> None:
    files = drawn(tmp_path)
    hidden = 0
    for file, theirs in zip(files, asked(_READ, files), strict=True):
        with Session.open(file) as session:
            assert [[link.type, link.id, link.parent_id] for link in session.links()] == theirs["entries"]
            assert session.labels() == theirs["labels"]
            assert session.name == theirs["name"]
            for (_, entry_id, _), leaf in zip(theirs["entries"], theirs["leaves"], strict=True):
                session.branch(entry_id)
                context = session.context()
                path = session.path()
                assert [entry.id for entry in path] == leaf["path"]
                assert [message.to_json() for message in context.messages] == leaf["messages"], entry_id
                assert context.model == (leaf["model"] and tuple(leaf["model"]))
                assert (context.thinking_level or "off") == leaf["thinkingLevel"]
                hidden += len(context.messages) < sum(entry.type == "message" for entry in path)
    assert hidden > DRAWN, "compactions and edits must have hidden something"


@pytest.mark.parity("sessions.branch-in-a-file")
def test_a_branch_in_a_file_of_its_own_has_the_same_lines(tmp_path: Path) -> None:
    files = drawn(tmp_path)[: DRAWN // 2]
    for file, theirs in zip(files, asked(_FORK, files), strict=True):
        with Session.open(file) as session:
            for link, lines in zip(list(session.links()), theirs, strict=True):
                with clone_session(session, tmp_path / "ours", leaf=link.id) as clone:
                    assert clone.file is not None
                    ours = [json.loads(line) for line in clone.file.read_bytes().split(b"\n") if line]
                assert branch_of(ours) == branch_of(lines)


@pytest.mark.parity(
    "compaction.cut-points",
    "compaction.entries-at-the-cut",
    "compaction.one-after-another",
    "compaction.tokens-before",
)
def test_both_cut_at_the_same_place_and_sum_up_the_same(tmp_path: Path) -> None:
    files = drawn(tmp_path, sound=True)
    plans = turns = 0
    for file, theirs in zip(files, asked(_CUT, files), strict=True):
        with Session.open(file) as session:
            for link, cuts in zip(list(session.links()), theirs, strict=True):
                if link.type == "compaction":
                    assert cuts == [None, None, None], (
                        "theirs never compacts twice in a row, whatever is left"
                    )
                    continue
                session.branch(link.id)
                for keep, their in zip(KEEP, cuts, strict=True):
                    ours = plan_of(session, keep)
                    assert (ours is None) == (their is None), (file, link.id, keep)
                    if ours is not None:
                        compare_plans(session, ours, their, (file, link.id, keep))
                        plans += 1
                        turns += bool(ours.turn)
    assert plans - DRAWN > turns > DRAWN, "both kinds of cuts must have been seen"


@pytest.mark.parity("sessions.branch-summary-placement", "sessions.branch-summary-content")
def test_both_sum_up_the_same_of_a_branch_that_is_left(tmp_path: Path) -> None:
    files = drawn(tmp_path, sound=True)
    compared = 0
    for file, theirs in zip(files, asked(_LEAVE, files), strict=True):
        with Session.open(file) as session:
            for their in theirs:
                session.branch(their["left"])
                ours = plan_branch_summary(session, their["target"])
                assert ours.common_ancestor_id == their["ancestor"]
                assert [entry.id for entry in ours.entries] == their["entries"]
                if any(entry.type == "compaction" for entry in ours.entries):
                    continue  # It stands for what it hides, here.
                said = [one.to_json() for one in ours.messages if one.role != "toolResult"]
                assert said == their["messages"]
                assert set(ours.files.changed) == set(their["changed"])
                assert set(ours.files.read) == set(their["read"]) - set(their["changed"])
                compared += len(said) > 1
    assert compared > DRAWN


def branch_of(lines: list[Line]) -> tuple[list[Line], dict[str, str]]:
    """The lines without what no two writers have the same, and the marks: Cantle leaves them where they were."""
    before: dict[str | None, str | None] = {}
    marks: dict[str, str] = {}
    shown = []
    for line in lines:
        parent = line.get("parentId")
        before[line["id"]] = before.get(parent, parent) if line["type"] == "label" else line["id"]
        if line["type"] == "label":
            marks[line["targetId"]] = line.get("label") or ""
            continue
        own = {"id", "timestamp"} if line["type"] == "session" else set()
        shown.append(
            {**{key: line[key] for key in line.keys() - own}, "parentId": before.get(parent, parent)}
        )
    ids = {line.get("id") for line in shown}
    return shown, {target: mark for target, mark in marks.items() if mark and target in ids}


def plan_of(session: Session, keep: int) -> CompactionPlan | None:
    try:
        return plan_compaction(session, CompactionSettings(reserve_tokens=1000, keep_recent_tokens=keep))
    except NothingToCompact:
        return None


def compare_plans(session: Session, ours: CompactionPlan, theirs: Any, where: object) -> None:
    shown = {place.entry.id for place in session.projected() if place.entry.type != "compaction"}
    path = [entry.id for entry in session.path()]
    behind = path[path.index(theirs["kept"]) :] if theirs["kept"] in path else []
    assert ours.first_kept_entry_id == next(filter(shown.__contains__, behind), None), where
    history, turn = ([one.to_json() for one in part] for part in (ours.messages, ours.turn))
    assert [*history, *turn] == [*theirs["history"], *theirs["turn"]], where
    if theirs["kept"] == ours.first_kept_entry_id:
        assert turn == theirs["turn"], where
    assert ours.previous_summary == theirs["previous"], where
    edited = any(entry.type == "context_edit" for entry in session.path())
    if ours.previous_summary is None and not edited:  # A summary is wrapped in each program's own words.
        assert ours.tokens_before == theirs["before"], where
    assert set(ours.files.changed) == set(theirs["changed"]), where
    assert set(ours.files.read) == set(theirs["read"]) - set(theirs["changed"]), where
