"""Sessions that come from others: forks, clones, copies; and one branch as a file."""

import json
import os
import signal
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from cantle_ai.content import ImageContent, TextContent
from cantle_ai.messages import UserMessage
from cantle_session.entries import LabelEntry
from cantle_session.errors import SessionFileError
from cantle_session.exports import export_jsonl
from cantle_session.forks import clone_session, copy_session, fork_points, fork_session
from cantle_session.listing import list_sessions, parents
from cantle_session.session import Session
from packages.session.tests.support import (
    HEADER,
    answer,
    chain,
    encoded,
    entries_on_disk,
    file_of,
    opened,
    said,
    texts,
    user,
    write,
)
from packages.session.tests.test_entries import ENTRIES
from tests.support.samples import samples

TREE = chain(
    said(user("one"), id="u1"),
    said(answer("A1"), id="a1"),
    said(user("two"), id="u2"),
    said(answer("A2"), id="a2"),
    said(user("other"), id="o1", parentId="a1"),
    said(answer("O1"), id="o2"),
)


def lines_of(path):
    return Path(path).read_bytes().split(b"\n")[1:-1]


@pytest.mark.parity("sessions.fork-before-a-message")
def test_a_fork_has_what_came_before_a_message_and_hands_the_message_back(tmp_path):
    session = opened(tmp_path / "s.jsonl", HEADER, *TREE)
    before = file_of(session).read_bytes()
    fork = fork_session(session, "u2", tmp_path / "forks")
    assert (texts(fork.session), fork.text) == (["one", "A1"], "two")
    assert lines_of(fork.session.file) == lines_of(session.file)[:2]
    assert fork.session.header.parent_session == str(session.file)
    assert (fork.session.header.cwd, fork.session.header.version) == ("/work", 3)
    assert fork.session.id != session.id
    fork.session.append_message(UserMessage("two, but better"))
    assert texts(Session.open(file_of(fork.session))) == ["one", "A1", "two, but better"]
    assert file_of(session).read_bytes() == before


def test_a_fork_hands_images_back_too(tmp_path):
    session = Session.create("/work", tmp_path / "s")
    session.append_message(UserMessage("begin"))
    image = ImageContent(data="aGk=", mime_type="image/png")
    entry = session.append_message(UserMessage([TextContent("look"), image]))
    fork = fork_session(session, entry.id, tmp_path / "forks")
    assert fork.text == "look"
    assert fork.message.content == [TextContent("look"), image]


@pytest.mark.parity("sessions.fork-before-a-message")
@pytest.mark.fault("F04")
def test_a_fork_before_the_first_message_is_a_new_session_with_one_header(tmp_path):
    session = opened(tmp_path / "s.jsonl", HEADER, *TREE)
    fork = fork_session(session, "u1", tmp_path / "forks")
    assert (fork.session.entries(), fork.text, fork.session.saved) == ([], "one", False)
    assert not (tmp_path / "forks").exists()
    fork.session.append_message(UserMessage("again"))
    header, entry = map(json.loads, file_of(fork.session).read_bytes().splitlines())
    assert (header["type"], header["parentSession"]) == ("session", str(session.file))
    assert (entry["type"], entry["parentId"]) == ("message", None)


@pytest.mark.fault("F04")
def test_a_fork_before_any_answer_has_one_header(tmp_path):
    session = opened(tmp_path / "s.jsonl", HEADER, *chain(said(user("1")), said(user("2")), said(user("3"))))
    fork = fork_session(session, "00000002", tmp_path / "forks").session
    fork.append_message(UserMessage("on"))
    kinds = [json.loads(line)["type"] for line in file_of(fork).read_bytes().splitlines()]
    assert kinds == ["session", "message", "message", "message"]


@pytest.mark.parity("sessions.fork-messages")
def test_where_a_session_can_be_forked(tmp_path):
    session = opened(tmp_path / "s.jsonl", HEADER, *TREE, *chain(said(user("")), {"type": "custom"}))
    assert [(point.entry_id, point.text) for point in fork_points(session)] == [
        ("u1", "one"),
        ("u2", "two"),
        ("o1", "other"),
    ]


@pytest.mark.parametrize("entry_id", ["a1", "o2"])
def test_a_session_is_forked_at_a_message_of_the_user_only(tmp_path, entry_id):
    session = opened(tmp_path / "s.jsonl", HEADER, *TREE)
    with pytest.raises(ValueError, match="no message of the user"):
        fork_session(session, entry_id, tmp_path / "forks")
    with pytest.raises(KeyError):
        fork_session(session, "nowhere", tmp_path / "forks")
    with pytest.raises(KeyError):
        clone_session(session, tmp_path / "forks", leaf="nowhere")
    assert not (tmp_path / "forks").exists()


@pytest.mark.parity("sessions.clone")
def test_a_clone_has_the_branch_where_the_session_stands(tmp_path):
    session = opened(tmp_path / "s.jsonl", HEADER, *TREE)
    assert texts(clone_session(session, tmp_path / "1")) == ["one", "A1", "other", "O1"]
    assert texts(clone_session(session, tmp_path / "2", leaf="a2")) == ["one", "A1", "two", "A2"]
    session.branch("u2")
    clone = clone_session(session, tmp_path / "3", cwd="/elsewhere", session_id="mine")
    assert (texts(clone), clone.id, clone.header.cwd) == (["one", "A1", "two"], "mine", "/elsewhere")
    session.reset_leaf()
    assert clone_session(session, tmp_path / "4").entries() == []


@pytest.mark.parity("sessions.fork-whole")
def test_a_copy_has_every_branch(tmp_path):
    session = opened(tmp_path / "s.jsonl", HEADER, *TREE)
    copy = copy_session(session, tmp_path / "copies", cwd="/elsewhere")
    assert lines_of(copy.file) == lines_of(session.file)
    assert (copy.header.cwd, copy.header.parent_session) == ("/elsewhere", str(session.file))
    assert copy.leaf_id == "o2"


def test_every_kind_of_entry_is_copied_byte_for_byte(tmp_path):
    odd = b'{ "type":"new_type" ,"id":"ffffffff","parentId":"%b","n":1.50,"n":2,"s":"\\ud800" }'
    known = chain(*[fields for fields, _ in ENTRIES])
    path = write(tmp_path / "s.jsonl", HEADER, *known, odd % known[-1]["id"].encode())
    for copy in (
        clone_session(Session.open(path), tmp_path / "c"),
        copy_session(Session.open(path), tmp_path / "d"),
    ):
        assert lines_of(copy.file) == lines_of(path)
        assert copy.warnings == []


@pytest.mark.fault("F05")
@pytest.mark.parity("sessions.fork-labels")
def test_labels_of_other_branches_go_with_their_entries(tmp_path):
    session = opened(tmp_path / "s.jsonl", HEADER, *TREE)
    session.append_label("a1", "start")
    session.append_label("a2", "old")
    session.append_label("u1", "gone")
    session.append_label("o2", "elsewhere")
    last = session.append_label("u1", None)
    fork = fork_session(session, "u2", tmp_path / "forks").session
    assert (fork.labels(), fork.warnings) == ({"a1": "start"}, [])
    (label,) = [entry for entry in fork.entries() if isinstance(entry, LabelEntry)]
    assert label.timestamp <= last.timestamp
    assert texts(fork) == ["one", "A1"]
    clone = clone_session(session, tmp_path / "clones")
    # The label of an entry that is not here stays a line, and is no label.
    assert clone.labels() == {"a1": "start", "o2": "elsewhere"}
    assert len(clone.entries()) == 9


@pytest.mark.fault("F05")
def test_forks_of_forks_keep_their_chain_through_labels_and_links(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    session = Session.open(write(tmp_path / "link" / "s.jsonl", HEADER, *TREE))
    chain_of = [session]
    for number in range(4):
        chain_of[-1].append_label("a1", f"label {number}")
        last = chain_of[-1].append_message(UserMessage(f"message {number}"))
        chain_of[-1].append_label(last.id, None)
        # Once through the link, once not.
        place = tmp_path / ("link" if number % 2 else "real")
        chain_of.append(fork_session(chain_of[-1], last.id, place).session)
    expected = ["one", "A1", "other", "O1"]
    assert texts(chain_of[-1]) == expected
    assert chain_of[-1].labels() == {"a1": "label 3"}
    infos = list_sessions(tmp_path / "real")
    found = parents(infos)
    ids = {info.location: info.id for info in infos}
    by_id = {ids[child]: ids[parent] for child, parent in found.items()}
    assert by_id == {child.id: parent.id for parent, child in pairwise(chain_of)}


def test_a_compaction_in_a_fork_keeps_what_it_kept_also_from_a_label_on(tmp_path):
    entries = chain(
        said(user("old")),
        {"type": "label", "targetId": "00000000", "label": "x"},
        said(user("kept")),
        said(answer("A")),
        {"type": "compaction", "summary": "sum", "firstKeptEntryId": "00000001", "tokensBefore": 5},
        said(user("new")),
        said(answer("B")),
        said(user("last")),
    )
    session = opened(tmp_path / "s.jsonl", HEADER, *entries)
    fork = fork_session(session, "00000007", tmp_path / "forks").session
    assert texts(fork) == ["<compactionSummary> sum", "kept", "A", "new", "B"]


def test_what_the_tree_made_of_an_unsound_file_is_written_down(tmp_path):
    one, two, three = (encoded(line).strip() for line in chain(*[said(user(text)) for text in "123"]))
    lost = encoded(chain(said(user("0"), id="aaaaaaaa", parentId="deadbeef"))[0]).strip()
    lines = [lost, one.replace(b"null", b'"aaaaaaaa"'), b'{"type":"mess' + two, three]
    session = opened(tmp_path / "s.jsonl", HEADER, *lines, "foreign")
    assert len(session.warnings) == 3
    for copy in (clone_session(session, tmp_path / "1"), Session.open(export_jsonl(session, tmp_path / "2"))):
        assert (texts(copy), copy.warnings) == (["0", "1", "2", "3"], [])
    copy = copy_session(session, tmp_path / "3")
    assert (texts(copy), len(copy.warnings)) == (["0", "1", "2", "3"], 1)


def test_a_fork_follows_the_tree_where_ids_are_not_sound(tmp_path):
    """The parent of a message is what the tree makes of it: the last one in front, or none."""
    one, again, three = chain(said(user("1")), said(user("again")), said(user("3")))
    lines = [one, three | {"parentId": one["id"]}, again | {"id": one["id"], "parentId": None}]
    session = opened(tmp_path / "s.jsonl", HEADER, *lines, said(user("lost"), id="lost", parentId="none"))
    assert texts(fork_session(session, three["id"], tmp_path / "forks").session) == ["1"]
    fork = fork_session(session, "lost", tmp_path / "forks")
    assert (fork.text, fork.session.entries()) == ("lost", [])


def test_a_session_in_memory_or_not_yet_kept_is_copied(tmp_path):
    for session in (Session.in_memory("/work"), Session.create("/work", tmp_path / "never")):
        session.append_model_change("p", "m")
        clone = clone_session(session, tmp_path / session.id)
        assert (clone.context().model, clone.header.parent_session) == (("p", "m"), None)
    assert not (tmp_path / "never").exists()


def test_an_old_file_is_forked_as_version_3_and_stays_what_it_is(tmp_path):
    header = {key: value for key, value in HEADER.items() if key != "version"}
    lines = [{"type": "message", "message": user(text)} for text in ("1", "2")]
    session = opened(tmp_path / "s.jsonl", header, *lines)
    before = file_of(session).read_bytes()
    point = fork_points(session)[1]
    fork = fork_session(session, point.entry_id, tmp_path / "forks").session
    assert (texts(fork), json.loads(file_of(fork).read_bytes().splitlines()[0])["version"]) == (["1"], 3)
    exported = export_jsonl(session, tmp_path / "out.jsonl")
    assert json.loads(exported.read_bytes().splitlines()[0])["version"] == 3
    assert file_of(session).read_bytes() == before


@pytest.mark.parametrize("session_id", ["", "../x", "a/b", ".", "x" * 201])
def test_an_id_that_can_be_no_file_name_is_refused(tmp_path, session_id):
    session = opened(tmp_path / "s.jsonl", HEADER, *TREE)
    for make in (clone_session, copy_session):
        with pytest.raises(ValueError, match="cannot be a session id"):
            make(session, tmp_path / "forks", session_id=session_id)
    assert sorted(tmp_path.iterdir()) == [session.file]


@pytest.mark.fault("F06")
@pytest.mark.timeout(50)
def test_f06_a_deep_branch_is_forked_in_step_with_its_length(tmp_path):
    count = samples(100_000, 20_000)
    session = opened(tmp_path / "s.jsonl", HEADER, *chain(*[said(user("x"))] * count))
    fork = fork_session(session, f"{count - 1:08x}", tmp_path / "forks").session
    assert len(fork.path()) == count - 1


# --- a branch as a file


@pytest.mark.parity("sessions.export-jsonl")
def test_a_branch_is_exported_as_a_session_of_the_same_id(tmp_path):
    session = opened(tmp_path / "s.jsonl", HEADER, *TREE)
    path = export_jsonl(session, tmp_path / "out" / "branch.jsonl")
    exported = Session.open(path)
    assert (exported.id, texts(exported)) == (session.id, ["one", "A1", "other", "O1"])
    assert path.read_bytes().split(b"\n")[0] == encoded(HEADER).strip()
    other = Session.open(export_jsonl(session, tmp_path / "other", leaf="u2"))
    assert texts(other) == ["one", "A1", "two"]
    assert len(entries_on_disk(tmp_path / "other")) == 3


def test_an_export_never_replaces_a_file(tmp_path):
    session = opened(tmp_path / "s.jsonl", HEADER, *TREE)
    for target in (file_of(session), write(tmp_path / "mine.txt", "mine")):
        before = target.read_bytes()
        with pytest.raises(SessionFileError, match="was left alone"):
            export_jsonl(session, target)
        assert target.read_bytes() == before
    with pytest.raises(SessionFileError, match="could not be written"):
        export_jsonl(session, tmp_path / "mine.txt" / "below")
    assert len(list(tmp_path.iterdir())) == 2


# --- whole or not at all

FORK = """
import sys
from cantle_session.forks import clone_session
from cantle_session.session import Session
session = Session.open(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
while True:
    clone_session(session, sys.argv[2])
"""


@pytest.mark.fault("F02")
@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX systems")
@pytest.mark.timeout(60)
def test_f02_a_fork_that_is_killed_leaves_whole_files_only(tmp_path):
    path = write(tmp_path / "s.jsonl", HEADER, *chain(*[said(user("x" * 2000))] * 1000))
    found = 0
    for number in range(samples(50, 4)):
        folder = tmp_path / str(number)
        worker = subprocess.Popen(
            [sys.executable, "-c", FORK, path, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        with worker:
            assert worker.stdout is not None and worker.stdin is not None
            assert worker.stdout.readline() == b"ready\n"
            worker.stdin.write(b"\n")
            worker.stdin.flush()
            while not folder.exists() or len(list(folder.iterdir())) <= number % 4:
                assert worker.poll() is None
            worker.send_signal(signal.SIGKILL)
        for copy in folder.glob("*.jsonl"):
            # What is open is not taken for left behind.
            with Session.open(copy) as session:
                assert (len(session.entries()), session.warnings) == (1000, [])
            found += 1
        # What was left behind goes with the next one.
        clone_session(Session.open(path), folder)
        assert list(folder.glob(".*")) == []
    assert found
