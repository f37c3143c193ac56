"""The logins that there are, by the name that a provider's row gives. Adding one is a module and a line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cantle_ai.auth.login import Login

__all__ = ["LOGINS", "find_login"]


def _module(name: str) -> Callable[[], Login]:
    def load() -> Login:
        login: Login = import_module(f"cantle_ai.auth.logins.{name}").LOGIN
        return login

    return load


LOGINS: Mapping[str, Callable[[], Login]] = {
    "anthropic": _module("anthropic"),
    "github-copilot": _module("github_copilot"),
    "kimi-coding": _module("kimi_coding"),
    "meta": _module("meta"),
    "openai": _module("openai"),
    "openai-codex": _module("openai_codex"),
    "openrouter": _module("openrouter"),
    "xai": _module("xai"),
}
"""What loads each of them, when somebody signs in or a token is renewed."""


def find_login(name: str) -> Login | None:
    """The login of that name; None when there is none."""
    load = LOGINS.get(name)
    return None if load is None else load()
