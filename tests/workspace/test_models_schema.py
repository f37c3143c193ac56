"""The JSON schema of models.json: what it takes, the reader takes, and what the reader refuses, it refuses."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from cantle_ai.errors import ConfigurationError
from cantle_ai.models_file import load_models_file
from cantle_ai.schemas import MODELS_SCHEMA
from packages.ai.tests.test_models_file import MISTAKES
from tests.support.paths import ROOT
from tools.models_schema.__main__ import PAGE, main, renewed, schema, schema_text
from tools.models_schema.fields import COST, IMAGES, INPUT_LIMITS, MODEL, PROMPT_CACHE, PROVIDER, RESIZE
from tools.models_schema.quirks import apis_of, quirk_tables

SCHEMA = json.loads(MODELS_SCHEMA.read_text(encoding="utf-8"))

WHOLE: dict[str, Any] = {
    "providers": {
        "home": {
            "name": "Home",
            "baseUrl": "http://127.0.0.1:1/v1",
            "api": "openai-completions",
            "apiKey": "$HOME_KEY",
            "headers": {"X-A": "!command"},
            "authHeader": True,
            "server": "openai",
            "compat": {"thinkingFormat": "qwen", "supportsStore": False, "supportsLater": {"unknown": 1}},
            "models": [
                {
                    "id": "a/b:c",
                    "name": "M",
                    "reasoning": True,
                    "thinkingLevelMap": {"off": None, "max": "most"},
                    "input": ["text", "image"],
                    "cost": {"input": 1, "output": 2, "cacheRead": 0, "cacheWrite": 0, "cacheWrite1h": 2, "tiers": [
                        {"inputTokensAbove": 9, "input": 1, "output": 2, "cacheRead": 0, "cacheWrite": 0}]},
                    "contextWindow": 9,
                    "maxTokens": 3,
                    "inputLimits": {"maxRequestBytes": 5, "images": {"maxPerMessage": 1, "maxPerRequest": 1, "resize": {"maxWidth": 1, "maxHeight": 1, "maxBytes": 1, "jpegQuality": 1}}},
                    "promptCache": {"short": 300, "long": 3600},
                    "samplingParams": {"top_p": 0.9},
                    "samplingParamsByThinkingLevel": {"high": {"top_k": 2}},
                    "headers": {"X-B": "$$"},
                    "compat": {"maxTokensField": "max_tokens"},
                    "later": [1],
                }
            ],
            "modelOverrides": {"a/b:c": {"cost": {"input": 3}, "maxTokens": 2}},
            "later": None,
        },
    },
}  # fmt: skip


def problems(value: Any, rule: dict[str, Any], path: str = "$") -> list[str]:
    """What is wrong with `value` by a rule, as far as this schema uses the language."""
    if "$ref" in rule:
        name = str(rule["$ref"]).removeprefix("#/$defs/")
        return problems(
            value, {**SCHEMA["$defs"][name], **{k: v for k, v in rule.items() if k != "$ref"}}, path
        )
    found: list[str] = []
    if "anyOf" in rule and all(problems(value, choice, path) for choice in rule["anyOf"]):
        found.append(f"{path}: none of the choices")
    kinds = rule.get("type")
    if kinds is not None and not any(
        _is(value, kind) for kind in ([kinds] if isinstance(kinds, str) else kinds)
    ):
        return [*found, f"{path}: not {kinds}"]
    if "enum" in rule and value not in rule["enum"]:
        found.append(f"{path}: not one of {rule['enum']}")
    if isinstance(value, int | float) and value < rule.get("minimum", value):
        found.append(f"{path}: too small")
    if isinstance(value, str) and len(value) < rule.get("minLength", 0):
        found.append(f"{path}: too short")
    if isinstance(value, dict):
        known = rule.get("properties", {})
        found += [f"{path}.{name}: missing" for name in rule.get("required", ()) if name not in value]
        for name, part in value.items():
            inner = known.get(name, rule.get("additionalProperties", True))
            if inner is False:
                found.append(f"{path}.{name}: unknown")
            elif isinstance(inner, dict):
                found += problems(part, inner, f"{path}.{name}")
    if isinstance(value, list):
        if len(value) < rule.get("minItems", 0):
            found.append(f"{path}: too few")
        for index, item in enumerate(value):
            found += problems(item, rule.get("items", {}), f"{path}[{index}]")
    return found


def _is(value: Any, kind: str) -> bool:
    if kind in ("integer", "number"):
        whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
        return not isinstance(value, bool) and (
            whole if kind == "integer" else isinstance(value, int | float)
        )
    kinds = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
    return isinstance(value, kinds[kind])


def test_the_schema_and_the_page_are_made_from_the_table() -> None:
    assert MODELS_SCHEMA.read_text(encoding="utf-8") == schema_text(), (
        "run: uv run python -m tools.models_schema"
    )
    page = PAGE.read_text(encoding="utf-8")
    assert page.count("<!-- made by tools/models_schema:") == 4
    assert renewed(page) == page, "run: uv run python -m tools.models_schema"
    assert main(["--check"]) == 0


def test_a_whole_file_is_right_by_the_schema_and_for_the_reader(tmp_path: Path) -> None:
    assert problems(WHOLE, schema()) == []
    path = tmp_path / "models.json"
    path.write_text(json.dumps(WHOLE), encoding="utf-8")
    assert load_models_file(path).models["home"][0].max_tokens == 3


def test_the_whole_file_has_every_field_of_the_table() -> None:
    provider = WHOLE["providers"]["home"]
    model = provider["models"][0]
    limits = model["inputLimits"]
    for fields, part in (
        (PROVIDER, provider),
        (MODEL, {**model, "api": "", "baseUrl": ""}),
        (COST, model["cost"]),
        (INPUT_LIMITS, limits),
        (IMAGES, limits["images"]),
        (RESIZE, limits["images"]["resize"]),
        (PROMPT_CACHE, model["promptCache"]),
    ):
        assert {field.name for field in fields} - {"oauth"} <= set(part)


def test_the_fields_of_the_table_are_those_that_are_read() -> None:
    source = ROOT / "packages/ai/src/cantle_ai"
    code = "".join(
        (source / name).read_text(encoding="utf-8") for name in ("models_file.py", "model_entries.py")
    )
    read = set(re.findall(r'(?:text|flag|number|count|texts|part|parts|items|json_object)\("(\w+)"\)', code))
    table = {field.name for field in (*PROVIDER, *MODEL, *COST, *INPUT_LIMITS, *IMAGES)} | {
        "inputTokensAbove"
    }
    assert read - {"providers"} <= table
    assert all(f'"{name}"' in code for name in table)


@pytest.mark.parity("models.editor-schema")
@pytest.mark.parametrize(("value", "text"), MISTAKES, ids=[text for _, text in MISTAKES])
def test_an_editor_marks_what_the_reader_refuses(tmp_path: Path, value: Any, text: str) -> None:
    needs_the_rest_of_the_file = "baseUrl is missing" in text or "api is missing" in text
    assert problems(value, schema()) or needs_the_rest_of_the_file
    path = tmp_path / "models.json"
    path.write_text(json.dumps(value), encoding="utf-8")
    with pytest.raises(ConfigurationError):
        load_models_file(path)


def test_every_quirk_is_explained() -> None:
    for apis, quirks in quirk_tables().items():
        assert [quirk.name for quirk in quirks if not quirk.text] == [], apis
    assert len(apis_of()) >= 6
