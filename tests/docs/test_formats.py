"""The pages about formats name what the code reads."""

import re

import msgspec
import pytest
from msgspec import Struct

from cantle import settings
from cantle_ai.apis.openai_completions_compat import OpenAICompletionsCompat
from cantle_ai.testing import response
from cantle_ai.testing.script_file import ScriptFile
from tests.support.paths import ROOT


def named(page: str) -> set[str]:
    text = (ROOT / "docs/formats" / page).read_text(encoding="utf-8")
    return {word for quoted in re.findall(r"`([^`\n]+)`", text) for word in re.split(r"[, ]+", quoted)}


def encoded(struct: type[Struct]) -> set[str]:
    return {field.encode_name for field in msgspec.structs.fields(struct)}


def test_the_page_on_models_names_every_quirk() -> None:
    assert encoded(OpenAICompletionsCompat) - named("models.md") == set()


@pytest.mark.parametrize(
    "struct",
    [
        ScriptFile,
        response.Response,
        response.TextBlock,
        response.ThinkingBlock,
        response.CallBlock,
        response.Count,
        response.Failure,
        response.When,
    ],
)
def test_the_page_on_scripted_models_names_every_field(struct: type[Struct]) -> None:
    assert encoded(struct) - named("scripted-model.md") == set()


def test_the_page_on_settings_names_every_key() -> None:
    # Of compaction the page says only that it comes later.
    keys = {key for key in settings._KEYS if not key.startswith("compaction")}
    groups = {key.partition(".")[0] for key in keys if "." in key}
    assert keys - groups - named("settings.md") == set()
