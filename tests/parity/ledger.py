"""Reads the rows of the ledger; the format is in this folder's README."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from tests.support.ledgers import read_rows

FOLDER = Path(__file__).resolve().parent

Status = Literal["same", "deviation", "later"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One behaviour of the reference, and how it stands here."""

    id: str
    behaviour: str
    page: str
    status: Status
    tests: tuple[str, ...] = ()
    reason: str | None = None
    brings: str | None = None
    differs: tuple[str, ...] = ()
    """`CASE: PATH` patterns of what the harness in `tests/interop` finds because of this row."""


def rows(folder: Path = FOLDER) -> list[Row]:
    """Every row of every area, in the order of the files. Raises `ValueError` for a row that breaks the format."""
    return read_rows(folder, _row)


def _row(table: dict[str, Any], area: str) -> Row:
    row = Row(**table)
    if row.id.partition(".")[0] != area:
        raise ValueError(f"the id does not begin with {area!r}")
    if row.status not in get_args(Status):
        raise ValueError(f"unknown status {row.status!r}")
    if not row.behaviour or not row.page.endswith(".md"):
        raise ValueError("a row needs its behaviour and the page of the manual")
    if (row.status == "later") != (row.brings is not None):
        raise ValueError("`brings` belongs to `later`, and `later` needs it")
    if (row.status == "deviation") != (row.reason is not None):
        raise ValueError("`reason` belongs to `deviation`, and `deviation` needs it")
    if row.differs and row.status == "same":
        raise ValueError("`differs` belongs to `deviation` and `later`: what is the same does not differ")
    if any(": " not in line for line in row.differs):
        raise ValueError("a line of `differs` is 'CASE: PATH'")
    if row.status != "later" and not row.tests:
        raise ValueError(f"a row that is {row.status!r} names at least one test")
    return row
