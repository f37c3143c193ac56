"""A session that the reference wrote over one API goes on in Cantle over every other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cantle_ai.testing.server.server import StrictServer
from packages.ai.tests.conformance.cases import thinking
from packages.ai.tests.conformance.column import columns
from tests.interop.case import Case
from tests.interop.cases.apis import CASES
from tests.interop.programs import MODEL, cantle, reference, run_case
from tests.support.cli import Cli
from tests.support.reference import reference_program

pytestmark = [pytest.mark.reference, pytest.mark.slow]


@pytest.mark.parametrize("writer", ["anthropic-messages", "openai-responses"])
def test_cantle_goes_on_over_every_api(cli: Cli, writer: str, tmp_path: Path) -> None:
    case = next(case for case in CASES if case.name == f"api-{writer}")
    program = reference(cli.home, reference_program())
    written = run_case(case, program, cli.cwd)
    assert [step.code for step in written.steps] == [0] * len(written.steps)
    (file,) = program.sessions()
    was = file.read_bytes()
    for column in columns():
        copy = tmp_path / f"{column.api}.jsonl"
        copy.write_bytes(was)
        reading = {"type": "toolCall", "name": "read", "arguments": {"path": "a.txt"}}
        with StrictServer([{"content": [thinking("on"), reading]}, "Going on."]) as server:
            home = tmp_path / column.api
            home.mkdir()
            ours = cantle(home)
            row: dict[str, Any] = {
                "reasoning": True,
                "input": ["text", "image"],
                "compat": dict(column.model.get("compat", {})),
                "thinkingLevelMap": dict(column.model.get("thinking_levels", {})),
            }
            provider = {"headers": dict(column.provider.get("headers", {}))}
            ours.configure(
                server.base_url_for, Case(name="on", apis=(column.api,), model=row, provider=provider)
            )
            words = [*MODEL, "--session", str(copy), "--thinking", "low", "-p", "Go on."]
            step = ours.run(words, cli.cwd, column.environ)
            server.assert_clean()
        assert (step.code, step.stdout) == (0, "Going on.\n"), step.stderr
        assert copy.read_bytes().startswith(was)
