"""Every program in `examples/` runs, and prints what is written down here."""

import sys
from pathlib import Path

import pytest

from tests.docs.test_examples import run
from tests.support.paths import ROOT

EXAMPLES = ROOT / "examples"

PRINTED = {
    "sdk/minimal.py": "There is nothing here yet.\n",
    "sdk/stream_text.py": "One w|ord a|fter |the o|ther.|\n",
    "sdk/own_tool.py": (
        "user: Do we have apples?\n"
        "assistant: \n"
        "toolResult: There is no article 'apple'. There are: apples, pears.\n"
        "assistant: \n"
        "toolResult: 12\n"
        "assistant: There are 12 apples.\n"
    ),
    "sdk/ask_before_commands.py": (
        "user: Clean up.\n"
        "assistant: \n"
        "toolResult: Deleting is not allowed here. Say which files should go instead.\n"
        "assistant: I may not delete `build`; please remove it yourself.\n"
    ),
    "sdk/steer.py": "The last thing I read was: In Latin, please.\n",
}


def test_every_program_is_listed_here() -> None:
    found = {path.relative_to(EXAMPLES).as_posix() for path in EXAMPLES.rglob("*.py")}
    assert found == set(PRINTED)


@pytest.mark.parametrize("name", PRINTED)
def test_a_program_prints_what_it_should(name: str, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    assert run([sys.executable, str(EXAMPLES / name)], tmp_path, home) == (0, PRINTED[name])
