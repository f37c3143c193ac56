"""How an endpoint says no, and what a reader of the message learns of it."""

import json
import time
from email.utils import formatdate

import pytest

from cantle_ai.abort import AbortController
from cantle_ai.apis.http_errors import retry_after
from cantle_ai.model import StreamOptions
from packages.ai.tests.apis.asking import refuse
from packages.ai.tests.apis.completions import DONE, KEY, ask, delta, event
from packages.ai.tests.http_peer import Link, refused_port

JSON = "content-type: application/json"


@pytest.mark.parametrize(
    ("body", "text", "code"),
    [
        ({"error": {"message": "No such model", "code": "model_not_found", "type": "x"}}, "No such model", "model_not_found"),
        ({"error": {"message": "Slow down", "type": "rate_limit"}}, "Slow down", "rate_limit"),
        ({"error": {"message": "Upstream", "code": 429, "metadata": {"raw": "busy"}}}, "Upstream (busy)", "429"),
        ({"error": "plain words"}, "plain words", None),
        ({"message": "top level", "code": "c"}, "top level", "c"),
        ({"detail": "not found"}, "not found", None),
        ({"detail": [{"loc": ["body"], "msg": "field required"}]}, "field required", None),
        ([{"error": {"message": "in a list", "code": 400}}], "in a list", "400"),
        ({"error": {}}, "Bad Request", None),
        ({"object": "error", "message": "vllm says", "type": "BadRequestError", "code": None}, "vllm says", "BadRequestError"),
    ],
)  # fmt: skip
async def test_json_errors_give_message_and_code(body, text, code):
    asked = await ask(refuse("400 Bad Request", json.dumps(body).encode(), JSON))
    message = asked.message
    assert message.stop_reason == "error"
    assert (message.error_message or "").startswith("400 ")
    assert text in (message.error_message or "")
    assert asked.details == {"status": 400, "code": code, "retryAfterMs": None, "kind": "http"}
    assert asked.types == ["start", "error"]


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"<!DOCTYPE html><html><head><title>502 Bad\n Gateway</title></head><body>" + b"x" * 9000, "502 502 Bad Gateway"),
        (b"<html><body><h1>Upstream down</h1></body></html>", "502 Upstream down"),
        (b"<html><body>no title</body></html>", "502 Bad Gateway"),
        (b"upstream connect error\n or disconnect", "502 upstream connect error or disconnect"),
        (b"", "502 Bad Gateway"),
        (b"\xff\xfe\x00", "502 "),
    ],
)  # fmt: skip
async def test_other_bodies_become_a_sentence(body, text):
    asked = await ask(refuse("502 Bad Gateway", body, "content-type: text/html"))
    message = asked.message.error_message or ""
    assert message.startswith(text)
    assert "<" not in message
    assert "\n" not in message
    assert len(message) < 200
    assert asked.details["status"] == 502


async def test_a_status_without_a_name_and_text():
    asked = await ask(refuse("599 ", b""))
    assert asked.message.error_message == "599 The provider answered with an error and no text"


async def test_the_body_of_an_error_is_read_to_a_bound():
    def serve(link: Link) -> None:
        link.request()
        link.head("transfer-encoding: chunked", status="500 Internal Server Error")
        link.chunk(b'{"error": {"message": "' + b"x" * 100_000)
        link.wait_gone()  # the rest never comes, and is not waited for

    asked = await ask(serve)
    assert asked.details["status"] == 500
    assert len(asked.message.error_message or "") < 2100


@pytest.mark.parametrize("status", ["401 Unauthorized", "400 Bad Request"])
async def test_the_key_is_never_repeated(status):
    body = json.dumps(
        {"error": {"message": f"Incorrect API key provided: {KEY}.", "code": "invalid_api_key"}}
    )
    asked = await ask(refuse(status, body.encode(), JSON))
    assert "Incorrect API key provided" in (asked.message.error_message or "")
    assert KEY not in json.dumps(asked.message.to_json())
    streamed = await ask([event({"error": {"message": f"bad key {KEY}"}})])
    assert KEY not in json.dumps(streamed.message.to_json())
    garbage = await ask([b"data: bad key " + KEY.encode() + b"\n\n"])
    assert KEY not in json.dumps(garbage.message.to_json())


async def test_a_key_in_a_header_of_the_provider_is_not_repeated_either():
    body = b'{"error": "bad key prov-12345"}'
    asked = await ask(refuse("401 No", body), key=None, headers={"X-Api-Key": "prov-12345"})
    assert asked.message.error_message == "401 bad key …"


@pytest.mark.parametrize(
    ("headers", "milliseconds"),
    [
        (["Retry-After: 7"], 7000),
        (["Retry-After: 1.5"], 1500),
        (["retry-after-ms: 250", "Retry-After: 7"], 250),
        (["Retry-After: soon"], None),
        (["Retry-After: -3"], None),
        (["Retry-After: "], None),
        ([], None),
    ],
)
async def test_retry_after(headers, milliseconds):
    asked = await ask(refuse("429 Too Many Requests", b"{}", *headers))
    assert asked.details["retryAfterMs"] == milliseconds


def test_retry_after_as_a_date():
    wait = retry_after({"retry-after": formatdate(time.time() + 60, usegmt=True)})
    assert wait is not None
    assert 55 < wait <= 60
    assert retry_after({"retry-after": formatdate(time.time() - 60, usegmt=True)}) == 0


async def test_a_redirect_is_told_not_followed():
    asked = await ask(refuse("308 Moved", b"", "location: https://new.test/v1?token=t"))
    assert "moved to https://new.test/v1;" in (asked.message.error_message or "")
    assert asked.details["status"] == 308


# --- errors inside a stream that had begun well


@pytest.mark.parametrize(
    ("raw", "text", "status", "code"),
    [
        ({"message": "Overloaded", "code": 503}, "Overloaded", 503, "503"),
        ({"message": "Quota", "code": "insufficient_quota"}, "Quota", None, "insufficient_quota"),
        ("just words", "just words", None, None),
        ({}, None, None, None),
    ],
)
async def test_an_error_object_in_the_stream(raw, text, status, code):
    asked = await ask([delta(content="some"), event({"error": raw}), delta("stop"), DONE])
    if text is None:
        assert asked.message.stop_reason == "stop"
        return
    assert asked.message.stop_reason == "error"
    assert asked.message.text == "some"
    assert text in (asked.message.error_message or "")
    assert asked.details == {"status": status, "code": code, "retryAfterMs": None, "kind": "http"}


async def test_an_error_event():
    asked = await ask([b'event: error\ndata: {"error": {"message": "broken"}}\n\n'])
    assert asked.message.error_message == "broken"
    asked = await ask([b'event: error\ndata: {"oops": 1}\n\n'])
    assert "oops" in (asked.message.error_message or "")


# --- what is no stream at all


@pytest.mark.parametrize(
    ("body", "kind_of_body", "text"),
    [
        (b"<!doctype html><title>Welcome to nginx</title>", "text/html", "a web page, 'Welcome to nginx'"),
        (b"<html></html>", "text/html", "a web page"),
        (b"hello there\n" * 500, "text/plain", "it sent 'hello there hello there"),
        (b"data: this is not json\n\n", "text/event-stream", "it sent 'data: this is not json'"),
        (b'data: {"choices": [{"delta": {"con\n\n', "text/event-stream", "it sent 'data: {"),
        (b'{"object": "list", "data": []}', "application/json", 'it sent \'{"object": "list"'),
        (b"not json", "application/json", "it sent 'not json'"),
        (b"\x00\x01\x02", "application/octet-stream", "it sent "),
    ],
)
async def test_garbage_is_quoted_in_a_protocol_error(body, kind_of_body, text):
    asked = await ask(refuse("200 OK", body, f"content-type: {kind_of_body}"))
    message = asked.message.error_message or ""
    assert asked.message.stop_reason == "error"
    assert text in message
    assert "Check the provider's base URL" in message
    assert len(message) < 400
    assert asked.details["kind"] == "protocol"


@pytest.mark.parametrize("events", [[], [DONE], [b": ping\n\n"], [b"data: {}\n\n"]])
async def test_nothing_at_all_is_retryable(events):
    asked = await ask(events)
    assert asked.message.error_message == "The answer ended without sending any chunks"
    assert asked.details["kind"] == "network"


async def test_a_json_error_with_a_success_status():
    body = json.dumps({"error": {"message": "no", "code": 404}}).encode()
    asked = await ask(refuse("200 OK", body, JSON))
    assert asked.message.error_message == "no"
    assert asked.details["status"] == 404


# --- below HTTP


async def test_a_refused_connection_is_a_network_error():
    with refused_port() as port:
        asked = await ask(lambda link: None, base_url=f"http://127.0.0.1:{port}/v1")
    assert "Connection refused" in (asked.message.error_message or "")
    assert asked.details == {"status": None, "code": None, "retryAfterMs": None, "kind": "network"}


async def test_a_time_out_is_one():
    asked = await ask(Link.wait_gone, options=StreamOptions(timeout=0.1))
    assert asked.details["kind"] == "timeout"


async def test_an_impossible_base_url_is_explained():
    asked = await ask(lambda link: None, base_url="localhost:8080/v1")
    assert "begins with http:// or https://" in (asked.message.error_message or "")


async def test_a_wrong_compat_value_is_explained():
    asked = await ask([DONE], compat={"supportsStore": "yes"})
    assert asked.message.stop_reason == "error"
    assert "p/m" in (asked.message.error_message or "")
    assert "compat.supportsStore" in (asked.message.error_message or "")
    assert asked.requests == []


async def test_abort_in_the_middle_keeps_what_came():
    controller = AbortController()

    def serve(link: Link) -> None:
        link.request()
        link.head("content-type: text/event-stream", "transfer-encoding: chunked")
        link.chunk(delta(content="some"))
        link.wait_gone()

    def see(event) -> None:
        if event.type == "text_delta":
            controller.abort("Operation aborted")

    asked = await ask(serve, options=StreamOptions(signal=controller.signal), see=see)
    assert asked.message.stop_reason == "aborted"
    assert asked.message.error_message == "Operation aborted"
    assert asked.message.text == "some"
    assert asked.message.extra is None
    assert asked.types == ["start", "text_start", "text_delta", "text_end", "error"]
