"""Ledgers: rows in TOML, one file for each area, each row tied to the tests that show it.

`tests/parity` and `tests/faults` are two; a test belongs to a row by a mark with the row's id.
"""

import functools
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

import pytest

from tests.support.collection import Marks, collect_all, marks_of


class LedgerRow(Protocol):
    """What every ledger's row has."""

    @property
    def id(self) -> str: ...

    @property
    def tests(self) -> tuple[str, ...]: ...


RowT = TypeVar("RowT", bound=LedgerRow)


def read_rows(folder: Path, make: Callable[[dict[str, Any], str], RowT]) -> list[RowT]:
    """Every row of every file, in the files' order, as `make` builds it from a table and the file's name.

    Raises `ValueError`, with the file and the row, where `make` raises it or a `TypeError`.
    """
    return [row for path in sorted(folder.glob("*.toml")) for row in _rows_of(path, make)]


def _rows_of(path: Path, make: Callable[[dict[str, Any], str], RowT]) -> Iterator[RowT]:
    with path.open("rb") as file:
        tables = tomllib.load(file).get("row", [])
    for table in tables:
        try:
            yield make({**table, "tests": tuple(table.get("tests", ()))}, path.stem)
        except (TypeError, ValueError) as problem:
            raise ValueError(f"{path.name}, row {table.get('id', '?')}: {problem}") from problem


def collected_tests(session: pytest.Session) -> Marks:
    """Every test of the repository, from this run where it holds them all, else from another pytest."""
    config = session.config
    whole = not (config.option.keyword or config.option.markexpr or config.option.deselect)
    if whole and config.args == config.getini("testpaths"):
        return marks_of(session.items)
    return _collected_apart()


@functools.cache
def _collected_apart() -> Marks:
    return collect_all()


def problems(
    rows: Sequence[LedgerRow], mark: str, collected: Mapping[str, Mapping[str, list[str]]]
) -> list[str]:
    """Where rows and tests disagree: ids used twice, tests that do not exist, marks that no row knows."""
    return [*_repeated(rows), *_missing(rows, collected), *_unnamed(rows, mark, collected)]


def _repeated(rows: Iterable[LedgerRow]) -> Iterator[str]:
    counts = Counter(row.id for row in rows)
    return (f"{id} has {count} rows" for id, count in counts.items() if count > 1)


def _missing(rows: Iterable[LedgerRow], collected: Mapping[str, object]) -> Iterator[str]:
    return (
        f"{row.id} names {test}: no such test" for row in rows for test in row.tests if test not in collected
    )


def _unnamed(
    rows: Iterable[LedgerRow], mark: str, collected: Mapping[str, Mapping[str, list[str]]]
) -> Iterator[str]:
    named = {(row.id, test) for row in rows for test in row.tests}
    marked = {(id, test) for test, marks in collected.items() for id in marks.get(mark, ())}
    return (
        f"{test} is marked {mark}({id!r}): the row does not name it" for id, test in sorted(marked - named)
    )
