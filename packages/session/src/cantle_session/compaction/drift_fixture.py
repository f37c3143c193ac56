"""The conversation that drift is measured with: ten pieces of work on one program, each with facts to remember.

Each piece reads a file, changes another, decides something, leaves a step open, and ends with a check. What the
facts are known by does not change when somebody says them in other words: paths, names and figures.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from cantle_agent.messages import AgentMessage
from cantle_ai.content import TextContent, ToolCall
from cantle_ai.messages import AssistantMessage, ToolResultMessage, UserMessage

__all__ = ["Fact", "FactKind", "Piece", "pieces"]

FactKind: TypeAlias = Literal["file", "decision", "open step"]


class Fact(Struct, frozen=True):
    """Something to remember. A text has it when it has all its `marks`, in whatever words."""

    kind: FactKind
    marks: tuple[str, ...]


class Piece(Struct, frozen=True):
    """One piece of work."""

    messages: Sequence[AgentMessage]
    facts: tuple[Fact, ...]


class _Row(Struct, frozen=True):
    asked: str
    read: str
    found: str
    changed: str
    decision: str
    decision_marks: tuple[str, ...]
    step: str
    step_marks: tuple[str, ...]


def pieces() -> list[Piece]:
    """The ten pieces, in order; new messages each time."""
    return [_piece(number, row) for number, row in enumerate(_ROWS)]


def _piece(number: int, row: _Row) -> Piece:
    said = f"Decision: {row.decision}\nOpen: {row.step}"
    return Piece(
        [
            UserMessage(row.asked, timestamp=0),
            _calls(f"read-{number}", "read", row.read),
            _gives(f"read-{number}", "read", _listing(row.found)),
            _calls(f"edit-{number}", "edit", row.changed),
            _gives(f"edit-{number}", "edit", f"Changed {row.changed}."),
            _says(said),
            UserMessage("Good. Run the tests.", timestamp=0),
            _calls(f"test-{number}", "bash", "python -m pytest -q", key="command"),
            _gives(f"test-{number}", "bash", f"{41 + 7 * number} passed in 2.31s"),
            _says("All tests pass."),
        ],
        (
            Fact("file", (row.read,)),
            Fact("file", (row.changed,)),
            Fact("decision", row.decision_marks),
            Fact("open step", row.step_marks),
        ),
    )


def _listing(found: str) -> str:
    """What a tool gives: mostly what nobody needs later."""
    filler = "".join(f"    line {line:3d} of the part that has nothing to do with it\n" for line in range(60))
    return f"{found}\n{filler}"


def _says(text: str) -> AssistantMessage:
    return _answer([TextContent(text)])


def _calls(call_id: str, tool: str, value: str, *, key: str = "path") -> AssistantMessage:
    return _answer([ToolCall(call_id, tool, {key: value})])


def _answer(content: Sequence[TextContent | ToolCall]) -> AssistantMessage:
    calls = any(isinstance(block, ToolCall) for block in content)
    return AssistantMessage(
        list(content), "scripted", "drift", "drift", stop_reason="toolUse" if calls else "stop", timestamp=0
    )


def _gives(call_id: str, tool: str, text: str) -> ToolResultMessage:
    return ToolResultMessage(call_id, tool, [TextContent(text)], timestamp=0)


_ROWS = (
    _Row(
        "The importer rounds amounts wrongly. Find out why and mend it.",
        "ledger/amounts.py",
        "def parse_amount(text): return float(text)",
        "ledger/money.py",
        "amounts are kept as an int of hundredths (class Cents), because floats lose them.",
        ("Cents",),
        "old exports still hold floats; migrate them with scripts/migrate_floats.py.",
        ("migrate_floats",),
    ),
    _Row(
        "Bank files from Ostbank come with semicolons. Make them readable.",
        "ledger/readers/csv_reader.py",
        "reader = csv.reader(handle)",
        "ledger/readers/dialects.py",
        "the delimiter is guessed from the first 65536 bytes only, so that pipes can be read.",
        ("65536",),
        "Ostbank's sample with a byte order mark fails: see issue LED-214.",
        ("LED-214",),
    ),
    _Row(
        "Loading takes a minute for a year of bookings. It has to be faster.",
        "ledger/store.py",
        "for booking in bookings: connection.execute(INSERT, booking)",
        "ledger/store_batch.py",
        "rows are written in batches of 750, since larger ones exceed the limit of variables.",
        ("750",),
        "measure again on the laptop of Ilse with bench_load.py.",
        ("bench_load",),
    ),
    _Row(
        "Dates like 03/04/2021 are ambiguous. What do we do with them?",
        "ledger/dates.py",
        "FORMATS = ('%d.%m.%Y', '%m/%d/%Y')",
        "ledger/date_rules.py",
        "each account names its date format in accounts.toml under `date_order`; nothing is guessed.",
        ("date_order",),
        "the account KRONE-7 has no format yet; ask the user.",
        ("KRONE-7",),
    ),
    _Row(
        "Two imports of the same file must not double the bookings.",
        "ledger/dedupe.py",
        "seen = set()",
        "ledger/fingerprints.py",
        "a booking is known by a blake2b hash of account, day, amount and purpose.",
        ("blake2b",),
        "bookings that are rightly twice on one day need a counter in the hash (test_twins is skipped).",
        ("test_twins",),
    ),
    _Row(
        "Give the command line an option to try an import without writing.",
        "ledger/cli/import_command.py",
        "parser.add_argument('file')",
        "ledger/cli/options.py",
        "it is called --rehearse, because --dry-run is taken by the sync command.",
        ("--rehearse",),
        "the manual page docs/import.md does not mention it.",
        ("docs/import.md",),
    ),
    _Row(
        "Categories should be learnt from earlier bookings.",
        "ledger/categories.py",
        "RULES = json.load(open('rules.json'))",
        "ledger/learner.py",
        "a rule is only proposed from 12 bookings on, to keep chance out.",
        ("12 bookings",),
        "the threshold is to be a setting named LEARN_FROM.",
        ("LEARN_FROM",),
    ),
    _Row(
        "The report has to sum up by quarter.",
        "ledger/reports/monthly.py",
        "def months(bookings): ...",
        "ledger/reports/quarterly.py",
        "quarters follow the tax year, which begins in April for company Halden.",
        ("Halden",),
        "the chart for empty quarters divides by zero in draw_bars.",
        ("draw_bars",),
    ),
    _Row(
        "Somebody wants to import from a mailbox.",
        "ledger/mail/fetch.py",
        "imaplib.IMAP4_SSL(host)",
        "ledger/mail/attachments.py",
        "attachments over 9 MB are refused; the limit is MAX_ATTACHMENT.",
        ("MAX_ATTACHMENT",),
        "the password is still read from the environment; move it to the keyring service `ledger-mail`.",
        ("ledger-mail",),
    ),
    _Row(
        "Prepare the release.",
        "CHANGES.rst",
        "3.8.1 (unreleased)",
        "pyproject.toml",
        "the release is 4.0.0 and not 3.9, since stored amounts changed.",
        ("4.0.0",),
        "tag it only when Marek has signed off the migration notes.",
        ("Marek",),
    ),
)
