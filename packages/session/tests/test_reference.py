"""The reference's own reading of the same files and directories, beside ours."""

import json
import subprocess
from pathlib import Path

import pytest

from cantle_ai.messages import UserMessage
from cantle_session.entries import (
    BranchSummaryEntry,
    CompactionEntry,
    ContextEditEntry,
    CustomMessageEntry,
    Entry,
    LabelEntry,
    UsageEntry,
)
from cantle_session.exports import export_jsonl
from cantle_session.folders import session_folder
from cantle_session.forks import clone_session, copy_session, fork_session
from cantle_session.lines import encode_entry
from cantle_session.repair import repair_session
from cantle_session.session import Session
from packages.session.tests.support import (
    HEADER,
    answer,
    chain,
    conversation,
    file_of,
    said,
    text_of,
    texts,
    user,
    write,
)
from packages.session.tests.test_entries import ENTRIES
from packages.session.tests.test_folders import FOLDERS
from packages.session.tests.test_legacy import V1, V2
from packages.session.tests.test_projection import PATHS
from tests.support.reference import reference_environment, reference_program

pytestmark = [pytest.mark.reference, pytest.mark.timeout(120)]

NAMES = """
console.log(JSON.stringify(input.map((cwd) => SessionManager.create(cwd).getSessionFile())));
"""
CONTEXTS = """
console.log(JSON.stringify(input.map((file) => {
  const session = SessionManager.open(file);
  return { messages: session.buildSessionContext().messages, leaf: session.getLeafId(),
           name: session.getSessionName() ?? null, entries: session.getEntries() };
})));
"""
CONTINUE = """
const session = SessionManager.open(input.file);
for (const text of input.texts) session.appendMessage({ role: "user", content: text, timestamp: 1 });
session.appendMessage(input.answer);
session.appendCompaction?.("sum", session.getLeafId(), 5);
console.log(JSON.stringify(session.buildSessionContext().messages));
"""


def ask(tmp_path, script, given):
    """What a script prints that has the reference's sessions and `given` as `input`."""
    node, program = reference_program()
    module = Path(program).parents[1] / "index.js"
    head = f'import {{ SessionManager }} from {json.dumps(str(module))};\nimport fs from "fs";\n'
    (tmp_path / "given.json").write_text(json.dumps(given), encoding="utf-8")
    read = f'const input = JSON.parse(fs.readFileSync({json.dumps(str(tmp_path / "given.json"))}, "utf8"));\n'
    (tmp_path / "script.mjs").write_text(head + read + script, encoding="utf-8")
    done = subprocess.run(
        [node, tmp_path / "script.mjs"],
        env=reference_environment(tmp_path / "home"),
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_folders_have_the_same_names(tmp_path):
    files = ask(tmp_path, NAMES, list(FOLDERS))
    assert [Path(file).parent.name for file in files] == list(FOLDERS.values())
    assert [session_folder(cwd, "/s").name for cwd in FOLDERS] == [Path(file).parent.name for file in files]


def test_contexts_are_the_same(tmp_path):
    files = {
        name: write(tmp_path / f"{n}.jsonl", HEADER, *chain(*path))
        for n, (name, (path, _)) in enumerate(PATHS.items())
    }
    read = ask(tmp_path, CONTEXTS, [str(file) for file in files.values()])
    for (name, file), theirs in zip(files.items(), read, strict=True):
        ours = Session.open(file)
        assert texts(ours) == [text_of(message) for message in theirs["messages"]], name
        assert (ours.leaf_id, ours.name) == (theirs["leaf"], theirs["name"]), name


def test_old_versions_become_the_same(tmp_path):
    for number, lines in enumerate((V1, V2)):
        mine = Session.open(write(tmp_path / f"mine{number}.jsonl", *lines))
        (theirs,) = ask(tmp_path, CONTEXTS, [str(write(tmp_path / f"theirs{number}.jsonl", *lines))])
        assert texts(mine) == [text_of(message) for message in theirs["messages"]]
        own = {"id", "parentId", "firstKeptEntryId"}
        ours = [{k: v for k, v in entry.to_json().items() if k not in own} for entry in mine.entries()]
        assert ours == [{k: v for k, v in entry.items() if k not in own} for entry in theirs["entries"]]


def test_the_reference_reads_what_is_written_here_and_goes_on(tmp_path):
    with Session.create("/work", tmp_path / "sessions") as session:
        session.append_model_change("p", "m")
        session.append_thinking_level_change("high")
        for message in conversation(9):
            session.append_message(message)
        session.append_session_info("my name")
        session.append_custom("c", {"x": 1})
        session.append_message(UserMessage("line\u2028 \ud800 end"))
    (theirs,) = ask(tmp_path, CONTEXTS, [str(session.file)])
    with Session.open(file_of(session)) as again:
        assert theirs["entries"] == [entry.to_json() for entry in again.entries()]
        assert (theirs["leaf"], theirs["name"]) == (again.leaf_id, "my name")
        answer = again.path()[3].to_json()["message"]
    given = {"file": str(session.file), "texts": ["theirs 1", "theirs 2"], "answer": answer}
    after = ask(tmp_path, CONTINUE, given)
    with Session.open(file_of(session)) as again:
        assert texts(again) == [text_of(message) for message in after]
        assert again.warnings == []
        again.append_message(UserMessage("ours"))
    (theirs,) = ask(tmp_path, CONTEXTS, [str(session.file)])
    assert theirs["messages"][-1]["content"] == "ours"


def test_every_entry_type_is_written_as_the_reference_reads_it(tmp_path):
    raws = chain(*[fields for fields, _ in ENTRIES])
    place = {"parent_id": raws[-1]["id"], "timestamp": "2026-01-01T00:00:00.000Z"}
    usage = next(entry for entry in map(_entry, raws) if isinstance(entry, UsageEntry)).usage
    made: list[Entry] = [
        CustomMessageEntry(id="a0000000", **place, custom_type="c", content="note"),
        ContextEditEntry(id="a0000001", **place, target_id=raws[0]["id"], replacement={"content": "edited"}),
        LabelEntry(id="a0000002", **place, target_id=raws[0]["id"], label="here"),
        UsageEntry(id="a0000003", **place, kind="k", provider="p", model="m", usage=usage),
        BranchSummaryEntry(id="a0000004", **place, from_id=raws[0]["id"], summary="tried"),
        CompactionEntry(
            id="a0000005", **place, summary="sum", first_kept_entry_id=raws[0]["id"], tokens_before=5
        ),
    ]
    file = write(tmp_path / "all.jsonl", HEADER, *raws, *map(encode_entry, made))
    (theirs,) = ask(tmp_path, CONTEXTS, [str(file)])
    ours = Session.open(file)
    assert theirs["entries"] == [entry.to_json() for entry in ours.entries()]
    # Where a compaction keeps system messages, the reference puts one of its own. Neither is sent here.
    mine = [message.to_json() for message in ours.context().messages if message.role != "system"]
    assert list(map(text_of, mine)) == [text_of(m) for m in theirs["messages"] if m["role"] != "system"]


def _entry(raw):
    from cantle_session.entries import entry_from_json

    return entry_from_json(raw)


LABELS = """
console.log(JSON.stringify(input.map((file) => {
  const session = SessionManager.open(file);
  const named = session.getEntries().map((e) => [e.id, session.getLabel(e.id)]);
  return Object.fromEntries(named.filter(([, label]) => label !== undefined));
})));
"""
BRANCHES = """
console.log(JSON.stringify(input.leaves.map((leaf) => {
  const session = SessionManager.open(input.file);
  session.createBranchedSession(leaf);
  const named = session.getEntries().map((e) => [e.id, session.getLabel(e.id)]);
  return { messages: session.buildSessionContext().messages, name: session.getSessionName() ?? null,
           labels: Object.fromEntries(named.filter(([, label]) => label !== undefined)) };
})));
"""


@pytest.mark.parity("sessions.clone", "sessions.fork-labels")
def test_a_branch_as_a_session_of_its_own_comes_to_the_same(tmp_path):
    file = write(tmp_path / "all.jsonl", HEADER, *chain(*[fields for fields, _ in ENTRIES]))
    with Session.open(file) as session:
        ids = [entry.id for entry in session.entries() if entry.type != "label"]
        session.branch(ids[3])
        session.append_message(UserMessage("another branch"))
        for number, target in enumerate((ids[0], ids[2], ids[-1])):
            session.append_label(target, f"label {number}")
        session.append_label(ids[2], None)
    theirs = ask(tmp_path, BRANCHES, {"file": str(file), "leaves": ids})
    with Session.open(file) as session:
        for leaf, there in zip(ids, theirs, strict=True):
            clone = clone_session(session, tmp_path / "clones", leaf=leaf)
            mine = [message.to_json() for message in clone.context().messages if message.role != "system"]
            assert list(map(text_of, mine)) == [
                text_of(message) for message in there["messages"] if message["role"] != "system"
            ]
            assert (clone.labels(), clone.name) == (there["labels"], there["name"])


@pytest.mark.parity("sessions.fork-labels", "sessions.export-jsonl")
def test_the_reference_reads_forks_exports_and_repaired_copies(tmp_path):
    entries = chain(said(user("1")), said(answer("2")), said(user("3")), said(user("x"), parentId="00000000"))
    session = Session.open(write(tmp_path / "s.jsonl", HEADER, *entries, "foreign"))
    session.append_label("00000000", "start")
    session.append_label("00000002", "end")
    files = [
        file_of(fork_session(session, "00000002", tmp_path / "copies").session),
        file_of(clone_session(session, tmp_path / "copies", leaf="00000002")),
        file_of(copy_session(session, tmp_path / "copies")),
        export_jsonl(session, tmp_path / "out.jsonl"),
        repair_session(file_of(session)).copy,
    ]
    names = [str(file) for file in files]
    for file, theirs, labels in zip(
        names, ask(tmp_path, CONTEXTS, names), ask(tmp_path, LABELS, names), strict=True
    ):
        ours = Session.open(file)
        assert theirs["entries"] == [entry.to_json() for entry in ours.entries()]
        assert [text_of(message) for message in theirs["messages"]] == texts(ours)
        assert labels == ours.labels()
