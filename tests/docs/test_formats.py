"""The pages about formats name what the code reads."""

import re
from typing import get_args

import msgspec
import pytest
from msgspec import Struct

from cantle import settings
from cantle_ai.apis.openai_completions_compat import OpenAICompletionsCompat
from cantle_ai.testing import response
from cantle_ai.testing.script_file import ScriptFile
from cantle_session.entries import Entry, UnknownEntry
from cantle_session.lines import decode_entry, decode_header, encode_entry, encode_header
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


SESSION_PAGE = (ROOT / "docs/formats/session.md").read_text(encoding="utf-8")


def session_example() -> list[bytes]:
    found = re.search(r'```jsonl title="session.jsonl"\n(.*?)```', SESSION_PAGE, re.DOTALL)
    assert found is not None
    return found[1].encode().splitlines()


def test_the_page_on_sessions_draws_an_entry_of_each_type_as_it_is_written() -> None:
    header, *lines = session_example()
    first = decode_header(header)
    assert first is not None and encode_header(first) == header
    entries = [decode_entry(line) for line in lines]
    assert {type(entry) for entry in entries} == {*get_args(Entry)} - {UnknownEntry}
    assert [encode_entry(entry) for entry in entries] == lines


def test_the_page_on_sessions_names_every_field() -> None:
    fields = {key for kind in get_args(Entry) if kind is not UnknownEntry for _, key, _ in kind._plain}
    assert fields - named("session.md") == set()


def test_the_bytes_on_the_page_on_sessions_are_those_beside_them() -> None:
    rows = re.findall(r"^    ((?:[0-9A-F]{2} ){9,}(?:… )?) +(\S.*)$", SESSION_PAGE, re.MULTILINE)
    drawn = [
        (bytes.fromhex(octets.replace("…", "")).decode(), text) for octets, text in rows if "…⏎" not in text
    ]
    assert len(drawn) == 7
    assert [octets for octets, _ in drawn] == [text.removesuffix("…") for _, text in drawn]
    assert "".join(octets for octets, _ in drawn).encode() in b"\n".join(session_example())
