"""Preferences: `settings.json` of the configuration folder, and over it that of a trusted project.

    {"defaultProvider": "openai", "defaultModel": "…", "defaultThinkingLevel": "medium",
     "modelThinkingLevels": {"openai/…": "high"}, "defaultTools": ["+grep"],
     "steeringMode": "one-at-a-time", "followUpMode": "one-at-a-time", "defaultProjectTrust": "ask",
     "sessionDir": "…", "shellPath": "…", "shellCommandPrefix": "…", "shellLeftovers": "keep",
     "httpIdleTimeoutMs": 300000, "thinkingBudgets": {"high": 16384}, "fallbackModel": "…", "cacheRetention": "short",
     "retry": {"enabled": true, "maxRetries": 3, "baseDelayMs": 2000, "maxAgentDelayMs": 60000},
     "images": {"autoResize": true, "blockImages": false},
     "compaction": {"enabled": true, "reserveTokens": 16384, "keepRecentTokens": 20000,
                    "modelOverrides": {"openai/…": {"reserveTokens": 65536}}},
     "branchSummary": {"reserveTokens": 16384, "skipPrompt": false}}

Names, shapes and defaults are the reference's, but for `shellLeftovers`, `fallbackModel` and `cacheRetention`, which it has not. Keys that are not
in the table below are kept and ignored. Objects merge key by key, everything else is replaced, and
`defaultTools` is kept as one list per file, because a later list may change an earlier one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, cast

from cantle.errors import ConfigurationFileError, UserError
from cantle.json_file import read_json_file, update_json_file
from cantle.paths import ConfigPaths, project_directory, user_path
from cantle_ai.codec import Json, JsonObject
from cantle_ai.messages import ThinkingLevel
from cantle_ai.model import THINKING_LEVELS

if TYPE_CHECKING:
    from cantle.tools.environment import ShellLeftovers
    from cantle_agent.queues import QueueMode
    from cantle_ai.model import CacheRetention

__all__ = ["ProjectTrust", "Settings", "load_settings", "read_session_dir", "save_settings"]

ProjectTrust: TypeAlias = Literal["ask", "always", "never"]

_Check: TypeAlias = "tuple[Callable[[Json], bool], str]"

_MOST: Final = 2**31 - 1
"""The largest count. In milliseconds it is what timers can wait for: 24 days."""

USER_ONLY: Final = ("defaultProjectTrust", "credentialStorage")
"""Keys that a project's file may not set."""


class Settings:
    """The merged preferences of a session. Every property has its default; nothing here changes."""

    __slots__ = ("_layers", "_merged", "default_tools")

    def __init__(self, *layers: JsonObject) -> None:
        """`layers` are checked objects, the weakest first."""
        merged: JsonObject = {}
        for layer in layers:
            merged = _merge(merged, layer)
        self._merged = merged
        self._layers = layers
        self.default_tools: tuple[tuple[str, ...], ...] = tuple(
            tuple(cast("Sequence[str]", layer["defaultTools"])) for layer in layers if "defaultTools" in layer
        )
        """The `defaultTools` lists, the weakest first."""

    def with_project(self, cwd: Path) -> Settings:
        """These settings, and over them those of a trusted project. Raises :class:`ConfigurationFileError`."""
        local = _checked(project_directory(cwd) / "settings.json")
        if _names_server(local.get("sessionDir")):
            del local["sessionDir"]
        return Settings(*self._layers, {key: value for key, value in local.items() if key not in USER_ONLY})

    def get(self, key: str) -> Json:
        """The value at a dotted key path, such as `retry.maxRetries`; None when it is not set."""
        value: Json = self._merged
        for part in key.split("."):
            if not isinstance(value, dict):
                return None
            value = value.get(part)
        return value

    @property
    def default_provider(self) -> str | None:
        return self._text("defaultProvider")

    @property
    def default_model(self) -> str | None:
        return self._text("defaultModel")

    def thinking_level(self, model_key: str) -> ThinkingLevel:
        """The level that a new session starts with, for a model named `provider/id`."""
        levels = self.get("modelThinkingLevels")
        level = levels.get(model_key) if isinstance(levels, dict) else None
        return cast("ThinkingLevel", level or self.get("defaultThinkingLevel") or "medium")

    @property
    def thinking_budgets(self) -> Mapping[ThinkingLevel, int]:
        """Tokens that a level may think for, where a provider counts in tokens."""
        budgets = self.get("thinkingBudgets")
        return {} if not isinstance(budgets, dict) else cast("Mapping[ThinkingLevel, int]", dict(budgets))

    @property
    def fallback_model(self) -> str | None:
        """The model that goes on when the one that was asked has failed for good, as `--model` takes it."""
        return self._text("fallbackModel")

    @property
    def cache_retention(self) -> CacheRetention:
        """How long providers are to keep prompts; `CANTLE_CACHE_RETENTION` goes over the file.

        Raises :class:`UserError` for a variable of another value.
        """
        asked = os.environ.get("CANTLE_CACHE_RETENTION") or self.get("cacheRetention") or "short"
        if asked not in _RETENTIONS:
            raise UserError(
                f"CANTLE_CACHE_RETENTION must be none, short or long, not {asked!r}.", "Change or unset it."
            )
        return cast("CacheRetention", asked)

    @property
    def steering_mode(self) -> QueueMode:
        return cast("QueueMode", self.get("steeringMode") or "one-at-a-time")

    @property
    def follow_up_mode(self) -> QueueMode:
        return cast("QueueMode", self.get("followUpMode") or "one-at-a-time")

    @property
    def default_project_trust(self) -> ProjectTrust:
        return cast("ProjectTrust", self.get("defaultProjectTrust") or "ask")

    @property
    def session_dir(self) -> str | None:
        return self._text("sessionDir")

    @property
    def shell_path(self) -> str | None:
        """The shell that commands run in, a leading `~` resolved."""
        path = self._text("shellPath")
        return None if path is None else str(user_path(path))

    @property
    def shell_command_prefix(self) -> str | None:
        return self._text("shellCommandPrefix")

    @property
    def shell_leftovers(self) -> ShellLeftovers:
        return cast("ShellLeftovers", self.get("shellLeftovers") or "keep")

    @property
    def retry_enabled(self) -> bool:
        return self.get("retry.enabled") is not False

    @property
    def max_retries(self) -> int:
        return self._count("retry.maxRetries", 3)

    @property
    def retry_base_delay_ms(self) -> int:
        return self._count("retry.baseDelayMs", 2000)

    @property
    def retry_max_delay_ms(self) -> int:
        return self._count("retry.maxAgentDelayMs", 60_000)

    @property
    def http_timeout(self) -> float:
        """Seconds without a sign of life after which a request is given up; 0 for never."""
        value = self.get("httpIdleTimeoutMs")
        if value is None:
            return 300.0
        return 0.0 if value == "disabled" else cast("float", value) / 1000

    @property
    def credential_storage(self) -> Literal["file", "keyring"]:
        """Where credentials are saved: `auth.json`, or the system's key ring."""
        return "keyring" if self.get("credentialStorage") == "keyring" else "file"

    @property
    def resize_images(self) -> bool:
        """Whether images are made smaller, to what a model is best shown."""
        return self.get("images.autoResize") is not False

    @property
    def block_images(self) -> bool:
        """Whether no model is sent any image."""
        return self.get("images.blockImages") is True

    @property
    def compaction_enabled(self) -> bool:
        """Whether a history is compacted by itself when it is long."""
        return self.get("compaction.enabled") is not False

    def compaction_tokens(self, model_key: str) -> tuple[int, int]:
        """For a model named `provider/id`: the tokens that stay free for its answer, and those of the latest
        history that stay as they are. Each is the model's own, else the general one.
        """
        overrides = self.get("compaction.modelOverrides")
        own = overrides.get(model_key) if isinstance(overrides, dict) else None

        def tokens(key: str, default: int) -> int:
            value = own.get(key) if isinstance(own, dict) else None
            return int(value) if isinstance(value, int | float) else self._count(f"compaction.{key}", default)

        return tokens("reserveTokens", 16_384), tokens("keepRecentTokens", 20_000)

    @property
    def branch_summary_reserve(self) -> int:
        """The tokens that stay free when a branch is summed up."""
        return self._count("branchSummary.reserveTokens", 16_384)

    @property
    def branch_summary_skip_prompt(self) -> bool:
        """Whether who leaves a branch is not asked for a summary, and gets none."""
        return self.get("branchSummary.skipPrompt") is True

    def _text(self, key: str) -> str | None:
        value = self.get(key)
        return value if isinstance(value, str) and value else None

    def _count(self, key: str, default: int) -> int:
        value = self.get(key)
        return int(value) if isinstance(value, int | float) else default


def load_settings(paths: ConfigPaths) -> Settings:
    """The user's settings.

    Raises :class:`ConfigurationFileError` for a file that is not JSON or a value of the wrong kind.
    """
    return Settings(_checked(paths.settings))


def read_session_dir(cwd: Path) -> str | None:
    """A project's `sessionDir`, the one setting that is read before trust is decided.

    Nothing else of the file is looked at, and a file that cannot be used says nothing: it may never be trusted.
    That of a database server says nothing either: a project must not send its user's sessions elsewhere.
    """
    try:
        raw = read_json_file(project_directory(cwd) / "settings.json")
    except ConfigurationFileError:
        return None
    value = (raw or {}).get("sessionDir")
    if not isinstance(value, str) or not value or _names_server(value):
        return None
    return value if _is_path(value) else None


def _names_server(value: Json) -> bool:
    return isinstance(value, str) and value.startswith(("postgresql:", "postgres:"))


def save_settings(path: Path, changes: Mapping[str, Json]) -> None:
    """Set the dotted keys of `changes` in a settings file, None removing one, and leave all else as it is.

    Raises :class:`ConfigurationFileError`; a file that is not valid JSON stays as it was.
    """

    def apply(raw: JsonObject) -> None:
        for key, value in changes.items():
            _set(raw, key.split("."), value)
        check_settings(path, raw)

    update_json_file(path, apply)


def check_settings(path: Path, raw: JsonObject) -> None:
    """Raise :class:`ConfigurationFileError` naming the first key whose value is of the wrong kind."""
    for key, (accepts, expected) in _KEYS.items():
        value: Json = raw
        for part in key.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        if value is not None and not accepts(value):
            raise ConfigurationFileError(
                f"{path}: {key} must be {expected}, not {_shown(value)}.", "Change or remove it."
            )
    levels = raw.get("modelThinkingLevels")
    for model, level in levels.items() if isinstance(levels, dict) else ():
        if level not in THINKING_LEVELS:
            raise ConfigurationFileError(
                f"{path}: modelThinkingLevels.{model} must be {_LEVEL[1]}, not {_shown(level)}.",
                "Change or remove it.",
            )
    _check_overrides(path, raw.get("compaction"))


def _check_overrides(path: Path, compaction: Json) -> None:
    overrides = compaction.get("modelOverrides") if isinstance(compaction, dict) else None
    for model, own in overrides.items() if isinstance(overrides, dict) else ():
        where = f"{path}: compaction.modelOverrides.{model}"
        if not isinstance(own, dict):
            raise ConfigurationFileError(
                f"{where} must be an object, not {_shown(own)}.", "Change or remove it."
            )
        for key in ("reserveTokens", "keepRecentTokens"):
            if own.get(key) is not None and not _is_count(own[key]):
                raise ConfigurationFileError(
                    f"{where}.{key} must be {_COUNT[1]}, not {_shown(own[key])}.", "Change or remove it."
                )


def _checked(path: Path) -> JsonObject:
    raw = read_json_file(path)
    if raw is None:
        return {}
    check_settings(path, raw)
    return raw


def _merge(base: JsonObject, over: JsonObject) -> JsonObject:
    merged = dict(base)
    for key, value in over.items():
        old = merged.get(key)
        merged[key] = _merge(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged


def _set(raw: JsonObject, parts: list[str], value: Json) -> None:
    for part in parts[:-1]:
        inner = raw.setdefault(part, {})
        if not isinstance(inner, dict):
            inner = raw[part] = {}
        raw = inner
    if value is None:
        raw.pop(parts[-1], None)
    else:
        raw[parts[-1]] = value


def _shown(value: Json) -> str:
    from json import dumps

    text = dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:59] + "…"


def _is_text(value: Json) -> bool:
    return isinstance(value, str)


def _is_path(value: Json) -> bool:
    if not isinstance(value, str) or "\0" in value:
        return False
    try:
        os.fsencode(user_path(value))
    except (UserError, UnicodeEncodeError):
        return False
    return True


def _is_count(value: Json) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return 0 <= value <= _MOST and (isinstance(value, int) or value.is_integer())


def _one_of(*choices: str) -> _Check:
    named = ", ".join(f'"{choice}"' for choice in choices[:-1]) + f' or "{choices[-1]}"'
    return (lambda value: value in choices), named


_TEXT: _Check = (_is_text, "a string")
_FLAG: _Check = (lambda value: isinstance(value, bool), "true or false")
_PATH: _Check = (_is_path, "a path")
_COUNT: _Check = (_is_count, f"a whole number from 0 to {_MOST}")
_OBJECT: _Check = (lambda value: isinstance(value, dict), "an object")
_TEXTS: _Check = (
    lambda value: isinstance(value, list) and all(isinstance(item, str) for item in value),
    "a list of strings",
)
_LEVEL: _Check = _one_of(*THINKING_LEVELS)
_MODE: _Check = _one_of("all", "one-at-a-time")

_RETENTIONS = ("none", "short", "long")

_KEYS: Final[Mapping[str, _Check]] = {
    "defaultProvider": _TEXT,
    "defaultModel": _TEXT,
    "defaultThinkingLevel": _LEVEL,
    "modelThinkingLevels": _OBJECT,
    "thinkingBudgets": _OBJECT,
    **{f"thinkingBudgets.{level}": _COUNT for level in THINKING_LEVELS if level != "off"},
    "fallbackModel": _TEXT,
    "cacheRetention": _one_of(*_RETENTIONS),
    "defaultTools": _TEXTS,
    "steeringMode": _MODE,
    "followUpMode": _MODE,
    "defaultProjectTrust": _one_of("ask", "always", "never"),
    "sessionDir": _PATH,
    "shellPath": _PATH,
    "shellCommandPrefix": _TEXT,
    "shellLeftovers": _one_of("keep", "kill"),
    "httpIdleTimeoutMs": (
        lambda value: value == "disabled" or _is_count(value),
        'a whole number of milliseconds or "disabled"',
    ),
    "credentialStorage": _one_of("file", "keyring"),
    "retry": _OBJECT,
    "retry.enabled": _FLAG,
    "retry.maxRetries": _COUNT,
    "retry.baseDelayMs": _COUNT,
    "retry.maxAgentDelayMs": _COUNT,
    "images": _OBJECT,
    "images.autoResize": _FLAG,
    "images.blockImages": _FLAG,
    "compaction": _OBJECT,
    "compaction.enabled": _FLAG,
    "compaction.reserveTokens": _COUNT,
    "compaction.keepRecentTokens": _COUNT,
    "compaction.modelOverrides": _OBJECT,
    "branchSummary": _OBJECT,
    "branchSummary.reserveTokens": _COUNT,
    "branchSummary.skipPrompt": _FLAG,
}
"""What each known key holds, in the words of the error for anything else."""
