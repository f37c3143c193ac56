"""`cantle sessions`: finds conversations that were kept, shows them, and makes others of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import argparse

    from cantle.cli.arguments import Parser

__all__ = ["main"]

FORMATS: Final = ("html", "markdown", "jsonl")
"""Of an export."""

_ONE = "an id, the beginning of one, or a file"
_WHICH = f"{_ONE}; the latest of this folder when it is left out"


def main(arguments: Sequence[str]) -> int:
    """Run the sub-command and return its exit code. Raises UserError for what the user can mend."""
    options = _parser().parse_args(list(arguments))
    from cantle.cli.session_places import as_user_errors

    with as_user_errors():
        return _run(options)


def _run(options: argparse.Namespace) -> int:
    match options.what:
        case "list" | "search":
            from cantle.sessions_command import lists

            return (
                lists.search_sessions(options) if options.what == "search" else lists.list_sessions(options)
            )
        case "show":
            from cantle.sessions_command.show import show

            return show(options)
        case "stats":
            from cantle.sessions_command.stats import show_stats

            return show_stats(options)
        case "export":
            from cantle.sessions_command.export import export

            return export(options)
        case "fork" | "import" | "repair":
            from cantle.sessions_command import copies

            return {"fork": copies.fork, "import": copies.import_file, "repair": copies.repair}[options.what](
                options
            )
    from cantle.sessions_command import changes

    return {"move": changes.move, "rename": changes.rename, "delete": changes.delete}[options.what](options)


def _parser() -> Parser:
    from cantle.cli.arguments import Parser

    parser = Parser(
        prog="cantle sessions",
        description="The conversations that were kept. A session is named by its id, by the beginning of one, or by "
        "its file. `cantle sessions COMMAND --help` says more.",
        epilog='To go on with one: cantle --session ID "go on"; or cantle --resume to choose it from a list.',
    )
    commands = parser.add_subparsers(dest="what", metavar="command", required=True)
    _looking(commands)
    _showing(commands)
    _exporting(commands)
    _copying(commands)
    _changing(commands)
    for command in commands.choices.values():
        command.add_argument(
            "--session-dir",
            metavar="PLACE",
            help="where sessions are kept: a folder, sqlite:FILE or postgresql://HOST/NAME",
        )
    return parser


def _looking(commands: argparse._SubParsersAction[Parser]) -> None:
    listing = commands.add_parser(
        "list",
        help="the sessions of this folder, or all",
        description="List the sessions of this folder, the latest first.",
    )
    search = commands.add_parser(
        "search",
        help="find words in sessions",
        description="Find what was said: the entries of this folder's sessions that hold all the words. The exit "
        "status is 1 when there are none.",
    )
    search.add_argument("words", nargs="+", metavar="word", help="what to look for")
    for command, most in ((listing, ""), (search, " (default: 50)")):
        command.add_argument("-a", "--all", action="store_true", help="those of all folders")
        command.add_argument("--limit", type=_count, metavar="N", help=f"at most so many{most}")
        command.add_argument("--json", action="store_true", help="as one JSON list")


def _showing(commands: argparse._SubParsersAction[Parser]) -> None:
    show = commands.add_parser(
        "show",
        help="what a session holds, entry by entry",
        description="Show a session's entries, from its beginning to where it stands: one line for each.",
    )
    show.add_argument("session", nargs="?", help=_WHICH)
    views = show.add_mutually_exclusive_group()
    views.add_argument("--tree", action="store_true", help="all branches, not only the one where it stands")
    views.add_argument(
        "--context",
        action="store_true",
        help="what becomes of each entry when a model is asked, and its tokens",
    )
    show.add_argument(
        "--follow", action="store_true", help="go on with what is added to it, as it comes, until Ctrl-C"
    )
    show.add_argument("--json", action="store_true", help="one JSON object a line")
    stats = commands.add_parser(
        "stats",
        help="how much was said, used and paid",
        description="Count messages, tool calls, tokens and cost: of one session, or of all sessions of this folder "
        "together. All branches count.",
    )
    stats.add_argument("session", nargs="?", help=_ONE)
    stats.add_argument("-a", "--all", action="store_true", help="all sessions of all folders")
    stats.add_argument("--json", action="store_true", help="as one JSON object")


def _exporting(commands: argparse._SubParsersAction[Parser]) -> None:
    export = commands.add_parser(
        "export",
        help="write a session as a page, as Markdown or as lines",
        description="Write a session into a file that other people can read. It holds all that the agent read, ran "
        "and wrote: look at it before you give it away.",
    )
    export.add_argument("session", nargs="?", help=_WHICH)
    export.add_argument(
        "file", nargs="?", help="where to; must not exist (default: here, named after the id)"
    )
    export.add_argument(
        "--format",
        choices=FORMATS,
        help="html: a page with all branches; markdown; jsonl: a session file with one branch (default: by the "
        "file's ending, else html)",
    )
    export.add_argument("--leaf", metavar="ENTRY", help="the branch that ends at this entry")


def _copying(commands: argparse._SubParsersAction[Parser]) -> None:
    fork = commands.add_parser(
        "fork",
        help="copy a session, or its beginning, into a new one of this folder",
        description="Copy a session into a new one of this folder. With --before, up to an earlier message of the "
        "user, whose text is printed.",
    )
    fork.add_argument("session", nargs="?", help=_WHICH)
    fork.add_argument("--before", metavar="ENTRY", help="up to this message of the user, without it")
    fork.add_argument("--session-id", metavar="ID", help="the id of the new one")
    fork.add_argument("--json", action="store_true", help="as one JSON object")
    imported = commands.add_parser(
        "import",
        help="take a session file into the place where sessions are kept",
        description="Copy a session file to where the sessions of its working directory are kept, with its id. One "
        "that is there already is never replaced.",
    )
    imported.add_argument("file", help="a session file, of any version")
    imported.add_argument("--here", action="store_true", help="let it belong to this folder")
    imported.add_argument("--new-id", action="store_true", help="give the copy an id of its own")
    repair = commands.add_parser(
        "repair",
        help="write a sound copy of a damaged session beside it",
        description="Write a copy that holds every entry that can be read, once, in order. The original stays as it is.",
    )
    repair.add_argument("session", help="a file, an id or the beginning of one")


def _changing(commands: argparse._SubParsersAction[Parser]) -> None:
    move = commands.add_parser(
        "move",
        help="let a session belong to another folder, or be kept in another place",
        description="Let a session belong to another working directory, as after a project has moved; or keep it in "
        "another place, such as a database. Its id stays.",
    )
    move.add_argument("session", help=_ONE)
    move.add_argument("folder", nargs="?", help="the working directory from now on")
    move.add_argument(
        "--to", metavar="PLACE", help="keep it there: a folder, sqlite:FILE or postgresql://HOST/NAME"
    )
    rename = commands.add_parser("rename", help="give a session a name", description="Give a session a name.")
    rename.add_argument("session", help=_ONE)
    rename.add_argument("name", help="the name; an empty one takes it away")
    delete = commands.add_parser(
        "delete",
        help="put sessions into the bin",
        description="Put sessions into the bin of this desktop; where there is none, they are gone for good. Asks first.",
    )
    delete.add_argument("sessions", nargs="+", metavar="session", help=_ONE)
    delete.add_argument("-y", "--yes", action="store_true", help="do not ask")


def _count(text: str) -> int:
    from argparse import ArgumentTypeError

    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError("it takes a whole number above 0")
    return int(text)
