"""What to type to add an extra, told by what installers leave in an environment."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cantle import installation
from cantle.installation import install_command


@pytest.mark.parametrize(
    ("left", "command"),
    [
        ("uv-receipt.toml", "uv tool install 'cantle[local]'"),
        ("pipx_metadata.json", "pipx install --force 'cantle[local]'"),
    ],
)
def test_a_tool_s_own_environment_is_known_by_its_receipt(
    left: str, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / left).touch()
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert install_command("local") == command


@pytest.mark.parametrize(
    ("pip", "command"),
    [
        (object(), "'/an env/bin/python' -m pip install 'cantle[images]'"),
        (None, "uv pip install --python '/an env/bin/python' 'cantle[images]'"),
    ],
)
def test_elsewhere_it_is_pip_where_there_is_one_and_uv_otherwise(
    pip: object, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(sys, "executable", "/an env/bin/python")
    monkeypatch.setattr(installation, "find_spec", lambda name: pip)
    assert install_command("images") == command
