"""Files with damage of every kind: their end, read alone, says what the whole says; a repaired copy says it, too."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from cantle_ai.messages import UserMessage
from cantle_session import kept
from cantle_session.entries import ContextEditEntry
from cantle_session.repair import repair_session
from cantle_session.session import Session
from packages.session.tests.proof.doomed_writer import operate
from packages.session.tests.proof.strict_request import APIS, check_request
from packages.session.tests.support import HEADER
from tests.support.samples import samples

Damage = Callable[[list[bytes], int, Random], None]


def _torn(lines: list[bytes], at: int, random: Random) -> None:
    lines[at] = lines[at][: random.randrange(1, len(lines[at]))]


def _glued(lines: list[bytes], at: int, random: Random) -> None:
    lines[at] = lines[at][: random.randrange(1, len(lines[at]))] + lines[at]


def _nul(lines: list[bytes], at: int, random: Random) -> None:
    lines[at] = b"\0" * random.randrange(1, 5000) + random.choice([b"", lines[at]])


def _second_header(lines: list[bytes], at: int, random: Random) -> None:
    lines.insert(at, json.dumps(HEADER).encode())


def _foreign(lines: list[bytes], at: int, random: Random) -> None:
    lines.insert(
        at, random.choice([b"hello", b"[]", b"{}", b'"x"', b"null", b'{"type":"message"}', b"\xff\xfe"])
    )


def _gone(lines: list[bytes], at: int, random: Random) -> None:
    del lines[at]


def _twice(lines: list[bytes], at: int, random: Random) -> None:
    lines.insert(random.randrange(1, len(lines)), lines[at])


def _swapped(lines: list[bytes], at: int, random: Random) -> None:
    other = random.randrange(1, len(lines))
    lines[at], lines[other] = lines[other], lines[at]


def _another_parent(lines: list[bytes], at: int, random: Random) -> None:
    raw = json.loads(lines[at])
    raw["parentId"] = json.loads(random.choice(lines[1:]))["id"]
    lines[at] = json.dumps(raw).encode()


def _unknown(lines: list[bytes], at: int, random: Random) -> None:
    raw = json.loads(lines[at])
    lines[at] = json.dumps({**raw, "type": "from_the_future"}).encode()


DAMAGES: dict[str, Damage] = {
    "torn": _torn,
    "glued": _glued,
    "nul": _nul,
    "second header": _second_header,
    "foreign": _foreign,
    "gone": _gone,
    "twice": _twice,
    "swapped": _swapped,
    "another parent": _another_parent,
    "unknown": _unknown,
}


def drawn_file(path: Path, random: Random, damage: Damage, count: int) -> Path:
    session = Session.in_memory("/work")
    lines = [json.dumps(HEADER).encode()]
    for number in range(random.randrange(2, 60)):
        lines.append(json.dumps(operate(session, random, number).to_json()).encode())
    for _ in range(count):
        damage(lines, random.randrange(1, len(lines)), random)
    path.write_bytes(b"\n".join(lines) + random.choice([b"", b"\n", b"\n\n", b"\n" + b"\0" * 512]))
    return path


def said(session: Session) -> Any:
    context = session.context()
    messages = [message.to_json() for message in context.messages]
    return session.leaf_id, context.model, context.thinking_level, messages


def edits_ahead(session: Session) -> bool:
    """Whether an edit stands in front of what it edits, as only parents that come later bring about."""
    path = session.path()
    places = {entry.id: place for place, entry in enumerate(path)}
    return any(
        places.get(entry.target_id, 0) > place
        for place, entry in enumerate(path)
        if isinstance(entry, ContextEditEntry)
    )


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_session_opens_and_goes_on(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in range(samples(200, 10)):
        random = Random(f"{name} {seed}")
        file = drawn_file(tmp_path / f"{seed}.jsonl", random, DAMAGES[name], random.choice([1, 1, 3]))
        original = file.read_bytes()
        with Session.open(file) as session:
            whole = said(session)
            ahead = edits_ahead(session)
            check_request(session.context().messages, APIS[seed % len(APIS)])
        monkeypatch.setattr(kept, "LARGE", 0)
        with Session.open(file) as session:
            assert ahead or said(session) == whole, seed
            list(session.links())
            assert said(session) == whole, seed
        assert file.read_bytes() == original
        repair = repair_session(file)
        assert file.read_bytes() == original
        if repair.copy is not None:
            with Session.open(repair.copy) as session:
                assert [warning for warning in session.warnings if warning.line is not None] == []
                check_request(session.context().messages, APIS[seed % len(APIS)])
        with Session.open(file) as session:
            on = session.append_message(UserMessage("on"))
        monkeypatch.undo()
        assert file.read_bytes().startswith(original)
        with Session.open(file) as session:
            assert session.leaf_id == on.id
            assert session.context().messages[-1] == on.message
