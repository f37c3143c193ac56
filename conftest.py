"""What holds for every test: no key or setting of the person at the keyboard reaches one."""

import os
import signal

import pytest
from hypothesis import settings

# These read what a test run may be told, before it is removed.
from tests.support import collection, reference, samples
from tests.support.figures import pytest_terminal_summary
from tests.support.postgres import postgres_server

__all__ = ["collection", "postgres_server", "pytest_terminal_summary", "reference", "samples"]


def pytest_configure(config: pytest.Config) -> None:
    """Take the variables away where tests run. With xdist that is in its workers, which must be told, too."""
    if config.getoption("numprocesses", None):
        return
    for name in list(os.environ):
        if name.endswith("_API_KEY") or name.startswith("CANTLE_"):
            del os.environ[name]


# A busy machine is no reason for a property to fail.
settings.register_profile("cantle", deadline=None, print_blob=True)
settings.load_profile("cantle")

# A run in the background (`&`, nohup) ignores these, and so would every command that it starts. With a handler
# that does nothing they still do nothing here, and commands start as a person starts them.
for _name in ("SIGINT", "SIGQUIT", "SIGHUP"):
    _number = getattr(signal, _name, None)
    if _number is not None and signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, lambda number, frame: None)
