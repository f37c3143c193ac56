from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cantle.export.html import export_html
from cantle_session.session import Session
from packages.cantle.tests.export.browser import chromium
from packages.cantle.tests.export.sample_sessions import Story, write_session


@pytest.fixture(scope="module")
def browser() -> Any:
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def exported(tmp_path_factory) -> Callable[..., Path]:
    """Gives the page of a story, written once for each."""
    pages: dict[str, Path] = {}

    def write(name: str, make: Callable[[], Story], **options: Any) -> Path:
        if name not in pages:
            folder = tmp_path_factory.mktemp("export")
            with Session.open(write_session(folder / "session.jsonl", make().entries)) as session:
                pages[name] = export_html(session, folder / "session.html", **options)
        return pages[name]

    return write
