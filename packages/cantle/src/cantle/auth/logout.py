"""`cantle auth logout`: forgets what is saved."""

from __future__ import annotations

import argparse

from cantle.auth.providers import runtime
from cantle.console import Results
from cantle.errors import UserError

__all__ = ["log_out"]


def log_out(options: argparse.Namespace) -> int:
    """Forget what is saved for the providers that are named; nothing being saved is no failure."""
    known = runtime()
    names = known.store.names() if options.all else options.providers
    if not names and not options.all:
        saved = ", ".join(known.store.names())
        step = f"There is something saved for {saved}." if saved else "Nothing is saved."
        raise UserError("No provider was named.", step)
    results = Results()
    for name in names:
        removed = known.store.remove(name)
        if not removed and known.models.provider(name) is None:
            known.row(name)
        text = f"Removed {name} from {known.store.place}" if removed else f"Nothing is saved for {name}"
        source = known.models.auth_source(name)
        still = f"; {source.name} is still set" if source is not None and source.kind == "environment" else ""
        results.say(f"{text}{still}\n")
    return results.code
