"""Proxies from the environment: which one, which requests go past it, and what it is told."""

import select
import socket
import ssl

import pytest

from cantle_ai.errors import ConfigurationError
from cantle_ai.transport.port import HttpRequest, TransportError
from cantle_ai.transport.proxies import Proxy, proxy_for
from cantle_ai.transport.urllib3_thread import Urllib3Transport
from packages.ai.tests.http_peer import Link, Peer

PROXY = "http://proxy.test:3128"


def goes_direct(url_host: str, rules: str, port: int = 443) -> bool:
    return proxy_for("https", url_host, port, {"HTTPS_PROXY": PROXY, "NO_PROXY": rules}) is None


@pytest.mark.parametrize(
    ("scheme", "environ", "host"),
    [
        ("http", {"HTTP_PROXY": "http://a.test:1"}, "a.test"),
        ("http", {"http_proxy": "http://b.test", "HTTP_PROXY": "http://a.test"}, "b.test"),
        ("https", {"HTTPS_PROXY": "http://a.test"}, "a.test"),
        ("https", {"https_proxy": "http://b.test", "HTTPS_PROXY": "http://a.test"}, "b.test"),
        ("https", {"ALL_PROXY": "http://c.test"}, "c.test"),
        ("http", {"all_proxy": "http://d.test", "ALL_PROXY": "http://c.test"}, "d.test"),
        ("http", {"HTTP_PROXY": "http://a.test", "ALL_PROXY": "http://c.test"}, "a.test"),
        ("https", {"HTTP_PROXY": "http://a.test"}, None),
        ("http", {"HTTPS_PROXY": "http://a.test"}, None),
        ("http", {"HTTP_PROXY": "  "}, None),
        ("http", {"HTTP_PROXY": "", "ALL_PROXY": "http://c.test"}, "c.test"),
        ("http", {"HTTP_PROXY": "http://a.test", "REQUEST_METHOD": "GET"}, None),
        ("http", {}, None),
    ],
)
def test_the_environment_names_the_proxy(scheme, environ, host):
    proxy = proxy_for(scheme, "model.test", 80, environ)
    assert (proxy.host if proxy else None) == host


def test_the_parts_of_a_proxy():
    environ = {"HTTPS_PROXY": "http://us%40er:p%3Aw@proxy.test:3128/"}
    proxy = proxy_for("https", "model.test", 443, environ)
    assert proxy == Proxy("http", "proxy.test", 3128, "Basic dXNAZXI6cDp3")
    assert proxy_for("https", "model.test", 443, {"HTTPS_PROXY": "proxy.test:8080"}) == Proxy(
        "http", "proxy.test", 8080
    )
    assert proxy_for("https", "m.test", 443, {"HTTPS_PROXY": "https://proxy.test"}) == Proxy(
        "https", "proxy.test", 443
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("socks5://proxy.test:1080", "names a socks5:// proxy, which is not supported"),
        ("http://", "is not a proxy's address"),
        ("http://proxy.test:port", "is not a proxy's address"),
    ],
)
def test_a_proxy_that_cannot_be_used_is_named_by_its_variable(value, text):
    with pytest.raises(ConfigurationError, match=f"HTTPS_PROXY {text}"):
        proxy_for("https", "model.test", 443, {"HTTPS_PROXY": value})


@pytest.mark.fault("B24")
@pytest.mark.parametrize(
    ("host", "rules", "direct"),
    [
        # the root and what is below it
        ("example.com", "example.com", True),
        ("api.example.com", "example.com", True),
        ("a.b.example.com", "example.com", True),
        ("notexample.com", "example.com", False),
        ("example.com.evil.test", "example.com", False),
        ("example.com", ".example.com", True),
        ("api.example.com", ".example.com", True),
        ("badexample.com", ".example.com", False),
        ("api.example.com", "*.example.com", True),
        ("API.Example.COM", "example.com", True),
        ("api.example.com.", "example.com", True),
        ("example.com", "api.example.com", False),
        # lists
        ("example.com", "other.test, example.com", True),
        ("example.com", "other.test example.com", True),
        ("example.com", ",, ,", False),
        ("example.com", "", False),
        ("example.com", "*", True),
        ("example.com", "other.test,*", True),
        ("localhost", "localhost,127.0.0.1", True),
        # addresses and networks
        ("127.0.0.1", "127.0.0.1", True),
        ("127.0.0.1", "127.0.0.0/8", True),
        ("10.1.2.3", "10.0.0.0/8", True),
        ("11.1.2.3", "10.0.0.0/8", False),
        ("10.1.2.3", "10.1.2.3/8", True),
        ("10.1.2.3", "2.3", False),
        ("10.1.2.3", "1.2.3", False),
        ("::1", "::1", True),
        ("[::1]", "::1", True),
        ("::1", "0:0:0:0:0:0:0:1", True),
        ("fd00::5", "fd00::/8", True),
        ("fd00::5", "10.0.0.0/8", False),
        ("example.com", "10.0.0.0/8", False),
        ("10.1.2.3", "not-an-address/8", False),
    ],
)
def test_b24_no_proxy(host, rules, direct):
    assert goes_direct(host, rules) is direct


@pytest.mark.fault("B24")
@pytest.mark.parametrize(
    ("rule", "port", "direct"),
    [
        ("example.com:443", 443, True),
        ("example.com:8080", 443, False),
        ("example.com:8080", 8080, True),
        (".example.com:8080", 8080, True),
        ("10.0.0.1:8080", 443, False),
    ],
)
def test_b24_no_proxy_for_one_port(rule, port, direct):
    host = "10.0.0.1" if rule.startswith("10") else "api.example.com"
    assert goes_direct(host, rule, port) is direct


@pytest.mark.fault("B24")
def test_b24_no_proxy_for_an_ipv6_address_and_port():
    assert goes_direct("::1", "[::1]:8080", 8080)
    assert not goes_direct("::1", "[::1]:8080", 443)


def test_lower_case_no_proxy_comes_first():
    environ = {"HTTPS_PROXY": PROXY, "no_proxy": "a.test", "NO_PROXY": "b.test"}
    assert proxy_for("https", "a.test", 443, environ) is None
    assert proxy_for("https", "b.test", 443, environ) is not None


# --- over the wire


async def fetch(url: str, environ: dict[str, str]) -> tuple[int, bytes]:
    transport = Urllib3Transport(environ=environ)
    try:
        response = await transport.send(HttpRequest("POST", url, {"authorization": "Bearer k"}, b"{}"))
        return response.status, b"".join([chunk async for chunk in response.chunks])
    finally:
        await transport.aclose()


async def test_a_plain_request_is_forwarded_by_its_whole_address():
    with Peer(lambda link: link.answer(b"by proxy")) as proxy:
        environ = {"HTTP_PROXY": f"http://me:secret@127.0.0.1:{proxy.port}"}
        assert await fetch("http://model.test:8000/v1/x?y=1", environ) == (200, b"by proxy")
    sent = proxy.requests[0]
    assert sent.line == "POST http://model.test:8000/v1/x?y=1 HTTP/1.1"
    assert sent.headers["host"] == "model.test:8000"
    assert sent.headers["proxy-authorization"] == "Basic bWU6c2VjcmV0"


async def test_no_proxy_goes_past_the_proxy():
    with Peer(Link.wait_gone) as proxy, Peer(lambda link: link.answer(b"direct")) as peer:
        environ = {"HTTP_PROXY": proxy.url, "NO_PROXY": "127.0.0.0/8"}
        assert await fetch(peer.url, environ) == (200, b"direct")
        assert proxy.links == []


async def test_a_tunnel_that_the_proxy_refuses_says_so():
    def refuse(link: Link) -> None:
        link.request()
        link.head("content-length: 0", status="407 Proxy Authentication Required")

    with Peer(refuse) as proxy:
        with pytest.raises(TransportError, match="407 Proxy Authentication Required") as caught:
            await fetch("https://model.test/v1", {"HTTPS_PROXY": proxy.url})
    assert caught.value.kind == "network"
    assert proxy.requests[0].line.startswith("CONNECT model.test:443 ")
    assert "authorization" not in proxy.requests[0].headers  # the key is for the model, not for the proxy


def tunnel(port: int):
    """A proxy's side of CONNECT: joins the connection to the one at `port`."""

    def serve(link: Link) -> None:
        link.request()
        with socket.create_connection(("127.0.0.1", port)) as target:
            link.send(b"HTTP/1.1 200 Connection established\r\n\r\n")
            join(link.sock, target)

    return serve


def join(one: socket.socket, other: socket.socket) -> None:
    """Carry bytes both ways, in one thread: a TLS connection must not be read and written at the same time."""
    open_ends = [one, other]
    try:
        while open_ends:
            pending = [end for end in open_ends if isinstance(end, ssl.SSLSocket) and end.pending()]
            for source in pending or select.select(open_ends, [], [], 20)[0]:
                sink = other if source is one else one
                if data := source.recv(65536):
                    sink.sendall(data)
                else:
                    open_ends.remove(source)
                    sink.shutdown(socket.SHUT_WR)
    except OSError:
        return
