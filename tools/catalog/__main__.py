"""Makes `cantle_ai/catalog/*.json` from what the reference's packages know of models.

    python -m tools.catalog --package FOLDER      FOLDER has them in its node_modules, with node itself
    python -m tools.catalog --facts FILE          FILE holds what `facts.mjs` printed
    python -m tools.catalog … --check             writes nothing; fails where a file would change

Facts alone are taken: ids, names, limits, modalities, levels, prices and quirks. What a provider's row says
already is not said again, and quirks that no API here reads are left out.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cantle_ai.catalog import FOLDER
from cantle_ai.providers import BUILTIN_PROVIDERS
from tools.catalog.rows import catalog_text

HERE = Path(__file__).parent
DATES = {"1.6.0": "2026-11-20"}
"""When a version of the packages was published: the day of its figures."""


def main(words: Sequence[str] | None = None) -> int:
    """The command. The exit status is 1 when `--check` finds a difference."""
    options = _options().parse_args(words)
    facts = (
        json.loads(options.facts.read_text(encoding="utf-8")) if options.facts else dumped(options.package)
    )
    changed = []
    for name, text in made(facts).items():
        path = options.into / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            changed.append(path)
            if not options.check:
                path.write_text(text, encoding="utf-8", newline="\n")
    for path in changed:
        print(f"{path}: {'differs' if options.check else 'written'}")
    return 1 if options.check and changed else 0


def made(facts: dict[str, Any]) -> dict[str, str]:
    """The files that the facts make, by name. Providers without a row, or without chat models, make none."""
    version = facts["version"]
    source = f"@earendil-works/pi-ai {version} (npm), by tools/catalog"
    return {
        f"{row.id}.json": catalog_text(
            row, facts["providers"][row.id], source=source, date=DATES.get(version, "unknown")
        )
        for row in BUILTIN_PROVIDERS
        if facts["providers"].get(row.id, {}).get("models")
    }


def dumped(folder: Path) -> dict[str, Any]:
    """The facts of the packages in `folder`."""
    script = (HERE / "facts.mjs").read_text(encoding="utf-8")
    run = subprocess.run(
        [str(folder / "node_modules/.bin/node"), "--input-type=module", "--eval", script],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        encoding="utf-8",
        check=True,
    )
    facts: dict[str, Any] = json.loads(run.stdout)
    return facts


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tools.catalog", description="Makes the catalog's files from facts about models."
    )
    origin = parser.add_mutually_exclusive_group(required=True)
    origin.add_argument("--package", type=Path, help="folder in which the reference's packages are installed")
    origin.add_argument("--facts", type=Path, help="file with what facts.mjs printed")
    parser.add_argument("--into", type=Path, default=FOLDER, help="folder of the catalog")
    parser.add_argument("--check", action="store_true", help="write nothing, fail where a file would change")
    return parser


if __name__ == "__main__":
    sys.exit(main())
