"""Ignore rules: the walk beside git itself, and what git does not say."""

import os
import random
import subprocess
import time
from pathlib import Path

import pytest

from cantle.tools.search.ignore import parse_ignore_file
from cantle.tools.search.walk import Unreadable, walk
from packages.cantle.tests.tools.harness import as_nobody
from packages.cantle.tests.tools.search_trees import PATTERNS, git, make_links, make_tree
from packages.cantle.tests.tools.searching import unchecked, walked, write_files
from tests.support.samples import samples


@pytest.mark.parametrize("batch", range(20))
def test_the_walk_finds_what_git_would_add(tmp_path: Path, batch: int) -> None:
    for seed in range(samples(75, 2)):
        draw = random.Random(batch * 1_000 + seed)
        root = tmp_path / str(seed)
        make_tree(root, draw, 60, nested=False)
        make_links(root, draw, 3)
        theirs = git(root, "ls-files", "--others", "--exclude-standard", "-z").split(b"\0")[:-1]
        assert sorted(walked(root, "file link")) == sorted(theirs), (batch, seed)


@pytest.mark.parametrize("batch", range(10))
def test_single_lines_rule_out_what_they_do_for_git(tmp_path: Path, batch: int) -> None:
    draw = random.Random(batch)
    git(tmp_path, "init", "-q")
    names = ("a", "b", "ab", "[x]", "é", "x.py", "a b", "trail ", "\\", "#c", "!n", "-", "*", "a]", "A")
    for _ in range(samples(100, 3)):
        line = "".join(
            draw.choice((*PATTERNS, *names, "/", "*", "**", "[", "]", "\\", " "))
            for _ in range(draw.randint(1, 3))
        )
        paths = ["/".join(draw.choice(names) for _ in range(draw.randint(1, 3))) for _ in range(40)]
        for path in paths:
            # Git asks the disk whether a path is a folder.
            if not os.path.lexists(tmp_path / path) and all(
                not (tmp_path / above).is_file() for above in parents(path)
            ):
                write_files(tmp_path, {path: ""})
        (tmp_path / ".gitignore").write_text(line + "\n", "utf-8", newline="")
        theirs = git(tmp_path, "ls-files", "--others", "--exclude-standard", "-z").split(b"\0")[:-1]
        assert sorted(walked(tmp_path)) == sorted(theirs), line


def parents(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:end]) for end in range(1, len(parts))]


def test_rules_reach_neither_into_a_nested_repository_nor_out_of_it(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {
            ".gitignore": "*.log\n", ".git/HEAD": "", "a.log": "", "in/.git/HEAD": "", "in/b.log": "", "in/c.txt": "",
            "in/.gitignore": "*.txt\n", "d.txt": "", "work/.git": "gitdir: nowhere\n", "work/e.log": "",
        },
    )  # fmt: skip
    assert walked(tmp_path) == [
        b".gitignore", b"d.txt", b"in/.gitignore", b"in/b.log", b"work/e.log"
    ]  # fmt: skip


def test_what_a_repository_excludes_privately_counts(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {".git/info/exclude": "secret\n/top\n", "secret": "", "a/secret": "", "a/top": "", "top": ""},
    )
    assert walked(tmp_path) == [b"a/top"]
    assert walked(tmp_path / "a") == [b"top"]


def test_a_work_tree_has_the_excludes_of_its_repository(tmp_path: Path) -> None:
    main, tree = tmp_path / "main", tmp_path / "tree"
    main.mkdir()
    git(main, "init", "-q")
    git(main, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "x")
    git(main, "worktree", "add", "-q", str(tree))
    write_files(tmp_path, {"main/.git/info/exclude": "secret\n", "tree/secret": "", "tree/open": ""})
    assert walked(tree) == [b"open"]


def test_rules_above_the_folder_count_up_to_the_repository(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {
            ".gitignore": "*.md\n", "repo/.git/HEAD": "", "repo/.gitignore": "*.log\n/a/b/x\nb/y\n",
            "repo/a/.gitignore": "!keep.log\n", "repo/a/b/keep.log": "", "repo/a/b/z.log": "", "repo/a/b/x": "",
            "repo/a/b/y": "", "repo/a/b/n.md": "",
        },
    )  # fmt: skip
    assert walked(tmp_path / "repo" / "a" / "b") == [b"keep.log", b"n.md", b"y"]


def test_without_a_repository_rules_count_from_the_folder_down(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {".gitignore": "*\n", "a/.gitignore": "*.log\n", "a/x.log": "", "a/b/y.log": "", "a/b/z": ""},
    )
    assert walked(tmp_path / "a") == [b".gitignore", b"b/z"]
    assert walked(tmp_path) == []


@pytest.mark.parametrize("rule", ["out/", "out", "/out/*", "**/out/**", "out/**"])
def test_a_folder_that_is_ruled_out_is_searched_when_it_is_asked_for(tmp_path: Path, rule: str) -> None:
    write_files(tmp_path, {".git/HEAD": "", ".gitignore": f"{rule}\n", "out/in/x": "", "out/in/y": ""})
    assert walked(tmp_path) == [b".gitignore"]
    assert walked(tmp_path / "out" / "in") == [b"x", b"y"]


def test_ignore_files_for_searches_are_stronger_than_those_of_git(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {
            ".gitignore": "a\nb\nc\n", ".ignore": "!b\n!c\nd\n", ".rgignore": "c\n!d\n", ".fdignore": "e\n",
            "a": "", "b": "", "c": "", "d": "", "e": "", "in/.gitignore": "b\n!a\n", "in/a": "", "in/b": "",
        },
    )  # fmt: skip
    hidden = [b".fdignore", b".gitignore", b".ignore", b".rgignore"]
    assert walked(tmp_path) == [*hidden, b"b", b"d", b"e", b"in/.gitignore", b"in/a", b"in/b"]


@pytest.mark.fault("I05")
def test_i05_what_a_user_configured_for_git_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_files(tmp_path, {"home/.config/git/ignore": "*.txt\n", "home/all": "*.txt\n", "repo/a.txt": ""})
    write_files(tmp_path, {"home/.gitconfig": f"[core]\n\texcludesFile = {tmp_path}/home/all\n"})
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    git(tmp_path / "repo", "init", "-q")
    assert walked(tmp_path / "repo") == [b"a.txt"]


@pytest.mark.parametrize(
    ("text", "ignored", "kept"),
    [
        (b"a\r\nb\r\n", ["a", "b"], ["a\r"]),
        (b"\xef\xbb\xbfa\n", ["a"], []),
        (b"a   \nb\\ \n", ["a", "b "], ["a   ", "b"]),
        (b"*.py\n!keep.py", ["x.py"], ["keep.py"]),
        (b"\\!a\n\\#b\n#c\n", ["!a", "#b"], ["#c", "a"]),
        (b"caf\xe9\n", [], ["café"]),
        (b"a?c\n", ["abc"], ["aéc", "a/c"]),
        (b"[a\nb\\\n\n/\n!\n   \n", [], ["[a", "b\\", "b", "x"]),
    ],
)
def test_lines_of_an_ignore_file(text: bytes, ignored: list[str], kept: list[str]) -> None:
    rules = parse_ignore_file(text)
    for name in ignored:
        assert rules is not None and rules.verdict(name.encode()) is True, name
    for name in kept:
        assert rules is None or not rules.verdict(name.encode()), name


def test_a_pipe_or_a_folder_in_place_of_an_ignore_file_is_none(tmp_path: Path) -> None:
    write_files(tmp_path, {"a": "", ".ignore/x": ""})
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / ".gitignore")
    assert walked(tmp_path) == [b".ignore/x", b"a"]


def test_links_are_named_and_never_followed(tmp_path: Path) -> None:
    write_files(tmp_path, {"real/a": "", "other/b": ""})
    (tmp_path / "real" / "up").symlink_to("..")
    (tmp_path / "file").symlink_to("real/a")
    (tmp_path / "gone").symlink_to("nowhere")
    (tmp_path / "self").symlink_to("self")
    assert walked(tmp_path, "link") == [b"file", b"gone", b"real/up", b"self"]
    assert walked(tmp_path) == [b"other/b", b"real/a"]
    (tmp_path / "way").symlink_to("real")
    assert walked(tmp_path / "way") == [b"a"]


@pytest.mark.parity("tools.grep-order")
def test_entries_come_in_the_order_of_their_bytes_with_what_they_hold_behind_them(tmp_path: Path) -> None:
    write_files(tmp_path, {"b/x": "", "b.txt": "", "B": "", "a": "", "é": "", "_": ""})
    (tmp_path / os.fsdecode(b"\xff")).write_bytes(b"")
    assert walked(tmp_path, "file folder") == [
        b"B", b"_", b"a", b"b", b"b/x", b"b.txt", "é".encode(), b"\xff"
    ]  # fmt: skip


@pytest.mark.root
def test_a_folder_that_may_not_be_read_is_noted_and_the_rest_searched(open_folder: Path) -> None:
    write_files(open_folder, {"a/x": "", "shut/y": "", "z": ""})
    (open_folder / "shut").chmod(0)

    def work() -> None:
        unreadable: list[Unreadable] = []
        found = [entry.path for entry in walk(str(open_folder), unreadable, unchecked)]
        assert found == [b"a", b"a/x", b"shut", b"z"], found
        assert unreadable == [Unreadable(b"shut", "permission denied")], unreadable

    as_nobody(work)


def test_a_walk_reads_a_folder_when_its_turn_comes(tmp_path: Path) -> None:
    write_files(tmp_path, {f"d{number}/x": "" for number in range(50)})
    looks: list[None] = []
    entries = walk(str(tmp_path), [], lambda: looks.append(None))
    assert [next(entries).path for _ in range(3)] == [b"d0", b"d0/x", b"d1"]
    assert len(looks) == 2


def test_a_walk_is_given_up_between_folders(tmp_path: Path) -> None:
    write_files(tmp_path, {f"d{number}/x": "" for number in range(50)})

    seen: list[bytes] = []

    def check() -> None:
        if len(seen) >= 3:
            raise InterruptedError

    entries = walk(str(tmp_path), [], check)
    with pytest.raises(InterruptedError):
        for entry in entries:
            seen.append(entry.path)
    assert seen == [b"d0", b"d0/x", b"d1"]


def test_folders_may_be_nested_deeper_than_python_calls_itself(tmp_path: Path) -> None:
    here = tmp_path
    depth = 1_100
    descriptor = os.open(here, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d", dir_fd=descriptor)
        below = os.open("d", os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = below
    os.close(descriptor)
    try:
        assert len(walked(tmp_path, "folder")) == depth
    finally:
        # Python's own removal gives up on such a tree.
        subprocess.run(["rm", "-rf", str(here / "d")], check=True, timeout=50)


def test_thousands_of_lines_cost_hardly_more_than_ten() -> None:
    def seconds(lines: int) -> float:
        rules = parse_ignore_file(
            "".join(f"/dir{n}/*.log\nname{n}\n*.ext{n}\n/a{n}/b\n" for n in range(lines)).encode()
        )
        assert (
            rules is not None
            and rules.verdict(b"x/name1")
            and rules.verdict(b"dir1/a.log")
            and rules.verdict(b"x.ext1")
        )
        begun = time.process_time()
        for number in range(2_000):
            assert rules.verdict(b"some/path/to/a/file%d.py" % number) is None
        return time.process_time() - begun

    assert min(seconds(5_000) for _ in range(3)) < 10 * min(seconds(5) for _ in range(3))


@pytest.mark.parametrize(
    "line", ["*a*a*a*a*a*a*a*a*b", "**/a/**/a/**/a/**/a/**/a/**/b", "*a?a*[a-z]*a*a*a*a*b*"]
)
def test_no_line_keeps_a_walk_busy_for_ever(line: str) -> None:
    rules = parse_ignore_file(line.encode())
    assert rules is not None
    begun = time.process_time()
    for path in (b"a" * 250, b"/".join([b"a"] * 1_500)):
        assert rules.verdict(path) is None
    assert time.process_time() - begun < 2
