"""What the transport and the wire API load, and when: counted in modules, not in milliseconds."""

import json
import subprocess
import sys

_HEAVY = (
    "urllib3",
    "http.client",
    "email.parser",
    "hashlib",
    "ipaddress",
    "uuid",
    "tempfile",
    "dataclasses",
    "inspect",
)


def loaded(code: str) -> set[str]:
    script = f"import sys, json\n{code}\nprint(json.dumps(sorted(sys.modules)))"
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, encoding="utf-8"
    )
    return set(json.loads(run.stdout))


def test_importing_them_loads_no_http_client():
    before = loaded("import asyncio, msgspec")
    modules = loaded("import cantle_ai.apis.openai_completions, cantle_ai.transport.urllib3_thread")
    assert not {name for name in _HEAVY if name in modules} - before
    assert "cantle_ai.transport._connection" not in modules
    assert "cantle_ai.transport.certificates" not in modules


def test_a_plain_request_loads_nothing_for_tls_proxies_or_failures():
    code = """
import asyncio, threading, socket
from cantle_ai.transport.port import HttpRequest
from cantle_ai.transport.urllib3_thread import Urllib3Transport
listener = socket.create_server(("127.0.0.1", 0))
def serve():
    sock, _ = listener.accept()
    sock.recv(65536)
    sock.sendall(b"HTTP/1.1 200 OK\\r\\ncontent-length: 2\\r\\n\\r\\nok")
threading.Thread(target=serve, daemon=True).start()
async def main():
    transport = Urllib3Transport(environ={})
    response = await transport.send(HttpRequest("POST", f"http://127.0.0.1:{listener.getsockname()[1]}/", {}, b""))
    assert await response.read(9) == b"ok"
    await transport.aclose()
asyncio.run(main())
"""
    modules = loaded(code)
    assert "http.client" in modules
    late = {"urllib3", "importlib.metadata", "hashlib", "encodings.idna", "cantle_ai.transport.certificates"}
    assert not late & modules
    assert "cantle_ai.transport._failures" not in modules
