"""Options and positionals of `cantle`, with the meanings of the reference's command line."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from typing import NoReturn

from cantle.console import Results, notice
from cantle.version import VERSION

__all__ = ["Parser", "build_parser", "parse_arguments", "terminal_columns"]

LEVELS = ("off", "minimal", "low", "medium", "high", "xhigh", "max")
"""Those of :mod:`cantle_ai.model`, which help can do without."""

SCRIPTED = "scripted"
"""The provider whose `--model` is a file of answers."""

_COLUMNS = 80
"""Where stdout is no terminal."""

USAGE = (
    "cantle [options] [--] [@file ...] [prompt ...]\n       cantle demo [--json] [--folder DIR]\n"
    "       cantle local setup|status|remove\n       cantle auth login|logout|check\n"
    "       cantle sessions list|search|show|export|fork ..."
)

EPILOG = """\
examples:
  cantle "explain what this project does"
  git diff | cantle -p "review this change"
  cantle --mode json "run the tests" > events.jsonl
  cantle -c "and now fix it"                 continue the last session in this folder
  cantle -c /continue                        go on where the last one was interrupted
  cantle -c "/compact keep the file names"   sum up the beginning of a long session
  cantle sessions list                       the sessions in this folder
  cantle -p @notes.md "turn this into a list"
  cantle demo                                see it work: no key, no network
  cantle local setup                         a small model on this machine: no key
  cantle auth login                          sign in to a provider, or save a key

Settings, keys, models and sessions live in ~/.cantle (CANTLE_DIR moves it)."""


class Parser(argparse.ArgumentParser):
    """Reports a wrong call as one sentence and where to read on, exit code 2."""

    def error(self, message: str) -> NoReturn:
        notice(f"{message}. See `{self.prog} --help`.")
        raise SystemExit(2)

    def _print_message(self, message: str, file: object = None) -> None:
        """Everything that argparse prints by itself is a result: help and version."""
        results = Results()
        results.say(message)
        if results.code:
            raise SystemExit(results.code)


class _Layout(argparse.RawDescriptionHelpFormatter):
    """As wide as the terminal. The parser makes one to check itself, and without a width that loads `shutil`."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=terminal_columns() - 2)


def terminal_columns(descriptor: int = 1, *, otherwise: int = _COLUMNS) -> int:
    """How wide the output is: `COLUMNS`, the width of the terminal that it goes to, or `otherwise`."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns) > 0:
        return int(columns)
    try:
        return os.get_terminal_size(descriptor).columns or otherwise
    except OSError:
        return otherwise


def build_parser() -> Parser:
    """The parser of everything but sub-commands. `--` is split off before it sees the arguments."""
    parser = Parser(
        prog="cantle",
        usage=USAGE,
        description="A coding agent for the terminal: it reads, runs, edits and writes in the current folder.",
        epilog=EPILOG,
        formatter_class=_Layout,
        allow_abbrev=False,
        add_help=False,
    )
    parser.add_argument(
        "prompts", nargs="*", metavar="prompt", help="what to do; several are run one after another"
    )
    _mode_options(parser.add_argument_group("mode"))
    _model_options(parser.add_argument_group("model"))
    _session_options(parser.add_argument_group("session"))
    _tool_options(parser.add_argument_group("tools"))
    _prompt_options(parser.add_argument_group("prompt and project"))
    other = parser.add_argument_group("other")
    other.add_argument(
        "--offline", action="store_true", help="no network but model requests (also CANTLE_OFFLINE=1)"
    )
    other.add_argument("-h", "--help", action="help", help="show this help and exit")
    other.add_argument("-v", "--version", action="version", version=VERSION, help="show the version and exit")
    return parser


def _mode_options(group: argparse._ArgumentGroup) -> None:
    group.add_argument("-p", "--print", action="store_true", help="print the final answer only, then exit")
    group.add_argument(
        "--mode", choices=("text", "json"), default="text", help="json: one event record a line"
    )


def _model_options(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--provider",
        metavar="NAME",
        help="provider of the model, alone its first one; `scripted` plays a file",
    )
    group.add_argument(
        "--model", metavar="PATTERN", help="model: id, provider/id or part of a name; `:level` may follow"
    )
    group.add_argument(
        "--thinking", choices=LEVELS, metavar="LEVEL", help=f"thinking level: {', '.join(LEVELS)}"
    )
    group.add_argument(
        "--fallback-model", metavar="PATTERN", help="model that goes on when the other has failed for good"
    )
    group.add_argument("--api-key", metavar="KEY", help="key for this run, not stored")
    group.add_argument(
        "--list-models",
        nargs="?",
        const="",
        metavar="SEARCH",
        help="list the models that can be used, and exit",
    )
    group.add_argument(
        "--models-schema",
        action="store_true",
        help="print the JSON schema of models.json, for editors, and exit",
    )


def _session_options(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "-c", "--continue", dest="continue_", action="store_true", help="continue the last session here"
    )
    group.add_argument(
        "-r", "--resume", action="store_true", help="choose the session to continue from a list"
    )
    group.add_argument(
        "--session", metavar="PATH|ID", help="continue a session, by file or by (part of) its id"
    )
    group.add_argument(
        "--session-id", metavar="ID", help="continue the session here with exactly this id, or begin it"
    )
    group.add_argument(
        "--fork", metavar="PATH|ID", help="copy a session into a new one here, and continue that"
    )
    group.add_argument(
        "--at",
        metavar="ENTRY",
        help="with -c, -r or --session: go on from that entry, as a branch; before it if it is a message of yours",
    )
    group.add_argument(
        "--session-dir",
        metavar="PLACE",
        help="where sessions are kept: a folder, sqlite:FILE or postgresql://HOST/NAME",
    )
    group.add_argument("--no-session", action="store_true", help="keep no session file")
    group.add_argument("-n", "--name", help="display name of the session")
    group.add_argument(
        "--export",
        metavar="PATH|ID",
        help="write a session as an HTML page, to the file that may follow, and exit",
    )


def _tool_options(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "-t",
        "--tools",
        metavar="LIST",
        help="tools by name, comma-separated; or +name,-name to change the default",
    )
    group.add_argument(
        "-xt", "--exclude-tools", metavar="LIST", help="leave these out; `*` matches any characters"
    )
    group.add_argument("-nt", "--no-tools", action="store_true", help="no tools at all")


def _prompt_options(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--system-prompt", metavar="TEXT|FILE", help="instead of the default system prompt")
    group.add_argument(
        "--append-system-prompt",
        metavar="TEXT|FILE",
        action="append",
        default=[],
        help="after the system prompt; repeatable",
    )
    group.add_argument(
        "-nc", "--no-context-files", action="store_true", help="do not read AGENTS.md and CLAUDE.md"
    )
    group.add_argument(
        "-a", "--approve", action="store_true", help="trust this project's .cantle folder for this run"
    )
    group.add_argument(
        "-na", "--no-approve", action="store_true", help="ignore this project's .cantle folder for this run"
    )


def parse_arguments(arguments: Sequence[str], parser: Parser | None = None) -> argparse.Namespace:
    """Parse the command line; exits with 2 where it cannot be meant.

    All after the first `--` are prompts, whatever they begin with.
    """
    parser = parser or build_parser()
    options, literal = list(arguments), []
    if "--" in options:
        cut = options.index("--")
        options, literal = options[:cut], options[cut + 1 :]
    parsed = parser.parse_intermixed_args(_attach_values(options))
    parsed.files = [word[1:] for word in parsed.prompts if word.startswith("@") and len(word) > 1]
    parsed.prompts = [
        word for word in parsed.prompts if not (word.startswith("@") and len(word) > 1)
    ] + literal
    _check(parsed, parser)
    return parsed


_ONE_SESSION = (
    ("--continue", "--resume", "--session", "--fork", "--no-session"),
    ("--continue", "--resume", "--session", "--session-id"),
)
"""Options of which a command line can have one. `--fork` with `--session-id` chooses the new one's id."""


def _exclusions(parsed: argparse.Namespace) -> Iterator[tuple[str, bool]]:
    given = {
        "--continue": parsed.continue_,
        "--resume": parsed.resume,
        "--session": parsed.session is not None,
        "--session-id": parsed.session_id is not None,
        "--fork": parsed.fork is not None,
        "--no-session": parsed.no_session,
    }
    for group in _ONE_SESSION:
        for place, one in enumerate(group):
            for other in group[place + 1 :]:
                yield f"{one} and {other} exclude each other", given[one] and given[other]


def _attach_values(options: list[str]) -> list[str]:
    """`--tools -write` as `--tools=-write`: argparse would take the value for an option."""
    attached: list[str] = []
    for word in options:
        if attached and attached[-1] in ("-t", "--tools") and word.startswith("-"):
            attached[-1:] = [f"--tools={word}"]
        else:
            attached.append(word)
    return attached


def _check(parsed: argparse.Namespace, parser: Parser) -> None:
    pairs = (
        *_exclusions(parsed),
        (
            "--at needs the session that the entry is in: add --continue, --resume or --session",
            parsed.at is not None and not (parsed.continue_ or parsed.resume or parsed.session is not None),
        ),
        ("--approve and --no-approve exclude each other", parsed.approve and parsed.no_approve),
        ("--tools and --no-tools exclude each other", parsed.tools is not None and parsed.no_tools),
        (
            "--provider scripted needs --model, a file of answers",
            parsed.provider == SCRIPTED and not parsed.model and parsed.list_models is None,
        ),
        (
            "--api-key with --list-models needs --provider as well",
            parsed.list_models is not None and parsed.api_key and not parsed.provider,
        ),
    )
    for message, wrong in pairs:
        if wrong:
            parser.error(message)
