"""What is looked for in sessions, and what an entry says. The same in every store, whatever index it has.

    fix login          both words, anywhere in one entry, in any order
    log                also finds login: a word is found where it begins one of the text
    "the login"        these words, whole, one behind the other
    auth_test.py       auth, test and py…, one behind the other: words are letters and digits
    数据               the same, for scripts without spaces: each character is a word
    ->                 where there is no letter and no digit: these characters

Upper and lower case are the same. An entry says what its messages, tool calls, results, summaries, names and
labels say; thinking, images and what extensions keep for themselves are not looked at.

An index holds the words of an entry as :func:`index_words` gives them, and is asked with
:meth:`Query.index_terms`. It may answer with too much, never with too little: :meth:`Query.find` decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from cantle_ai.codec import Json, JsonObject, decode_object
from cantle_session.stamps import milliseconds

if TYPE_CHECKING:
    from cantle_session.listing import SessionInfo

__all__ = ["Query", "Said", "SearchHit", "hit_in", "index_words", "said_by"]

# Scripts that put no spaces between words: Thai to Tibetan, Burmese, Khmer, kana, Han.
_ALONE = "\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_WORD = re.compile(rf"[{_ALONE}]|[^\W_{_ALONE}]+")
_IS_ALONE = re.compile(rf"[{_ALONE}]").match
_BEFORE, _BEHIND = rf"(?<![^\W_{_ALONE}])", rf"(?![^\W_{_ALONE}])"
_QUERY = re.compile(r'"([^"]*)"|(\S+)')
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_LONGEST = 40
"""Characters of a word in an index; what is longer is only compared in the entry itself."""
_BEFORE_MARK, _BEHIND_MARK = 60, 140


class SearchHit(Struct, frozen=True, kw_only=True):
    """An entry that says what was looked for."""

    location: str
    """The session's; what `Session.open` takes."""
    id: str
    """The session's."""
    cwd: str
    name: str | None = None
    """The session's."""
    entry_id: str
    kind: str
    """`user`, `assistant`, `tool` or another message's role; for the rest the entry's type."""
    timestamp: int
    """When the entry was written, in Unix milliseconds; 0 where it does not say."""
    excerpt: str
    """Some text around the first place, on one line, without control characters."""
    marks: Sequence[tuple[int, int]] = ()
    """Where in `excerpt` the words are: first character, and the one behind the last."""


class Said(Struct, frozen=True):
    """What an entry says in words."""

    entry_id: str
    kind: str
    timestamp: int
    text: str


class _Sought(Struct, frozen=True):
    """One word or phrase of a query."""

    words: Sequence[str]
    begins: bool
    """Whether the last word may go on."""
    pattern: re.Pattern[str]


class Query:
    """What is looked for."""

    def __init__(self, words: str) -> None:
        """From what a person typed; see the top of this module. Nothing but blanks is found nowhere."""
        parts = [(phrase or single, not phrase) for phrase, single in _QUERY.findall(_composed(words))]
        self._sought = [_sought(_folded(text), begins) for text, begins in parts if text.strip()]
        plain = [word for each in self._sought for word in each.words if word.isascii()]
        self._plain = [word.encode() for word in plain]

    def __bool__(self) -> bool:
        return bool(self._sought)

    def index_terms(self) -> list[tuple[str, bool]]:
        """Words that an index must have of an entry, each with whether it is only the beginning of one."""
        terms: list[tuple[str, bool]] = []
        for each in self._sought:
            last = len(each.words) - 1
            terms += [
                (_index_word(word), each.begins and at == last and not _IS_ALONE(word))
                for at, word in enumerate(each.words)
            ]
        return terms

    def may_be_in(self, line: bytes) -> bool:
        """False when an entry's line cannot say it: a cheap look before the line is decoded."""
        small = line.lower()
        # Letters and digits of ASCII stand for themselves in JSON.
        return all(word in small for word in self._plain)

    def find(self, text: str) -> int | None:
        """Where in `text` the first of the places is; None when something is missing. `text` is composed (NFC)."""
        folded = _folded(text)
        first: int | None = None
        for each in self._sought:
            place = each.pattern.search(folded)
            if place is None:
                return None
            first = place.start() if first is None else min(first, place.start())
        return first

    def marks(self, text: str) -> list[tuple[int, int]]:
        """Every place in `text`, in order."""
        folded = _folded(text)
        return sorted({place.span() for each in self._sought for place in each.pattern.finditer(folded)})


def _sought(text: str, begins: bool) -> _Sought:
    words = _WORD.findall(text)
    if not words:
        return _Sought((), False, re.compile(re.escape(text)))
    pattern = "" if _IS_ALONE(words[0]) else _BEFORE
    for at, word in enumerate(words):
        if at:
            pattern += r"[\W_]*" if _IS_ALONE(word) or _IS_ALONE(words[at - 1]) else r"[\W_]+"
        pattern += re.escape(word)
    if not begins and not _IS_ALONE(words[-1]):
        pattern += _BEHIND
    return _Sought(words, begins, re.compile(pattern))


def index_words(text: str) -> set[str]:
    """The words of `text` for an index: letters a–z and digits only, whatever the script."""
    return set(map(_index_word, set(_WORD.findall(_folded(text)))))


def _index_word(word: str) -> str:
    word = word[:_LONGEST]
    # Character by character, so that the beginning of a word stays the beginning of it; as hexadecimal digits, so
    # that the index neither splits nor folds it again.
    return word if word.isascii() else "".join(c if c.isascii() else f"x{ord(c):x}" for c in word)


def _folded(text: str) -> str:
    """`text` in lower case, each character in its place."""
    small = text.lower()
    if len(small) == len(text):
        return small
    return "".join(lower if len(lower := char.lower()) == 1 else char for char in text)


def _composed(text: str) -> str:
    if text.isascii():
        return text
    from unicodedata import normalize

    return normalize("NFC", text)


def said_by(line: bytes) -> Said | None:
    """What the entry of a line says; None when it says nothing, or is none."""
    try:
        raw = decode_object(line)
    except ValueError:
        return None
    kind, entry_id, time = raw.get("type"), raw.get("id"), raw.get("timestamp")
    if not isinstance(kind, str) or not isinstance(entry_id, str) or kind == "session":
        return None
    message = raw.get("message")
    if kind == "message" and isinstance(message, dict):
        role = message.get("role")
        kind = "tool" if role == "toolResult" else str(role)
        text = "\n".join(_texts_of_message(message))
    else:
        text = "\n".join(_texts_of_entry(kind, raw))
    if not text.strip():
        return None
    stamp = milliseconds(time) if isinstance(time, str) else None
    # A colour in front of a word of some program's output is not a part of it.
    return Said(entry_id, kind, stamp or 0, _COLOUR.sub(" ", _composed(text)))


_FIELDS = {
    "compaction": "summary",
    "branch_summary": "summary",
    "session_info": "name",
    "label": "label",
}


def _texts_of_entry(kind: str, raw: JsonObject) -> Iterator[str]:
    if kind == "custom_message":
        yield from _texts_of_content(raw.get("content"))
    elif kind == "context_edit":
        replacement = raw.get("replacement")
        if isinstance(replacement, dict):
            yield from _texts_of_content(replacement.get("content"))
    else:
        value = raw.get(_FIELDS.get(kind, ""))
        yield value if isinstance(value, str) else ""


def _texts_of_message(message: JsonObject) -> Iterator[str]:
    yield from _texts_of_content(message.get("content"))
    for key in ("command", "output", "summary"):
        value = message.get(key)
        if isinstance(value, str):
            yield value


def _texts_of_content(content: Json) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    for block in content if isinstance(content, list) else ():
        match block:
            case {"type": "text", "text": str(text)}:
                yield text
            case {"type": "toolCall", "name": str(name), "arguments": arguments}:
                yield name
                yield from _strings(arguments)


def _strings(value: Json) -> Iterator[str]:
    """Every text in some JSON, without recursion: it can be as deep as it likes."""
    waiting = [value]
    while waiting:
        current = waiting.pop()
        if isinstance(current, str):
            yield current
        elif isinstance(current, dict):
            waiting += reversed(current.values())
        elif isinstance(current, list):
            waiting += reversed(current)


def hit_in(line: bytes, info: SessionInfo, query: Query) -> SearchHit | None:
    """What a line of the session `info` has of `query`."""
    said = said_by(line)
    place = None if said is None else query.find(said.text)
    if said is None or place is None:
        return None
    excerpt = _excerpt(said.text, place)
    return SearchHit(
        location=info.location,
        id=info.id,
        cwd=info.cwd,
        name=info.name,
        entry_id=said.entry_id,
        kind=said.kind,
        timestamp=said.timestamp,
        excerpt=excerpt,
        marks=query.marks(excerpt),
    )


def _excerpt(text: str, place: int) -> str:
    """Some of `text` around a place, on one line, cut between words, without control characters."""
    start, stop = max(0, place - _BEFORE_MARK), min(len(text), place + _BEHIND_MARK)
    if start and (blank := text.find(" ", start, place)) >= 0:
        start = blank
    if stop < len(text) and (blank := text.rfind(" ", place, stop)) > place:
        stop = blank
    shown = "".join(char if char.isprintable() else " " for char in text[start:stop])
    words = " ".join(shown.split())
    return f"{'… ' if start else ''}{words}{' …' if stop < len(text) else ''}"
