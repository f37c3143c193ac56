"""What the model is told first: its size, its stability, and where its parts come from."""

import re
from pathlib import Path

import pytest

from cantle.errors import ConfigurationFileError, WorkingDirectoryError
from cantle.paths import Documentation, config_directory, documentation, working_directory
from cantle.prompt.context_files import ContextFile, load_context_files, prompt_file
from cantle.prompt.system_prompt import PromptParts, build_system_prompt
from cantle.tools.builtin import BUILTIN_TOOLS
from cantle.tools.environment import ToolEnvironment
from cantle_agent.tool import Tool, ToolContext, ToolResult
from cantle_ai.codec import JsonObject

DOCS = Documentation(Path("/opt/cantle/README.md"), Path("/opt/cantle/docs"), Path("/opt/cantle/examples"))


async def nothing(arguments: JsonObject, context: ToolContext) -> ToolResult:
    return ToolResult.of("")


def tool(name: str, snippet: str = "", *guidelines: str) -> Tool:
    return Tool(
        name=name,
        description=name,
        parameters={"type": "object"},
        execute=nothing,
        prompt_snippet=snippet,
        prompt_guidelines=guidelines,
    )


def test_the_prompt_holds_the_active_tools_own_lines_and_no_others() -> None:
    tools = [tool("read", "show a file", "Read before you edit."), tool("own"), tool("bash", "run a command")]
    prompt = build_system_prompt(PromptParts(cwd=Path("/work"), tools=tools, documentation=DOCS))
    assert "- read: show a file\n- bash: run a command\n" in prompt
    assert "- own" not in prompt
    assert prompt.count("Read before you edit.") == 1
    assert "CANTLE_MODEL" in prompt
    assert "/opt/cantle/README.md" in prompt
    assert "/opt/cantle/docs" in prompt
    assert "/opt/cantle/examples" in prompt
    assert prompt.endswith("<cwd>/work</cwd>")


def test_without_a_shell_its_variables_are_not_mentioned_and_without_a_reader_no_docs() -> None:
    prompt = build_system_prompt(PromptParts(cwd=Path("/work"), tools=[tool("own", "x")], documentation=DOCS))
    assert "CANTLE_" not in prompt
    assert "/opt/cantle" not in prompt


def test_a_rule_that_two_tools_share_is_said_once() -> None:
    tools = [tool("a", "x", "Be careful."), tool("b", "y", "Be careful.")]
    prompt = build_system_prompt(PromptParts(cwd=Path("/"), tools=tools, documentation=DOCS))
    assert prompt.count("Be careful.") == 1


def test_equal_parts_give_equal_text_without_a_date() -> None:
    parts = PromptParts(cwd=Path("/work"), tools=[tool("read", "x")], documentation=DOCS)
    assert build_system_prompt(parts) == build_system_prompt(parts)
    assert re.search(r"20\d\d|\d\d:\d\d", build_system_prompt(parts)) is None


@pytest.mark.parity("config.system-md-keeps-context-and-cwd")
def test_a_custom_prompt_replaces_ours_but_neither_context_nor_folder() -> None:
    parts = PromptParts(
        cwd=Path("/work"),
        tools=[tool("read", "show a file")],
        documentation=DOCS,
        custom="You are a poet.",
        appended=["In rhyme.", "Always."],
        context_files=[ContextFile(Path("/work/AGENTS.md"), "Use tabs.\n")],
    )
    assert build_system_prompt(parts) == (
        "You are a poet.\n\nIn rhyme.\n\nAlways.\n\n"
        '<context>\nInstructions of the user and the project:\n<file path="/work/AGENTS.md">\nUse tabs.\n</file>\n'
        "</context>\n\n<cwd>/work</cwd>"
    )


@pytest.mark.parity("config.context-files")
def test_context_files_come_from_the_configuration_then_from_outside_in(tmp_path: Path) -> None:
    config, cwd = tmp_path / "config", tmp_path / "work/sub"
    cwd.mkdir(parents=True)
    config.mkdir()
    (config / "AGENTS.md").write_text("user", encoding="utf-8")
    (tmp_path / "work/AGENTS.md").write_text("outer", encoding="utf-8")
    (tmp_path / "work/CLAUDE.md").write_text("not this one", encoding="utf-8")
    (cwd / "CLAUDE.md").write_text("inner", encoding="utf-8")
    (tmp_path / "CLAUDE.md").write_text(" \n", encoding="utf-8")
    found = [file for file in load_context_files(cwd, config) if tmp_path in file.path.parents]
    assert [file.text for file in found] == ["user", "outer", "inner"]
    (tmp_path / "work/AGENTS.override.md").write_text("instead", encoding="utf-8")
    found = [file for file in load_context_files(cwd, config) if tmp_path in file.path.parents]
    assert [file.text for file in found] == ["user", "instead", "inner"]


def test_a_context_file_is_read_once_and_whatever_its_encoding(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_bytes(b"\xef\xbb\xbfcaf\xe9")
    found = [file for file in load_context_files(tmp_path, tmp_path) if tmp_path in file.path.parents]
    assert [file.text for file in found] == ["caf\ufffd"]


@pytest.mark.parity("config.system-md")
def test_a_trusted_projects_prompt_file_goes_before_the_users(tmp_path: Path) -> None:
    config, cwd = tmp_path / "config", tmp_path / "work"
    (cwd / ".cantle").mkdir(parents=True)
    config.mkdir()
    assert prompt_file("SYSTEM.md", cwd=cwd, config_dir=config, trusted=True) is None
    (config / "SYSTEM.md").write_text("user", encoding="utf-8")
    (cwd / ".cantle/SYSTEM.md").write_text("project", encoding="utf-8")
    assert prompt_file("SYSTEM.md", cwd=cwd, config_dir=config, trusted=True) == "project"
    assert prompt_file("SYSTEM.md", cwd=cwd, config_dir=config, trusted=False) == "user"


# --- places ----------------------------------------------------------------------------------


def test_the_configuration_folder_is_cantle_dir_or_in_the_home(tmp_path: Path) -> None:
    assert config_directory({"CANTLE_DIR": str(tmp_path)}) == tmp_path
    assert config_directory({"CANTLE_DIR": "~/x"}) == Path.home() / "x"
    assert config_directory({"CANTLE_DIR": ""}) == Path.home() / ".cantle"
    assert config_directory({}) == Path.home() / ".cantle"


def test_the_documentation_is_where_the_prompt_says() -> None:
    places = documentation()
    assert places.readme.is_file()
    assert places.docs.is_dir()
    assert places.examples.is_dir()


def test_a_missing_working_directory_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(WorkingDirectoryError, match=r"gone does not exist\. Create it"):
        working_directory(tmp_path / "gone")
    (tmp_path / "file").touch()
    with pytest.raises(WorkingDirectoryError, match="is not a folder"):
        working_directory(tmp_path / "file")


@pytest.mark.fault("F09")
def test_f09_a_deleted_current_directory_is_a_clear_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(WorkingDirectoryError, match="no longer exists"):
        working_directory()


def test_a_prompt_file_that_cannot_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "SYSTEM.md").write_text("x", encoding="utf-8")

    def refuse(path: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(ConfigurationFileError, match=r"SYSTEM\.md cannot be read: permission denied"):
        prompt_file("SYSTEM.md", cwd=tmp_path, config_dir=tmp_path, trusted=False)


@pytest.mark.parity("tools.search-prompt")
def test_the_prompt_sends_searches_to_bash_only_where_there_is_no_tool_for_them(tmp_path: Path) -> None:
    def prompt(*names: str) -> str:
        tools = [BUILTIN_TOOLS[name](ToolEnvironment(tmp_path)) for name in names]
        return build_system_prompt(PromptParts(cwd=tmp_path, tools=tools, documentation=DOCS))

    with_bash = "- Find, list and search files with bash (ls, find, grep or rg).\n"
    with_tools = "- Look for files and text with grep, find and ls where you have them, not with bash.\n"
    assert with_bash in prompt("read", "bash")
    assert with_tools not in prompt("read", "bash")
    for names in [("read", "bash", "grep"), ("bash", "ls"), ("grep", "find", "ls", "bash")]:
        assert with_bash not in prompt(*names)
        assert prompt(*names).count(with_tools) == 1
    assert "- grep: Search the text of files\n- find: Find files by glob\n- ls: List folders\n" in prompt(
        "grep", "find", "ls"
    )
