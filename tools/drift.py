#!/usr/bin/env python3
"""Counts what is still known of a conversation after compactions upon compactions.

    python3 tools/drift.py                           with a scripted model that copies: what compaction itself loses
    python3 tools/drift.py --model anthropic/sonnet  with any model that has a key: what summing up loses as well
    python3 tools/drift.py --rounds 1,3 --lost       fewer compactions; name what was lost

The conversation is `cantle_session.compaction.drift_fixture`. Ten compactions are some twenty requests of a few
thousand tokens each. The table goes to stdout.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence

from cantle_ai.errors import CantleAIError
from cantle_ai.model import THINKING_LEVELS, StreamOptions
from cantle_session.compaction.drift import ROUNDS, DriftReport, copied_notes, measure_drift
from cantle_session.compaction.summary import SummaryFailed


def main(arguments: Sequence[str] | None = None) -> int:
    asked = _options(arguments)
    try:
        report = asyncio.run(_measured(asked))
    except (CantleAIError, SummaryFailed, ValueError) as error:
        print(f"drift: {error}", file=sys.stderr)
        return 1
    print(report.table())
    if asked.lost:
        for row in report.rows:
            for fact in row.lost:
                print(f"lost after {row.compactions}: {fact.kind} {', '.join(fact.marks)}")
    usage = report.usage
    print(f"{usage.input + usage.cache_read + usage.cache_write} tokens in, {usage.output} out, "
          f"${usage.cost.total:.4f}", file=sys.stderr)  # fmt: skip
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Count what survives repeated compaction.")
    parser.add_argument(
        "--model", metavar="NAME", help="provider/id, or part of it; a scripted model without"
    )
    parser.add_argument("--thinking", choices=THINKING_LEVELS, default="off", help="how much it is to think")
    parser.add_argument(
        "--rounds",
        type=_numbers,
        default=ROUNDS,
        metavar="N,…",
        help="numbers of compactions, with commas between them (1,3,10)",
    )
    parser.add_argument("--lost", action="store_true", help="name each fact that was lost")
    return parser.parse_args(arguments)


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]


async def _measured(asked: argparse.Namespace) -> DriftReport:
    rounds = asked.rounds
    options = StreamOptions(thinking=asked.thinking)
    if asked.model is None:
        from cantle_ai.testing import ScriptedModel

        scripted = ScriptedModel(copied_notes)
        return await measure_drift(scripted.stream, scripted.model, rounds=rounds, options=options)
    from cantle_ai.model_patterns import resolve_model
    from cantle_ai.models import Models

    models = Models()
    try:
        found = resolve_model(asked.model, models.list(), has_auth=models.configured)
        return await measure_drift(models.stream, found.model, rounds=rounds, options=options)
    finally:
        await models.aclose()


if __name__ == "__main__":
    sys.exit(main())
