import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from packages.cantle.tests.tools.harness import Tools


@pytest.fixture
async def tools(tmp_path: Path) -> AsyncIterator[Tools]:
    """The tools in an empty folder, with a folder of their own for long output."""
    folder = tmp_path / "work"
    folder.mkdir()
    tools = Tools(folder, temp_dir=tmp_path / "temp")
    yield tools
    await tools.environment.close()


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user may enter."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)
