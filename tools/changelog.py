"""Assembles the fragments in `changes/` into a section of CHANGELOG.md.

    python3 tools/changelog.py             print the section
    python3 tools/changelog.py --release   write it into CHANGELOG.md and remove the fragments

The format of a fragment is described in `changes/README.md`. A fragment that breaks it is named with the
reason, and nothing is written.
"""

import argparse
import datetime
import re
import sys
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KINDS = {
    "added": "Added",
    "changed": "Changed",
    "fixed": "Fixed",
    "removed": "Removed",
    "security": "Security",
}
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*\.(?P<kind>[a-z]+)\.md")
_HEADING = "# Changelog\n"


@dataclass(frozen=True, slots=True)
class Fragment:
    """One change: where it is written, what kind it is, and its paragraph on one line."""

    path: Path
    kind: str
    text: str


class BadFragment(ValueError):
    """A fragment that breaks the format; the message names the file and the rule."""


def read_fragment(path: Path) -> Fragment:
    """Read one fragment, or raise `BadFragment`."""
    name = _NAME.fullmatch(path.name)
    if name is None:
        raise BadFragment(f"{path.name}: the name is not <words-with-hyphens>.<kind>.md")
    kind = name["kind"]
    if kind not in KINDS:
        raise BadFragment(f"{path.name}: {kind!r} is not one of {', '.join(KINDS)}")
    text = path.read_text(encoding="utf-8").strip()
    if not text.endswith("."):
        raise BadFragment(f"{path.name}: the text does not end in a full stop")
    if "\n\n" in text or text.startswith(("#", "-", "*")):
        raise BadFragment(f"{path.name}: the text is not one plain paragraph")
    return Fragment(path, kind, " ".join(text.split()))


def fragments(folder: Path) -> list[Fragment]:
    """All fragments of a folder, in the order of their names."""
    return [read_fragment(path) for path in sorted(folder.glob("*.md")) if path.name != "README.md"]


def section(title: str, parts: Iterable[Fragment]) -> str:
    """The Markdown of one release."""
    parts = list(parts)
    blocks = [f"## {title}\n"]
    for kind, heading in KINDS.items():
        lines = [f"- {part.text}\n" for part in parts if part.kind == kind]
        if lines:
            blocks.append(f"### {heading}\n\n{''.join(lines)}")
    return "\n".join(blocks)


def release(root: Path, today: datetime.date) -> None:
    """Move the fragments under `root` into its CHANGELOG.md."""
    parts = fragments(root / "changes")
    with (root / "pyproject.toml").open("rb") as file:
        version = tomllib.load(file)["project"]["version"]
    changelog = root / "CHANGELOG.md"
    old = changelog.read_text(encoding="utf-8") if changelog.exists() else _HEADING
    rest = old.removeprefix(_HEADING).lstrip("\n")
    new = f"{_HEADING}\n{section(f'{version} ({today.isoformat()})', parts)}\n{rest}".rstrip("\n") + "\n"
    changelog.write_text(new, encoding="utf-8")
    for part in parts:
        part.path.unlink()


def main() -> int:
    parser = argparse.ArgumentParser(description="Assemble the change fragments.")
    parser.add_argument("--release", action="store_true", help="write CHANGELOG.md and remove the fragments")
    options = parser.parse_args()
    try:
        if options.release:
            release(ROOT, datetime.datetime.now(tz=datetime.UTC).date())
        else:
            print(section("Unreleased", fragments(ROOT / "changes")), end="")
    except BadFragment as problem:
        print(problem, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
