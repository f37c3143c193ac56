"""Lines and entries."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cantle_ai.messages import UserMessage, encode_message
from cantle_session.entries import (
    BranchSummaryEntry,
    CompactionEntry,
    ContextEditEntry,
    CustomEntry,
    CustomMessageEntry,
    LabelEntry,
    MessageEntry,
    ModelChangeEntry,
    SessionInfoEntry,
    ThinkingLevelChangeEntry,
    UnknownEntry,
    UsageEntry,
    entry_from_json,
)
from cantle_session.lines import (
    decode_entry,
    decode_header,
    encode_entry,
    encode_header,
    link_of,
    sound_part,
)
from packages.session.tests.support import HEADER, answer, chain, encoded, said, user
from tests.support.samples import samples

USAGE = answer("x")["usage"]
ENTRIES: list[tuple[dict[str, Any], type]] = [
    ({"type": "message", "message": user("hi")}, MessageEntry),
    ({"type": "message", "message": {"role": "system", "content": "", "timestamp": 1}}, MessageEntry),
    ({"type": "custom_message", "customType": "c", "content": "t", "display": False}, CustomMessageEntry),
    (
        {
            "type": "custom_message",
            "customType": "c",
            "content": [{"type": "text", "text": "t"}],
            "display": True,
            "details": {"a": 1},
        },
        CustomMessageEntry,
    ),
    ({"type": "model_change", "provider": "p", "modelId": "m"}, ModelChangeEntry),
    ({"type": "thinking_level_change", "thinkingLevel": "high"}, ThinkingLevelChangeEntry),
    ({"type": "session_info", "name": "n"}, SessionInfoEntry),
    ({"type": "session_info"}, SessionInfoEntry),
    ({"type": "custom", "customType": "c", "data": [1, {"x": None}]}, CustomEntry),
    ({"type": "custom", "customType": "c"}, CustomEntry),
    ({"type": "label", "targetId": "00000000", "label": "here"}, LabelEntry),
    ({"type": "label", "targetId": "00000000"}, LabelEntry),
    ({"type": "context_edit", "targetId": "00000000", "replacement": None}, ContextEditEntry),
    ({"type": "context_edit", "targetId": "00000000", "replacement": {"content": "s"}}, ContextEditEntry),
    ({"type": "usage", "kind": "cache_warm", "provider": "p", "model": "m", "usage": USAGE}, UsageEntry),
    ({"type": "compaction", "summary": "s", "firstKeptEntryId": "0", "tokensBefore": 5}, CompactionEntry),
    (
        {
            "type": "compaction",
            "summary": "s",
            "firstKeptEntryId": "0",
            "tokensBefore": 5,
            "details": {"readFiles": []},
            "fromHook": True,
            "systemMessage": {"role": "system", "content": "x", "timestamp": 1},
            "usage": USAGE,
        },
        CompactionEntry,
    ),
    ({"type": "branch_summary", "summary": "s", "fromId": "0"}, BranchSummaryEntry),
    ({"type": "branch_summary", "summary": "s", "fromId": None, "usage": USAGE}, BranchSummaryEntry),
]


@pytest.mark.parity("sessions.entry-types")
@pytest.mark.parametrize(("fields", "kind"), ENTRIES)
@pytest.mark.parametrize("extra", [{}, {"fromTheFuture": [1]}])
def test_an_entry_comes_back_as_it_was(fields, kind, extra):
    (raw,) = chain({**fields, **extra})
    entry = entry_from_json(raw)
    assert type(entry) is kind
    assert entry.to_json() == raw
    assert json.loads(encode_entry(entry)) == raw
    assert (entry.id, entry.parent_id, entry.type) == (raw["id"], None, raw["type"])


@pytest.mark.parametrize(
    "fields",
    [
        {"type": "from_the_future", "x": 1},
        {"type": "model_change", "provider": "p"},
        {"type": "message", "message": "hi"},
        {"type": "context_edit", "targetId": "0", "replacement": "text"},
        {"type": "context_edit", "targetId": "0"},
        {"type": "custom_message", "customType": "c", "content": None, "display": True},
        {"type": "compaction", "summary": None, "firstKeptEntryId": "0", "tokensBefore": 5},
    ],
)
def test_what_does_not_fit_is_kept_as_it_was(fields):
    (raw,) = chain(fields)
    entry = entry_from_json(raw)
    assert isinstance(entry, UnknownEntry)
    assert entry.to_json() == raw
    assert (entry.id, entry.parent_id, entry.timestamp) == (raw["id"], None, raw["timestamp"])


@given(
    st.dictionaries(
        st.sampled_from(
            sorted({key for fields, _ in ENTRIES for key in fields} | {"id", "parentId", "timestamp"})
        ),
        st.sampled_from(
            [*(fields["type"] for fields, _ in ENTRIES), None, 1, "", [], {}, user("x"), {"content": ""}]
        ),
    ).map(lambda raw: {"id": "0a0b0c0d", "type": "message", **raw})
)
@settings(max_examples=samples(3000, 400))
def test_no_entry_is_too_odd_to_be_read_and_written(raw):
    entry = entry_from_json(raw)
    assert entry_from_json(entry.to_json()).to_json() == entry.to_json()


def test_a_message_is_not_encoded_again():
    message = UserMessage("hi", 1)
    message.wire["json"] = b'{"role":"user","content":"as it was encoded","timestamp":1}'
    entry = MessageEntry(id="0a0b0c0d", parent_id=None, timestamp="t", message=message)
    assert encode_entry(entry).endswith(b'"message":' + encode_message(message) + b"}")


@pytest.mark.parity("sessions.header")
@pytest.mark.parametrize("extra", [{}, {"parentSession": "/a/b.jsonl"}, {"fromTheFuture": 1}])
def test_a_header_comes_back_as_it_was(extra):
    header = decode_header(encoded({**HEADER, **extra}).strip())
    assert header is not None
    assert json.loads(encode_header(header)) == {**HEADER, **extra}


@pytest.mark.parametrize(
    ("line", "version"),
    [({"version": None}, 3), ({"version": "2"}, 3), ({"version": True}, 3), ({"version": 4}, 4), ({}, 3)],
)
def test_a_version_that_is_no_number_is_taken_for_ours(line, version):
    header = decode_header(encoded({**HEADER, **line}).strip())
    assert header is not None
    assert header.version == version


def test_a_header_without_a_version_is_of_version_1():
    header = decode_header(encoded({k: v for k, v in HEADER.items() if k != "version"}).strip())
    assert header is not None
    assert header.version == 1


@pytest.mark.parametrize(
    "line", [b"", b"hello", b"[]", b'{"type":"message","id":"x"}', b'{"type":"session"}', b"\0"]
)
def test_another_first_line_is_no_header(line):
    assert decode_header(line) is None


@pytest.mark.parametrize(
    "tail",
    [
        b'"\\ud800"',  # a lone surrogate, as Node writes it
        b"NaN",
        b"1e999",
        b"123456789012345678901234567890",
        b'"\xe2\x80\xa8 \xe2\x80\xa9 \xc2\x85"',
        b'"\xff\xfe"',
    ],
)
def test_json_that_others_write_has_its_place(tail):
    line = (
        b'{"type":"custom","id":"0a0b0c0d","parentId":null,"timestamp":"t","customType":"c","data":%b}' % tail
    )
    link = link_of(line)
    assert link is not None
    assert (link.type, link.id, link.parent_id) == ("custom", "0a0b0c0d", None)
    assert isinstance(decode_entry(line), CustomEntry)


@pytest.mark.parametrize(
    "line",
    [
        b"hello",
        b"[1]",
        b"null",
        b"7",
        b"{}",
        b'{"type":"message"}',
        b'{"id":"0a0b0c0d"}',
        b'{"type":5,"id":"0a0b0c0d"}',
        b'{"type":"message","id":5}',
        b'{"type":"message","id":"a","parentId":7}',
        b'{"type":"message","id":"a","parentId":null',
        b'{"type":"message","id":"a","parentId":null}}',
        b"\0" * 4096,
        b'{"type":"custom","id":"a","data":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    ],
)
def test_a_line_that_is_no_entry_has_none(line):
    assert link_of(line) is None
    assert sound_part(line) is None


def test_an_entry_glued_to_a_torn_line_or_to_a_block_of_nuls_is_found():
    line = encoded(*chain(said(answer("yes")))).strip()
    for cut in range(1, len(line)):
        assert sound_part(line[:cut] + line) == line
    assert sound_part(b"\0" * 512 + line) == line


def test_no_part_of_a_sound_line_is_taken_for_an_entry():
    inner = {"type": "message", "id": "a", "parentId": None}
    for entry in chain({"type": "custom", "customType": "c", "data": [inner]}, said(user(json.dumps(inner)))):
        assert sound_part(encoded(entry).strip()) is None
