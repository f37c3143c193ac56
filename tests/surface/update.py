"""Writes the data files of this folder anew: `python -m tests.surface.update`. Read the diff."""

import json
from dataclasses import asdict

from tests.surface.surface import FOLDER, all_imports, public_names


def main() -> None:
    found = {kind: asdict(imports) for kind, imports in all_imports().items()}
    for name, data in (("public_names.json", public_names()), ("imports.json", found)):
        (FOLDER / name).write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
