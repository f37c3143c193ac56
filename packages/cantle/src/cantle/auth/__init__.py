"""`cantle auth`: saves keys, signs in to accounts, forgets both, and says where each provider's key comes from."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cantle.cli.arguments import Parser

__all__ = ["main"]


def main(arguments: Sequence[str]) -> int:
    """Run the sub-command and return its exit code: for `check`, 0 only if requests would be authorised.

    Raises UserError for what the user can mend.
    """
    options = _parser().parse_args(list(arguments))
    if options.what == "login":
        from cantle.auth.login import log_in

        return log_in(options)
    if options.what == "logout":
        from cantle.auth.logout import log_out

        return log_out(options)
    from cantle.auth.check import check

    return check(options)


def _parser() -> Parser:
    from cantle.cli.arguments import Parser

    parser = Parser(
        prog="cantle auth",
        description="Keys and logins: save them, forget them, and see which one a provider's requests would carry. "
        "They are saved in auth.json in Cantle's folder, readable for you alone.",
    )
    commands = parser.add_subparsers(dest="what", metavar="login|logout|check", required=True)
    _login_options(
        commands.add_parser(
            "login",
            help="sign in to a provider's account, or save a key for it",
            description="Sign in to a provider's account, in a browser on this machine or on any other; or, where "
            "there is no such login, save a key. A key is asked for without being shown, or read from stdin.",
        )
    )
    logout = commands.add_parser(
        "logout",
        help="forget what is saved for a provider",
        description="Forget what login saved. Environment variables and models.json stay as they are, and the "
        "provider is not told: a key or login that somebody else may have is to be revoked there.",
    )
    logout.add_argument("providers", nargs="*", metavar="provider", help="such as openai")
    logout.add_argument("--all", action="store_true", help="forget everything that is saved")
    _check_options(
        commands.add_parser(
            "check",
            help="say where each provider's key would come from",
            description="Say where the key of a provider, or of each provider that has one, would come from. The "
            "exit status is 0 if there is one, 1 if not. Nothing is sent anywhere without --live.",
        )
    )
    return parser


def _login_options(login: argparse.ArgumentParser) -> None:
    login.add_argument("provider", nargs="?", help="such as anthropic; asked for when it is left out")
    login.add_argument(
        "--api-key",
        action="store_true",
        help="save a key instead of signing in; it is asked for, or read from stdin",
    )
    login.add_argument(
        "--env",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="with a key: save a variable that counts for this provider alone; repeatable",
    )
    login.add_argument(
        "--method",
        choices=("browser", "paste", "device"),
        help="browser: on this machine; paste: in any, pasting back where it ends; device: a code to type in",
    )
    login.add_argument("--no-browser", action="store_true", help="open none: show the address instead")
    login.add_argument("--host", metavar="HOST", help="github-copilot: the host of a GitHub Enterprise")


def _check_options(check: argparse.ArgumentParser) -> None:
    check.add_argument("provider", nargs="?", help="only this one")
    check.add_argument("--provider", dest="named", metavar="NAME", help="the same, as an option")
    check.add_argument("--model", metavar="PATTERN", help="the provider of this model")
    check.add_argument("--json", action="store_true", help="as JSON: one object, or a list of them")
    check.add_argument(
        "--live", action="store_true", help="ask the provider, with one short request to one of its models"
    )
