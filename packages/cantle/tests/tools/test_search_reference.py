"""`grep` and `ls` beside those of the reference. Needs CANTLE_REF=1, and ripgrep, which the reference uses.

Its `find` needs one more program, which is fetched from elsewhere: what is known of it stands in `test_find.py`.
"""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from cantle.tools.builtin import BUILTIN_TOOLS
from cantle.tools.environment import ToolEnvironment
from cantle.tools.search.ripgrep import find_ripgrep
from cantle_agent.tool import ToolError
from packages.cantle.tests.tools.harness import Tools, text_of
from packages.cantle.tests.tools.searching import write_files
from tests.support.extras import needs
from tests.support.reference import reference, reference_environment

__all__ = ["reference"]

pytestmark = [pytest.mark.reference, needs("search")]

_SCRIPT = """
import fs from "node:fs";
const { createGrepTool, createFindTool, createLsTool } = await import(process.argv[2]);
const tools = { grep: createGrepTool("work"), find: createFindTool("work"), ls: createLsTool("work") };
const found = [Object.entries(tools).map(([name, tool]) => [name, tool.parameters])];
for (const [name, args] of JSON.parse(fs.readFileSync("cases.json", "utf8"))) {
  try {
    const result = await tools[name].execute("id", args);
    found.push({ text: result.content[0].text, details: result.details ?? null });
  } catch (problem) {
    found.push({ failed: true });
  }
}
fs.writeFileSync("found.json", JSON.stringify(found));
process.exit(0);
"""

FILES: dict[str, str | bytes] = {
    "a.txt": "one\ntwo hit\nthree\nfour hit\nfive\n", "b/c.py": "hit", "b/d.txt": "no\n", ".env": "hit\n", ".gitignore": "out/\n",
    "out/x": "hit\n", "long": "x" * 600 + "hit\n", "bom": "\ufeffhit é\n".encode("utf-16-le"), "B.txt": "", "-x": "hit -x\n",
}  # fmt: skip
CASES: list[tuple[str, dict[str, Any]]] = [
    ("grep", {"pattern": "hit"}), ("grep", {"pattern": "HIT", "ignoreCase": True}), ("grep", {"pattern": "hit", "path": "b"}),
    ("grep", {"pattern": "hit", "path": "a.txt", "context": 1}), ("grep", {"pattern": "hit", "glob": "*.py"}),
    ("grep", {"pattern": "hit", "glob": "b/*"}), ("grep", {"pattern": "-x"}), ("grep", {"pattern": "(", "literal": True}),
    ("grep", {"pattern": "hit", "path": "out"}), ("grep", {"pattern": "hit", "path": "a.txt", "limit": 1}),
    ("grep", {"pattern": "hit", "path": "a.txt", "limit": 2}), ("grep", {"pattern": "("}), ("grep", {"pattern": "x", "path": "gone"}),
    ("ls", {}), ("ls", {"path": "b"}), ("ls", {"path": "b", "limit": 1}), ("ls", {"path": "b", "limit": 2}),
    ("ls", {"path": "gone"}), ("ls", {"path": "a.txt"}),
]  # fmt: skip


async def test_lines_entries_limits_and_failures_are_those_of_the_reference(
    reference: list[str], tmp_path: Path
) -> None:
    theirs = of_the_reference(reference, tmp_path)[1:]
    tools = Tools(tmp_path / "work")
    for (name, arguments), their in zip(CASES, theirs, strict=True):
        try:
            result = await tools.call(name, arguments)
        except ToolError:
            assert their == {"failed": True}, arguments
            continue
        assert not their.get("failed"), (arguments, text_of(result))
        assert lines(text_of(result)) == lines(their["text"]), arguments
        assert result.details == their["details"], arguments


@pytest.mark.parity("tools.search-names")
async def test_arguments_are_those_of_the_reference(reference: list[str], tmp_path: Path) -> None:
    for name, parameters in of_the_reference(reference, tmp_path)[0]:
        ours: Any = BUILTIN_TOOLS[name](ToolEnvironment(tmp_path)).parameters
        assert set(ours["properties"]) == set(parameters["properties"])
        assert ours.get("required", []) == parameters.get("required", [])


def of_the_reference(reference: list[str], folder: Path) -> list[Any]:
    """The reference's declarations, then what it answers to every case."""
    write_files(folder / "work", FILES)
    (folder / "work" / ".git").mkdir()
    (folder / "cases.json").write_text(json.dumps(CASES), "utf-8")
    (folder / "run.mjs").write_text(_SCRIPT, "utf-8")
    node, program = reference
    variables = reference_environment(folder)
    variables["PATH"] = f"{Path(find_ripgrep() or '').parent}{os.pathsep}{variables['PATH']}"
    module = (Path(program).parent.parent / "index.js").as_uri()
    subprocess.run([node, "run.mjs", module], cwd=folder, env=variables, check=True, timeout=50)
    found: list[Any] = json.loads((folder / "found.json").read_text("utf-8"))
    return found


def lines(text: str) -> list[str]:
    """The lines of a result in an order of ours, without notices, sentences and signs for what was cut."""
    shown = text.partition("\n\n[")[0].split("\n")
    kept = [line.removesuffix("... [truncated]").removesuffix("…") for line in shown]
    return sorted(line for line in kept if not line.startswith(("No ", "(")))
