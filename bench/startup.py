#!/usr/bin/env python3
"""What a start consists of, in instructions: they are the same whatever else the machine does.

    python3 bench/startup.py

Cantle is built and installed as for bench/run.py. valgrind counts growing lists of imports, and then whole print
runs against a server in this process, without TLS and, where openssl can make a certificate, with it. Each row of
the table is what it adds to those above it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import ssl
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[0] = str(ROOT)

from bench.install import install_cantle  # noqa: E402 - the checkout's own package, found just above
from bench.trouble import Unable  # noqa: E402

STEPS: tuple[tuple[str, str], ...] = (
    ("Python itself", "sys"),
    ("`re`, `typing`, `enum` and their like", "re, typing, enum, collections.abc, functools, contextlib"),
    ("`asyncio`, with `ssl`, `inspect`, `logging` and `subprocess`, which it imports", "asyncio"),
    ("`msgspec`, with `uuid`, `platform`, `datetime` and `decimal`", "msgspec, msgspec.json"),
    ("`http.client`, with the `email` package", "http.client"),
    ("`pathlib`", "pathlib"),
    ("`argparse`", "argparse"),
)
"""What a print run imports of other people's, in growing lists."""

_WIRE = (
    "cantle_ai.apis.openai_completions",
    "cantle_ai.transport.urllib3_thread",
    "cantle_ai.transport._connection",
    "cantle_ai.transport.framing",
)
"""What a model behind HTTP needs beside the modules of a scripted run."""

_ANSWER = (
    b'data: {"choices":[{"index":0,"delta":{"content":"Hello."}}]}\n\n'
    b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
)


class _Server(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(_ANSWER)))
        self.end_headers()
        self.wfile.write(_ANSWER)

    def log_message(self, format: str, *arguments: object) -> None:
        """Says nothing."""


@contextmanager
def serving(certificate: Path | None) -> Iterator[str]:
    """A model's server; gives its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Server)
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        scheme = "http" if certificate is None else "https"
        yield f"{scheme}://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()


def instructions(words: Sequence[str], *, cwd: Path, environ: Mapping[str, str]) -> int:
    """How many instructions a command executes. Raises :class:`Unable`."""
    valgrind = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={os.devnull}", *words]
    done = subprocess.run(
        valgrind,
        cwd=cwd,
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    found = re.search(r"refs:\s+([\d,]+)", done.stderr)
    if done.returncode or found is None:
        raise Unable(f"{' '.join(words[:4])} … failed under valgrind:\n{done.stderr.strip()[-800:]}")
    return int(found[1].replace(",", ""))


def own_modules() -> list[str]:
    """The modules of ours that a print run imports."""
    recorded = json.loads((ROOT / "tests/surface/imports.json").read_text(encoding="utf-8"))
    names = [name for name in recorded["print"]["own"] if not name.startswith("cantle_ai.testing")]
    return [*names, *_WIRE]


def make_certificate(folder: Path) -> Path | None:
    """A certificate for 127.0.0.1 with its key, in one file; None without openssl."""
    openssl = shutil.which("openssl")
    if openssl is None:
        return None
    both, certificate = folder / "server.pem", folder / "cert.pem"
    words = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"]
    words += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(both), "-out", str(certificate)]
    subprocess.run(words, check=True, capture_output=True)
    with both.open("ab") as file:
        file.write(certificate.read_bytes())
    return both


def print_run(command: Path, python: Path, folder: Path, certificate: Path | None) -> int:
    """The instructions of a whole print run."""
    home = folder / ("plain" if certificate is None else "tls")
    (home / "project").mkdir(parents=True)
    with serving(certificate) as address:
        model = {"id": "m", "name": "m"}
        provider = {"baseUrl": address, "api": "openai-completions", "apiKey": "none", "models": [model]}
        (home / "models.json").write_text(json.dumps({"providers": {"b": provider}}), encoding="utf-8")
        environ = {**_environment(home), "CANTLE_DIR": str(home), "CANTLE_OFFLINE": "1"}
        if certificate is not None:
            environ["NODE_EXTRA_CA_CERTS"] = str(certificate.with_name("cert.pem"))
        words = [str(python), str(command), "--provider", "b", "--model", "m", "-p", "hello"]
        # The first one makes the folders that the next one finds.
        instructions(words, cwd=home / "project", environ=environ)
        return instructions(words, cwd=home / "project", environ=environ)


def _environment(home: Path) -> dict[str, str]:
    path = os.environ.get("PATH", os.defpath)
    return {"PATH": path, "HOME": str(home), "LANG": "C.UTF-8", "PYTHONHASHSEED": "0"}


def main() -> int:
    if shutil.which("valgrind") is None:
        print(
            "valgrind counts the instructions, and it is not on the path: install it first.", file=sys.stderr
        )
        return 2
    try:
        with tempfile.TemporaryDirectory(prefix="cantle-startup-") as name:
            _profile(Path(name))
    except Unable as problem:
        print(problem, file=sys.stderr)
        return 2
    return 0


def _profile(folder: Path) -> None:
    installed = install_cantle(folder, sys.executable)
    python = installed.command.with_name("python")
    environ = _environment(folder)
    total, imports = 0, ""
    print("| | million instructions |\n|---|---|", flush=True)

    def row(shows: str, count: int) -> None:
        nonlocal total
        print(f"| {shows} | {(count - total) / 1e6:.0f} |", flush=True)
        total = count

    own = own_modules()
    for shows, modules in (*STEPS, (f"Cantle's own {len(own)} modules", ", ".join(own))):
        imports += f"import {modules}\n"
        code = f"import gc; gc.disable()\n{imports}gc.freeze()"
        count = instructions([str(python), "-c", code], cwd=folder, environ=environ)
        row(shows, count)
    plain = print_run(installed.command, python, folder, None)
    row("work: settings, model, prompt, session file, request, answer, exit", plain)
    print(f"| **a print run** | **{plain / 1e6:.0f}** |", flush=True)
    certificate = make_certificate(folder)
    if certificate is not None:
        row(
            "the same over TLS: the context, the authorities, the handshake",
            print_run(installed.command, python, folder, certificate),
        )


if __name__ == "__main__":
    sys.exit(main())
