"""Signing in: by browser, by pasted address, by device code; and what is not believed."""

from __future__ import annotations

import asyncio
import socket
from urllib.parse import parse_qs, parse_qsl, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cantle_ai.auth.login import LoginError
from cantle_ai.auth.oauth.browser import CodePage, code_from_browser
from cantle_ai.auth.oauth.callback import CallbackServer, PortBusyError
from cantle_ai.auth.oauth.client import OAuthAnswer, checked_page
from cantle_ai.auth.oauth.pkce import new_attempt
from cantle_ai.auth.oauth.redirect import read_pasted
from cantle_ai.errors import ProviderError
from packages.ai.tests.auth.logins import Clock, Person, login_at, visit, with_client
from tests.support.authorisation import AuthorisationServer, busy_port

# --- browser ---


@pytest.mark.parity("auth.browser-login")
async def test_a_browser_comes_back_to_this_machine() -> None:
    with AuthorisationServer() as server:
        person = Person(browse=server.browse)
        login = login_at(server.url)
        credential = await with_client(lambda client: login.sign_in("browser", person, client, {}))
    asked = dict(parse_qsl(urlsplit(person.addresses[0]).query))
    assert asked["response_type"] == "code" and asked["code_challenge_method"] == "S256"
    assert asked["scope"] == "all of:it" and len(asked["state"]) >= 22
    assert asked["redirect_uri"].startswith("http://localhost:")
    (exchange,) = server.of_path("/token")
    assert exchange.fields["code_verifier"] not in person.addresses[0]
    assert exchange.fields["code_verifier"] != asked["state"]
    assert {credential.access, credential.refresh} <= server.issued
    assert credential.refresh and credential.expires > 0


async def test_no_two_attempts_share_a_value() -> None:
    one, two = new_attempt(), new_attempt()
    values = {
        one.verifier,
        one.challenge,
        one.state,
        one.nonce,
        two.verifier,
        two.challenge,
        two.state,
        two.nonce,
    }
    assert len(values) == 8
    assert all(value not in repr(one) for value in values)


async def test_a_denied_login_says_so() -> None:
    with AuthorisationServer() as server:
        person = Person(browse=lambda url: server.browse(url, deny=True))
        login = login_at(server.url)
        with pytest.raises(LoginError, match=r"^The login was denied in the browser$"):
            await with_client(lambda client: login.sign_in("browser", person, client, {}))


async def test_only_the_right_path_and_state_are_taken() -> None:
    async with CallbackServer(port=0, path="/cb", state="right") as server:
        base = f"http://127.0.0.1:{server.port}"
        statuses = [
            await asyncio.to_thread(visit, base + path)
            for path in (
                "/",
                "/cb",
                "/cb?code=evil",
                "/cb?code=evil&state=wrong",
                "/cb?error=access_denied&state=wrong",
                "/other?code=c&state=right",
                "/cb?code=good&state=right",
                "/cb?code=late&state=right",
            )
        ]
        assert statuses == [404, 400, 400, 400, 400, 404, 200, 200]
        assert (await server.wait()).code == "good"


async def test_only_the_loopback_interface_is_listened_on() -> None:
    async with CallbackServer(port=0, path="/cb", state="s") as server:
        hosts = {listener.sockets[0].getsockname()[0] for listener in server._servers}
    assert hosts <= {"127.0.0.1", "::1"} and "127.0.0.1" in hosts


async def test_garbage_on_the_port_harms_nothing() -> None:
    async with CallbackServer(port=0, path="/cb", state="s") as server:
        for data in (b"\x00\xff\r\n\r\n", b"GET\r\n\r\n", b"x" * 40_000, b""):
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(data)
            if data.endswith(b"\r\n"):
                assert (await reader.readline()).startswith(b"HTTP/1.1 404")
            writer.close()
        await asyncio.to_thread(visit, f"http://127.0.0.1:{server.port}/cb?code=c&state=s")
        assert (await server.wait()).code == "c"


async def test_nobody_who_signs_in_is_waited_for_only_so_long() -> None:
    with AuthorisationServer() as server:
        login = login_at(server.url, timeout=0.05)
        with pytest.raises(LoginError, match=r"^Nobody signed in within .* minutes\. Begin again$"):
            await with_client(lambda client: login.sign_in("browser", Person(), client, {}))


async def test_a_busy_port_leads_to_the_next_way() -> None:
    with AuthorisationServer() as server, busy_port() as port:
        person = Person()

        def show(url: str) -> None:
            person.addresses.append(url)
            person.pastes.append(server.browse(url))

        person.show_address = show  # type: ignore[method-assign]
        login = login_at(server.url, port=port)
        credential = await with_client(lambda client: login.sign_in("browser", person, client, {}))
    assert credential.access in server.issued
    assert str(port) in person.told[0] and "in use" in person.told[0]
    assert len(person.addresses) == 1


async def test_a_port_of_the_other_loopback_address_is_nobody_else_s() -> None:
    """A browser may take "localhost" for it, and give the code to whoever listens there."""
    try:
        listener = socket.create_server(("::1", 0), family=socket.AF_INET6)
    except OSError:
        pytest.skip("this machine has no IPv6")
    with listener:
        port = listener.getsockname()[1]
        server = CallbackServer(port=port, path="/callback", state="s")
        with pytest.raises(PortBusyError, match=f"port {port} of this machine is in use"):
            async with server:
                pass
        socket.create_server(("127.0.0.1", port)).close()  # and it is let go of


async def test_whoever_is_faster_wins_the_browser_or_the_one_who_pastes() -> None:
    with AuthorisationServer() as server:
        person = Person(can_paste=True)

        def show(url: str) -> None:
            stale = "http://localhost:1/callback?code=stale&state=of-another-attempt"
            person.pastes += ["what is this", stale, server.browse(url)]

        person.show_address = show  # type: ignore[method-assign]
        login = login_at(server.url)
        credential = await with_client(lambda client: login.sign_in("browser", person, client, {}))
    assert credential.access in server.issued
    assert [text.partition(" ")[0] for text in person.told] == ["There", "What"]


async def test_a_cancelled_login_leaves_no_port_behind() -> None:
    with AuthorisationServer() as server:
        person = Person()
        login = login_at(server.url)
        task = asyncio.create_task(with_client(lambda client: login.sign_in("browser", person, client, {})))
        while not person.addresses:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    redirect = parse_qs(urlsplit(person.addresses[0]).query)["redirect_uri"][0]
    with pytest.raises(OSError):
        visit(redirect.replace("localhost", "127.0.0.1"))


async def test_a_secret_path_stands_for_a_state() -> None:
    shown: list[str] = []

    def address(attempt):
        shown.append(attempt.redirect)
        return "https://vendor.example/auth"

    page = CodePage(host="127.0.0.1", port=0, path="/back", secret_path=True, timeout=10)
    person = Person(browse=lambda url: shown[0] + "?code=c")
    _, redirect = await code_from_browser(page, "browser", person, address)
    assert redirect.code == "c"
    assert len(urlsplit(shown[0]).path) > len("/back/") + 22


# --- pasted ---


@pytest.mark.parity("auth.pasted-redirect")
@pytest.mark.parametrize(
    "text",
    [
        "http://localhost:1/callback?code=abc&state=s1",
        "  'http://localhost:1/callback?state=s1&code=abc'\n",
        "https://vendor.example/done#code=abc&state=s1",
        "code=abc&state=s1",
        "abc#s1",
    ],
)
def test_what_can_be_pasted(text: str) -> None:
    assert read_pasted(text, "s1", bare=False).code == "abc"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "no code in what was pasted"),
        ("two words", "no code in what was pasted"),
        ("http://localhost:1/callback", "no code in what was pasted"),
        ("abc", "another attempt"),
        ("abc#s2", "another attempt"),
        ("http://localhost:1/callback?code=abc&state=s2", "another attempt"),
        ("http://localhost:1/callback?code=abc", "another attempt"),
        ("http://localhost:1/callback?error=access_denied&state=s1", "was denied"),
        ("http://localhost:1/callback?error=%1B%5B31m&state=s1", "cannot be shown"),
    ],
)
def test_what_cannot(text: str, problem: str) -> None:
    with pytest.raises(LoginError, match=problem):
        read_pasted(text, "s1", bare=False)


@given(st.text())
def test_nothing_that_is_pasted_raises_anything_else(text: str) -> None:
    try:
        read_pasted(text, "state", bare=True)
    except LoginError as error:
        assert str(error).isprintable()


async def test_a_login_by_paste_needs_no_port() -> None:
    with AuthorisationServer() as server, busy_port() as port:
        person = Person()
        person.show_address = lambda url: person.pastes.append(server.browse(url))  # type: ignore[method-assign]
        login = login_at(server.url, port=port)
        credential = await with_client(lambda client: login.sign_in("paste", person, client, {}))
    assert credential.access in server.issued and person.told == []


# --- device ---


def pending(error: str = "authorization_pending") -> tuple[int, dict[str, object]]:
    return 400, {"error": error}


@pytest.mark.parity("auth.device-login")
async def test_a_device_code_is_asked_after_until_it_was_typed_in() -> None:
    clock = Clock()
    with AuthorisationServer(
        device_answers=[pending(), pending("slow_down"), pending(), pending("slow_down")]
    ) as server:
        person = Person()
        login = login_at(server.url)
        credential = await with_client(lambda client: login.sign_in("device", person, client, {}), clock)
    assert person.codes == [("ABCD-1234", "https://login.example/device")]
    assert clock.slept == [1, 1, 6, 6, 11]
    assert credential.access in server.issued
    assert credential.expires == (clock.now + 3300) * 1000


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (pending("expired_token"), "expired. Begin again"),
        (pending("access_denied"), "The login was denied in the browser"),
        (pending("invalid_client"), "127.0.0.1 refused the login with status 400 (invalid_client)"),
        ((200, {"error": "access_denied"}), "The login was denied in the browser"),
        ((200, {}), "127.0.0.1 answered without access_token"),
    ],
)
async def test_a_device_login_that_fails_says_why(answer: tuple[int, dict[str, object]], text: str) -> None:
    with AuthorisationServer(device_answers=[answer]) as server:
        login = login_at(server.url)
        with pytest.raises(LoginError) as caught:
            await with_client(lambda client: login.sign_in("device", Person(), client, {}), Clock())
    assert text in str(caught.value)


async def test_a_device_code_is_not_asked_after_for_ever() -> None:
    clock = Clock()
    with AuthorisationServer(device_interval=60, device_answers=[pending()] * 100) as server:
        login = login_at(server.url)
        with pytest.raises(LoginError, match="before it expired"):
            await with_client(lambda client: login.sign_in("device", Person(), client, {}), clock)
    assert sum(clock.slept) == 600 and len(server.device_answers) == 91


async def test_an_interval_beyond_the_code_s_end_is_not_waited_for() -> None:
    clock = Clock()
    with AuthorisationServer(device_interval=1e11) as server:
        login = login_at(server.url)
        with pytest.raises(LoginError, match="before it expired"):
            await with_client(lambda client: login.sign_in("device", Person(), client, {}), clock)
    assert clock.slept == [600]


async def test_a_server_that_is_busy_for_a_moment_ends_no_login() -> None:
    clock = Clock()
    busy = (503, {"error": "temporarily_unavailable"})
    with AuthorisationServer(device_answers=[busy, (429, {}), busy, pending(), busy]) as server:
        login = login_at(server.url)
        credential = await with_client(lambda client: login.sign_in("device", Person(), client, {}), clock)
    assert credential.access in server.issued
    assert clock.slept == [1, 6, 11, 16, 16, 21]


async def test_a_server_that_is_busy_is_another_error_than_one_that_refuses() -> None:
    with AuthorisationServer(device_answers=[(503, {})] * 4) as server:
        login = login_at(server.url)
        with pytest.raises(ProviderError) as caught:
            await with_client(lambda client: login.sign_in("device", Person(), client, {}), Clock())
    assert caught.value.status == 503 and server.device_answers == []


async def test_a_server_that_is_silent_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cantle_ai.auth.oauth.client._TIMEOUT", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(ProviderError, match=r"127\.0\.0\.1") as caught:
            await with_client(lambda client: client.post_form(f"{url}/token", {}))
    assert caught.value.kind == "timeout"


# --- what a server says is not believed ---


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "javascript:alert(1)",
        "http://login.example/device",
        "https://",
        "https://x.example/\x1b[31m",
        "https://x.example/ --flag",
        "ssh://x.example",
        "https://[bad",
        "",
    ],
)
def test_m08_only_pages_on_https_are_shown_or_opened(url: str) -> None:
    with pytest.raises(LoginError):
        checked_page(url)


def test_pages_of_this_machine_may_do_without() -> None:
    for url in ("https://github.com/login/device", "http://127.0.0.1:8080/x", "http://localhost/x"):
        assert checked_page(url) == url


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        ({"error": "invalid_grant", "error_description": "gone"}, "(invalid_grant: gone)"),
        ({"error": {"code": "bad", "message": "no\x1b[31m way."}}, "(bad: no [31m way)"),
        ({"error": "x" * 100}, "(no reason given)"),
        ({"error": "e", "error_description": "your token sekret-123 is bad"}, "(e)"),
        ({"error": 7, "error_description": ["x"]}, "(no reason given)"),
        ({"error": "e", "error_description": "y" * 5000}, "y…)"),
    ],
)
def test_a_refusal_quotes_no_secret_and_no_control_character(data: dict, shown: str) -> None:
    text = str(OAuthAnswer("h", 400, data, ("sekret-123",)).refused("it"))
    assert text.endswith(shown) and text.isprintable() and len(text) < 300
    assert "sekret" not in text


async def test_a_body_that_is_no_json_is_no_answer() -> None:
    def other(asked):
        return 200, {"raw": b"<html>\xff", "type": "text/html"}

    with AuthorisationServer(other=other) as server:
        answer = await with_client(lambda client: client.get(f"{server.url}/page"))
    assert answer.data == {} and answer.ok
    with pytest.raises(LoginError, match="without token"):
        answer.text("token")
