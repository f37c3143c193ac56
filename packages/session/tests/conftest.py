"""What the tests of sessions share."""

import tempfile
from pathlib import Path

import pytest


@pytest.fixture
def open_folder():
    """A folder that every user can enter, which pytest's own is not."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)
