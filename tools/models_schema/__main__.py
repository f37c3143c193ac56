"""Makes the JSON schema of `models.json`, which ships with the package, and the tables of its page.

python -m tools.models_schema             writes both
python -m tools.models_schema --check     writes nothing; fails where something would change
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from cantle_ai.providers import WIRE_APIS
from cantle_ai.schemas import MODELS_SCHEMA
from tools.models_schema.fields import COST, MODEL, PROVIDER, Field, model_fields, part, plain
from tools.models_schema.quirks import Quirk, compat_schema, quirk_tables

PAGE = Path(__file__).resolve().parents[2] / "docs/formats/models.md"
_PART = re.compile(r"(<!-- made by tools/models_schema: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def schema() -> dict[str, Any]:
    """The schema, for any editor that knows JSON schema."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Cantle's models.json",
        "description": "Providers and models that are added or changed.",
        "type": "object",
        "properties": {
            "$schema": {"type": "string"},
            "providers": {
                "description": "By id. One that is known is changed, another one is added.",
                "type": "object",
                "additionalProperties": {"$ref": "#/$defs/provider"},
            },
        },
        "$defs": {
            "provider": part(*PROVIDER),
            "model": part(*MODEL, whole=True),
            "change": part(*model_fields(whole=False)),
            "api": {"anyOf": [{"enum": sorted(WIRE_APIS)}, {"type": "string", "minLength": 1}]},
            "compat": compat_schema(),
        },
    }


def schema_text() -> str:
    """The file."""
    return json.dumps(schema(), indent=1, ensure_ascii=False) + "\n"


def renewed(page: str) -> str:
    """The page with its tables made anew."""
    tables = {
        "providers": _table(PROVIDER),
        "models": _table(MODEL),
        "cost": _table(COST),
        "quirks": "\n".join(_quirks(apis, quirks) for apis, quirks in quirk_tables().items()),
    }
    return _PART.sub(lambda found: f"{found[1]}\n{tables[found[2]]}\n{found[3]}", page)


def _table(fields: Iterable[Field]) -> str:
    rows = "".join(f"| `{field.name}` | {_said(field)} | {field.default} |\n" for field in fields)
    return f"| field | value | without it |\n|---|---|---|\n{rows}"


def _said(field: Field) -> str:
    return f"{field.text} Needed." if field.needed else field.text


def _quirks(apis: str, quirks: Iterable[Quirk]) -> str:
    names = apis.replace(", ", "`, `")
    rows = "".join(
        f"| `{quirk.name}` | {_values(quirk)} | {quirk.text.replace('|', chr(92) + '|')} |\n"
        for quirk in quirks
    )
    return f"### `{names}`\n\n| quirk | values, the first holds without it | |\n|---|---|---|\n{rows}"


def _values(quirk: Quirk) -> str:
    """What it may be, what holds without it first."""
    kinds = quirk.kind.get("anyOf", [quirk.kind])
    choices = [value for kind in kinds for value in kind.get("enum", ())]
    if quirk.kind.get("type") == "boolean":
        choices = [True, False]
    if not choices:
        return "" if quirk.default is None else f"`{json.dumps(quirk.default)}`, …"
    ordered = sorted(choices, key=lambda value: value != quirk.default)
    return ", ".join(f"`{value if isinstance(value, str) else json.dumps(value)}`" for value in ordered)


def main(words: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tools.models_schema", description=plain(__doc__ or ""))
    parser.add_argument(
        "--check", action="store_true", help="write nothing, fail where something would change"
    )
    options = parser.parse_args(words)
    page = PAGE.read_text(encoding="utf-8")
    made = {MODELS_SCHEMA: schema_text(), PAGE: renewed(page)}
    changed = [
        path for path, text in made.items() if not path.is_file() or path.read_text(encoding="utf-8") != text
    ]
    for path in changed:
        print(f"{path}: {'differs' if options.check else 'written'}")
        if not options.check:
            path.write_text(made[path], encoding="utf-8", newline="\n")
    return 1 if options.check and changed else 0


if __name__ == "__main__":
    sys.exit(main())
