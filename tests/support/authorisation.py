"""An authorisation server on this machine's loopback: it rotates refresh tokens and takes none of them twice.

    with AuthorisationServer() as server:
        …  # server.url + "/authorize", "/token", "/device"

`vendor_names` lets it stand for real vendors: it is then a proxy too, whose tunnels to any of these hosts end here,
with a certificate of a test authority (`openssl` makes it). What a program does not do through the proxy is not seen.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

PATIENCE = 30.0
"""Seconds after which a wait that should have ended is a failure."""

can_stand_for_vendors = shutil.which("openssl") is not None


@dataclass
class Asked:
    """A request, as it came in."""

    host: str
    method: str
    path: str
    headers: dict[str, str]
    fields: dict[str, str]


Answer = tuple[int, dict[str, Any]]


@dataclass
class AuthorisationServer:
    """Answers requests for tokens by OAuth's rules. Attributes may be changed while it runs."""

    vendor_names: Sequence[str] = ()
    folder: Path | None = None
    """Where the certificates are made, for `vendor_names`."""
    lifetime: float = 3600.0
    """Seconds that an access token is good for, as answers have it."""
    held: threading.Event | None = None
    """A renewal that has rotated its token is answered when this is set."""
    refused: Answer | None = None
    """The answer to each renewal, in place of tokens."""
    device_interval: float = 1
    """Seconds that it wants between two questions about a device code."""
    device_answers: list[Answer] = field(default_factory=list)
    """What is said to one that asks after a device code, in this order; then come tokens."""
    other: Callable[[Asked], Answer | None] = lambda asked: None
    """Answers for what is none of OAuth's business; None is a 404."""

    asked: list[Asked] = field(default_factory=list)
    renewals: int = 0
    """Refresh tokens that were rotated."""
    reused: int = 0
    """Refresh tokens that were sent once more, and refused."""
    issued: set[str] = field(default_factory=set)
    """All tokens and codes that were ever given out, and verifiers that came in: nothing may ever show one."""
    renewal_began: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._refresh: dict[str, bool] = {}
        self._codes: dict[str, dict[str, str]] = {}
        self._lock = threading.Lock()

    def __enter__(self) -> AuthorisationServer:
        self._context = _context(self.vendor_names, self.folder) if self.vendor_names else None
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.held is not None:
            self.held.set()
        self._server.shutdown()
        self._thread.join(PATIENCE)
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def variables(self) -> dict[str, str]:
        """The environment of a program that is to meet the vendors here."""
        assert self.folder is not None
        return {"HTTPS_PROXY": self.url, "SSL_CERT_FILE": str(self.folder / "ca.pem")}

    @property
    def context(self) -> ssl.SSLContext | None:
        return self._context

    def tokens(self, **more: object) -> dict[str, Any]:
        """A new pair of tokens, of which the second may be used once."""
        access, refresh = f"at-{secrets.token_hex(12)}", f"rt-{secrets.token_hex(12)}"
        with self._lock:
            self._refresh[refresh] = True
            self.issued |= {access, refresh}
        return {
            "access_token": access,
            "refresh_token": refresh,
            "token_type": "bearer",
            "expires_in": self.lifetime,
            **more,
        }

    def of_path(self, path: str) -> list[Asked]:
        return [asked for asked in self.asked if asked.path == path]

    def browse(self, address: str, *, deny: bool = False) -> str:
        """What a person's browser does with the page of a login: the address that it ends at."""
        query = dict(parse_qsl(urlsplit(address).query))
        code = f"code-{secrets.token_hex(8)}"
        with self._lock:
            self._codes[code] = query
            self.issued.add(code)
        answer = {"error": "access_denied"} if deny else {"code": code}
        if "state" in query:
            answer["state"] = query["state"]
        target = query.get("redirect_uri") or query["callback_url"]
        return f"{target}?{urlencode(answer)}"

    def answer(self, asked: Asked) -> Answer:
        """By OAuth's rules, whatever the vendor calls its paths."""
        self.asked.append(asked)
        fields = asked.fields
        if fields.get("code_verifier"):
            self.issued.add(fields["code_verifier"])
            return self._exchanged(fields)
        if fields.get("grant_type") == "refresh_token":
            return self._renewed(fields)
        if "device_code" in fields:
            return self.device_answers.pop(0) if self.device_answers else (200, self.tokens())
        if "device" in asked.path and "client_id" in fields:
            self.issued.add("dc-secret")
            return 200, {
                "device_code": "dc-secret",
                "user_code": "ABCD-1234",
                "verification_uri": "https://login.example/device",
                "interval": self.device_interval,
                "expires_in": 600,
            }
        return self.other(asked) or (404, {"error": "not_found"})

    def _exchanged(self, fields: dict[str, str]) -> Answer:
        with self._lock:
            begun = self._codes.pop(fields.get("code", ""), None)
        if begun is None:
            return 400, {"error": "invalid_grant", "error_description": "unknown code"}
        digest = hashlib.sha256(fields["code_verifier"].encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        if begun["code_challenge"] != challenge or begun.get("redirect_uri") != fields.get("redirect_uri"):
            return 400, {"error": "invalid_grant", "error_description": "wrong verifier or redirect"}
        return 200, self.tokens()

    def _renewed(self, fields: dict[str, str]) -> Answer:
        if self.refused is not None:
            return self.refused
        with self._lock:
            good = self._refresh.get(fields["refresh_token"])
            self._refresh[fields["refresh_token"]] = False
            self.renewals += bool(good)
            self.reused += good is False
        if not good:
            said = f"the token {fields['refresh_token']} was used before"  # some servers are that careless
            return 400, {"error": "invalid_grant", "error_description": said}
        answer = self.tokens()
        self.renewal_began.set()
        if self.held is not None:
            assert self.held.wait(PATIENCE)
        return 200, answer


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that left, as it may."""


def _handler(server: AuthorisationServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1
        tunnel = ""

        def do_CONNECT(self) -> None:
            host = self.path.partition(":")[0]
            if server.context is None or host not in server.vendor_names:
                self._send(502, {"error": f"no tunnel to {host}"})
                return
            self.send_response(200)
            self.end_headers()
            self.wfile.flush()
            self.connection = server.context.wrap_socket(self.connection, server_side=True)
            self.rfile = self.connection.makefile("rb")
            self.wfile = self.connection.makefile("wb")
            self.tunnel = host
            self.close_connection = False
            try:
                while not self.close_connection:
                    self.handle_one_request()
            finally:
                self.close_connection = True
                self.rfile.close()
                self.wfile.close()
                self.connection.close()

        def do_GET(self) -> None:
            self._respond()

        def do_POST(self) -> None:
            self._respond()

        def _respond(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            path = urlsplit(self.path).path
            asked = Asked(self.tunnel, self.command, path, headers, _fields(body))
            self._send(*server.answer(asked))

        def _send(self, status: int, answer: dict[str, Any]) -> None:
            raw = answer.get("raw")
            data = raw if isinstance(raw, bytes) else json.dumps(answer).encode()
            with suppress(OSError):
                self.send_response(status)
                self.send_header("Content-Type", answer.get("type", "application/json"))
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)
                self.wfile.flush()

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler


def _fields(body: bytes) -> dict[str, str]:
    try:
        value = json.loads(body)
    except ValueError:
        return {name: values[0] for name, values in parse_qs(body.decode("latin-1")).items()}
    return value if isinstance(value, dict) else {}


def _context(names: Sequence[str], folder: Path | None) -> ssl.SSLContext:
    """A server's context for all `names`, signed by an authority in `folder`/ca.pem."""
    assert folder is not None
    folder.mkdir(parents=True, exist_ok=True)
    hosts = ",".join(f"DNS:{name}" for name in names)
    (folder / "ca.cnf").write_text(
        "[req]\ndistinguished_name=dn\n[dn]\n[ca]\nbasicConstraints=critical,CA:TRUE\n"
        "keyUsage=critical,keyCertSign,cRLSign\nsubjectKeyIdentifier=hash\n"
        f"[server]\nsubjectAltName={hosts}\nextendedKeyUsage=serverAuth\n"
        "subjectKeyIdentifier=hash\nauthorityKeyIdentifier=keyid\n",
        encoding="utf-8",
    )

    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], check=True, capture_output=True, cwd=folder)

    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-config", "ca.cnf")
    openssl("req", "-x509", *curve, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2",
            "-subj", "/CN=Test authority", "-extensions", "ca")  # fmt: skip
    openssl("req", *curve, "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=server")
    openssl("x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
            "-out", "server.pem", "-days", "2", "-extfile", "ca.cnf", "-extensions", "server")  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem", folder / "server.key")
    return context


@contextmanager
def busy_port(port: int = 0) -> Iterator[int]:
    """A port of the loopback interface on which somebody else listens."""
    with socket.create_server(("127.0.0.1", port)) as listener:
        yield listener.getsockname()[1]


def expired(tokens: dict[str, Any], **more: object) -> dict[str, Any]:
    """The stored form of tokens whose access token has just ended."""
    return {
        "type": "oauth",
        "access": tokens["access_token"],
        "refresh": tokens["refresh_token"],
        "expires": round(time.time() * 1000) - 1000,
        **more,
    }
