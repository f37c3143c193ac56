"""One large folder with everything in it: ripgrep and we find the same files and the same lines."""

import json
import os
import random
import subprocess
import time
from base64 import b64decode
from pathlib import Path

import pytest

from cantle.tools.search.ripgrep import find_ripgrep
from packages.cantle.tests.tools.search_trees import PATTERNS, make_links, make_tree
from packages.cantle.tests.tools.searching import Found, found_in, walked
from tests.support.extras import needs
from tests.support.samples import samples

pytestmark = needs("search")

FILES = samples(12_000, 900)

# What ripgrep reads otherwise than git does: braces, named sets, sets that are not closed, stars beside others.
READ_OTHERWISE = {
    "[[:digit:][:upper:]]", "[[:alpha:]]", "{a,b}", "[]-]x", "[a", "[a-", "[z-a]", "b\\", "!", "/", "/**", "**/", "***/a", "**a",
    "a**b", "//a", "a//b", "./a", "foo/../bar",
}  # fmt: skip
# What would leave too little of the tree.
TOO_MUCH = {"*", "**", "?", "??", "*/ab", ".*", "*[!a]*"}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with nested rules, negations and repositories, links, odd names and encodings."""
    root = tmp_path_factory.mktemp("tree")
    draw = random.Random(2)
    rules = [rule for rule in PATTERNS if rule not in READ_OTHERWISE | TOO_MUCH]
    make_tree(root, draw, FILES, patterns=rules)
    make_links(root, draw, FILES // 30)
    (root / "late").write_bytes(b"x\n" * 40_000 + b"\0late\nlate hit\n")
    return root


def ripgrep(root: Path, *words: str) -> bytes:
    """What ripgrep prints of the folder by its own walk, with our choice of what counts."""
    program = find_ripgrep()
    assert program is not None
    chosen = [
        "--no-config",
        "--hidden",
        "--no-ignore-global",
        "--no-messages",
        "--sort",
        "path",
        "--glob",
        "!.git",
    ]
    done = subprocess.run([program, *chosen, *words], cwd=root, capture_output=True, check=False, timeout=50)
    assert done.returncode < 2
    return done.stdout


def matches(root: Path, *words: str) -> Found:
    """The lines that ripgrep finds by its own walk."""
    found: Found = []
    for message in map(json.loads, ripgrep(root, "--json", *words, ".").splitlines()):
        data = message["data"]
        if message["type"] == "begin":
            found.append((_bytes(data["path"]).removeprefix(b"./"), []))
        elif message["type"] == "match":
            found[-1][1].append(
                (data["line_number"], _bytes(data["lines"]).removesuffix(b"\n")[:4_096], True)
            )
    return found


def _bytes(data: dict[str, str]) -> bytes:
    return data["text"].encode() if "text" in data else b64decode(data["bytes"])


def test_the_tree_is_what_it_is_meant_to_be(tree: Path) -> None:
    everything = [
        Path(place, name)
        for place, _, names in os.walk(tree)
        for name in names
        if ".git" not in Path(place).parts
    ]
    found = walked(tree)
    assert len(found) >= samples(5_000, 400)
    assert len(found) < len(everything) - len(list(tree.glob("**/link*")))
    assert any(b"\n" in path for path in found)
    assert any(path.rglob(".git") for path in tree.iterdir() if path.is_dir())


def test_the_walk_finds_the_files_that_ripgrep_finds_in_its_order(tree: Path) -> None:
    assert walked(tree) == ripgrep(tree, "--files", "-0").split(b"\0")[:-1]


@pytest.mark.parametrize("glob", ["*.py", "*.{log,txt}", "src/**", "**/foo/*", "f1*", "[a-f]*", "d1/**/*.py"])
def test_globs_choose_the_files_that_they_choose_for_ripgrep(tree: Path, glob: str) -> None:
    from cantle.tools.search.globs import path_glob

    # A glob of ripgrep's brings back what is ignored, which ours does not.
    expression = path_glob(glob)
    kept = set(walked(tree))
    theirs = [path for path in ripgrep(tree, "--files", "-0", "-g", glob).split(b"\0")[:-1] if path in kept]
    assert [path for path in walked(tree) if expression.fullmatch(os.fsdecode(path))] == theirs


EXPRESSIONS = [
    "hit", "Hit|such", "hit$", "^\\s*$", "\\bword\\w+", "\\w+ \\w+", "[a-z]+\\(.*\\)", "(\\w+\\s*)+:", "é", "größe", "日本語 \\w", "^.{3}$",
    "a{200,}", "(?i)HIT", "-x", "late", "", "[^\\x00-\\x7f]", "no such \\w+$|foo\\.bar", "\\.", "nothing at all",
]  # fmt: skip


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_both_ways_of_reading_find_the_same_lines(tree: Path, expression: str) -> None:
    ours = found_in(tree, expression, None)
    assert found_in(tree, expression, find_ripgrep()) == ours
    assert bool(ours) == (expression != "nothing at all")


@pytest.mark.parametrize(
    "expression", ["hit", "(?i)hit", "\\bword\\w+", "^[a-zA-Z ]{3}\\b", "größe", "[a-z]+\\(.*\\)"]
)
def test_ripgrep_by_its_own_walk_finds_them_too(tree: Path, expression: str) -> None:
    # Files with a NUL behind their first 64 KB are apart: ripgrep leaves the rest of those.
    late = {path for path, _ in found_in(tree, "late", None)}
    ours = [file for file in found_in(tree, expression, None) if file[0] not in late]
    assert ours == [file for file in matches(tree, "-e", expression) if file[0] not in late]


@pytest.mark.parametrize("context", [1, 3, 50])
def test_the_lines_around_matches_are_the_same(tree: Path, context: int) -> None:
    assert found_in(tree, "Hit", find_ripgrep(), context=context) == found_in(
        tree, "Hit", None, context=context
    )


def test_our_own_reading_takes_a_small_multiple_of_ripgreps_time(tree: Path) -> None:
    def seconds(work: object) -> float:
        taken = []
        for _ in range(3):
            begun = time.perf_counter()
            work()  # type: ignore[operator]
            taken.append(time.perf_counter() - begun)
        return min(taken)

    walk = seconds(lambda: walked(tree)) / seconds(lambda: ripgrep(tree, "--files"))
    read = seconds(lambda: found_in(tree, "such", None)) / seconds(lambda: matches(tree, "such"))
    assert walk < 8
    assert read < 15
