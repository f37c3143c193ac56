"""What commands cost in the long run, and what happens where the system has nothing more to give.

Each runs in a program of its own, whose descriptors, threads, memory and children are all its own.
"""

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cantle.tools.bash.output import CommandOutput
from packages.cantle.tests.tools.harness import Tools, details_of, text_of
from tests.support.samples import samples

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the commands of these tests are POSIX ones")

BEGIN = """
    import asyncio, json, os, random, resource, sys, threading, time
    from pathlib import Path
    from cantle_agent.tool import ToolError
    from packages.cantle.tests.tools.harness import Tools, detail, text_of

    tools = Tools(Path.cwd(), temp_dir=Path.cwd() / "temp")

    async def say(command, **more):
        try:
            return text_of(await tools.bash(command, **more))
        except ToolError as problem:
            return f"error: {problem}"
"""


def run(folder: Path, script: str, *arguments: object, timeout: float = 50) -> Any:
    """What a program prints as JSON. It has `tools` in the current folder, and `say` runs a command there."""
    program = textwrap.dedent(BEGIN) + textwrap.dedent(script)
    done = subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(Path.cwd()), *sys.path])},
        capture_output=True,
        encoding="utf-8",
        timeout=timeout,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


MANY = """
    PLAIN = ["true", "echo out; exit 3", "exit 0", "false", "no-such-program", "echo a | cat", "kill -9 $$"]
    LEAVING = ["(sleep 0.01 &)", "sleep 0.01 & echo $!", "(setsid sleep 0.01 >/dev/null 2>&1 &) ; sleep 0.02"]
    LONG = ["seq 3000", "printf '\\\\377%.0s' $(seq 200)"]

    def held():
        entries = [name for name in os.listdir("/proc") if name.isdigit()] if os.path.exists("/proc/self/stat") else []
        children = 0
        for name in entries:
            try:
                children += Path("/proc", name, "stat").read_text().rpartition(")")[2].split()[1] == str(os.getpid())
            except OSError:
                pass
        return {"descriptors": len(os.listdir("/dev/fd")), "threads": threading.active_count(), "children": children}

    async def main(count, seed):
        choose = random.Random(seed)
        for _ in range(20):
            await say("true")
        await asyncio.to_thread(lambda: None)
        before, begin, kinds = held(), time.monotonic(), 0
        for _ in range(count // 10):
            kind = choose.choice([PLAIN, PLAIN, PLAIN, PLAIN, LEAVING, LONG])
            await asyncio.gather(*[say(choose.choice(kind)) for _ in range(8)], say(choose.choice(PLAIN)))
            await say("sleep 60", timeout=0.01) if choose.random() < 0.02 else await say("true")
        taken = time.monotonic() - begin
        limit = time.monotonic() + 10
        while tools.environment.processes.left_running and time.monotonic() < limit:
            await asyncio.sleep(0.01)
        await tools.environment.close()
        while held() != before and time.monotonic() < limit:
            await asyncio.sleep(0.01)
        print(json.dumps({"before": before, "after": held(), "seconds": taken}))

    asyncio.run(main(int(sys.argv[1]), 5))
"""


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.fault("H-05", "H-08")
def test_h05_thousands_of_commands_leave_nothing(tmp_path: Path, record_property: Any) -> None:
    count = samples(10_000, 200)
    said = run(tmp_path, MANY, count, timeout=850)
    figure = f"{count:,} commands in {said['seconds']:.1f} s; held before and after: {said['after']}"
    record_property("figure", figure)
    assert said["after"] == said["before"]


LARGE = """
    def peak():
        # Not getrusage: on Linux its figure begins with the memory of the program that started this one.
        status = Path("/proc/self/status")
        if status.exists():
            return next(int(line.split()[1]) for line in status.open() if line.startswith("VmHWM")) * 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    async def main(size):
        await say("seq 100000; head -c 1000000 /dev/zero")
        before, begin = peak(), time.monotonic()
        result = await tools.bash(f"yes 'some words of output, \\u00e4 one' | head -c {size}; echo; echo end")
        taken = time.monotonic() - begin
        truncation = detail(result, "truncation")
        file = Path(detail(result, "fullOutputPath"))
        answer = {"before": before, "after": peak(), "size": file.stat().st_size, "total": truncation["totalBytes"]}
        answer |= {"shown": truncation["outputBytes"], "seconds": taken, "text": text_of(result)[-400:]}
        file.unlink()
        print(json.dumps(answer))

    asyncio.run(main(int(sys.argv[1])))
"""


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.fault("H-05")
def test_h05_a_gigabyte_of_output_costs_little_memory(tmp_path: Path, record_property: Any) -> None:
    size = samples(1 << 30, 1 << 27)
    said = run(tmp_path, LARGE, size, timeout=280)
    grown = said["after"] - said["before"]
    figure = (
        f"{size >> 20:,} MB of output in {said['seconds']:.1f} s: peak memory {said['before'] / 1e6:.1f} MB before, "
        f"{said['after'] / 1e6:.1f} MB after"
    )
    record_property("figure", figure)
    assert grown < 8_000_000
    assert said["size"] == said["total"] == size + 5
    assert said["shown"] <= 51_200
    assert "\nend\n" in said["text"]


@pytest.mark.fault("H-07")
def test_h07_without_a_descriptor_left_the_result_says_so(tmp_path: Path) -> None:
    said = run(
        tmp_path,
        """
        async def main():
            answers = [await say("echo first")]
            loop_has = len(os.listdir("/dev/fd"))
            most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
            for spare in range(12):
                resource.setrlimit(resource.RLIMIT_NOFILE, (loop_has - 1 + spare, most))
                answers.append(await say("echo x; sleep 0.01"))
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
            answers.append(await say("echo last"))
            await tools.environment.close()
            print(json.dumps({"answers": answers, "more": len(os.listdir("/dev/fd")) - loop_has}))

        asyncio.run(main())
        """,
    )
    first, *others, last = said["answers"]
    assert (first, last) == ("first\n", "last\n")
    failed = [answer for answer in others if answer != "x\n"]
    assert failed
    assert others[-1] == "x\n"
    for answer in failed:
        assert answer.startswith("error: The command could not be started: ")
        assert "too many open files" in answer
    assert said["more"] <= 0


@pytest.mark.fault("H-07")
def test_h07_without_a_process_left_the_result_says_so(open_folder: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs the super-user, to become someone with a limit of one's own")
    open_folder.chmod(0o777)
    said = run(
        open_folder,
        """
        async def main():
            await say("true")
            os.setgroups([]); os.setgid(54321); os.setuid(54321)
            answers = [await say("echo first")]
            resource.setrlimit(resource.RLIMIT_NPROC, (0, resource.getrlimit(resource.RLIMIT_NPROC)[1]))
            answers += [await say("echo x"), await say("echo x")]
            resource.setrlimit(resource.RLIMIT_NPROC, [resource.getrlimit(resource.RLIMIT_NPROC)[1]] * 2)
            answers.append(await say("echo last"))
            print(json.dumps(answers))

        asyncio.run(main())
        """,
    )
    first, *others, last = said
    assert (first, last) == ("first\n", "last\n")
    for answer in others:
        assert answer.startswith("error: The command could not be started: ")
        assert "no more threads" in answer or "Too many processes run" in answer


@pytest.mark.fault("H-07")
async def test_h07_variables_that_are_too_long_are_told_from_a_long_command(tools: Tools) -> None:
    huge = {f"HUGE{number}": "x" * 120_000 for number in range(40)}
    tools.environment.variables = lambda: huge
    failure = await tools.failure("bash", command="true")
    assert "environment variables together are too long" in failure


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 128 KB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("needs the super-user of a Linux, to mount a small file system")
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=128k", "none", folder], capture_output=True
    ).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


@pytest.mark.fault("H-05")
async def test_h05_a_full_disk_is_said_and_the_ends_are_shown(tmp_path: Path, small_disk: Path) -> None:
    tools = Tools(tmp_path, temp_dir=small_disk)
    result = await tools.bash("echo begin; seq 100000; echo end")
    text = text_of(result)
    assert not result.is_error
    assert text.startswith("begin\n1\n2\n")
    assert "\n100000\nend\n" in text
    assert "The output could not be kept whole" in text
    assert "no space left on device" in text
    assert "fullOutputPath" not in details_of(result)
    assert "All of it" not in text
    assert text_of(await tools.bash("echo short")) == "short\n"


@pytest.mark.fault("H-05")
def test_h05_memory_does_not_grow_with_output_in_small_pieces(tmp_path: Path) -> None:
    output = CommandOutput(tmp_path)
    for _ in range(200_000):
        output.feed(b"\x1b[31m.\x1b[0m")
    assert len(output._kept) + len(output._first) < 500_000
    output.close()
