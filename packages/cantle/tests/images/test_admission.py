"""Blocks on their way into a session: mended, made to fit, or replaced by a text."""

import asyncio
import base64
from typing import Any

import pytest

from cantle.hub.image_admission import admit_images
from cantle.images.base64_data import image_data
from cantle_agent.tool import ToolError
from cantle_ai.abort import AbortController, AbortSignal
from cantle_ai.content import ImageContent, TextContent, UnknownContent, UserContent
from cantle_ai.model import Model
from packages.cantle.tests.images.pictures import EVERY_KIND, JPEG, PNG, block, drawn, encoded, noise, shown
from tests.support.extras import needs

MODEL = Model(id="m", provider="p", api="a", base_url="", input=("text", "image"))


async def admitted(*content: UserContent, model: Model = MODEL, shrink: bool = True) -> list[UserContent]:
    return await admit_images(content, model, AbortSignal(), shrink=shrink)


def bytes_of(content: UserContent) -> bytes:
    assert isinstance(content, ImageContent)
    return base64.b64decode(content.data, validate=True)


@pytest.mark.parametrize(("mime_type", "data"), EVERY_KIND.items())
async def test_a_sound_image_is_the_same_object(mime_type: str, data: bytes) -> None:
    image, text, unknown = block(data, mime_type), TextContent("x"), UnknownContent({"type": "x"})
    out = await admitted(text, image, unknown)
    assert out[0] is text and out[1] is image and out[2] is unknown and len(out) == 3


@pytest.mark.fault("J01")
@pytest.mark.parametrize("said", ["image/jpeg", "image/jpg", "application/octet-stream", "", "text/html"])
async def test_j01_the_media_type_is_the_one_that_the_bytes_show(said: str) -> None:
    (image,) = await admitted(block(PNG, said))
    assert isinstance(image, ImageContent) and image.mime_type == "image/png" and bytes_of(image) == PNG


TEXT = base64.b64encode(PNG).decode()


@pytest.mark.parametrize(
    "data",
    [
        base64.encodebytes(PNG).decode(),
        TEXT.replace("\n", "\r\n") + "\r\n",
        "data:image/png;base64," + TEXT,
        "DATA:image/png;charset=utf-8;BASE64," + TEXT,
        TEXT.rstrip("="),
        base64.urlsafe_b64encode(PNG).decode(),
        f"  {TEXT} ",
    ],
)
async def test_base64_that_is_only_written_differently_is_mended(data: str) -> None:
    (image,) = await admitted(ImageContent(data, "image/png"))
    assert isinstance(image, ImageContent)
    assert image.data == TEXT and image.detected_type == "image/png"


@pytest.mark.fault("J03")
@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (ImageContent("***", "image/png"), "not base64"),
        (ImageContent("iVBORw0KGgo\ud800", "image/png"), "not base64"),
        (ImageContent("data:image/png,raw", "image/png"), "not base64"),
        (ImageContent("a", "image/png"), "not base64"),
        (ImageContent("", "image/png"), "no image of a known format"),
        (block(b"hello, world"), "no image of a known format"),
        (block(PNG[:50]), "damaged"),
        (block(b"\0\0\0\x18ftypheic" + bytes(40), "image/heic"), "HEIF"),
        (ImageContent("A" * 90_000_000, "image/png"), "at most"),
    ],
)
async def test_j03_a_bad_block_is_a_text_that_says_why(bad: ImageContent, words: str) -> None:
    good = block(JPEG)
    text, note, image = await admitted(TextContent("look"), bad, good)
    assert isinstance(text, TextContent) and isinstance(note, TextContent)
    assert note.text.startswith("[An image was left out: ") and words in note.text
    assert bytes_of(image) == JPEG


async def test_fields_that_are_not_known_stay() -> None:
    (image,) = await admitted(ImageContent(TEXT, "image/jpeg", extra={"x": 1}))
    assert image.to_json() == {"type": "image", "data": TEXT, "mimeType": "image/png", "x": 1}


@needs("images")
async def test_what_is_told_of_an_image_stands_before_it() -> None:
    large, bitmap = encoded(drawn(3000, 1500), "PNG"), encoded(drawn(40, 30), "BMP")
    content = await admitted(TextContent("look"), block(large), block(bitmap, "image/bmp"), block(PNG))
    assert [c.type for c in content] == ["text", "text", "image", "text", "image", "image"]
    assert isinstance(content[1], TextContent) and "2000x1000 of 3000x1500" in content[1].text
    assert isinstance(content[3], TextContent) and "converted from BMP" in content[3].text
    assert shown(bytes_of(content[2])).size == (2000, 1000)


@needs("images")
async def test_a_model_has_limits_of_its_own_and_the_setting_turns_them_off() -> None:
    from msgspec.structs import replace

    small = replace(MODEL, input_limits={"images": {"resize": {"maxWidth": 30, "maxHeight": 30}}})
    data = encoded(drawn(60, 30), "PNG")
    _, image = await admitted(block(data), model=small)
    assert shown(bytes_of(image)).size == (30, 15)
    (image,) = await admitted(block(data), model=small, shrink=False)
    assert bytes_of(image) == data


@needs("images")
async def test_the_loop_goes_on_while_an_image_is_worked_on_and_an_abort_ends_that() -> None:
    data = encoded(noise(2500, 2500), "BMP")
    controller = AbortController()
    task = asyncio.create_task(admit_images([block(data)] * 20, MODEL, controller.signal, shrink=True))
    turns = 0
    while turns < 50:
        await asyncio.sleep(0)
        turns += 1
    assert not task.done()
    controller.abort("Stop")
    with pytest.raises(ToolError, match="Stop"):
        await task


@pytest.mark.parametrize("value", ["", "QQ==", "QQ", "Q Q = =", "data:;base64,QQ=="])
def test_base64_is_read_as_programs_write_it(value: str) -> None:
    expected: Any = b"" if not value else b"A"
    assert image_data(value) == expected
