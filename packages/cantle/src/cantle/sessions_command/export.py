"""`cantle sessions export` and `cantle --export`: a session as a file for people, or as one for programs."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from cantle.cli.session_places import SessionPlaces, as_user_errors, warn_of
from cantle.console import Results
from cantle.errors import SessionError, UserError
from cantle.paths import present, user_path
from cantle.sessions_command.table import one_line
from cantle_session.session import Session

__all__ = ["export", "export_page"]

_ENDINGS: Final = {"html": ".html", "markdown": ".md", "jsonl": ".jsonl"}
_FORMATS: Final = {
    ".htm": "html",
    ".markdown": "markdown",
    **{ending: name for name, ending in _ENDINGS.items()},
}


def export(options: argparse.Namespace) -> int:
    """Write the session to a file that is not there yet, and print its path."""
    if options.file == "-":
        raise UserError(
            "An export goes into a file, not to stdout.", "Name the file; ./- is one of that name."
        )
    places = SessionPlaces.of(options.session_dir)
    file = None if options.file is None else user_path(options.file)
    kind = options.format or _kind_of(file)
    with places.open(options.session) as session:
        if options.leaf is not None:
            _check_entry(session, options.leaf)
        target = file or Path(f"session-{session.id}{_ENDINGS[kind]}")
        if present(target):
            raise SessionError(f"{target} is there already, and was left alone.", "Name another file.")
        _write(session, target, kind, options.leaf)
        warn_of(session, options.session)  # all was read, so all is known
    results = Results()
    results.show(f"{target}\n")
    return results.code


def export_page(options: argparse.Namespace) -> int:
    """What `cantle --export SESSION [FILE]` asks for. Raises UserError."""
    if len(options.prompts) > 1 or options.files:
        raise UserError("--export takes a session and a file.", "Leave the rest away.")
    with as_user_errors():
        return export(
            argparse.Namespace(
                session=options.export,
                file=options.prompts[0] if options.prompts else None,
                format=None,
                leaf=None,
                session_dir=options.session_dir,
            )
        )


def _kind_of(file: Path | None) -> str:
    """What the ending of a file says that it is to be; a page where it has none."""
    if file is None or not file.suffix:
        return "html"
    kind = _FORMATS.get(file.suffix.lower())
    if kind is None:
        raise UserError(
            f"The ending of {file} does not say what to write.",
            f"Name a file with {', '.join(_ENDINGS.values())}, or add --format.",
        )
    return kind


def _write(session: Session, target: Path, kind: str, leaf: str | None) -> None:
    if kind == "jsonl":
        from cantle_session.exports import export_jsonl

        export_jsonl(session, target, leaf=leaf)
        return
    if kind == "markdown":
        from cantle.export.markdown import export_markdown

        export_markdown(session, target, leaf=leaf)
        return
    from cantle.export.html import export_html

    export_html(session, target, leaf=leaf)


def _check_entry(session: Session, entry_id: str) -> None:
    try:
        session.entry(entry_id)
    except KeyError:
        raise SessionError(
            f'The session {one_line(session.id)} has no entry "{entry_id}".',
            f"`cantle sessions show --tree {one_line(session.id)}` lists them.",
        ) from None
