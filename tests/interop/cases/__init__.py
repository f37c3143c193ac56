"""The jobs that are given to both programs."""

from __future__ import annotations

from tests.interop.case import Case
from tests.interop.cases import answers, apis, compaction, failures, inputs, options, sessions, task, tools

__all__ = ["ALL", "CASES"]

ALL: list[Case] = [
    case
    for module in (answers, tools, failures, inputs, options, sessions, compaction, task, apis)
    for case in module.CASES
]
CASES = {case.name: case for case in ALL}
