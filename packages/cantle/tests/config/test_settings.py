"""Settings: what a file may say, how files come together, how one is written."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from cantle.errors import ConfigurationFileError
from cantle.paths import ConfigPaths
from cantle.settings import Settings, load_settings, read_session_dir, save_settings
from cantle_ai import json_file
from cantle_ai.file_lock import held_lock
from tests.support.privileges import bound_by_permissions


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_without_a_file_everything_has_its_default(tmp_path: Path) -> None:
    settings = load_settings(ConfigPaths(tmp_path))
    assert (settings.default_provider, settings.default_model) == (None, None)
    assert settings.thinking_level("openai/any") == "medium"
    assert (settings.steering_mode, settings.follow_up_mode) == ("one-at-a-time", "one-at-a-time")
    assert settings.default_project_trust == "ask"
    assert (settings.retry_enabled, settings.max_retries) == (True, 3)
    assert (settings.retry_base_delay_ms, settings.retry_max_delay_ms) == (2000, 60_000)
    assert settings.http_timeout == 300.0
    assert settings.default_tools == ()
    assert (settings.compaction_enabled, settings.compaction_tokens("openai/any")) == (True, (16_384, 20_000))
    assert (settings.branch_summary_reserve, settings.branch_summary_skip_prompt) == (16_384, False)
    assert list(tmp_path.iterdir()) == []


def test_every_setting_is_read(tmp_path: Path) -> None:
    raw = {
        "defaultProvider": "openai",
        "defaultModel": "m",
        "defaultThinkingLevel": "low",
        "modelThinkingLevels": {"openai/m": "high"},
        "defaultTools": ["read", "+grep"],
        "steeringMode": "all",
        "followUpMode": "all",
        "defaultProjectTrust": "never",
        "sessionDir": "kept",
        "shellPath": "~/bin/zsh",
        "shellCommandPrefix": "set -u",
        "shellLeftovers": "kill",
        "httpIdleTimeoutMs": 1500,
        "retry": {"enabled": False, "maxRetries": 1, "baseDelayMs": 5, "maxAgentDelayMs": 9},
        "compaction": {
            "enabled": False,
            "reserveTokens": 1,
            "keepRecentTokens": 2,
            "modelOverrides": {"openai/m": {"reserveTokens": 3}, "openai/n": {"keepRecentTokens": 0}},
        },
        "branchSummary": {"reserveTokens": 4, "skipPrompt": True},
        "theme": "dark",
    }
    write(tmp_path / "settings.json", json.dumps(raw))
    settings = load_settings(ConfigPaths(tmp_path))
    assert (settings.default_provider, settings.default_model) == ("openai", "m")
    assert settings.thinking_level("openai/m") == "high"
    assert settings.thinking_level("openai/n") == "low"
    assert settings.default_tools == (("read", "+grep"),)
    assert (settings.steering_mode, settings.follow_up_mode) == ("all", "all")
    assert settings.default_project_trust == "never"
    assert settings.session_dir == "kept"
    assert settings.shell_path == str(Path.home() / "bin/zsh")
    assert settings.shell_command_prefix == "set -u"
    assert settings.shell_leftovers == "kill"
    assert settings.http_timeout == 1.5
    assert (settings.retry_enabled, settings.max_retries) == (False, 1)
    assert (settings.retry_base_delay_ms, settings.retry_max_delay_ms) == (5, 9)
    assert settings.compaction_enabled is False
    assert settings.compaction_tokens("openai/m") == (3, 2)
    assert settings.compaction_tokens("openai/n") == (1, 0)
    assert settings.compaction_tokens("OpenAI/m") == (1, 2)
    assert (settings.branch_summary_reserve, settings.branch_summary_skip_prompt) == (4, True)
    assert settings.get("theme") == "dark"


@pytest.mark.parametrize("value", [0, "disabled"])
def test_the_idle_timeout_can_be_turned_off(value: object) -> None:
    assert Settings({"httpIdleTimeoutMs": value}).http_timeout == 0  # type: ignore[dict-item]


@pytest.mark.parity("config.project-over-user")
def test_a_project_overrides_the_user_key_by_key(tmp_path: Path) -> None:
    write(
        tmp_path / "settings.json",
        '{"defaultProvider": "a", "retry": {"maxRetries": 7, "baseDelayMs": 1}, "defaultTools": ["read"]}',
    )
    write(
        tmp_path / "p/.cantle/settings.json",
        '{"retry": {"maxRetries": 1}, "defaultTools": ["+bash"], "defaultProjectTrust": "always"}',
    )
    settings = load_settings(ConfigPaths(tmp_path)).with_project(tmp_path / "p")
    assert settings.default_provider == "a"
    assert (settings.max_retries, settings.retry_base_delay_ms) == (1, 1)
    assert settings.default_tools == (("read",), ("+bash",))
    assert settings.default_project_trust == "ask"  # only the user may say so


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ('{"a": 1,}', 1, 8),
        ('{"a": [1,\n]}', 1, 9),
        ('{\n  "a": 1\n  "b": 2\n}', 3, 3),
        ('{\n\t"a": tru\n}', 2, 7),
        ("{", 1, 2),
    ],
)
def test_bad_json_names_file_line_and_column(tmp_path: Path, text: str, line: int, column: int) -> None:
    path = write(tmp_path / "settings.json", text)
    with pytest.raises(ConfigurationFileError) as caught:
        load_settings(ConfigPaths(tmp_path))
    assert str(caught.value).startswith(f"{path}, line {line}, column {column}: not valid JSON")
    assert "\n" not in str(caught.value)
    assert path.read_text(encoding="utf-8") == text


def test_bytes_that_are_not_utf8_are_named_by_place(tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_bytes(b'{\n "theme": "caf\xe9"}')
    with pytest.raises(ConfigurationFileError, match="line 2, column 15: not valid JSON"):
        load_settings(ConfigPaths(tmp_path))


@pytest.mark.parametrize("text", ["[]", '"text"', "3", "null"])
def test_json_that_is_no_object_is_refused(tmp_path: Path, text: str) -> None:
    write(tmp_path / "settings.json", text)
    with pytest.raises(ConfigurationFileError, match="does not hold a JSON object"):
        load_settings(ConfigPaths(tmp_path))


@pytest.mark.parametrize("data", [b"", b" \n", b"\xef\xbb\xbf{}"])
def test_an_empty_file_and_a_byte_order_mark_are_fine(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "settings.json").write_bytes(data)
    assert load_settings(ConfigPaths(tmp_path)).max_retries == 3


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"defaultProvider": 3}', "defaultProvider must be a string, not 3"),
        ('{"retry": 4}', "retry must be an object, not 4"),
        (
            '{"retry": {"maxRetries": "three"}}',
            'retry.maxRetries must be a whole number from 0 to 2147483647, not "three"',
        ),
        ('{"retry": {"maxRetries": -1}}', "retry.maxRetries must be a whole number"),
        ('{"retry": {"baseDelayMs": 1e999}}', "retry.baseDelayMs must be a whole number"),
        ('{"retry": {"enabled": 1}}', "retry.enabled must be true or false, not 1"),
        ('{"steeringMode": "some"}', 'steeringMode must be "all" or "one-at-a-time", not "some"'),
        ('{"defaultThinkingLevel": "huge"}', "defaultThinkingLevel must be"),
        ('{"defaultThinkingLevel": []}', "defaultThinkingLevel must be"),
        ('{"modelThinkingLevels": {"a/b": "huge"}}', "modelThinkingLevels.a/b must be"),
        ('{"defaultTools": "read"}', "defaultTools must be a list of strings"),
        ('{"defaultTools": [1]}', "defaultTools must be a list of strings"),
        (
            '{"httpIdleTimeoutMs": "off"}',
            'httpIdleTimeoutMs must be a whole number of milliseconds or "disabled"',
        ),
        ('{"compaction": {"reserveTokens": 1.5}}', "compaction.reserveTokens must be a whole number"),
    ],
)
def test_a_value_of_the_wrong_kind_is_named_by_its_key(tmp_path: Path, text: str, problem: str) -> None:
    path = write(tmp_path / "settings.json", text)
    with pytest.raises(ConfigurationFileError) as caught:
        load_settings(ConfigPaths(tmp_path))
    assert str(caught.value).startswith(f"{path}: {problem}")


def test_null_is_as_good_as_absent(tmp_path: Path) -> None:
    write(tmp_path / "settings.json", '{"retry": null, "defaultModel": null}')
    assert load_settings(ConfigPaths(tmp_path)).max_retries == 3


LOADING = """
import sys
from pathlib import Path
from cantle.errors import ConfigurationFileError
from cantle.paths import ConfigPaths
from cantle.settings import load_settings
try:
    load_settings(ConfigPaths(Path(sys.argv[1])))
except ConfigurationFileError as error:
    sys.exit(str(error))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such mode bits")
def test_a_file_that_may_not_be_read_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "settings.json", "{}")
    path.chmod(0)
    words = bound_by_permissions([sys.executable, "-c", LOADING, str(tmp_path)])
    done = subprocess.run(words, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 1
    assert f"{path} cannot be read" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_folder_in_place_of_the_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "settings.json").mkdir()
    with pytest.raises(ConfigurationFileError, match="cannot be read"):
        load_settings(ConfigPaths(tmp_path))


@pytest.mark.parity("config.session-dir-before-trust")
def test_a_projects_session_dir_is_read_before_trust_and_never_fails(tmp_path: Path) -> None:
    assert read_session_dir(tmp_path) is None
    path = write(tmp_path / ".cantle/settings.json", '{"sessionDir": "here", "retry": 4}')
    assert read_session_dir(tmp_path) == "here"
    for text in ('{"sessionDir": 3}', "{", "[]"):
        write(path, text)
        assert read_session_dir(tmp_path) is None


# --- writing ---------------------------------------------------------------------------------


def test_saving_keeps_what_is_unknown_and_the_order(tmp_path: Path) -> None:
    path = write(
        tmp_path / "settings.json", '{"zeta": {"a": [1, 2.5, null]}, "theme": "dark", "retry": {"x": 1}}'
    )
    save_settings(path, {"defaultModel": "m", "retry.maxRetries": 2, "theme": None, "gone.deep": None})
    raw = json.loads(path.read_text(encoding="utf-8"))
    assert raw == {
        "zeta": {"a": [1, 2.5, None]},
        "retry": {"x": 1, "maxRetries": 2},
        "gone": {},
        "defaultModel": "m",
    }
    assert next(iter(raw)) == "zeta"


def test_saving_makes_the_folder_and_the_file(tmp_path: Path) -> None:
    path = tmp_path / "new/settings.json"
    save_settings(path, {"theme": "dark"})
    assert json.loads(path.read_text(encoding="utf-8")) == {"theme": "dark"}


def test_saving_refuses_a_wrong_value_and_leaves_the_file(tmp_path: Path) -> None:
    path = write(tmp_path / "settings.json", "{}")
    with pytest.raises(ConfigurationFileError, match=r"retry\.maxRetries"):
        save_settings(path, {"retry.maxRetries": "x"})
    assert path.read_text(encoding="utf-8") == "{}"


def test_m01_invalid_json_is_never_overwritten(tmp_path: Path) -> None:
    path = write(tmp_path / "settings.json", '{"mine": 1,')
    with pytest.raises(ConfigurationFileError, match="line 1"):
        save_settings(path, {"theme": "dark"})
    assert path.read_text(encoding="utf-8") == '{"mine": 1,'
    assert {entry.name for entry in tmp_path.iterdir()} <= {"settings.json", "settings.json.lock"}


def test_m01_concurrent_writers_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    code = (
        "import sys; from pathlib import Path; from cantle.settings import save_settings\n"
        "for n in range(20): save_settings(Path(sys.argv[1]), {f'{sys.argv[2]}{n}': n})"
    )
    writers = [subprocess.Popen([sys.executable, "-c", code, str(path), name]) for name in "abc"]
    assert [writer.wait(timeout=50) for writer in writers] == [0, 0, 0]
    raw = json.loads(path.read_text(encoding="utf-8"))
    assert raw == {f"{name}{n}": n for name in "abc" for n in range(20)}


def test_m01_a_lock_that_is_never_released_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_file, "JSON_LOCK_SECONDS", 0.05)
    path = write(tmp_path / "settings.json", "{}")
    with held_lock(tmp_path / "settings.json.lock", patience=1):
        with pytest.raises(ConfigurationFileError, match="held by another process"):
            save_settings(path, {"theme": "dark"})
    save_settings(path, {"theme": "dark"})
    assert "dark" in path.read_text(encoding="utf-8")


@pytest.mark.skipif(os.name == "nt", reason="POSIX modes and links")
def test_saving_keeps_mode_and_symbolic_link(tmp_path: Path) -> None:
    real = write(tmp_path / "dotfiles/settings.json", "{}")
    real.chmod(0o640)
    link = tmp_path / "settings.json"
    link.symlink_to(real)
    save_settings(link, {"theme": "dark"})
    assert link.is_symlink()
    assert json.loads(real.read_text(encoding="utf-8")) == {"theme": "dark"}
    assert stat.S_IMODE(real.stat().st_mode) == 0o640


def test_a_lone_surrogate_survives_a_save(tmp_path: Path) -> None:
    path = write(tmp_path / "settings.json", '{"odd": "\\ud800"}')
    save_settings(path, {"theme": "dark"})
    assert json.loads(path.read_text(encoding="utf-8")) == {"odd": "\ud800", "theme": "dark"}
