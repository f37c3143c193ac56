"""Puts the repository's README, docs and examples into the wheel as `cantle/_share`, with the pages they link to.

The system prompt names these three places, so an installed Cantle needs them. In a checkout they are
read from where they lie (an editable install copies nothing); a source distribution carries them as
`_share`, so that a wheel built from it is the same.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SHARED = (
    "README.md",
    "docs",
    "examples",
    "AGENTS.md",
    "CONTRIBUTING.md",
    "LICENSE",
    "changes/README.md",
    "packages/agent/README.md",
    "packages/ai/README.md",
    "packages/session/README.md",
)
OWN = "packages/cantle/README.md"
"""A source distribution has it at its root already, and holds each file once."""


class ShareHook(BuildHookInterface):  # type: ignore[type-arg]
    """Adds the shared folders to a wheel or a source distribution."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        package = Path(self.root)
        unpacked = package / "_share"
        origin = unpacked if unpacked.is_dir() else package.parent.parent
        prefix = "cantle/_share" if self.target_name == "wheel" else "_share"
        for name in SHARED:
            build_data["force_include"][str(origin / name)] = f"{prefix}/{name}"
        if self.target_name == "wheel":
            build_data["force_include"][str(package / "README.md")] = f"{prefix}/{OWN}"
