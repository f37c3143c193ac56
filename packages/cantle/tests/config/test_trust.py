"""Project trust: what needs it, and who decides."""

import json
import os
from pathlib import Path

import pytest

from cantle.errors import ConfigurationFileError
from cantle.trust import decide_trust, needs_trust, save_decision, saved_decision


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "work/project/sub"
    folder.mkdir(parents=True)
    return folder


@pytest.mark.parity("config.trust-resources")
@pytest.mark.parametrize(
    "name",
    ["settings.json", "extensions/", "skills/", "prompts/", "themes/", "SYSTEM.md", "APPEND_SYSTEM.md"],
)
def test_what_is_loaded_from_a_project_needs_trust(project: Path, name: str) -> None:
    assert not needs_trust(project, project / "elsewhere")
    (project / ".cantle").mkdir()
    assert not needs_trust(project, project / "elsewhere")  # a bare folder holds nothing to decide about
    target = project / ".cantle" / name
    target.mkdir() if name.endswith("/") else target.touch()
    assert needs_trust(project, project / "elsewhere")


def test_skills_for_agents_above_the_project_need_trust(project: Path) -> None:
    (project.parents[1] / ".agents/skills").mkdir(parents=True)
    assert needs_trust(project, project / "elsewhere")


def test_the_flag_then_the_saved_decision_then_the_default(project: Path, tmp_path: Path) -> None:
    file = tmp_path / "trust.json"
    assert not decide_trust(project, file)
    assert not decide_trust(project, file, default="never")
    assert decide_trust(project, file, default="always")
    save_decision(project, file, False)
    assert not decide_trust(project, file, default="always")  # M09: a saved refusal holds
    assert decide_trust(project, file, decision=True)
    save_decision(project, file, True)
    assert decide_trust(project, file, default="never")
    assert not decide_trust(project, file, decision=False)


@pytest.mark.parity("config.trust-closest")
def test_the_closest_decision_holds(project: Path, tmp_path: Path) -> None:
    file = tmp_path / "trust.json"
    save_decision(project.parents[1], file, True)
    assert saved_decision(project, file) is True
    save_decision(project.parent, file, False)
    assert saved_decision(project, file) is False
    assert saved_decision(project.parents[1], file) is True
    assert saved_decision(tmp_path, file) is None
    assert json.loads(file.read_text(encoding="utf-8")) == {
        os.path.realpath(project.parents[1]): True,
        os.path.realpath(project.parent): False,
    }


@pytest.mark.skipif(os.name == "nt", reason="symbolic links")
def test_paths_are_canonical(project: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(project)
    save_decision(link, tmp_path / "trust.json", True)
    assert saved_decision(project, tmp_path / "trust.json") is True


def test_a_decision_for_a_name_that_only_begins_alike_does_not_count(project: Path, tmp_path: Path) -> None:
    (project.parent / "sub2").mkdir()
    save_decision(project, tmp_path / "trust.json", True)
    assert saved_decision(project.parent / "sub2", tmp_path / "trust.json") is None


@pytest.mark.parametrize("text", ['{"PATH": "yes"}', "{", "[]"])
def test_a_broken_trust_file_is_named_and_kept(project: Path, tmp_path: Path, text: str) -> None:
    file = tmp_path / "trust.json"
    text = text.replace("PATH", os.path.realpath(project).replace("\\", "/"))
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationFileError, match=r"trust\.json"):
        decide_trust(project, file)
    assert file.read_text(encoding="utf-8") == text


def test_the_configuration_folder_is_not_a_project_s(tmp_path: Path) -> None:
    (tmp_path / ".cantle").mkdir()
    (tmp_path / ".cantle" / "settings.json").write_text("{}")
    assert not needs_trust(tmp_path, tmp_path / ".cantle")
    assert needs_trust(tmp_path, tmp_path / "elsewhere")
