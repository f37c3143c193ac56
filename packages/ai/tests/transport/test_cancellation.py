"""Giving a request up, at each of the places where a peer can stall: the socket is shut and nothing is left."""

import asyncio
import gc
import socket
import sys
import threading
import time
from contextlib import contextmanager

import pytest

from cantle_ai.abort import AbortController, AbortError
from cantle_ai.transport.port import HttpRequest
from cantle_ai.transport.urllib3_thread import Urllib3Transport
from packages.ai.tests.http_peer import PATIENCE, Link, Peer, full_port
from packages.ai.tests.leaks import http_threads, open_sockets

PROMPT = 2.0
"""Seconds within which giving up must have happened. It takes a millisecond; a stall would take for ever."""


@pytest.fixture(autouse=True)
def nothing_is_left():
    before = open_sockets()
    yield
    assert http_threads() == []
    # The event loop's own sockets are closed after this fixture; they existed before it, too.
    after = open_sockets()
    assert after is None or before is None or after <= before


@contextmanager
def stalls_while_connecting():
    if sys.platform != "linux":
        pytest.skip("only Linux keeps a connection waiting when the queue of a listener is full")
    with full_port() as port:
        yield f"http://127.0.0.1:{port}", None


@contextmanager
def stalls_in_the_handshake():
    reached = threading.Event()

    def serve(link: Link) -> None:
        link.sock.recv(1)
        reached.set()
        link.wait_gone()

    with Peer(serve) as peer:
        yield f"https://127.0.0.1:{peer.port}", reached
        assert peer.links[0].gone.wait(PATIENCE)


@contextmanager
def stalls_before_the_head():
    reached = threading.Event()

    def serve(link: Link) -> None:
        link.request()
        reached.set()
        link.wait_gone()

    with Peer(serve) as peer:
        yield peer.url, reached
        assert peer.links[0].gone.wait(PATIENCE)


@contextmanager
def stalls_within_the_head():
    reached = threading.Event()

    def serve(link: Link) -> None:
        link.request()
        link.send(b"HTTP/1.1 200 OK\r\ncontent-ty")
        reached.set()
        link.wait_gone()

    with Peer(serve) as peer:
        yield peer.url, reached
        assert peer.links[0].gone.wait(PATIENCE)


@contextmanager
def stalls_while_the_request_is_sent():
    """The peer never reads: the socket's buffers fill, and sending waits."""
    reached = threading.Event()
    leave = threading.Event()

    def serve(link: Link) -> None:
        reached.set()
        leave.wait(PATIENCE)
        link.wait_gone()

    with Peer(serve) as peer:
        yield peer.url, reached
        leave.set()
        assert peer.links[0].gone.wait(PATIENCE)


STALLS = [
    stalls_while_connecting,
    stalls_in_the_handshake,
    stalls_while_the_request_is_sent,
    stalls_before_the_head,
    stalls_within_the_head,
]


def request(url: str) -> HttpRequest:
    return HttpRequest("POST", f"{url}/v1", {}, b"{}")


async def started(transport, url, reached, stall, signal=None):
    body = bytes(32 * 1024 * 1024) if stall is stalls_while_the_request_is_sent else b"{}"
    task = asyncio.create_task(transport.send(HttpRequest("POST", f"{url}/v1", {}, body), signal=signal))
    if reached is None:
        await asyncio.sleep(0.05)  # nothing tells from outside that a connection is being waited for
    else:
        assert await asyncio.to_thread(reached.wait, PATIENCE)
    return task


@pytest.mark.parametrize("stall", STALLS)
async def test_aborting_the_signal_ends_the_wait(stall):
    transport = Urllib3Transport(environ={})
    with stall() as (url, reached):
        controller = AbortController()
        task = await started(transport, url, reached, stall, controller.signal)
        begun = time.monotonic()
        controller.abort("stop it")
        with pytest.raises(AbortError, match="stop it"):
            await task
        assert http_threads() == []
        assert time.monotonic() - begun < PROMPT


@pytest.mark.parametrize("stall", STALLS)
async def test_cancelling_the_task_ends_the_wait(stall):
    transport = Urllib3Transport(environ={})
    with stall() as (url, reached):
        task = await started(transport, url, reached, stall)
        begun = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert http_threads() == []
        assert time.monotonic() - begun < PROMPT


def stalls_in_the_body(link: Link) -> None:
    link.request()
    link.head("transfer-encoding: chunked")
    link.chunk(b"some")
    link.wait_gone()


async def begun_body(peer, signal=None):
    response = await Urllib3Transport(environ={}).send(request(peer.url), signal=signal)
    assert await anext(response.chunks) == b"some"
    return response


async def test_aborting_in_the_body():
    controller = AbortController()
    with Peer(stalls_in_the_body) as peer:
        response = await begun_body(peer, controller.signal)
        waiting = asyncio.create_task(anext(response.chunks))
        await asyncio.sleep(0)
        controller.abort("enough")
        with pytest.raises(AbortError, match="enough"):
            await waiting
        await response.aclose()
        assert await asyncio.to_thread(peer.links[0].gone.wait, PATIENCE)


async def test_cancelling_in_the_body_leaves_the_response_to_be_closed():
    with Peer(stalls_in_the_body) as peer:
        response = await begun_body(peer)
        waiting = asyncio.create_task(anext(response.chunks))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await response.aclose()
        await response.aclose()
        assert await asyncio.to_thread(peer.links[0].gone.wait, PATIENCE)


async def test_closing_wakes_a_reader_that_waits():
    from cantle_ai.transport.port import TransportError

    with Peer(stalls_in_the_body) as peer:
        response = await begun_body(peer)
        waiting = asyncio.create_task(anext(response.chunks))
        await asyncio.sleep(0)
        await response.aclose()
        with pytest.raises(TransportError):
            await waiting


async def test_a_response_that_is_forgotten_closes_its_connection():
    with Peer(stalls_in_the_body) as peer:
        response = await begun_body(peer)
        del response
        gc.collect()
        assert await asyncio.to_thread(peer.links[0].gone.wait, PATIENCE)


async def test_a_reader_that_does_not_read_can_be_closed():
    """The thread waits for room then, not for the socket."""
    full = threading.Event()

    def serve(link: Link) -> None:
        link.request()
        link.head("transfer-encoding: chunked")
        link.chunk(b"some")
        link.sock.settimeout(0.2)
        try:
            while True:
                link.chunk(bytes(65536))
        except TimeoutError:
            full.set()
        link.wait_gone()

    with Peer(serve) as peer:
        response = await Urllib3Transport(environ={}).send(request(peer.url))
        assert await asyncio.to_thread(full.wait, PATIENCE)
        await response.aclose()
        assert http_threads() == []


async def test_an_aborted_signal_sends_nothing():
    controller = AbortController()
    controller.abort("no")
    with Peer(Link.wait_gone) as peer:
        with pytest.raises(AbortError):
            await Urllib3Transport(environ={}).send(request(peer.url), signal=controller.signal)
        assert peer.links == []


async def test_a_signal_outlives_its_requests_without_keeping_them():
    controller = AbortController()
    transport = Urllib3Transport(environ={})
    with Peer(lambda link: link.answer(b"ok")) as peer:
        response = await transport.send(request(peer.url), signal=controller.signal)
        assert [chunk async for chunk in response.chunks] == [b"ok"]
        await response.aclose()
    assert controller.signal._callbacks == {}
    await transport.aclose()


async def test_a_name_lookup_that_hangs_does_not_hold_the_caller(monkeypatch):
    """A lookup cannot be interrupted: the caller goes, and the thread ends when the lookup does."""
    release, entered = threading.Event(), threading.Event()

    def hang(*_args, **_kwargs):
        entered.set()
        release.wait(PATIENCE)
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    controller = AbortController()
    task = asyncio.create_task(
        Urllib3Transport(environ={}).send(request("http://nowhere.invalid"), signal=controller.signal)
    )
    assert await asyncio.to_thread(entered.wait, PATIENCE)
    controller.abort("stop")
    begun = time.monotonic()
    with pytest.raises(AbortError):
        await task
    assert time.monotonic() - begun < PROMPT
    release.set()
    assert http_threads() == []
