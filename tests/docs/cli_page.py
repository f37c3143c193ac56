"""The part of the command-line page that is made from the parser: `python -m tests.docs.cli_page` renews it."""

import argparse
import re
from pathlib import Path

from cantle.cli.arguments import build_parser
from tests.support.paths import ROOT

PAGE = ROOT / "docs/guide/cli.md"
BEGIN = "<!-- made from the parser, by python -m tests.docs.cli_page -->"
END = "<!-- end of what is made from the parser -->"
_PART = re.compile(f"{re.escape(BEGIN)}\n.*?{re.escape(END)}", re.DOTALL)


def options() -> str:
    """One table for each group of options, in the order of the help."""
    parser = build_parser()
    tables = []
    for group in parser._action_groups:
        named = [action for action in group._group_actions if action.option_strings]
        if named:
            title = (group.title or "").capitalize()
            rows = "".join(f"| {_words(action)} | {_help(parser, action)} |\n" for action in named)
            tables.append(f"### {title}\n\n| option | |\n|---|---|\n{rows}")
    return "\n".join(tables)


def _words(action: argparse.Action) -> str:
    value = ""
    if action.nargs != 0:
        shown = action.metavar or "|".join(action.choices or ()) or action.dest.upper()
        value = f" [{shown}]" if action.nargs == "?" else f" {shown}"
    return f"`{', '.join(action.option_strings)}{value}`".replace("|", "\\|")


def _help(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    text = (action.help or "") % {"prog": parser.prog, "default": action.default}
    return text.replace("|", "\\|")


def renewed(text: str) -> str:
    """A page's text with the part between the marks made anew."""
    return _PART.sub(lambda _: f"{BEGIN}\n\n{options()}\n{END}", text)


def main(page: Path = PAGE) -> None:
    page.write_text(renewed(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
