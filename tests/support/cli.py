"""The command line as a user has it: a process of its own, with its own configuration folder."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, NoReturn

from tests.support.samples import full_run

TIMEOUT = 50.0
"""Seconds a spawned command may take before the test fails."""


@dataclass
class Cli:
    """Runs `cantle` in `cwd` with its configuration in `home`, and no variable that would leak in."""

    home: Path
    cwd: Path
    variables: dict[str, str] = field(default_factory=dict)

    def environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "TMPDIR", "SYSTEMROOT") if name in os.environ}
        return {**kept, "HOME": str(self.home), "CANTLE_DIR": str(self.home / "cantle"), **self.variables}

    @property
    def config(self) -> Path:
        folder = self.home / "cantle"
        folder.mkdir(exist_ok=True)
        return folder

    def configure(self, base_url: str, **model: Any) -> None:
        """Write a `models.json` whose provider `loop` with model `m` is at `base_url`."""
        row = {"id": "m", "contextWindow": 100_000, "maxTokens": 4096, **model}
        provider = {"baseUrl": base_url, "api": "openai-completions", "apiKey": "sk-loop", "models": [row]}
        (self.config / "models.json").write_text(json.dumps({"providers": {"loop": provider}}), "utf-8")

    @staticmethod
    def words(*arguments: str) -> list[str]:
        """The command line itself, with this Python."""
        return [sys.executable, "-c", "import sys; from cantle.cli import main; sys.exit(main())", *arguments]

    def run(self, *arguments: str, stdin: str | bytes = b"") -> subprocess.CompletedProcess[str]:
        """Run to the end. Output is decoded as UTF-8."""
        done = subprocess.run(
            self.words(*arguments),
            cwd=self.cwd,
            env=self.environment(),
            input=stdin.encode() if isinstance(stdin, str) else stdin,
            capture_output=True,
            timeout=TIMEOUT,
            check=False,
        )
        return subprocess.CompletedProcess(
            done.args, done.returncode, done.stdout.decode(), done.stderr.decode()
        )

    def run_warm(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """As :meth:`run`, but everyday runs copy this process, which has loaded what it needs: a tenth of the time.
        Full ones start a new one.
        """
        if sys.platform == "win32" or full_run():
            return self.run(*arguments)
        with TemporaryFile() as out, TemporaryFile() as err:
            with warnings.catch_warnings():
                warnings.simplefilter(
                    "ignore", DeprecationWarning
                )  # threads of the test runner are no matter
                child = os.fork()
            if child == 0:
                _become(self, arguments, out.fileno(), err.fileno())
            _, status = os.waitpid(child, 0)
            texts = []
            for file in (out, err):
                file.seek(0)
                texts.append(file.read().decode())
        return subprocess.CompletedProcess(list(arguments), os.waitstatus_to_exitcode(status), *texts)

    @contextmanager
    def started(self, *arguments: str, **options: Any) -> Iterator[subprocess.Popen[bytes]]:
        """Start without waiting; stdout and stderr are pipes unless `options` say otherwise. Killed at the end."""
        pipes: dict[str, Any] = {
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
        }
        with subprocess.Popen(
            self.words(*arguments), cwd=self.cwd, env=self.environment(), **{**pipes, **options}
        ) as process:
            try:
                yield process
            finally:
                process.kill()

    def sessions(self) -> list[Path]:
        """The session files written so far, oldest first."""
        return sorted((self.home / "cantle" / "sessions").glob("*/*.jsonl"))


def _become(cli: Cli, arguments: Sequence[str], out: int, err: int) -> NoReturn:
    """The command line, in this process, which is a copy of another one."""
    code = 70
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(int(TIMEOUT))
        nothing = os.open(os.devnull, os.O_RDONLY)
        for theirs, ours in ((nothing, 0), (out, 1), (err, 2)):
            os.dup2(theirs, ours)
        sys.stdin = os.fdopen(0, encoding="utf-8")
        sys.stdout = os.fdopen(1, "w", encoding="utf-8")
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", errors="backslashreplace")
        os.chdir(cli.cwd)
        os.environ.clear()
        os.environ.update(cli.environment())
        time.tzset()
        from cantle.cli import main

        sys.argv = ["cantle", *arguments]
        code = main()
        sys.stdout.flush()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:  # as the interpreter would
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def before_main(err: str) -> bool:
    """Whether an interrupt came before the program's first line, where nothing can be done about it."""
    return err.rstrip().endswith("KeyboardInterrupt") and "in main" not in err and "ignored" not in err
