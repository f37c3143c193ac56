"""The table of built-in tools, and what a model is told of them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import cantle.tools
from cantle.tools.builtin import BUILTIN_TOOLS, DEFAULT_TOOLS, default_tools
from cantle.tools.environment import ToolEnvironment
from cantle_ai.codec import encode_json

REPOSITORY = Path(__file__).parents[4]
REFERENCE_CHARACTERS = 2_841
"""Of the reference's four declarations, written as OpenAI's requests have them."""


def declarations() -> bytes:
    tools = default_tools(ToolEnvironment(Path("/")))
    return encode_json(
        [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.parameters,
                },
            }
            for tool in tools
        ]
    )


@pytest.mark.parity("tools.names")
def test_the_tools_have_the_names_and_arguments_of_the_reference() -> None:
    shapes = {}
    for tool in default_tools(ToolEnvironment(Path("/"))):
        properties = tool.parameters["properties"]
        assert isinstance(properties, dict)
        shapes[tool.name] = (list(properties), tool.parameters["required"])
    assert shapes == {
        "read": (["path", "offset", "limit"], ["path"]),
        "bash": (["command", "timeout"], ["command"]),
        "edit": (["path", "edits"], ["path", "edits"]),
        "write": (["path", "content"], ["path", "content"]),
    }
    assert tuple(shapes) == DEFAULT_TOOLS


@pytest.mark.parity("tools.search-names")
def test_the_searching_tools_are_off_and_have_the_arguments_of_the_reference() -> None:
    shapes = {}
    for name in list(BUILTIN_TOOLS)[len(DEFAULT_TOOLS) :]:
        tool = BUILTIN_TOOLS[name](ToolEnvironment(Path("/")))
        properties = tool.parameters["properties"]
        assert isinstance(properties, dict)
        shapes[tool.name] = (list(properties), tool.parameters.get("required", []))
    assert shapes == {
        "grep": (["pattern", "path", "glob", "ignoreCase", "literal", "context", "limit"], ["pattern"]),
        "find": (["pattern", "path", "limit"], ["pattern"]),
        "ls": (["path", "limit"], []),
    }


def test_the_declarations_are_leaner_than_the_reference() -> None:
    assert len(declarations()) <= REFERENCE_CHARACTERS


def test_the_declarations_are_the_same_in_every_process() -> None:
    script = (
        "from packages.cantle.tests.tools.test_builtin import declarations\n"
        "print(declarations().decode('ascii'))\n"
    )
    for seed in ("1", "2"):
        run = subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True,
            encoding="utf-8",
            check=True,
            timeout=30,
            cwd=REPOSITORY,
            env={**os.environ, "PYTHONHASHSEED": seed},
        )
        assert run.stdout.strip() == declarations().decode("ascii")


def test_each_tool_has_its_prompt_lines() -> None:
    for make in BUILTIN_TOOLS.values():
        tool = make(ToolEnvironment(Path("/")))
        assert tool.description and tool.prompt_snippet
        assert not tool.prompt_snippet.endswith(".")
        assert all(line.endswith(".") for line in tool.prompt_guidelines)


def test_the_public_names_are_there() -> None:
    for name in cantle.tools.__all__:
        assert getattr(cantle.tools, name) is not None
    with pytest.raises(AttributeError):
        cantle.tools.no_such_name  # noqa: B018


def test_what_only_a_call_needs_is_not_loaded_before() -> None:
    heavy = [
        "difflib",
        "tempfile",
        "cantle.tools.edit.matching",
        "cantle.tools.text_files",
        "cantle.tools.bash.output",
        "cantle.tools.search.walk",
        "cantle.tools.search.pattern",
        "unicodedata",
    ]
    script = (
        "import sys\n"
        "from pathlib import Path\n"
        "from cantle.tools.builtin import default_tools\n"
        "from cantle.tools.environment import ToolEnvironment\n"
        "default_tools(ToolEnvironment(Path('/')))\n"
        f"print([name for name in {heavy!r} if name in sys.modules])\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, encoding="utf-8", check=True, timeout=30
    )
    assert run.stdout.strip() == "[]"
