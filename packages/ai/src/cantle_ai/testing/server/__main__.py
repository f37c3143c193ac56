"""The strict server as a process: `python -m cantle_ai.testing.server SCRIPT --port 0`.

SCRIPT is a file as `docs/formats/scripted-model.md` describes it. The first line on stdout is
`{"port": …, "baseUrl": …, "baseUrls": {API: URL, …}}`, the second of them for chat completions. It stops on SIGTERM and SIGINT, on `POST /control/stop`, and when idle.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
from collections.abc import Sequence

from cantle_ai.errors import ConfigurationError
from cantle_ai.testing.script_file import read_script
from cantle_ai.testing.server.dialects import DIALECTS
from cantle_ai.testing.server.server import StrictServer
from cantle_ai.testing.server.strictness import Strictness


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until stopped. Returns 0, or 2 when the script or the port cannot be used."""
    options = _parser().parse_args(arguments)
    try:
        script = read_script(options.script)
        strictness = Strictness(
            api_key=options.api_key, need_key=not options.no_key, context_window=options.context_window
        )
        server = StrictServer(
            script.all(),
            seed=script.seed,
            chunk=script.chunk,
            rate=script.rate,
            cut=options.cut,
            prefix=not options.no_prefix,
            strictness=strictness,
            port=options.port,
            idle=options.idle,
        ).start()
    except ConfigurationError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    except OSError as error:
        reason = os.strerror(error.errno or 0)
        sys.stderr.write(f"port {options.port} cannot be used ({reason}): --port 0 takes a free one\n")
        return 2
    for number in (signal.SIGTERM, signal.SIGINT):
        # A handler that waited for the thread could wait for itself.
        signal.signal(number, lambda *_: threading.Thread(target=server.stop).start())
    urls = {api: server.base_url_for(api) for api in DIALECTS}
    told = {"port": server.port, "baseUrl": server.base_url, "baseUrls": urls}
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()
    # A signal that comes just before a wait without end is not seen until that ends.
    while not server.join(0.5):
        pass
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m cantle_ai.testing.server", description=__doc__.split("\n")[0]
    )
    parser.add_argument("script", metavar="SCRIPT", help="a scripted-model file")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one (default)")
    parser.add_argument(
        "--idle", type=float, default=60, metavar="SECONDS", help="stop after so long without a request (60)"
    )
    parser.add_argument(
        "--cut", type=int, metavar="SEED", help="choose by this seed where answers are cut into blocks"
    )
    parser.add_argument("--no-prefix", action="store_true", help="do not ask for the prefix rule")
    parser.add_argument("--api-key", metavar="KEY", help="take this key only")
    parser.add_argument("--no-key", action="store_true", help="take requests without a key")
    parser.add_argument("--context-window", type=int, metavar="TOKENS", help="refuse requests that exceed it")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
