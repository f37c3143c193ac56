"""`cantle demo`: the main job on a small project, with a scripted model, real tools and no network."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str]) -> int:
    """Run the demo and return its exit code: 0 only if the tests failed before and pass after."""
    from pathlib import Path

    from cantle.cli.arguments import Parser

    parser = Parser(
        prog="cantle demo",
        description="Copy a small Python project with three bugs into a fresh folder and let the agent mend it. "
        "The model is scripted: it plays recorded answers. The loop, the tools, the tests and the session are real.",
    )
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object with the figures, and nothing else"
    )
    parser.add_argument(
        "--folder", type=Path, metavar="DIR", help="work there; must be new or empty (default: temporary)"
    )
    options = parser.parse_args(list(arguments))
    from cantle.demo.show import run_demo

    return run_demo(options.folder, as_json=options.json)
