"""What a start imports. These sets, not milliseconds, keep starts fast."""

from typing import Any

import pytest

from tests.surface.surface import Imports, all_imports, recorded

HEAVY = {"asyncio", "ssl", "socket", "http.client", "urllib.request", "subprocess", "inspect", "email"}


@pytest.fixture(scope="module")
def found() -> dict[str, Imports]:
    return all_imports()


@pytest.fixture(scope="module")
def budget() -> dict[str, Any]:
    return dict(recorded("imports.json"))


@pytest.mark.parametrize("kind", ["version", "help", "print", "json"])
def test_a_start_imports_what_was_agreed(
    kind: str, found: dict[str, Imports], budget: dict[str, Any]
) -> None:
    assert found[kind].own == budget[kind]["own"]
    assert found[kind].third_party == budget[kind]["third_party"]
    # Pythons differ in what their own modules import, so here the record is an upper limit.
    assert sorted(set(found[kind].stdlib) - set(budget[kind]["stdlib"])) == []


@pytest.mark.parametrize("kind", ["version", "help"])
def test_version_and_help_need_no_event_loop_and_no_transport(kind: str, found: dict[str, Imports]) -> None:
    assert set(found[kind].stdlib) & HEAVY == set()
    assert found[kind].third_party == []
    assert len(found[kind].own) <= 8


@pytest.mark.parametrize("kind", ["print", "json"])
def test_a_scripted_run_loads_no_http_client_and_no_wire_api(kind: str, found: dict[str, Imports]) -> None:
    assert "urllib3" not in found[kind].third_party
    assert not any(name.startswith(("cantle_ai.transport", "cantle_ai.apis")) for name in found[kind].own)
