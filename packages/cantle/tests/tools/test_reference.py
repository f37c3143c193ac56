"""Diffs of edits beside those of the reference. Needs CANTLE_REF=1."""

import json
import random
import re
import subprocess
from pathlib import Path

import pytest

from cantle.tools.diff import diff_details
from cantle.tools.edit.matching import Matcher
from cantle.tools.text_files import decode_file
from cantle_ai.codec import JsonObject
from packages.cantle.tests.tools.harness import edit_json
from tests.support.reference import reference, reference_environment

__all__ = ["reference"]

_SCRIPT = """
import fs from "node:fs";
const { createEditTool } = await import(process.argv[2]);
const cases = JSON.parse(fs.readFileSync("cases.json", "utf8"));
const edit = createEditTool(process.cwd());
const found = [];
for (const one of cases) {
  fs.writeFileSync("a.txt", one.text);
  found.push((await edit.execute("id", { path: "a.txt", edits: one.edits })).details);
}
fs.writeFileSync("found.json", JSON.stringify(found));
process.exit(0);
"""


def cases(count: int) -> list[tuple[str, list[tuple[str, str]]]]:
    draw = random.Random(7)
    made = []
    for _ in range(count):
        lines = [f"line {number} {draw.choice('abc')}" for number in range(draw.randint(1, 60))]
        edits = []
        for number in draw.sample(range(len(lines)), min(len(lines), draw.randint(1, 4))):
            line = lines[number]
            edits.append((line, draw.choice([f"{line}!", "X\nY", f"{line}\nadded", f"pre\n{line}", ""])))
        made.append(("\n".join(lines) + draw.choice(["\n", ""]), edits))
    return made


@pytest.mark.reference
def test_diff_patch_and_first_line_are_those_of_the_reference(reference: list[str], tmp_path: Path) -> None:
    made = cases(300)
    asked = [{"text": text, "edits": [edit_json(*edit) for edit in edits]} for text, edits in made]
    (tmp_path / "cases.json").write_text(json.dumps(asked), encoding="utf-8")
    (tmp_path / "run.mjs").write_text(_SCRIPT, encoding="utf-8")
    node, program = reference
    module = Path(program).parent.parent / "index.js"
    subprocess.run(
        [node, "run.mjs", module.as_uri()],
        cwd=tmp_path,
        env=reference_environment(tmp_path),
        check=True,
        timeout=50,
    )
    found = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))
    for (text, edits), theirs in zip(made, found, strict=True):
        file = decode_file(text.encode())
        ours = diff_details(file.shown, Matcher(file, "a.txt").changes(edits), "a.txt")
        assert unpadded(ours) == unpadded(theirs)


def unpadded(details: JsonObject) -> JsonObject:
    """The details with numbers of lines as wide as they are: the width is ours to choose."""
    return {**details, "diff": re.sub(r"(?m)^([ +-]) *", r"\1", str(details["diff"]))}
