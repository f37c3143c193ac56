"""Tokens are renewed once, saved before they are used, and never lost to whoever is in a hurry."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from cantle_ai import json_file
from cantle_ai.auth.credentials import ApiKeyCredential, OAuthCredential
from cantle_ai.auth.renewal import TokenRenewal, wait_for_renewals
from cantle_ai.errors import ConfigurationError, ProviderError
from cantle_ai.file_lock import held_lock
from cantle_ai.transport.urllib3_thread import Urllib3Transport
from packages.ai.tests.auth.logins import entry, login_at, stored
from packages.ai.tests.http_peer import refused_port
from tests.support.authorisation import PATIENCE, AuthorisationServer, expired


def full(*_: object) -> None:
    raise OSError(28, "No space left on device")


RENEW = """
import asyncio, sys
from pathlib import Path
from cantle_ai.auth.credential_file import CredentialFile
from cantle_ai.auth.renewal import TokenRenewal
from cantle_ai.transport.urllib3_thread import Urllib3Transport
from packages.ai.tests.auth.logins import login_at

async def main():
    renewal = TokenRenewal(CredentialFile(Path(sys.argv[2])), lambda: Urllib3Transport(environ={}))
    print("ready", flush=True)
    sys.stdin.readline()
    return await renewal.renewed("p", login_at(sys.argv[1]))

credential = asyncio.run(main())
print(credential.access, flush=True)
"""


def started(server: AuthorisationServer, path: Path) -> subprocess.Popen[str]:
    """A process that waits for a line before it renews the login of `p`."""
    return subprocess.Popen(
        [sys.executable, "-c", RENEW, server.url, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def renewal_of(path: Path, patience: float = 20.0) -> TokenRenewal:
    from cantle_ai.auth.credential_file import CredentialFile

    return TokenRenewal(CredentialFile(path), lambda: Urllib3Transport(environ={}), patience=patience)


HOLD = """
import sys, time
from pathlib import Path
from cantle_ai.auth.credential_file import CredentialFile

with CredentialFile(Path(sys.argv[1])).renewing(10):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "auth.json"


@pytest.mark.parity("auth.refresh-lock")
@pytest.mark.parametrize("linked", [False, True])
def test_m02_eight_processes_make_one_renewal(tmp_path: Path, linked: bool) -> None:
    """Half of them through a symbolic link, if `linked`: those who share a file share its lock."""
    path = tmp_path / "auth.json"
    paths = [path] * 8
    if linked:
        (tmp_path / "elsewhere").mkdir()
        link = tmp_path / "elsewhere" / "auth.json"
        link.symlink_to(path)
        paths = [path, link] * 4
    with AuthorisationServer() as server:
        stored(path, p=expired(server.tokens(), account="kept"), other={"type": "api_key", "key": "k"})
        processes = [started(server, each) for each in paths]
        for process in processes:
            assert process.stdout is not None and process.stdout.readline() == "ready\n"
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        outcomes = [process.communicate(timeout=PATIENCE) for process in processes]
        assert [process.returncode for process in processes] == [0] * 8, outcomes
        assert (server.renewals, server.reused) == (1, 0)
        assert {out.strip() for out, _ in outcomes} == {entry(path)["access"]}
        assert entry(path)["refresh"] in server.issued and entry(path)["account"] == "kept"
        assert entry(path, "other") == {"type": "api_key", "key": "k"}
        if linked:
            assert link.is_symlink()


async def test_requests_of_one_process_share_a_renewal(path: Path) -> None:
    with AuthorisationServer() as server:
        stored(path, p=expired(server.tokens()))
        renewal = renewal_of(path)
        credentials = await asyncio.gather(*(renewal.renewed("p", login_at(server.url)) for _ in range(20)))
        assert server.renewals == 1
        assert len({credential.access for credential in credentials}) == 1


async def test_a_token_that_somebody_else_renewed_meanwhile_is_taken(path: Path) -> None:
    with AuthorisationServer() as server:
        fresh = {**expired(server.tokens()), "expires": round(time.time() * 1000) + 60_000}
        stored(path, p=fresh)
        assert (await renewal_of(path).renewed("p", login_at(server.url))).access == fresh["access"]
        assert server.renewals == 0


async def test_a_server_that_does_not_rotate_leaves_the_refresh_token(path: Path) -> None:
    with AuthorisationServer() as server:
        old = expired(server.tokens())
        stored(path, p=old)
        answer = {key: value for key, value in server.tokens().items() if key != "refresh_token"}
        server.refused = (200, answer)
        renewed = await renewal_of(path).renewed("p", login_at(server.url))
        assert renewed.refresh == old["refresh"] == entry(path)["refresh"]


# --- what ends meanwhile ---


async def test_a_cancelled_request_loses_no_token(path: Path) -> None:
    with AuthorisationServer(held=threading.Event()) as server:
        stored(path, p=expired(server.tokens()))
        renewal = renewal_of(path)
        request = asyncio.create_task(renewal.renewed("p", login_at(server.url)))
        assert await asyncio.to_thread(server.renewal_began.wait, PATIENCE)
        request.cancel()
        with pytest.raises(asyncio.CancelledError):
            await request
        assert server.held is not None
        server.held.set()
        # The next request takes part in it, or finds what it left.
        renewed = await renewal.renewed("p", login_at(server.url))
        assert (server.renewals, server.reused) == (1, 0)
        assert entry(path)["access"] == renewed.access


def test_a_loop_that_is_closed_loses_no_token(path: Path) -> None:
    with AuthorisationServer(held=threading.Event()) as server:
        stored(path, p=expired(server.tokens()))

        async def left_alone() -> None:
            asyncio.get_running_loop().create_task(renewal_of(path).renewed("p", login_at(server.url)))
            assert await asyncio.to_thread(server.renewal_began.wait, PATIENCE)

        asyncio.run(left_alone())
        assert server.held is not None
        server.held.set()
        assert wait_for_renewals() and not wait_for_renewals()
        assert entry(path)["access"] in server.issued
        assert entry(path)["expires"] > time.time() * 1000


LEAVE = RENEW.replace(
    'return await renewal.renewed("p", login_at(sys.argv[1]))',
    'task = asyncio.create_task(renewal.renewed("p", login_at(sys.argv[1])))\n'
    "    await asyncio.to_thread(sys.stdin.readline)\n    sys.exit(7)",
)
"""Ends in the middle of it by `sys.exit`, as most programs do, when it gets a second line."""


def leaving(server: AuthorisationServer, path: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", LEAVE, server.url, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write("go\n")
    process.stdin.flush()
    assert process.stdout.readline() == "ready\n"
    return process


def test_a_program_that_exits_meanwhile_saves_the_token_first(path: Path) -> None:
    with AuthorisationServer(held=threading.Event()) as server:
        assert server.held is not None
        stored(path, p=expired(server.tokens()))
        process = leaving(server, path)
        assert server.renewal_began.wait(PATIENCE)
        assert process.stdin is not None
        process.stdin.write("end\n")
        process.stdin.flush()
        server.held.set()
        out, err = process.communicate(timeout=PATIENCE)
        assert (process.returncode, out, err) == (7, "", "")
        assert entry(path)["access"] in server.issued
        assert entry(path)["expires"] > time.time() * 1000


def test_a_program_that_waits_for_another_one_may_exit_at_once(path: Path) -> None:
    with AuthorisationServer() as server:
        store = stored(path, p=expired(server.tokens()))
        with store.renewing(1):
            out, err = leaving(server, path).communicate("end\n", timeout=PATIENCE)
        assert (out, err) == ("", "")
        assert server.renewals == 0


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
def test_killed_at_once_when_it_has_the_token_it_leaves_a_good_file(path: Path) -> None:
    """SIGKILL at the first sign of the new token: it is saved before anybody gets it."""
    with AuthorisationServer() as server:
        stored(path, p=expired(server.tokens()))
        process = started(server, path)
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write("go\n")
        process.stdin.flush()
        assert process.stdout.readline() == "ready\n"
        access = process.stdout.readline().strip()
        process.kill()
        process.communicate(timeout=PATIENCE)
        assert entry(path)["access"] == access in server.issued
        again = started(server, path)
        out, _ = again.communicate("go\n", timeout=PATIENCE)
        assert out.split()[-1] == access
        assert (server.renewals, server.reused) == (1, 0)


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
def test_a_process_that_is_killed_with_the_lock_leaves_it_to_the_next(path: Path) -> None:
    """Killed before the server has heard of it, nothing is lost."""
    with AuthorisationServer() as server:
        stored(path, p=expired(server.tokens()))
        holder = subprocess.Popen(
            [sys.executable, "-c", HOLD, str(path)],
            stdout=subprocess.PIPE,
        )
        assert holder.stdout is not None and holder.stdout.readline() == b"held\n"
        waiting = started(server, path)
        assert waiting.stdin is not None and waiting.stdout is not None
        waiting.stdin.write("go\n")
        waiting.stdin.flush()
        assert waiting.stdout.readline() == "ready\n"
        holder.kill()
        holder.communicate()
        out, _ = waiting.communicate(timeout=PATIENCE)
        assert out.strip() == entry(path)["access"]


async def test_who_signs_in_or_out_during_a_renewal_wins(path: Path) -> None:
    with AuthorisationServer(held=threading.Event()) as server:
        assert server.held is not None
        store = stored(path, p=expired(server.tokens()))
        renewal = renewal_of(path)
        request = asyncio.create_task(renewal.renewed("p", login_at(server.url)))
        assert await asyncio.to_thread(server.renewal_began.wait, PATIENCE)
        anew = OAuthCredential(access="of another account", refresh="r", expires=2**53 - 1)
        store.save("p", anew)
        server.held.set()
        assert await request == anew == store.read("p")

        server.held.clear()
        server.renewal_began.clear()
        store = stored(path, p=expired(server.tokens()))
        request = asyncio.create_task(renewal.renewed("p", login_at(server.url)))
        assert await asyncio.to_thread(server.renewal_began.wait, PATIENCE)
        store.remove("p")
        server.held.set()
        with pytest.raises(ConfigurationError, match="was removed"):
            await request
        assert store.names() == []


# --- what goes wrong ---


async def test_a_server_that_never_answers_holds_the_lock_only_so_long(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cantle_ai.auth.renewal._SECONDS", 0.1)
    with AuthorisationServer(held=threading.Event()) as server:
        assert server.held is not None
        store = stored(path, p=expired(server.tokens()))
        with pytest.raises(ProviderError, match=r"not renewed within 0\.1 seconds") as caught:
            await renewal_of(path).renewed("p", login_at(server.url))
        assert caught.value.kind == "timeout"
        with store.renewing(0):
            pass


async def test_m02_a_lock_that_is_held_too_long_is_no_missing_key(path: Path) -> None:
    with AuthorisationServer() as server:
        store = stored(path, p=expired(server.tokens()))
        with (
            store.renewing(1),
            pytest.raises(ProviderError, match="Another process has been renewing") as caught,
        ):
            await renewal_of(path, patience=0.05).renewed("p", login_at(server.url))
        assert caught.value.kind == "timeout"
        assert server.renewals == 0


async def test_m02_saving_a_key_does_not_wait_for_a_renewal(path: Path) -> None:
    with AuthorisationServer(held=threading.Event()) as server:
        store = stored(path, p=expired(server.tokens()))
        request = asyncio.create_task(renewal_of(path).renewed("p", login_at(server.url)))
        assert await asyncio.to_thread(server.renewal_began.wait, PATIENCE)
        store.save("other", ApiKeyCredential(key="k"))
        assert server.held is not None
        server.held.set()
        await request
        assert entry(path, "other")["key"] == "k"


@pytest.mark.parity("auth.refused-refresh")
async def test_a_refused_renewal_names_the_login_and_keeps_the_entry(path: Path) -> None:
    with AuthorisationServer() as server:
        old = expired(server.tokens())
        stored(path, p=old)
        login = login_at(server.url)
        await renewal_of(path).renewed("p", login)
        stored(path, p=old)  # the token that was rotated away
        with pytest.raises(ConfigurationError) as caught:
            await renewal_of(path).renewed("p", login)
    assert str(caught.value) == (
        "127.0.0.1 refused to renew the login with status 400 (invalid_grant). "
        "Sign in again: `cantle auth login p`"
    )
    assert entry(path) == old and server.reused == 1


async def test_a_server_that_is_down_or_busy_is_worth_another_try(path: Path) -> None:
    with AuthorisationServer() as server, refused_port() as port:
        old = expired(server.tokens())
        stored(path, p=old)
        server.refused = (503, {"error": "temporarily_unavailable"})
        with pytest.raises(ProviderError) as caught:
            await renewal_of(path).renewed("p", login_at(server.url))
        assert caught.value.status == 503
        with pytest.raises(ProviderError) as caught:
            await renewal_of(path).renewed("p", login_at(f"http://127.0.0.1:{port}"))
        assert caught.value.kind == "network"
        assert entry(path) == old


async def test_a_login_that_was_removed_meanwhile_says_so(path: Path) -> None:
    with AuthorisationServer() as server:
        stored(path)
        with pytest.raises(ConfigurationError, match=r"was removed\. Run `cantle auth login p`"):
            await renewal_of(path).renewed("p", login_at(server.url))


async def test_without_a_refresh_token_there_is_nothing_to_renew_with(path: Path) -> None:
    store = stored(path)
    store.save("p", OAuthCredential(access="a", expires=1))
    with pytest.raises(ConfigurationError, match=r"cannot be renewed\. Sign in again"):
        await renewal_of(path).renewed("p", login_at("http://127.0.0.1:1"))


async def test_a_disk_that_is_full_is_found_out_before_the_server_is_asked(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with AuthorisationServer() as server:
        old = expired(server.tokens())
        stored(path, p=old)
        renewal = renewal_of(path)
        with monkeypatch.context() as broken:
            broken.setattr(json_file, "_write", full)
            with pytest.raises(ConfigurationError, match="cannot be written: no space left"):
                await renewal.renewed("p", login_at(server.url))
        assert server.renewals == 0 and entry(path) == old
        await renewal.renewed("p", login_at(server.url))


async def test_a_disk_that_fills_up_meanwhile_loses_no_token(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next request saves what the first one could not."""
    with AuthorisationServer(held=threading.Event()) as server:
        assert server.held is not None
        stored(path, p=expired(server.tokens()))
        renewal = renewal_of(path)
        with monkeypatch.context() as broken:
            request = asyncio.create_task(renewal.renewed("p", login_at(server.url)))
            assert await asyncio.to_thread(server.renewal_began.wait, PATIENCE)
            broken.setattr(json_file, "_write", full)
            server.held.set()
            with pytest.raises(ConfigurationError, match="cannot be written: no space left"):
                await request
        renewed = await renewal.renewed("p", login_at(server.url))
        assert (server.renewals, server.reused) == (1, 0)
        assert entry(path)["access"] == renewed.access


async def test_a_token_is_saved_before_its_connection_is_closed(path: Path) -> None:
    """Whatever comes of that."""

    class Broken(Urllib3Transport):
        async def aclose(self) -> None:
            await super().aclose()
            raise OSError("cannot be closed")

    from cantle_ai.auth.credential_file import CredentialFile

    with AuthorisationServer() as server:
        stored(path, p=expired(server.tokens()))
        renewal = TokenRenewal(CredentialFile(path), lambda: Broken(environ={}))
        with pytest.raises(ConfigurationError):
            await renewal.renewed("p", login_at(server.url))
        assert entry(path)["expires"] > time.time() * 1000


@pytest.mark.parametrize("written", [{"expires": 1.5}, {"expires": 1e3}, {"note": None}])
async def test_an_entry_written_in_another_way_is_renewed_as_well(
    path: Path, written: dict[str, object]
) -> None:
    with AuthorisationServer() as server:
        stored(path, p={**expired(server.tokens()), **written})
        renewed = await renewal_of(path).renewed("p", login_at(server.url))
        assert entry(path)["access"] == renewed.access
        assert renewed.is_fresh(time.time())


KILLED = """
import os, signal, sys
from pathlib import Path
from cantle_ai import new_files
from packages.ai.tests.auth import test_renewal

step = sys.argv.pop()
written = 0

def killed(place, work):
    def run(*arguments):
        global written
        if place == "write":
            written += 1
        if step == f"before {place} {written}":
            os.kill(os.getpid(), signal.SIGKILL)
        result = work(*arguments)
        if step == f"after {place} {written}":
            os.kill(os.getpid(), signal.SIGKILL)
        return result
    return run

new_files.NewFile.write = killed("write", new_files.NewFile.write)
new_files.NewFile.replace = killed("replace", new_files.NewFile.replace)
exec(test_renewal.RENEW)
"""
"""Ends by SIGKILL at a step of writing the file: first as a trial, then with the new token."""


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
@pytest.mark.parametrize(
    ("step", "outcome"),
    [
        ("before write 1", "not asked"),
        ("after write 1", "not asked"),
        ("before write 2", "lost"),
        ("before replace 2", "lost"),
        ("after replace 2", "saved"),
    ],
)
def test_a_kill_at_each_step_leaves_a_file_that_can_be_used(path: Path, step: str, outcome: str) -> None:
    """Lost is only what the server has given and the file does not have yet; the next request says what to do."""
    with AuthorisationServer() as server:
        old = expired(server.tokens())
        stored(path, p=old, other={"type": "api_key", "key": "k"})
        process = subprocess.Popen(
            [sys.executable, "-c", KILLED, server.url, str(path), step],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        out, err = process.communicate("go\n", timeout=PATIENCE)
        assert (process.returncode, out, err) == (-9, "ready\n", "")
        assert server.renewals == (outcome != "not asked")
        assert (entry(path) == old) == (outcome != "saved")
        assert entry(path, "other") == {"type": "api_key", "key": "k"}

        out, err = started(server, path).communicate("go\n", timeout=PATIENCE)
        if outcome == "lost":
            assert "Sign in again: `cantle auth login p`" in err
            assert not any(token in out + err for token in server.issued)
        else:
            assert (out.strip(), server.renewals) == ("ready\n" + entry(path)["access"], 1)
        left = {file.name for file in path.parent.iterdir()}
        assert left <= {"auth.json", "auth.json.lock"}, "what a killed process wrote is cleared away"


def test_the_reference_s_lock_is_waited_for(tmp_path: Path) -> None:
    """It is a folder, which it makes while it writes."""
    lock = tmp_path / "auth.json.lock"
    lock.mkdir()
    with pytest.raises(TimeoutError), held_lock(lock, patience=0.05):
        pass
    threading.Timer(0.1, lock.rmdir).start()
    with held_lock(lock, patience=PATIENCE):
        assert lock.is_file()
    lock.mkdir()
    os.utime(lock, (1, 1))
    with held_lock(lock, patience=PATIENCE):
        assert lock.is_file()


INCREMENT = """
import sys
from pathlib import Path
from cantle_ai.json_file import update_json_file

def change(raw):
    raw["n"] = raw.get("n", 0) + 1

for _ in range(int(sys.argv[2])):
    update_json_file(Path(sys.argv[1]), change)
"""


def test_a_lock_leaves_nothing_and_lets_one_in_at_a_time(tmp_path: Path) -> None:
    """The reference takes whatever lies there for a lock that is held."""
    path = tmp_path / "counter.json"
    processes = [subprocess.Popen([sys.executable, "-c", INCREMENT, str(path), "40"]) for _ in range(6)]
    assert [process.wait(PATIENCE) for process in processes] == [0] * 6
    assert path.read_text("utf-8") == '{\n  "n": 240\n}\n'
    assert list(tmp_path.iterdir()) == [path]
