"""Requests over the default transport: what goes out, what comes back, and when."""

import asyncio
import gzip
import http.client
import threading

import pytest

from cantle_ai.transport.port import HttpRequest, TransportError
from cantle_ai.transport.urllib3_thread import Urllib3Transport
from packages.ai.tests.http_peer import PATIENCE, Link, Peer, refused_port
from packages.ai.tests.leaks import http_threads


@pytest.fixture
async def transport():
    transport = Urllib3Transport(environ={})
    yield transport
    await transport.aclose()
    assert http_threads() == []


def request(url: str, body: bytes = b"{}", **kwargs) -> HttpRequest:
    return HttpRequest("POST", f"{url}/v1/x?y=1", {"content-type": "application/json"}, body, **kwargs)


async def body_of(response) -> bytes:
    return b"".join([chunk async for chunk in response.chunks])


async def test_a_request_goes_out_whole_and_its_answer_comes_back(transport):
    with Peer(
        lambda link: link.answer(b"hello", "X-One: 1", "X-Two: a", "x-two: b", status="201 Made")
    ) as peer:
        response = await transport.send(request(peer.url, b'{"a":1}'))
        assert response.status == 201
        assert response.headers["x-one"] == "1"
        assert response.headers["x-two"] == "a, b"
        assert await body_of(response) == b"hello"
    sent = peer.requests[0]
    assert sent.line == "POST /v1/x?y=1 HTTP/1.1"
    assert sent.headers["host"] == f"127.0.0.1:{peer.port}"
    assert sent.headers["content-type"] == "application/json"
    assert sent.headers["accept-encoding"] == "identity"
    assert sent.body == b'{"a":1}'


async def test_bytes_are_handed_on_as_they_come(transport):
    more = threading.Event()

    def serve(link: Link) -> None:
        link.request()
        link.head("transfer-encoding: chunked")
        link.chunk(b"first")
        assert more.wait(PATIENCE)
        more.clear()  # before the peer can answer what is sent now
        link.send(b"7\r\nsec")  # a part of a chunk is not held back either
        assert more.wait(PATIENCE)
        link.send(b"ond!\r\n0\r\n\r\n")

    with Peer(serve) as peer:
        response = await transport.send(request(peer.url))
        assert await anext(response.chunks) == b"first"
        more.set()
        assert await anext(response.chunks) == b"sec"
        more.set()
        assert await anext(response.chunks) == b"ond!"
        with pytest.raises(StopAsyncIteration):
            await anext(response.chunks)


async def test_a_slow_reader_holds_the_peer_back(transport):
    total = 32 * 1024 * 1024
    sent = 0
    stuck = threading.Event()
    block = bytes(64 * 1024)

    def serve(link: Link) -> None:
        nonlocal sent
        link.request()
        link.head(f"content-length: {total}")
        link.sock.settimeout(0.3)
        while sent < total:
            try:
                sent += link.sock.send(block[: total - sent])
            except TimeoutError:
                stuck.set()
                link.sock.settimeout(PATIENCE)

    with Peer(serve) as peer:
        response = await transport.send(request(peer.url))
        assert await asyncio.to_thread(stuck.wait, PATIENCE)
        assert sent < total
        size = 0
        async for chunk in response.chunks:
            assert len(chunk) <= 512 * 1024
            size += len(chunk)
        assert size == total


async def test_the_body_may_end_with_the_connection(transport):
    def serve(link: Link) -> None:
        link.request()
        link.head("connection: close")
        link.send(b"until the end")

    with Peer(serve) as peer:
        assert await body_of(await transport.send(request(peer.url))) == b"until the end"


@pytest.mark.parametrize("framing", ["content-length: 10", "transfer-encoding: chunked"])
async def test_a_body_that_breaks_off_is_a_network_error_after_what_came(transport, framing):
    def serve(link: Link) -> None:
        link.request()
        link.head(framing)
        link.send(b"half" if "length" in framing else b"4\r\nhalf\r\n9\r\nnot")

    with Peer(serve) as peer:
        response = await transport.send(request(peer.url))
        got = b""
        with pytest.raises(TransportError, match="closed before the answer was complete") as caught:
            async for chunk in response.chunks:
                got += chunk
        assert caught.value.kind == "network"
        assert got.startswith(b"half")


async def test_a_reset_in_the_body_is_a_network_error(transport):
    read = threading.Event()  # a reset throws away what waits

    def serve(link: Link) -> None:
        link.request()
        link.head("transfer-encoding: chunked")
        link.chunk(b"some")
        assert read.wait(PATIENCE)
        link.reset()

    with Peer(serve) as peer:
        response = await transport.send(request(peer.url))
        assert await anext(response.chunks) == b"some"
        read.set()
        with pytest.raises(TransportError, match=r"127\.0\.0\.1") as caught:
            await anext(response.chunks)
        assert caught.value.kind == "network"


@pytest.mark.parametrize(
    ("answer", "text", "kind"),
    [
        (b"", "closed the connection without an answer", "network"),
        (b"HTTP/1.1 20", "does not answer in HTTP/1.1", "protocol"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "does not answer in HTTP/1.1", "protocol"),
        (b"\x16\x03\x01\x00\r\n\r\n", "does not answer in HTTP/1.1", "protocol"),
        (b"HTTP/1.1 200 OK\r\nx: " + b"y" * 70000, "does not answer in HTTP/1.1", "protocol"),
        (
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nnonsense\r\n",
            "does not answer in HTTP",
            "protocol",
        ),
    ],
)
async def test_an_answer_that_is_not_http_is_named(transport, answer, text, kind):
    def serve(link: Link) -> None:
        link.request()
        link.send(answer)

    with Peer(serve) as peer:
        with pytest.raises(TransportError, match=text) as caught:
            await body_of(await transport.send(request(peer.url)))
        assert caught.value.kind == kind


async def test_nobody_listens(transport):
    with refused_port() as port:
        with pytest.raises(TransportError, match=r"Connection refused by 127\.0\.0\.1") as caught:
            await transport.send(request(f"http://127.0.0.1:{port}"))
    assert caught.value.kind == "network"


@pytest.mark.parametrize("url", ["ftp://127.0.0.1/x", "127.0.0.1:80/v1", "http://", "http://[::1", ""])
async def test_an_address_that_is_none_says_what_one_looks_like(transport, url):
    from cantle_ai.errors import ConfigurationError

    with pytest.raises(ConfigurationError, match="begins with http:// or https://"):
        await transport.send(HttpRequest("POST", url, {}, b""))


async def test_a_header_that_cannot_be_sent_does_not_show_its_value(transport):
    with Peer(lambda link: link.answer(b"")) as peer:
        for key in ("sk-secret\nx: y", "sk-secret\u20ac"):
            bad = HttpRequest("POST", peer.url, {"authorization": f"Bearer {key}"}, b"")
            with pytest.raises(TransportError, match="forbidden character") as caught:
                await transport.send(bad)
            assert "secret" not in str(caught.value)


async def test_redirects_are_not_followed(transport):
    with (
        Peer(lambda link: link.answer(b"elsewhere")) as other,
        Peer(lambda link: link.answer(b"", f"location: {other.url}/", status="307 Moved")) as peer,
    ):
        response = await transport.send(request(peer.url))
        assert response.status == 307
        await response.aclose()
        assert other.requests == []


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
async def test_a_body_compressed_unasked_is_unpacked_as_it_comes(transport, encoding):
    import zlib

    compressor = zlib.compressobj(wbits=31 if encoding == "gzip" else 15)
    first = compressor.compress(b"first") + compressor.flush(zlib.Z_SYNC_FLUSH)
    rest = compressor.compress(b", rest") + compressor.flush()
    more = threading.Event()

    def serve(link: Link) -> None:
        link.request()
        link.head("transfer-encoding: chunked", f"content-encoding: {encoding}")
        link.chunk(first)
        assert more.wait(PATIENCE)
        link.chunk(rest)
        link.chunk(b"")

    with Peer(serve) as peer:
        response = await transport.send(request(peer.url))
        assert await anext(response.chunks) == b"first"
        more.set()
        assert await body_of(response) == b", rest"


@pytest.mark.parametrize(
    ("body", "encoding", "text"),
    [
        (gzip.compress(b"x", mtime=0)[:-12] + b"garbage!", "gzip", "damaged"),
        (b"x", "br", "compressed with 'br'"),
    ],
)
async def test_a_body_that_cannot_be_unpacked_is_a_protocol_error(transport, body, encoding, text):
    with Peer(lambda link: link.answer(body, f"content-encoding: {encoding}")) as peer:
        with pytest.raises(TransportError, match=text) as caught:
            await body_of(await transport.send(request(peer.url)))
    assert caught.value.kind == "protocol"


# --- connections


async def test_a_connection_serves_one_request_after_another(transport):
    def serve(link: Link) -> None:
        for number in range(3):
            link.answer(b"%d" % number)

    with Peer(serve) as peer:
        for number in range(3):
            assert await body_of(await transport.send(request(peer.url))) == b"%d" % number
        assert len(peer.links) == 1


async def test_a_connection_that_died_idle_is_replaced(transport):
    """The peer closes after its first answer, as servers do; the next request does not notice."""

    def once(link: Link) -> None:
        link.answer(b"one")

    with Peer(once, lambda link: link.answer(b"two")) as peer:
        assert await body_of(await transport.send(request(peer.url))) == b"one"
        assert await body_of(await transport.send(request(peer.url))) == b"two"


async def test_a_connection_that_dies_under_the_second_request_is_tried_once_more(transport):
    """The peer takes the request and closes without a byte: the race that keep-alive has."""

    def dies(link: Link) -> None:
        link.answer(b"one")
        link.request()

    with Peer(dies, lambda link: link.answer(b"two")) as peer:
        assert await body_of(await transport.send(request(peer.url))) == b"one"
        assert await body_of(await transport.send(request(peer.url, b"again"))) == b"two"
        assert [sent.body for sent in peer.requests] == [b"{}", b"again", b"again"]


async def test_a_connection_that_dies_in_an_answer_is_not_tried_again(transport, monkeypatch):
    """One byte of it says that the request has been worked on: a second one would be answered, and paid, twice."""
    begun = threading.Event()
    begin = http.client.HTTPResponse.begin

    def begin_and_tell(response: http.client.HTTPResponse) -> None:
        begun.set()
        begin(response)

    def dies(link: Link) -> None:
        link.answer(b"one")
        begun.clear()
        link.request()
        link.send(b"HTTP/1.1 2")
        assert begun.wait(PATIENCE)  # it has been read by then
        link.reset()

    monkeypatch.setattr(http.client.HTTPResponse, "begin", begin_and_tell)
    with Peer(dies, lambda link: link.answer(b"two")) as peer:
        assert await body_of(await transport.send(request(peer.url))) == b"one"
        with pytest.raises(TransportError) as caught:
            await transport.send(request(peer.url, b"again"))
        assert caught.value.kind == "network"
        assert [sent.body for sent in peer.requests] == [b"{}", b"again"]


async def test_a_fresh_connection_that_dies_is_not_tried_again(transport):
    def dies(link: Link) -> None:
        link.request()

    with Peer(dies) as peer:
        with pytest.raises(TransportError):
            await transport.send(request(peer.url))
        assert len(peer.requests) == 1


async def test_an_answer_that_is_not_read_to_its_end_takes_its_connection_along(transport):
    def serve(link: Link) -> None:
        link.request()
        link.head("transfer-encoding: chunked")
        link.chunk(b"much")
        link.wait_gone()

    with Peer(serve, lambda link: link.answer(b"two")) as peer:
        response = await transport.send(request(peer.url))
        assert await anext(response.chunks) == b"much"
        await response.aclose()
        assert await asyncio.to_thread(peer.links[0].gone.wait, PATIENCE)
        assert await body_of(await transport.send(request(peer.url))) == b"two"


async def test_a_released_answer_ends_by_itself_and_its_connection_serves_on(transport):
    more, ended = threading.Event(), threading.Event()

    def serve(link: Link) -> None:
        link.request()
        link.head("transfer-encoding: chunked")
        link.chunk(b"all that matters")
        assert more.wait(PATIENCE)
        link.chunk(b"unread")
        link.chunk(b"")
        ended.set()
        link.answer(b"two")

    with Peer(serve) as peer:
        response = await transport.send(request(peer.url))
        assert await anext(response.chunks) == b"all that matters"
        response.release()
        await response.aclose()
        del response
        more.set()
        assert await asyncio.to_thread(ended.wait, PATIENCE)
        assert http_threads() == []
        assert await body_of(await transport.send(request(peer.url))) == b"two"
        assert len(peer.links) == 1


async def test_a_released_answer_that_does_not_end_is_cut():
    def serve(link: Link) -> None:
        link.request()
        link.head("transfer-encoding: chunked")
        link.chunk(b"all that matters")
        link.wait_gone()

    for closed in (True, False):
        transport = Urllib3Transport(environ={})
        with Peer(serve) as peer:
            response = await transport.send(request(peer.url))
            assert await anext(response.chunks) == b"all that matters"
            response.release()
            if closed:
                await transport.aclose()
            assert await asyncio.to_thread(peer.links[0].gone.wait, PATIENCE)
            assert await asyncio.to_thread(http_threads) == []


async def test_an_idle_connection_is_forgotten_after_a_minute(transport):
    now = 0.0
    transport._pool.clock = lambda: now

    def serve(link: Link) -> None:
        while True:
            link.answer(b"ok")

    with Peer(serve) as peer:
        assert await body_of(await transport.send(request(peer.url))) == b"ok"
        now = 59.0
        assert await body_of(await transport.send(request(peer.url))) == b"ok"
        assert len(peer.links) == 1
        now = 120.0
        assert await body_of(await transport.send(request(peer.url))) == b"ok"
        assert len(peer.links) == 2


async def test_many_requests_at_once(transport):
    with Peer(lambda link: link.answer(b"x" * 100_000)) as peer:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(body_of(await transport.send(request(peer.url)))) for _ in range(20)]
        assert [len(task.result()) for task in tasks] == [100_000] * 20


def test_one_transport_serves_several_loops():
    def serve(link: Link) -> None:
        while True:
            link.answer(b"ok")

    async def once(transport, url) -> bytes:
        return await body_of(await transport.send(request(url)))

    transport = Urllib3Transport(environ={})
    with Peer(serve) as peer:
        assert asyncio.run(once(transport, peer.url)) == asyncio.run(once(transport, peer.url)) == b"ok"
    del transport  # closes its idle connection without a warning


# --- time-outs


async def test_the_wait_for_the_head_is_cut(transport):
    with Peer(Link.wait_gone) as peer:
        with pytest.raises(TransportError, match=r"No answer from 127\.0\.0\.1 within 0\.1 s") as caught:
            await transport.send(request(peer.url, timeout=0.1))
        assert caught.value.kind == "timeout"


async def test_the_wait_for_more_of_the_body_is_cut(transport):
    def serve(link: Link) -> None:
        link.request()
        link.head("transfer-encoding: chunked")
        link.chunk(b"some")
        link.wait_gone()

    with Peer(serve) as peer:
        response = await transport.send(request(peer.url, timeout=0.2))
        assert await anext(response.chunks) == b"some"
        with pytest.raises(TransportError, match=r"stopped: nothing came within 0\.2 s") as caught:
            await anext(response.chunks)
        assert caught.value.kind == "timeout"


@pytest.mark.fault("B22", "B23")
@pytest.mark.parametrize("timeout", [None, 0])
async def test_b22_b23_silence_is_not_cut_unless_asked(transport, timeout):
    """With no time-out, and with 0, the socket waits without a limit; 0 does not mean "at once"."""
    release = threading.Event()

    def serve(link: Link) -> None:
        link.request()
        assert release.wait(PATIENCE)
        link.head("content-length: 2")
        link.send(b"ok")

    with Peer(serve) as peer:
        task = asyncio.create_task(transport.send(request(peer.url, timeout=timeout)))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.shield(task), 0.3)
        release.set()
        assert await body_of(await task) == b"ok"
