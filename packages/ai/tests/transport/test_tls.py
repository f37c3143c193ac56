"""TLS: whom the transport trusts, by which variable, and how it says no."""

import asyncio
import shutil
import socket
import ssl
import subprocess
import sys

import pytest

from cantle_ai.errors import ConfigurationError
from cantle_ai.transport._connection import Connection, Target
from cantle_ai.transport.port import HttpRequest, TransportError
from cantle_ai.transport.urllib3_thread import Urllib3Transport
from packages.ai.tests.http_peer import Link, Peer
from packages.ai.tests.transport.test_proxies import tunnel

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificates")


def openssl(*arguments: object) -> None:
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    """A private authority, and a server certificate for 127.0.0.1 that it has signed."""
    folder = tmp_path_factory.mktemp("authority")
    (folder / "ca.cnf").write_text(
        "[req]\ndistinguished_name=dn\n[dn]\n[ca]\nbasicConstraints=critical,CA:TRUE\n"
        "keyUsage=critical,keyCertSign,cRLSign\nsubjectKeyIdentifier=hash\n"
        "[server]\nsubjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth\n"
        "subjectKeyIdentifier=hash\nauthorityKeyIdentifier=keyid\n",
        encoding="utf-8",
    )
    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-config", folder / "ca.cnf")
    openssl("req", "-x509", *curve, "-keyout", folder / "ca.key", "-out", folder / "ca.pem",
            "-days", 2, "-subj", "/CN=Test authority", "-extensions", "ca")  # fmt: skip
    openssl(
        "req", *curve, "-keyout", folder / "server.key", "-out", folder / "server.csr", "-subj", "/CN=server"
    )
    openssl("x509", "-req", "-in", folder / "server.csr", "-CA", folder / "ca.pem", "-CAkey", folder / "ca.key",
            "-CAcreateserial", "-out", folder / "server.pem", "-days", 2, "-extfile", folder / "ca.cnf",
            "-extensions", "server")  # fmt: skip
    return folder


@pytest.fixture
def server(authority):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority / "server.pem", authority / "server.key")

    def serve(link: Link) -> None:
        while True:
            link.answer(b"secret")

    with Peer(serve, context=context) as peer:
        yield peer


async def fetch(url: str, environ: dict[str, str]) -> bytes:
    transport = Urllib3Transport(environ=environ)
    try:
        response = await transport.send(HttpRequest("POST", url, {}, b"{}"))
        return b"".join([chunk async for chunk in response.chunks])
    finally:
        await transport.aclose()


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"])
async def test_a_private_authority_is_trusted_by_any_of_its_variables(server, authority, variable):
    assert await fetch(server.url, {variable: str(authority / "ca.pem")}) == b"secret"


@pytest.mark.parametrize("variable", ["SSL_CERT_DIR", "REQUESTS_CA_BUNDLE"])
async def test_a_folder_of_hashed_certificates(server, authority, variable, tmp_path):
    shutil.copy(authority / "ca.pem", tmp_path / "ca.pem")
    openssl("rehash", tmp_path)
    assert await fetch(server.url, {variable: str(tmp_path)}) == b"secret"


@pytest.mark.parametrize("tunnelled", [False, True])
async def test_a_connection_serves_request_after_request(server, authority, tunnelled):
    with Peer(tunnel(server.port)) as proxy:
        environ = {"SSL_CERT_FILE": str(authority / "ca.pem")}
        if tunnelled:
            environ["HTTPS_PROXY"] = f"http://127.0.0.1:{proxy.port}"
        transport = Urllib3Transport(environ=environ)
        for _ in range(3):
            response = await transport.send(HttpRequest("POST", server.url, {}, b"{}"))
            assert b"".join([chunk async for chunk in response.chunks]) == b"secret"
        await transport.aclose()
        assert len(server.links) == 1


async def test_giving_up_a_later_request_on_a_connection_shuts_it(authority):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority / "server.pem", authority / "server.key")

    def serve(link: Link) -> None:
        link.answer(b"first")
        link.request()
        link.wait_gone()

    with Peer(serve, context=context) as peer:
        transport = Urllib3Transport(environ={"SSL_CERT_FILE": str(authority / "ca.pem")})
        response = await transport.send(HttpRequest("POST", peer.url, {}, b"{}"))
        assert b"".join([chunk async for chunk in response.chunks]) == b"first"
        later = asyncio.create_task(transport.send(HttpRequest("POST", peer.url, {}, b"{}")))
        while len(peer.requests) < 2:
            await asyncio.sleep(0.001)
        later.cancel()
        with pytest.raises(asyncio.CancelledError):
            await later
        assert await asyncio.to_thread(peer.links[0].gone.wait, 10)
        await transport.aclose()


async def test_an_unknown_authority_is_refused_and_the_way_out_named(server):
    with pytest.raises(TransportError, match=r"cannot be verified.*NODE_EXTRA_CA_CERTS") as caught:
        await fetch(server.url, {})
    assert caught.value.kind == "protocol"


async def test_node_extra_ca_certs_adds_and_ssl_cert_file_replaces(server, authority, tmp_path):
    """The extra file is trusted beside what SSL_CERT_FILE names."""
    other = tmp_path / "other.pem"
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout",
            tmp_path / "key", "-out", other, "-days", 2, "-subj", "/CN=other")  # fmt: skip
    with pytest.raises(TransportError):
        await fetch(server.url, {"SSL_CERT_FILE": str(other)})
    both = {"SSL_CERT_FILE": str(other), "NODE_EXTRA_CA_CERTS": str(authority / "ca.pem")}
    assert await fetch(server.url, both) == b"secret"


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"])
@pytest.mark.parametrize("content", [None, "no certificate"])
async def test_a_certificate_file_that_cannot_be_used_is_named(server, variable, content, tmp_path):
    path = tmp_path / "ca.pem"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    with pytest.raises(ConfigurationError, match=f"correct or unset {variable}") as caught:
        await fetch(server.url, {variable: str(path)})
    assert str(path) in str(caught.value)


async def test_the_wrong_host_name_is_refused(server, authority):
    url = f"https://localhost:{server.port}"
    with pytest.raises(TransportError, match="certificate of localhost cannot be verified"):
        await fetch(url, {"SSL_CERT_FILE": str(authority / "ca.pem")})


async def test_tls_to_a_server_without_it_is_a_protocol_error():
    with Peer(lambda link: link.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")) as peer:
        with pytest.raises(TransportError, match="No TLS connection") as caught:
            await fetch(f"https://127.0.0.1:{peer.port}", {})
    assert caught.value.kind == "protocol"


async def test_a_peer_that_hangs_up_in_the_handshake_is_a_network_error():
    def hang_up(link: Link) -> None:
        link.sock.recv(10)

    with Peer(hang_up) as peer:
        with pytest.raises(TransportError) as caught:
            await fetch(f"https://127.0.0.1:{peer.port}", {})
    assert caught.value.kind == "network"


async def test_through_a_tunnel_the_model_host_is_verified(server, authority):
    with Peer(tunnel(server.port)) as proxy:
        environ = {
            "HTTPS_PROXY": f"http://me:pw@127.0.0.1:{proxy.port}",
            "SSL_CERT_FILE": str(authority / "ca.pem"),
        }
        assert await fetch(server.url, environ) == b"secret"
        assert proxy.requests[0].line.startswith(f"CONNECT 127.0.0.1:{server.port} ")
        assert proxy.requests[0].headers["proxy-authorization"] == "Basic bWU6cHc="


async def test_through_a_proxy_that_speaks_tls_itself(server, authority):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority / "server.pem", authority / "server.key")
    with Peer(tunnel(server.port), context=context) as proxy:
        environ = {"HTTPS_PROXY": proxy.url, "SSL_CERT_FILE": str(authority / "ca.pem")}
        assert await fetch(server.url, environ) == b"secret"
    with Peer(lambda link: link.answer(b"forwarded"), context=context) as proxy:
        environ = {"HTTP_PROXY": proxy.url, "SSL_CERT_FILE": str(authority / "ca.pem")}
        assert await fetch("http://model.test/v1", environ) == b"forwarded"


async def test_no_context_is_made_for_plain_http():
    transport = Urllib3Transport(environ={"SSL_CERT_FILE": "/does/not/exist"})
    with Peer(lambda link: link.answer(b"plain")) as peer:
        response = await transport.send(HttpRequest("POST", peer.url, {}, b""))
        assert [chunk async for chunk in response.chunks] == [b"plain"]
    await transport.aclose()


async def test_a_server_that_is_reached_directly_needs_no_urllib3(server, authority):
    code = (
        "import asyncio, sys\n"
        "from cantle_ai.transport.port import HttpRequest\n"
        "from cantle_ai.transport.urllib3_thread import Urllib3Transport\n"
        "async def main():\n"
        f"    transport = Urllib3Transport(environ={{'SSL_CERT_FILE': {str(authority / 'ca.pem')!r}}})\n"
        f"    response = await transport.send(HttpRequest('POST', {server.url!r}, {{}}, b'{{}}'))\n"
        "    print((await response.read(99)).decode(), 'urllib3' in sys.modules)\n"
        "    await transport.aclose()\n"
        "asyncio.run(main())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True)
    assert done.stdout == "secret False\n"


async def test_the_host_header_is_that_of_a_plain_request(server, authority):
    assert await fetch(server.url, {"SSL_CERT_FILE": str(authority / "ca.pem")}) == b"secret"
    assert server.requests[0].headers["host"] == f"127.0.0.1:{server.port}"


@pytest.mark.parametrize(("port", "host"), [(443, "model.test"), (8443, "model.test:8443")])
def test_the_usual_port_and_the_dot_of_a_complete_name_are_not_told(port, host):
    ours, theirs = socket.socketpair()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    connection = Connection(Target("https", "model.test.", port), lambda: context, 1.0)
    with ours, theirs:
        connection._raw.sock = ours
        connection._raw.request("POST", "/v1", body=b"{}")
        assert f"\r\nHost: {host}\r\n".encode() in theirs.recv(4096)
    connection.close()
