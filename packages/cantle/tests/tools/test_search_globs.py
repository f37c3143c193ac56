"""Globs of a model: what they take, beside ripgrep's where it says the same."""

import os
import random
import re
import subprocess
import time
from pathlib import Path

import pytest

from cantle.tools.search.globs import GlobError, path_glob
from cantle.tools.search.ripgrep import find_ripgrep
from packages.cantle.tests.tools.search_trees import make_tree
from packages.cantle.tests.tools.searching import walked
from tests.support.extras import needs
from tests.support.samples import samples


def takes(glob: str, path: str) -> bool:
    """Whether the glob takes the path; a folder's has a slash at its end."""
    marked = path.removesuffix("/") + "\0" if path.endswith("/") else path
    return path_glob(glob).fullmatch(marked) is not None


@pytest.mark.fault("I06")
@pytest.mark.parametrize(
    ("glob", "taken", "left"),
    [
        ("*.py", ["a.py", "a/b.py", ".py", "d.py/"], ["a.pyc", "a.py/b"]),
        ("a/*.py", ["a/b.py"], ["a/b/c.py", "x/a/b.py", "a.py"]),
        ("./a/*.py", ["a/b.py"], ["x/a/b.py"]),
        ("./*.py", ["a.py"], ["a/b.py"]),
        ("/*.py", ["a.py"], ["a/b.py"]),
        (".//a", ["a"], ["b/a"]),
        ("**/a.py", ["a.py", "x/a.py", "x/y/a.py"], ["xa.py"]),
        ("a/**", ["a/b", "a/b/c", "a/b/"], ["a", "a/", "b/a/c"]),
        ("a/**/b", ["a/b", "a/x/b", "a/x/y/b"], ["a/xb", "ab"]),
        ("**", ["a", "a/b", "a/"], []),
        ("a**b", ["ab", "axxb"], ["a/b"]),
        ("src/**/*.{ts,tsx}", ["src/a.ts", "src/x/y/a.tsx"], ["a.ts", "src/a.tsy"]),
        ("{src,test}/**", ["src/a", "test/x/y"], ["srctest/a", "a/src/b"]),
        ("{*.py,doc/**}", ["doc/a", "a.py"], ["x/a.py"]),
        ("{,x}a", ["a", "xa"], ["ya"]),
        ("a{b,{c,d}e}", ["ab", "ace", "ade"], ["ac", "a"]),
        ("a}", ["a}"], ["a"]),
        ("{a,b}}{,c}", ["a}", "b}c"], ["a"]),
        ("{[{,}],\\{\\,}", ["{", ",", "{,"], ["\\{"]),
        ("{}", [""], ["{}"]),
        ("{{a,b},c}d", ["ad", "bd", "cd"], ["d"]),
        ("?", ["a", "é", "日"], ["ab", "a/b/cd"]),
        ("[a-c]x", ["ax", "cx"], ["dx", "x"]),
        ("[!a-c]x", ["dx", "éx"], ["ax"]),
        ("[^a]x", ["bx"], ["ax"]),
        ("[]x]", ["]", "x"], ["a"]),
        ("[[:digit:]]", ["1"], ["a"]),
        ("a[!b]c", ["axc"], ["a/c"]),
        ("\\*", ["*"], ["a"]),
        ("\\{a\\}", ["{a}"], ["a"]),
        ("-x", ["-x"], ["x"]),
        ("d/", ["d/", "x/d/"], ["d"]),
        ("A", ["A"], ["a"]),
        ("new\nline", ["new\nline"], ["new"]),
    ],
)
def test_i06_what_a_glob_takes(glob: str, taken: list[str], left: list[str]) -> None:
    assert [path for path in taken if not takes(glob, path)] == []
    assert [path for path in left if takes(glob, path)] == []


@pytest.mark.parametrize(
    "glob",
    [
        "[",
        "[a",
        "[a-",
        "{a",
        "{a,{b}",
        "a\\",
        "[[:what:]]",
        "{a,b}" * 7,
        "{a,b}" * 40,
        "{" * 2_000 + "}" * 2_000,
    ],
)
def test_a_glob_that_means_nothing_is_refused(glob: str) -> None:
    with pytest.raises(GlobError):
        path_glob(glob)


PARTS = (
    "*", "**", "/", "/", "?", "[ab]", "{a,b}", "{*.py,*.log}", "{foo,src/**}", "a", "b", "foo", "build", "x", ".py", ".log",
    ".txt", ".", "x.py", "\\*", "\\[x\\]", "]", "-", "**/", "/**", "/**/", "src", "d", "f1", ",", "[a-c]", "[x-]", "{a,{b,f*}}",
    "{a/b,x.py}", "[[a]",
)  # fmt: skip


@needs("search")
def test_globs_take_the_files_that_they_take_for_ripgrep(tmp_path: Path) -> None:
    # Without what it understands differently: bytes for characters, / in a set, an empty alternative, a lone },
    # three stars, and ** with something behind its alternatives.
    program = find_ripgrep()
    assert program is not None
    make_tree(tmp_path, random.Random(5), 400, patterns=["zzz"], nested=False)
    files = [path for path in walked(tmp_path) if path.isascii()]
    draw = random.Random(11)
    for _ in range(samples(2_000, 60)):
        glob = "".join(draw.choice(PARTS) for _ in range(draw.randint(1, 5)))
        if glob.startswith("./") or re.search(r"\*\*\*|\*\*\}.", glob):
            continue
        words = ["--no-config", "--files", "--hidden", "--no-ignore", "-0", "--sort", "path", "--glob", glob]
        run = subprocess.run([program, *words], cwd=tmp_path, capture_output=True, check=False, timeout=50)
        theirs = [
            path for path in run.stdout.split(b"\0") if path.isascii() and not path.startswith(b".git/")
        ]
        assert run.returncode != 2, (glob, run.stderr)
        expression = path_glob(glob)
        ours = [path for path in files if expression.fullmatch(os.fsdecode(path))]
        assert ours == theirs[:-1], glob


def test_no_glob_keeps_a_search_busy_for_ever() -> None:
    begun = time.process_time()
    for glob in (
        "*a*a*a*a*a*a*a*a*a*b", "**/a*a/**/a*a/**/a*a/**/a*a/**/b", "*?a*[ab]*a*a*a*a*b*c", "{*a*a*a*a*a*a*b,x}",
        "{*a,*a*}{*a,*a*}{*a,*a*}{*a,*a*}b", "{**/a*a/**/a*a/**/a*a/**/b,c}",
    ):  # fmt: skip
        for path in ("a" * 250, "/".join(["aa"] * 1_000)):
            assert not takes(glob, path)
    assert time.process_time() - begun < 2
