"""Reads the rows of the ledger of faults; the format is in this folder's README."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from tests.support.ledgers import read_rows

FOLDER = Path(__file__).resolve().parent

Status = Literal["tested", "later", "not-ours"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One fault that another agent had, and what shows that this one has not."""

    id: str
    symptom: str
    wanted: str
    status: Status
    tests: tuple[str, ...] = ()
    reason: str | None = None
    brings: str | None = None


def rows(folder: Path = FOLDER) -> list[Row]:
    """Every row of every group, in the order of the files. Raises `ValueError` for a row that breaks the format."""
    return read_rows(folder, _row)


def _row(table: dict[str, Any], group: str) -> Row:
    row = Row(**table)
    if not row.id.startswith(group) or not row.id.removeprefix(group).lstrip("-").isdecimal():
        raise ValueError(f"the id is not {group!r} and a number")
    if row.status not in get_args(Status):
        raise ValueError(f"unknown status {row.status!r}")
    if not row.symptom or not row.wanted:
        raise ValueError("a row needs the symptom and what is wanted instead")
    if (row.status == "later") != (row.brings is not None):
        raise ValueError("`brings` belongs to `later`, and `later` needs it")
    if (row.status == "not-ours") != (row.reason is not None):
        raise ValueError("`reason` belongs to `not-ours`, and `not-ours` needs it")
    if (row.status == "tested") != bool(row.tests):
        raise ValueError("`tests` belongs to `tested`, and `tested` needs one at least")
    return row
