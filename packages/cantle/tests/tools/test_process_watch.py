"""Commands are followed alike on systems that can not wait for a process and a pipe in one call."""

import sys
from collections.abc import Callable

import pytest

from cantle.tools import process_command, process_watch
from cantle.tools.process_groups import ProcessGroup
from packages.cantle.tests.tools.harness import Tools, alive, detail, text_of

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the commands of these tests are POSIX ones")

Open = Callable[[ProcessGroup], process_watch.Watch]


@pytest.fixture(params=["poll", "poll without a process descriptor", "thread"])
def watch(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "thread":
        monkeypatch.setattr(process_command, "open_watch", process_watch.ThreadWatch)
    if request.param == "poll without a process descriptor":
        monkeypatch.setattr(process_watch, "process_descriptor", lambda pid: None)


@pytest.mark.usefixtures("watch")
async def test_output_and_exit_code_arrive(tools: Tools) -> None:
    result = await tools.bash("seq 3; exec >&- 2>&-; sleep 0.1; exit 5")
    assert text_of(result) == "1\n2\n3\n\nExit code 5."
    long = await tools.bash("seq 100000")
    assert detail(long, "truncation", "totalLines") == 100_000


@pytest.mark.usefixtures("watch")
async def test_a_timeout_ends_a_silent_command(tools: Tools) -> None:
    assert detail(await tools.bash("sleep 60", timeout=0.2), "timedOut") is True


@pytest.mark.usefixtures("watch")
async def test_a_child_left_behind_is_noticed_and_ended(tools: Tools) -> None:
    result = await tools.bash("sleep 60 & echo $!")
    assert "still runs" in text_of(result)
    await tools.environment.close()
    assert not alive(int(text_of(result).split()[0]))


@pytest.mark.fault("H-07")
async def test_h07_no_descriptor_left_is_an_error(tools: Tools, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(group: ProcessGroup) -> process_watch.Watch:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(process_command, "open_watch", full)
    assert "too many open files" in await tools.failure("bash", command="sleep 60")
