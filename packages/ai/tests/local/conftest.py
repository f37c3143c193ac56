"""One loaded model for all tests of a process: it takes half a second and 350 MB."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from cantle_ai.local.rows import PACKAGED_MODEL
from cantle_ai.model import Model
from cantle_ai.models import Models


@pytest.fixture(scope="session")
def box() -> Iterator[Models]:
    """The models with the one in the box; its requests may come from any event loop."""
    models = Models(environ={})
    yield models
    asyncio.run(models.aclose())


@pytest.fixture
def tiny(box: Models) -> Model:
    """The model in the box."""
    model = box.find("local", PACKAGED_MODEL)
    assert model is not None
    return model
