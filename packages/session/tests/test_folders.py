"""Where sessions lie."""

import os
from pathlib import Path

import pytest

from cantle_session.folders import absolute_directory, session_file_name, session_folder

# What the reference names the folder of each directory; checked against it in test_reference.py.
FOLDERS = {
    "/tmp/x": "--tmp-x--",
    "/tmp/x/": "--tmp-x--",
    "//tmp//x": "--tmp-x--",
    "/tmp/x y": "--tmp-x y--",
    "/tmp/ünï—日本": "--tmp-ünï—日本--",
    "/tmp/a:b": "--tmp-a-b--",
    "/tmp/a\\b": "--tmp-a-b--",
    "/": "----",
    "/tmp/..": "----",
    "/tmp/--a--": "--tmp---a----",
    "/tmp/.hid": "--tmp-.hid--",
    "/tmp/\u2028z": "--tmp-\u2028z--",
    "/tmp/a%b*?": "--tmp-a%b*?--",
}

posix = pytest.mark.skipif(os.name == "nt", reason="directories of POSIX systems")


@posix
@pytest.mark.parity("sessions.folder-name")
@pytest.mark.parametrize("cwd", FOLDERS)
def test_a_folder_has_the_name_that_the_reference_gives_it(cwd):
    assert session_folder(cwd, "/sessions") == Path("/sessions") / FOLDERS[cwd]


@posix
def test_a_relative_directory_is_made_absolute(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert session_folder("a/b", tmp_path) == session_folder(tmp_path / "a" / "b", tmp_path)
    assert absolute_directory("") == str(tmp_path)


@posix
@pytest.mark.parametrize("letter", ["n", "é", "日"])
def test_a_name_too_long_for_a_file_system_is_cut_and_still_one_for_each_directory(tmp_path, letter):
    names = [session_folder("/" + "/".join([letter * 80] * 6) + end, tmp_path) for end in ("", "x")]
    assert names[0] != names[1]
    for name in names:
        name.mkdir()


@posix
def test_a_directory_whose_name_is_not_text_has_a_folder(tmp_path):
    session_folder(os.fsdecode(b"/tmp/\xff\xfe"), tmp_path).mkdir()


@pytest.mark.parity("sessions.file-name")
def test_a_file_is_named_after_the_time_and_id_of_its_session():
    name = session_file_name("2026-01-31T23:59:59.123Z", "0197a000")
    assert name == "2026-01-31T23-59-59-123Z_0197a000.jsonl"
