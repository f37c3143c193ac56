"""Images in a session: what is stored, whoever brought them, and what is told of it."""

import base64
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from cantle.settings import Settings
from cantle_agent.function_tool import tool
from cantle_agent.tool import ToolContext
from cantle_ai.content import ImageContent, TextContent
from cantle_ai.messages import ToolResultMessage, UserMessage
from packages.cantle.tests.images.pictures import JPEG, PNG, block, drawn, encoded, lying, shown
from tests.support.extras import needs

NewStage = Callable[..., Awaitable[Any]]


def call(name: str, **arguments: object) -> dict[str, Any]:
    return {"content": [{"type": "toolCall", "name": name, "arguments": arguments}]}


def stored(it: Any, role: str) -> list[list[dict[str, Any]]]:
    """The content of each message of a role in the session file."""
    messages = [entry["message"] for entry in it.entries() if entry["type"] == "message"]
    return [message["content"] for message in messages if message["role"] == role]


def kinds(content: list[dict[str, Any]]) -> list[str]:
    return [part.get("mimeType", part["type"]) for part in content]


def size_of(part: dict[str, Any]) -> tuple[int, int]:
    size: tuple[int, int] = shown(base64.b64decode(part["data"])).size
    return size


BAD = ImageContent("***", "image/png")


@needs("images")
async def test_a_prompt_s_image_is_stored_as_it_is_sent(stage: NewStage) -> None:
    it = await stage(["ok"])
    await it.session.prompt("look", [block(encoded(drawn(3000, 1500), "PNG")), block(PNG)])
    (content,) = stored(it, "user")
    assert kinds(content) == ["text", "text", "image/png", "image/png"]
    assert "2000x1000 of 3000x1500" in content[1]["text"]
    assert size_of(content[2]) == (2000, 1000)
    sent = it.scripted.requests[0].messages[0]
    assert [part.to_json() for part in sent.content] == content


@pytest.mark.parity("images.of-tools")
@pytest.mark.fault("J03")
async def test_j03_no_door_of_a_session_lets_a_bad_block_in(stage: NewStage) -> None:
    @tool
    def draw() -> list[Any]:
        """Draw."""
        return [TextContent("drawn"), BAD, block(PNG, "image/jpeg")]

    it = await stage([call("draw"), "ok", "ok", "ok"], tools=[draw])

    def steer(event: Any) -> None:
        if event.type == "tool_execution_start":
            it.session.steer("steered", [BAD])
            it.session.follow_up("followed", [BAD])

    it.session.subscribe(steer)
    await it.session.prompt([TextContent("look"), BAD, block(JPEG)])
    assert [kinds(content) for content in stored(it, "user")] == [
        ["text", "text", "image/jpeg"],
        ["text", "text"],
        ["text", "text"],
    ]
    assert [kinds(content) for content in stored(it, "toolResult")] == [["text", "text", "image/png"]]
    assert "***" not in it.session.session.file.read_text(encoding="utf-8")


@needs("images")
@pytest.mark.fault("E06")
async def test_e06_images_that_steer_arrive_and_fit(stage: NewStage) -> None:
    it = await stage([call("bash", command="true"), "ok"])

    def steer(event: Any) -> None:
        if event.type == "tool_execution_start":
            it.session.steer("rather this", [block(encoded(drawn(4000, 10), "BMP"), "image/bmp")])

    it.session.subscribe(steer)
    await it.session.prompt("go")
    content = stored(it, "user")[1]
    assert kinds(content) == ["text", "text", "image/png"] and size_of(content[2]) == (2000, 5)
    assert "converted from BMP" in content[1]["text"]
    assert it.scripted.requests[1].messages[-1].text.startswith("rather this")


@needs("images")
async def test_read_gives_the_image_as_the_model_can_take_it(stage: NewStage, tmp_path: Path) -> None:
    it = await stage([call("read", path="photo"), "ok"])
    photo = lying(encoded(drawn(3000, 1500), "JPEG"), 6)
    (tmp_path / "work" / "photo").write_bytes(photo)
    await it.session.prompt("go")
    (content,) = stored(it, "toolResult")
    assert kinds(content) == ["text", "text", "image/jpeg"]
    assert "JPEG image, 1500x3000 pixels" in content[0]["text"]
    assert "turned upright" in content[1]["text"] and "1000x2000 of 1500x3000" in content[1]["text"]
    assert size_of(content[2]) == (1000, 2000)


async def test_read_of_damaged_data_is_a_failure_that_the_model_reads(
    stage: NewStage, tmp_path: Path
) -> None:
    it = await stage([call("read", path="photo"), "ok"])
    (tmp_path / "work" / "photo").write_bytes(PNG[:50])
    await it.session.prompt("go")
    result = it.scripted.requests[1].messages[-1]
    assert isinstance(result, ToolResultMessage) and result.is_error
    assert result.text.startswith("photo begins like a PNG image, but is damaged")


@needs("images")
@pytest.mark.parity("images.size-is-kept-on-request")
async def test_images_stay_as_large_as_they_are_where_the_setting_says_so(stage: NewStage) -> None:
    it = await stage(["ok"], settings=Settings({"images": {"autoResize": False}}))
    data = encoded(drawn(3000, 1500), "PNG")
    await it.session.prompt("look", [block(data)])
    (content,) = stored(it, "user")
    assert kinds(content) == ["text", "image/png"]
    assert base64.b64decode(content[1]["data"]) == data


@needs("images")  # without Pillow no work is done that an abort could end
async def test_an_abort_while_a_tool_s_image_is_worked_on_ends_the_run_in_order(stage: NewStage) -> None:
    @tool
    def draw(context: ToolContext) -> ImageContent:
        """Draw."""
        it.session.request_abort()
        return block(PNG)

    it = await stage([call("draw"), "never"], tools=[draw])
    await it.session.prompt("go")
    (content,) = stored(it, "toolResult")
    assert kinds(content) == ["text"] and "left out: " in content[0]["text"]
    assert it.saved()[-1] == "assistant:aborted"


async def test_an_abort_does_not_take_away_the_image_of_a_prompt(stage: NewStage) -> None:
    it = await stage(["never"])

    def stop(event: Any) -> None:
        if event.type == "turn_start":
            it.session.request_abort()

    it.session.subscribe(stop)
    await it.session.prompt("look", [block(PNG)])
    assert [kinds(content) for content in stored(it, "user")] == [["text", "image/png"]]


async def test_several_images_keep_their_order_and_their_text(stage: NewStage) -> None:
    it = await stage(["ok"])
    await it.session.prompt(
        [TextContent("first"), block(PNG), TextContent("second"), block(JPEG, "image/jpeg"), block(PNG)]
    )
    assert kinds(stored(it, "user")[0]) == ["text", "image/png", "text", "image/jpeg", "image/png"]
    message = it.scripted.requests[0].messages[0]
    assert isinstance(message, UserMessage) and message.text == "first\nsecond"
