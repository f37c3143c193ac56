"""The part of the page for users of Pi that is made from the ledger: `python -m tests.docs.pi_page` renews it."""

import re
from collections.abc import Iterable
from pathlib import Path

from tests.parity.ledger import FOLDER, Row, rows
from tests.support.paths import ROOT

PAGE = ROOT / "docs/guide/pi.md"
BEGIN = "<!-- made from the ledger, by python -m tests.docs.pi_page -->"
END = "<!-- end of what is made from the ledger -->"
_PART = re.compile(f"{re.escape(BEGIN)}\n.*?{re.escape(END)}", re.DOTALL)


def differences(ledger: Iterable[Row]) -> str:
    """A table for each area in which something differs on purpose."""
    parts = []
    for path in sorted(FOLDER.glob("*.toml")):
        area = path.stem
        here = [row for row in ledger if row.id.startswith(f"{area}.") and row.status == "deviation"]
        if here:
            lines = "".join(f"| {_cell(row.behaviour)} | {_cell(row.reason or '')} |\n" for row in here)
            parts.append(f"### {_title(path)}\n\n| in Pi | in Cantle |\n|---|---|\n{lines}")
    return "\n".join(parts)


def later(ledger: Iterable[Row]) -> str:
    """What Cantle has not yet, by the piece of work that brings it."""
    pieces: dict[str, list[str]] = {}
    for row in ledger:
        if row.brings is not None:
            pieces.setdefault(row.brings, []).append(row.behaviour)
    lines = (
        f"- **{_capital(name)}.** {' '.join(sorted(pieces[name]))}\n"
        for name in sorted(pieces, key=str.lower)
    )
    return "### Still to come\n\n" + "".join(lines)


def _title(path: Path) -> str:
    """The comment in the first line of an area's file."""
    return path.read_text(encoding="utf-8").partition("\n")[0].strip("# .")


def _cell(text: str) -> str:
    return _named(text).replace("|", "\\|")


def _named(text: str) -> str:
    """The ledger's name for Pi, which readers of the page know by its own."""
    return text.replace("The reference", "Pi").replace("the reference", "Pi")


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def renewed(text: str) -> str:
    """A page's text with the part between the marks made anew."""
    ledger = rows()
    made = f"{BEGIN}\n\n{differences(ledger)}\n{_named(later(ledger))}\n{END}"
    return _PART.sub(lambda _: made, text)


def main(page: Path = PAGE) -> None:
    page.write_text(renewed(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
