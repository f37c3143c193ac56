"""A scripted model from a file: what it plays, and what is said about a file that cannot be played."""

import json
from pathlib import Path

import pytest

from cantle_ai.context import Context
from cantle_ai.errors import ConfigurationError
from cantle_ai.messages import UserMessage
from cantle_ai.model import StreamOptions
from cantle_ai.testing import response, script_file
from cantle_ai.testing.script_file import load_script, read_script
from cantle_ai.testing.scripted import ScriptedModel, StepClock
from tests.docs.blocks import blocks
from tests.support.paths import ROOT

PAGE = ROOT / "docs/formats/scripted-model.md"
EXAMPLES = [block for block in blocks(PAGE) if block.language == "json"]


def written(folder: Path, value: object) -> Path:
    path = folder / "script.json"
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return path


async def texts(scripted: ScriptedModel, count: int) -> list[str]:
    context = Context("", [UserMessage("hi")])
    messages = [
        await scripted.stream(scripted.model, context, StreamOptions()).result() for _ in range(count)
    ]
    return [message.text or str(message.error_message) for message in messages]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda block: block.title)
def test_the_examples_of_the_page_load(example, tmp_path: Path):
    assert read_script(written(tmp_path, example.text)).all()


def test_the_page_has_examples():
    assert len(EXAMPLES) >= 2


def test_the_page_names_every_field():
    page = PAGE.read_text(encoding="utf-8")
    structs = (
        *(response.Response, response.TextBlock, response.ThinkingBlock, response.CallBlock, response.When),
        *(response.Failure, response.Count, response.HttpAnswer, script_file.ScriptFile),
    )
    missing = [
        name for struct in structs for name in struct.__struct_encode_fields__ if f"`{name}`" not in page
    ]
    assert not missing


async def test_a_small_script(tmp_path: Path):
    path = written(tmp_path, {"responses": ["one", {"content": "two"}]})
    scripted = load_script(path, clock=StepClock(5))
    assert await texts(scripted, 2) == ["one", "two"]
    assert scripted.model.id == str(path)
    assert scripted.model.provider == "scripted"


async def test_everything_a_script_can_say(tmp_path: Path):
    scripted = load_script(
        written(
            tmp_path,
            {
                "model": {
                    "id": "tiny",
                    "name": "Tiny",
                    "reasoning": False,
                    "contextWindow": 100,
                    "maxTokens": 10,
                    "price": {"input": 1, "output": 2, "cacheRead": 0.1, "cacheWrite": 1.25},
                },
                "seed": 4,
                "chunk": [2, 3],
                "rate": 100000,
                "responses": [{"content": "priced", "usage": {"input": 1_000_000, "output": 0}}],
            },
        )
    )
    model = scripted.model
    assert (model.id, model.name, model.reasoning) == ("tiny", "Tiny", False)
    assert (model.context_window, model.max_tokens) == (100, 10)
    message = await scripted.stream(model, Context("", [UserMessage("hi")]), StreamOptions()).result()
    assert message.usage.cost.total == 1
    assert message.timestamp > 1_700_000_000_000


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "this is not JSON: line 1, column 1"),
        ('{"responses": ["a",\n ]}', "this is not JSON: line 1, column 19: nothing follows this comma"),
        ('{"responses": [', "this is not JSON: line 1, column 16"),
        ("[]", "Expected `object`, got `array`"),
        ("{}", "missing required field `responses`"),
        ('{"responses": "a"}', "Expected `array`, got `str` at `$.responses`"),
        ('{"responses": [3]}', "at `$.responses[0]`"),
        ('{"responses": [], "sed": 1}', "unknown field `sed`"),
        ('{"responses": ["a", {"contnt": "b"}]}', "unknown field `contnt` at `$.responses[1]`"),
        ('{"responses": [{"content": [{"type": "txt"}]}]}', "'txt' at `$.responses[0].content[0].type`"),
        ('{"responses": [{"content": [{"type": "toolCall"}]}]}', "missing required field `name`"),
        ('{"responses": [{"repeat": 0}]}', "at `$.responses[0].repeat`"),
        ('{"responses": [{"repeat": "always"}]}', "at `$.responses[0].repeat`"),
        ('{"responses": [{"after": -1}]}', "at `$.responses[0].after`"),
        ('{"responses": [{"rate": 0}]}', "at `$.responses[0].rate`"),
        ('{"responses": [{"stopReason": "error"}]}', "at `$.responses[0].stopReason`"),
        ('{"responses": [{"chunk": [3, 1]}]}', "`chunk` must be a number from 1"),
        ('{"responses": [], "chunk": 0}', "`chunk` must be a number from 1"),
        ('{"responses": [{"when": {"matches": "("}}]}', "`matches` is no regular expression"),
        ('{"responses": [{"error": {"kind": "odd"}}]}', "at `$.responses[0].error.kind`"),
        ('{"responses": [], "model": {"contextWindow": 0}}', "at `$.model.contextWindow`"),
        pytest.param(
            '{"responses": [{"deferred": {"a": ' + "[" * 100_000, "it is nested too deeply", id="deep"
        ),
    ],
)
def test_a_file_that_is_no_script(text: str, said: str, tmp_path: Path):
    path = written(tmp_path, text)
    with pytest.raises(ConfigurationError) as caught:
        load_script(path)
    sentence = str(caught.value)
    assert sentence.startswith(f"{path}: ")
    assert said in sentence
    assert "\n" not in sentence


def test_a_file_that_is_not_utf_8(tmp_path: Path):
    path = tmp_path / "script.json"
    path.write_bytes(b'{"responses":\n ["caf\xe9"]}')
    with pytest.raises(ConfigurationError, match="line 2: the bytes are not UTF-8"):
        load_script(path)


def test_a_file_that_is_not_there(tmp_path: Path):
    with pytest.raises(
        ConfigurationError, match=r"cannot be read: no such file or directory; check the path"
    ):
        load_script(tmp_path / "none.json")


def test_a_folder(tmp_path: Path):
    with pytest.raises(ConfigurationError, match="cannot be read"):
        load_script(tmp_path)
