"""Seeded folders for the searching tools: ignore rules, repositories, links, odd names and encodings."""

import os
import random
import subprocess
from collections.abc import Sequence
from pathlib import Path

WORDS = (
    "a",
    "b",
    "ab",
    "foo",
    "bar",
    "build",
    "src",
    "x.py",
    "y.txt",
    "log",
    "x.log",
    ".hidden",
    "A",
    "foo bar",
    "é",
)
ODD = (
    "new\nline",
    "-dash",
    " lead",
    "trail ",
    "tab\there",
    "quote'",
    'dou"ble',
    "back\\slash",
    "[x]",
    "{a,b}",
    "*",
    "~",
    "#c",
    "!n",
)
PATTERNS = (
    "*.log", "*.py", "build", "build/", "/build", "foo/", "/foo/*", "src/*.txt", "**/x.py", "src/**", "a/**/b", "**/foo/**",
    "!x.log", "!build/", "!*.py", "!/src/y.txt", "[ab]", "[!a]b", "[^a]b", "[[:alpha:]]", "[[:digit:][:upper:]]", "a?",
    "?", "*", "!*/", "\\#c", "\\!n", "#c", "!n", "trail\\ ", "y.txt   ", "foo bar", "a*b", "a**b", "**", "**/", "/**",
    "ab/", "*/ab", "/*/ab", ".*", "!.hidden", "a/", "a/b", "/a/b", "x.*", "\\*", "\\[x\\]", "[[]x]", "{a,b}", "b\\", "[a",
    "[z-a]", "[a-", "[]-]x", "é", "[é]", "??", "foo/../bar", "./a", "//a", "a//b", "/", "!", "", "a/**", "**a", "***/a", "*[!a]*",
)  # fmt: skip


def git(folder: Path, *words: str) -> bytes:
    """What git prints, without the configuration of whoever runs this."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    variables |= {
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "HOME": str(folder),
        "XDG_CONFIG_HOME": str(folder),
    }
    done = subprocess.run(
        ["git", *words], cwd=folder, env=variables, capture_output=True, check=True, timeout=50
    )
    return done.stdout


def ignore_text(draw: random.Random, patterns: Sequence[str] = PATTERNS) -> str:
    """The text of an ignore file, now and then with CRLF, a mark, or no end of its last line."""
    lines = [draw.choice(patterns) for _ in range(draw.randint(1, 6))]
    end = draw.choice(("\n", "\n", "\n", "\r\n"))
    text = end.join(lines) + draw.choice((end, end, ""))
    return draw.choice(("", "", "", "\ufeff")) + text


def make_tree(
    root: Path,
    draw: random.Random,
    files: int,
    *,
    nested: bool = True,
    patterns: Sequence[str] = PATTERNS,
    odd: bool = True,
) -> None:
    """Fill the repository `root` with about that many files."""
    root.mkdir(parents=True, exist_ok=True)
    git(root, "init", "-q")
    folders = [root]
    names = (*WORDS, *ODD) if odd else WORDS
    for number in range(max(files // 9, 3)):
        folder = draw.choice(folders) / (draw.choice(names) if draw.random() < 0.7 else f"d{number}")
        if len(folder.parts) > len(root.parts) + 7 or folder.exists() or folder.is_symlink():
            continue
        folder.mkdir()
        folders.append(folder)
        if nested and draw.random() < 0.03:
            git(folder, "init", "-q")
    for number in range(files):
        path = draw.choice(folders) / (
            draw.choice(names)
            if draw.random() < 0.5
            else f"f{number}{draw.choice(('.py', '.log', '.txt', ''))}"
        )
        if not os.path.lexists(path):
            path.write_bytes(content(draw))
    for folder in folders:
        if folder == root or draw.random() < 0.25:
            (folder / ".gitignore").write_text(ignore_text(draw, patterns), "utf-8", newline="")
        if (folder / ".git").is_dir() and draw.random() < 0.5:
            (folder / ".git" / "info").mkdir(exist_ok=True)
            (folder / ".git" / "info" / "exclude").write_text(
                ignore_text(draw, patterns), "utf-8", newline=""
            )


def make_links(root: Path, draw: random.Random, count: int) -> None:
    """Links to files, to folders, to a folder above and to nothing."""
    folders = [Path(place) for place, _, _ in os.walk(root) if ".git" not in Path(place).parts]
    for number in range(count):
        folder = draw.choice(folders)
        target = draw.choice(
            (root, folder, folder.parent, folder / "f1.txt", folder / "nowhere", Path(".."), Path("x.py"))
        )
        (folder / f"link{number}").symlink_to(target)


TEXTS = (
    "def hit(one, two):", "return hit", "The Hit list", "no such thing", "x = 'é' * 3", "größe und maß", "日本語 hit", "K\u212a ſ ı İ",
    "a" * 700 + " hit", "", "  ", "tab\thit", "hit-x --y", "foo.bar(baz)", "word_word", "e\u0301 combining", "½ ² x", "hits 123 hits", "key word: value",
)  # fmt: skip


def content(draw: random.Random) -> bytes:
    """The bytes of a file in some encoding."""
    end = draw.choice(("\n", "\n", "\n", "\r\n"))
    text = end.join(draw.choice(TEXTS) for _ in range(draw.randint(0, 12))) + draw.choice((end, end, ""))
    kind = draw.randint(0, 19)
    if kind == 0:
        return text.encode("utf-16")
    if kind == 1:
        return b"\xfe\xff" + text.encode("utf-16-be") + draw.choice((b"", b"x", b"\xd8\x00\x00a"))
    if kind == 2:
        return text.encode("iso-8859-1", "replace")
    if kind == 3:
        return b"\xef\xbb\xbf" + text.encode()
    if kind == 4:
        return text.encode() + b"\0\1\2hit\n" + text.encode()
    if kind == 5:
        return bytes(draw.randrange(256) for _ in range(200)) + b"hit\n"
    if kind == 6:
        return text.encode() + b"hit \xff\xfe\xc3 \xe2\x82 \xed\xa0\x80 \xf0\x9f\x98 hit\n"
    if kind == 7 and draw.random() < 0.1:
        return b"x\n" * 40_000 + text.encode() + b"\0late hit\n" + text.encode()
    return text.encode()
