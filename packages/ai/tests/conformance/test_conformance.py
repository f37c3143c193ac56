"""Every wire API under every case: `python -m packages.ai.tests.conformance` prints it as a table."""

from __future__ import annotations

import pytest

from cantle_ai.providers import WIRE_APIS
from packages.ai.tests.conformance.cases import CASES
from packages.ai.tests.conformance.column import APIS, Column, columns
from packages.ai.tests.conformance.lab import Lab

COLUMNS = columns()


@pytest.mark.parametrize("case", CASES, ids=[name.replace(" ", "-") for name in CASES])
@pytest.mark.parametrize("column", COLUMNS, ids=[column.api for column in COLUMNS])
async def test_conformance(column: Column, case: str, record_property):
    record_property("cell", (column.api, case))
    reason = column.without.get(case)
    if reason is not None:
        pytest.skip(reason)
    await CASES[case](Lab(column))


def test_every_wire_api_has_a_column():
    """`llama-cpp` speaks to a model in this process, over no wire."""
    assert {column.api for column in COLUMNS} == set(APIS)
    assert {*WIRE_APIS} - {"llama-cpp"} == set(APIS)


@pytest.mark.parametrize("column", COLUMNS, ids=[column.api for column in COLUMNS])
def test_what_a_column_leaves_out_is_a_case_with_a_reason(column: Column):
    assert not column.without.keys() - CASES.keys()
    assert all(reason.strip() for reason in column.without.values())
