"""How a model is loaded: with as many threads as pay, and so that nobody else can talk to it."""

import http.client
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec
import pytest

from cantle_ai.context import Context
from cantle_ai.local import llama_server
from cantle_ai.messages import UserMessage
from cantle_ai.model import Model, StreamOptions
from cantle_ai.models import Models
from packages.ai.tests.local.listeners import listening
from tests.support.extras import needs


@pytest.mark.skipif(sys.platform != "linux", reason="asks which processors this process may use")
@pytest.mark.parametrize(
    ("processors", "load", "threads"),
    [(1, 0.0, 1), (2, 0.2, 2), (2, 1.0, 1), (4, 2.0, 2), (4, 3.5, 1), (64, 3, 2)],
)
def test_a_second_thread_reads_the_prompt_where_two_processors_are_idle(
    processors: int, load: float, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(processors)))
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 0.0, 0.0))
    assert llama_server._prompt_threads() == threads


@needs("local")
@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
async def test_where_it_has_to_listen_on_a_port_it_takes_no_request(
    tiny: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on Windows, and where the path of a socket would be too long."""
    monkeypatch.setattr(llama_server, "_LONGEST_SOCKET_PATH", 0)
    models, before = Models(environ={}), listening()
    small = msgspec.structs.replace(tiny, context_window=512)
    message = await models.complete(small, Context(messages=[UserMessage("Hi")]), StreamOptions(max_tokens=1))
    assert message.stop_reason == "length"
    (address,) = listening() - before
    host, _, port = address.partition(":")
    assert host == "0100007F"  # 127.0.0.1, as the kernel writes it
    for method, path in (
        ("POST", "/v1/chat/completions"),
        ("GET", "/v1/models"),
        ("GET", "/slots"),
        ("GET", "/"),
    ):
        connection = http.client.HTTPConnection("127.0.0.1", int(port, 16), timeout=10)
        connection.request(method, path, body="{}", headers={"Origin": "http://localhost:1234"})
        response = connection.getresponse()
        assert response.status in (401, 404), (path, response.read())
        assert response.headers["Access-Control-Allow-Origin"] in (None, "")
        connection.close()
    await models.aclose()
    assert listening() == before


@needs("local")
@pytest.mark.skipif(sys.platform == "win32", reason="listens on a port there")
async def test_without_a_folder_for_temporary_files_it_says_what_to_do(
    tiny: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    models = Models(environ={})
    message = await models.complete(tiny, Context(messages=[UserMessage("Hi")]))
    assert "none can be made: no such file or directory. Set TMPDIR to a folder" in str(message.error_message)
    await models.aclose()


_HANDFUL = """
import asyncio, msgspec
from cantle_ai.context import Context
from cantle_ai.messages import UserMessage
from cantle_ai.model import StreamOptions
from cantle_ai.models import Models

async def main():
    models = Models(environ={})
    model = models.find("local", "smollm2-135m")
    odd = msgspec.structs.replace(model, context_window=1, compat={"threads": True})
    message = await models.complete(odd, Context(messages=[UserMessage("Hi")]), StreamOptions(max_tokens=1))
    print(message.stop_reason, message.error_message)
    await models.aclose()

asyncio.run(main())
"""


@needs("local")
def test_odd_limits_in_models_json_do_not_end_the_process() -> None:
    """llama.cpp aborts where its window has one token."""
    done = subprocess.run([sys.executable, "-c", _HANDFUL], capture_output=True, text=True, timeout=50)
    assert (done.returncode, done.stdout, done.stderr) == (0, "length None\n", "")
