"""The strict server over real HTTP, in this process and as one of its own."""

import asyncio
import errno
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cantle_ai.abort import AbortController
from cantle_ai.content import TextContent
from cantle_ai.context import Context, ToolDefinition
from cantle_ai.messages import AssistantMessage, Message, ToolResultMessage, UserMessage
from cantle_ai.model import Model, Provider, StreamOptions
from cantle_ai.models import Models
from cantle_ai.testing.checker import check_events, checked
from cantle_ai.testing.server.dialects import DIALECTS, api_of_path, dialect
from cantle_ai.testing.server.server import StrictServer
from cantle_ai.testing.server.strictness import Strictness

USER = {"role": "user", "content": "hi"}
PATIENCE = 10
CALL = {"type": "toolCall", "name": "read", "arguments": {"path": "a"}}


def ask(server: StrictServer, *messages: Any, key: str = "key", **fields: Any) -> tuple[int, bytes]:
    """Status and body of one request; the body is what came, also when that was not all."""
    body = {"model": "m", "stream": True, "stream_options": {"include_usage": True}, **fields}
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
    try:
        headers = {"content-type": "application/json", "authorization": f"Bearer {key}"}
        data = json.dumps({**body, "messages": list(messages) or [USER]})
        connection.request("POST", "/v1/chat/completions", data, headers)
        response = connection.getresponse()
        try:
            return response.status, response.read()
        except http.client.IncompleteRead as error:
            return response.status, error.partial
        except ConnectionResetError:
            return response.status, b""
    finally:
        connection.close()


def chunks(body: bytes) -> list[dict[str, Any]]:
    lines = [line.removeprefix("data: ") for line in body.decode().split("\n") if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


def text(body: bytes) -> str:
    deltas = [choice["delta"] for chunk in chunks(body) for choice in chunk.get("choices", [])]
    return "".join(delta.get("content") or "" for delta in deltas)


def test_an_answer():
    with StrictServer(["Hello, you."]) as server:
        status, body = ask(server)
    assert (status, text(body)) == (200, "Hello, you.")
    assert body.endswith(b"data: [DONE]\n\n")
    finish = [choice["finish_reason"] for chunk in chunks(body) for choice in chunk["choices"]]
    assert finish[-1] == "stop"
    server.assert_clean()


def test_usage_comes_when_it_is_asked_for():
    given = {"content": "x", "usage": {"input": 1, "cacheRead": 30, "output": 5, "reasoning": 2}}
    with StrictServer([given, "y"]) as server:
        _, body = ask(server)
        assert chunks(body)[-1]["usage"] == {
            "prompt_tokens": 31,
            "completion_tokens": 5,
            "total_tokens": 36,
            "prompt_tokens_details": {"cached_tokens": 30},
            "completion_tokens_details": {"reasoning_tokens": 2},
        }
        _, body = ask(server, stream_options={"include_usage": False})
        assert not any("usage" in chunk for chunk in chunks(body))


def test_a_request_that_breaks_a_rule_uses_up_nothing():
    with StrictServer(["Hello"]) as server:
        status, body = ask(server, {"role": "user", "content": ""})
        assert status == 400
        assert json.loads(body)["error"]["code"] == "empty"
        assert [(bad.number, bad.rule) for bad in server.violations] == [(1, "empty")]
        with pytest.raises(AssertionError, match=r"request 1: empty: messages\[0\].content is blank"):
            server.assert_clean()
        assert text(ask(server)[1]) == "Hello"


def test_the_prefix_rule_holds_by_conversation():
    with StrictServer(["one", "two", "three"]) as server:
        assert ask(server, prompt_cache_key="a")[0] == 200
        assert ask(server, {**USER, "content": "other"}, prompt_cache_key="b")[0] == 200
        assert ask(server, {**USER, "content": "changed"}, prompt_cache_key="a")[0] == 400
        server.new_conversation()
        assert ask(server, {**USER, "content": "changed"}, prompt_cache_key="a")[0] == 200
    with StrictServer(["one", "two"], prefix=False) as server:
        assert [ask(server, {**USER, "content": word})[0] for word in ("a", "b")] == [200, 200]


def test_the_cache_reads_what_the_request_before_said():
    with StrictServer(["one", "two"]) as server:
        ask(server, {**USER, "content": "x" * 400})
        _, body = ask(server, {**USER, "content": "x" * 400}, {"role": "assistant", "content": "one"}, USER)
    cached = chunks(body)[-1]["usage"]["prompt_tokens_details"]["cached_tokens"]
    assert 100 < cached < 120


def test_running_out_is_a_violation():
    with StrictServer([]) as server:
        status, body = ask(server)
        assert status == 400
        assert "the script has no response" in json.loads(body)["error"]["message"]
        assert server.violations


def test_errors_before_and_in_the_stream():
    slow = {"message": "Slow down", "status": 429, "code": "rate_limited", "retryAfterMs": 1500}
    with StrictServer([{"error": slow}, {"content": "half", "error": {"message": "Broken"}}]) as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
        data = json.dumps({"model": "m", "stream": True, "messages": [USER]})
        headers = {"content-type": "application/json", "authorization": "Bearer k"}
        connection.request("POST", "/v1/chat/completions", data, headers)
        response = connection.getresponse()
        assert (response.status, response.headers["retry-after"]) == (429, "1.5")
        assert json.loads(response.read())["error"]["code"] == "rate_limited"
        connection.close()
        status, body = ask(server)
        assert (status, text(body)) == (200, "half")
        assert chunks(body)[-1]["error"]["message"] == "Broken"
        assert b"[DONE]" not in body


def test_cuts():
    responses = [
        {"content": "0123456789", "chunk": 1, "cut": True, "after": 4},
        {"content": "0123456789", "chunk": 1, "cut": "quiet", "after": 4},
    ]
    with StrictServer(responses) as server:
        for _ in responses:
            status, body = ask(server)
            assert status == 200
            assert text(body) in ("0123", "")  # A broken connection may lose what was on its way.
            assert b"[DONE]" not in body


def test_answers_that_are_none():
    responses: list[Any] = [
        {"http": {"status": 502, "contentType": "text/html", "body": "<html>Bad gateway</html>"}},
        {"http": {"body": 'data: {"choices": [{"del'}},
        {"http": {"status": 503, "headers": {"Retry-After": "7"}}},
        {"http": {"drop": True}},
    ]
    with StrictServer(responses) as server:
        assert ask(server) == (502, b"<html>Bad gateway</html>")
        assert ask(server) == (200, b'data: {"choices": [{"del')
        assert ask(server) == (503, b"")
        with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError)):
            ask(server)


@pytest.mark.parametrize(
    "response", [{"http": {"stall": True}}, {"content": "half", "stall": True}], ids=repr
)
def test_stalls_end_with_the_server(response: Any):
    with StrictServer([response]) as server:
        with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as connection:
            data = json.dumps({"model": "m", "stream": True, "messages": [USER]}).encode()
            head = "POST /v1/chat/completions HTTP/1.1\r\nAuthorization: Bearer k\r\n"
            head += f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
            connection.sendall(head.encode() + data)
            server.wait_for(1)
            connection.settimeout(0.1)
            with pytest.raises(TimeoutError):
                while connection.recv(4096):
                    pass
            server.stop()
            connection.settimeout(PATIENCE)
            with pytest.raises(ConnectionResetError):
                while connection.recv(4096):
                    pass
                raise ConnectionResetError


def test_slices_cut_anywhere_and_lose_nothing():
    bodies = []
    for slices in ((1, 1), (1, 7), (4096, 4096)):
        with StrictServer(["Ünïcödé 👩‍👩‍👧 text"], slices=slices) as server:
            bodies.append(ask(server)[1])
    assert bodies[0] == bodies[1] == bodies[2]


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_line_ends(newline: str):
    with StrictServer(["hi"], newline=newline) as server:
        _, body = ask(server)
    assert body.endswith(f"data: [DONE]{newline}{newline}".encode())


def test_several_requests_on_one_connection_and_chunked_bodies():
    with StrictServer(lambda body: f"{len(body['messages'])} messages") as server:  # type: ignore[arg-type]
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
        headers = {"content-type": "application/json", "authorization": "Bearer k"}
        data = json.dumps({"model": "m", "stream": True, "messages": [USER]}).encode()
        for _ in range(2):
            parts: Iterator[bytes] = iter([data[:10], data[10:]])
            connection.request("POST", "/v1/chat/completions", parts, headers, encode_chunked=True)
            assert text(connection.getresponse().read()) == "1 messages"
        connection.close()
        assert server.bodies == [data, data]


def test_many_clients_at_once():
    with StrictServer([{"content": "x" * 100, "repeat": "forever"}], prefix=False) as server:
        found: list[str] = []
        clients = [threading.Thread(target=lambda: found.append(text(ask(server)[1]))) for _ in range(20)]
        for client in clients:
            client.start()
        for client in clients:
            client.join(PATIENCE)
        assert found == ["x" * 100] * 20
        server.assert_clean()


def test_keys():
    with StrictServer(["x"], strictness=Strictness(api_key="right")) as server:
        assert ask(server, key="wrong")[0] == 401
        assert ask(server, key="right")[0] == 200


def test_what_is_no_request():
    with StrictServer(["x"]) as server:
        for junk in (
            b"\r\n\r\n",
            b"\x16\x03\x01junk\r\n\r\n",
            b"POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
        ):
            with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as connection:
                connection.sendall(junk)
                assert connection.recv(100) == b""
        client = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
        client.request("GET", "/nowhere")
        response = client.getresponse()
        assert response.status == 404
        response.read()
        client.request("GET", "/v1/chat/completions")
        assert client.getresponse().status == 405
        client.close()
        assert text(ask(server)[1]) == "x"


def test_the_log():
    with StrictServer(["x"]) as server:
        ask(server, key="secret-key")
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
        connection.request("GET", "/control/log")
        log = connection.getresponse().read()
        connection.close()
    assert b"secret-key" not in log
    read = json.loads(log)
    assert (read["count"], read["violations"]) == (1, [])
    assert json.loads(read["requests"][0]["body"])["messages"] == [USER]


def test_waiting_for_requests():
    with StrictServer(["x"]) as server:
        with pytest.raises(TimeoutError, match="0 of 1 requests"):
            server.wait_for(1, timeout=0.01)
        ask(server)
        server.wait_for(1)


def test_a_port_that_is_taken():
    with StrictServer() as server:
        with pytest.raises(OSError, match="address already in use"):
            StrictServer(port=server.port).start()


def test_an_idle_server_stops_by_itself():
    server = StrictServer(idle=0.05).start()
    server.join()
    server.stop()
    assert not [thread for thread in threading.enumerate() if thread.name == "strict-server"]


# --- several APIs ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "api"),
    [
        ("/v1/chat/completions", "openai-completions"),
        ("/any/where/chat/completions", "openai-completions"),
        ("/mistral-conversations/v1/chat/completions", "mistral-conversations"),
        ("/v1/messages", "anthropic-messages"),
        ("/v1/responses", "openai-responses"),
        ("/azure-openai-responses/openai/v1/responses", "azure-openai-responses"),
        ("/v1beta/models/gemini-x:streamGenerateContent", "google-generative-ai"),
        ("/model/anthropic.claude%3A0/converse-stream", "bedrock-converse-stream"),
        ("/v1/models", None),
        ("/v1/chat/completions/more", None),
        ("/anthropic-messages/v1/chat/completions", None),
        ("", None),
    ],
)
def test_the_path_tells_the_api(path: str, api: str | None):
    assert api_of_path(path) == api


def test_every_api_has_a_dialect_and_its_address():
    with StrictServer() as server:
        for api, row in DIALECTS.items():
            assert server.base_url_for(api) == f"http://127.0.0.1:{server.port}/{api}{row.root}"
            assert dialect(api).content_type
        with pytest.raises(KeyError):
            server.base_url_for("no-such-api")


def test_one_script_answers_all_apis_and_each_is_a_conversation_of_its_own():
    with StrictServer(["one", "two"]) as server:
        assert text(ask(server)[1]) == "one"
        body = {"model": "m", "max_tokens": 9, "stream": True, "messages": [USER]}
        headers = {
            "content-type": "application/json",
            "x-api-key": "secret-key",
            "anthropic-version": "2023-06-01",
        }
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
        connection.request("POST", "/v1/messages", json.dumps(body), headers)
        answer = connection.getresponse().read().decode()
        connection.request("GET", "/control/log")
        log = connection.getresponse().read()
        connection.close()
        assert "event: content_block_delta" in answer
        assert [request.api for request in server.requests] == ["openai-completions", "anthropic-messages"]
        server.assert_clean()
    assert b"secret-key" not in log


def test_the_list_of_models_is_worded_as_the_api_words_it():
    with StrictServer(models=["a", "b"]) as server:
        _, listed = remote(server.port, "GET", "/v1/models")
        assert [row["id"] for row in json.loads(listed)["data"]] == ["a", "b"]
        for api, row in DIALECTS.items():
            status, listed = remote(server.port, "GET", f"/{api}{row.root}/models")
            assert status == 200 and b'"' in listed and b"a" in listed and b"b" in listed
        assert not server.requests


def test_a_refusal_is_worded_as_the_api_words_it():
    with StrictServer() as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
        connection.request(
            "POST", "/v1/messages", b"{", {"content-type": "application/json", "x-api-key": "k"}
        )
        answer = connection.getresponse()
        assert (answer.status, json.loads(answer.read())["type"]) == (400, "error")
        connection.close()
        assert [bad.api for bad in server.violations] == ["anthropic-messages"]


def test_noise_between_the_events():
    said: dict[str, Any] = {"content": "said", "noise": ["unknown", "garbage", "comment", "empty"]}
    with StrictServer([said, {"content": "said", "noise": ["repeated"]}]) as server:
        _, body = ask(server)
        assert body.count(b": ping\n\n") == body.count(b"data:\n\n") == body.count(b'data: {"cut off') > 3
        _, body = ask(server)
        assert body.count(b"data: [DONE]\n\n") == 2
        assert body.count(b'"finish_reason":"stop"') == 2


def blocks_of(cut: int | None, seed: int = 0) -> list[bytes]:
    """The blocks in which an answer comes, as its chunked coding has them."""
    with StrictServer(["Hello, you. " * 20], seed=seed, cut=cut, slices=(1, 90)) as server:
        with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as connection:
            data = json.dumps({"model": "m", "stream": True, "messages": [USER]}).encode()
            head = "POST /v1/chat/completions HTTP/1.1\r\nAuthorization: Bearer k\r\n"
            head += f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
            connection.sendall(head.encode() + data)
            file = connection.makefile("rb")
            while file.readline().strip():
                pass
            blocks = []
            while size := int(file.readline(), 16):
                blocks.append(file.read(size))
                file.readline()
            return blocks


def test_an_answer_is_cut_by_a_seed_of_its_own():
    first, other = blocks_of(1), blocks_of(2)
    assert first != other
    assert b"".join(first) == b"".join(other)
    assert blocks_of(1) == first
    assert blocks_of(None, seed=1) == blocks_of(1, seed=1)


# --- under our own runtime ---------------------------------------------------------------------


def models_for(server: StrictServer) -> tuple[Models, Model]:
    provider = Provider(id="p", name="P", base_url=server.base_url, api="openai-completions", api_key="key")
    model = Model(id="m", provider="p", api="openai-completions", base_url=server.base_url, reasoning=True)
    models = Models(environ={})
    models.add_provider(provider, [model])
    return models, model


async def test_a_tool_loop_over_http_is_clean():
    thinking = {"type": "thinking", "thinking": "I should look."}
    script: list[Any] = [
        {"content": [thinking, {"type": "text", "text": "Looking."}, CALL, CALL]},
        {"when": {"tool": "read"}, "content": [CALL], "repeat": 4},
        {"when": {"tool": "read", "contains": "found"}, "content": "Done. 👍"},
    ]
    tools = [
        ToolDefinition("read", "Reads a file", {"type": "object", "properties": {"path": {"type": "string"}}})
    ]
    async with StrictServer(script, slices=(1, 50)) as server:
        models, model = models_for(server)
        messages: list[Message] = [UserMessage("Look, please.")]
        while True:
            context = Context("Be brief.", tuple(messages), tools)
            stream = checked(models.stream(model, context, StreamOptions(session_id="s", thinking="low")))
            message = await stream.result()
            assert message.error_message is None
            messages.append(message)
            if not message.tool_calls:
                break
            for call in message.tool_calls:
                assert call.arguments == {"path": "a"}
                messages.append(ToolResultMessage(call.id, call.name, [TextContent("found")]))
        await models.aclose()
    assert message.text == "Done. 👍"
    assert len(server.requests) == 6
    server.assert_clean()


async def test_an_abort_while_the_server_stalls():
    async with StrictServer([{"content": "half", "stall": True}]) as server:
        models, model = models_for(server)
        controller = AbortController()
        context = Context("", [UserMessage("hi")])
        stream = models.stream(model, context, StreamOptions(signal=controller.signal))
        events = []
        async for event in stream:
            events.append(event)
            if stream.partial.text == "half":
                controller.abort()
        message: AssistantMessage = check_events(events)
        assert (message.stop_reason, message.text) == ("aborted", "half")
        await server.received(1)
        await models.aclose()


# --- as a process --------------------------------------------------------------------------------


@contextmanager
def process(script: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "cantle_ai.testing.server", str(script), *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8") as child:
        try:
            yield child
        finally:
            child.kill()


def script_in(folder: Path) -> Path:
    path = folder / "script.json"
    path.write_text(json.dumps({"responses": ["Hello"]}), encoding="utf-8")
    return path


def remote(port: int, method: str, path: str, body: str | None = None) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    headers = {"content-type": "application/json", "authorization": "Bearer k"}
    connection.request(method, path, body, headers)
    response = connection.getresponse()
    try:
        return response.status, response.read()
    finally:
        connection.close()


def test_a_server_of_its_own(tmp_path: Path):
    with process(script_in(tmp_path)) as child:
        assert child.stdout is not None
        hello = json.loads(child.stdout.readline())
        assert hello["baseUrl"] == f"http://127.0.0.1:{hello['port']}/v1"
        assert (
            hello["baseUrls"]["anthropic-messages"] == f"http://127.0.0.1:{hello['port']}/anthropic-messages"
        )
        body = json.dumps({"model": "m", "stream": True, "messages": [USER]})
        status, answer = remote(hello["port"], "POST", "/v1/chat/completions", body)
        assert (status, text(answer)) == (200, "Hello")
        _, log = remote(hello["port"], "GET", "/control/log")
        assert json.loads(log)["count"] == 1
        assert remote(hello["port"], "POST", "/control/stop")[0] == 200
        assert child.wait(PATIENCE) == 0


def test_it_stops_when_idle(tmp_path: Path):
    before = time.monotonic()
    with process(script_in(tmp_path), "--idle", "0.1") as child:
        assert child.wait(PATIENCE) == 0
    assert time.monotonic() - before < PATIENCE


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no signals that ask a process to end")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_stops_when_it_is_told(number: signal.Signals, tmp_path: Path):
    with process(script_in(tmp_path)) as child:
        assert child.stdout is not None
        child.stdout.readline()
        child.send_signal(number)
        assert child.wait(PATIENCE) == 0


def test_it_says_what_is_wrong(tmp_path: Path):
    bad = tmp_path / "bad.json"
    bad.write_text("{}", encoding="utf-8")
    with process(bad) as child:
        _, said = child.communicate(timeout=PATIENCE)
    assert child.returncode == 2
    assert said.startswith(f"{bad}: this is no script: ")
    assert said.count("\n") == 1
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with process(script_in(tmp_path), "--port", str(port)) as child:
            _, said = child.communicate(timeout=PATIENCE)
    assert child.returncode == 2
    assert (
        said == f"port {port} cannot be used ({os.strerror(errno.EADDRINUSE)}): --port 0 takes a free one\n"
    )


async def test_it_serves_blocking_and_asynchronous_clients_at_once():
    async with StrictServer([{"content": "x", "repeat": "forever"}], prefix=False) as server:
        answers = await asyncio.gather(*(asyncio.to_thread(ask, server) for _ in range(3)))
    assert [text(body) for _, body in answers] == ["x"] * 3
