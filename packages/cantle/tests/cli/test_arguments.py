"""The command line's own copies of what it does not load for help."""

from cantle.cli.arguments import LEVELS
from cantle_ai.model import THINKING_LEVELS


def test_the_levels_are_the_runtime_s() -> None:
    assert LEVELS == THINKING_LEVELS
