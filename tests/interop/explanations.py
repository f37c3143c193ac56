"""The differences that rows of the ledger explain.

A row's `differs` holds lines of the form `CASE: PATH`. In both parts `*` stands for any characters but a dot,
`**` for any at all: `*: requests[*].body.store` is that field of every request of every case.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from tests.interop.differ import Difference
from tests.parity.ledger import Row

__all__ = ["Explanation", "explanations", "unexplained"]


@dataclass(frozen=True)
class Explanation:
    """One line of a row's `differs`."""

    row: str
    line: str
    cases: re.Pattern[str]
    paths: re.Pattern[str]

    def covers(self, case: str, difference: Difference) -> bool:
        """Whether the row explains this difference of this case."""
        return bool(self.cases.fullmatch(case) and self.paths.fullmatch(difference.path))


def explanations(rows: Iterable[Row]) -> list[Explanation]:
    """All that the rows explain."""
    return [_explanation(row.id, line) for row in rows for line in row.differs]


def unexplained(case: str, found: Iterable[Difference], known: Iterable[Explanation]) -> list[str]:
    """The differences that no row explains, as texts."""
    known = list(known)
    return [
        str(difference) for difference in found if not any(line.covers(case, difference) for line in known)
    ]


def _explanation(row: str, line: str) -> Explanation:
    cases, _, path = line.partition(": ")
    return Explanation(row, line, _pattern(cases), _pattern(path))


def _pattern(text: str) -> re.Pattern[str]:
    parts = (
        ".*" if part == "**" else "[^.]*" if part == "*" else re.escape(part) for part in _STARS.split(text)
    )
    return re.compile("".join(parts), re.DOTALL)


_STARS = re.compile(r"(\*\*?)")
