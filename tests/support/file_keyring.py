"""A key ring for tests: a file. `PYTHON_KEYRING_BACKEND` names it, and `TEST_KEYRING` is the file's path."""

import json
import os
from pathlib import Path

from keyring.backend import KeyringBackend
from keyring.errors import KeyringLocked, PasswordDeleteError


class FileKeyring(KeyringBackend):  # type: ignore[misc]
    """Locked while there is a file of the same name with `.locked` behind it; with `.gone`, it fails in its own way."""

    priority = 1

    @property
    def _path(self) -> Path:
        path = Path(os.environ["TEST_KEYRING"])
        if path.with_name(path.name + ".locked").exists():
            raise KeyringLocked("s3cret reasons")
        if path.with_name(path.name + ".gone").exists():
            raise RuntimeError("s3cret: the bus is gone")
        return path

    def _items(self) -> dict[str, str]:
        path = self._path
        return dict(json.loads(path.read_text("utf-8"))) if path.exists() else {}

    def get_password(self, service: str, username: str) -> str | None:
        return self._items().get(f"{service}/{username}")

    def set_password(self, service: str, username: str, password: str) -> None:
        items = {**self._items(), f"{service}/{username}": password}
        self._path.write_text(json.dumps(items), "utf-8")

    def delete_password(self, service: str, username: str) -> None:
        items = self._items()
        if items.pop(f"{service}/{username}", None) is None:
            raise PasswordDeleteError("no such item")
        self._path.write_text(json.dumps(items), "utf-8")
