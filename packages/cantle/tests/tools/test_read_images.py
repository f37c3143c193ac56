"""`read` on images: known by their bytes, refused in words."""

import base64

import pytest

from cantle.images.limits import MAX_SOURCE
from cantle_agent.tool import ToolError
from cantle_ai.content import ImageContent
from packages.cantle.tests.images.pictures import EVERY_KIND, JPEG, PNG, claiming, drawn, encoded, lying, png
from packages.cantle.tests.tools.harness import FakeContext, Tools, text_of
from tests.support.extras import needs


@pytest.mark.parametrize(("mime_type", "data"), EVERY_KIND.items())
@pytest.mark.parametrize("name", ["picture.png", "no-extension", "notes.txt"])
@pytest.mark.parity("tools.read-images")
@pytest.mark.fault("J01")
async def test_j01_an_image_is_known_by_its_content(
    tools: Tools, mime_type: str, data: bytes, name: str
) -> None:
    (tools.folder / name).write_bytes(data)
    result = await tools.read(name)
    assert "image, 8x6 pixels" in text_of(result)
    image = result.content[-1]
    assert isinstance(image, ImageContent)
    assert image.mime_type == mime_type
    assert base64.b64decode(image.data) == data


@pytest.mark.fault("J01")
async def test_j01_text_that_is_called_an_image_is_text(tools: Tools) -> None:
    (tools.folder / "a.png").write_text("not an image\n", encoding="utf-8")
    assert text_of(await tools.read("a.png")) == "not an image\n"


@pytest.mark.fault("J01")
@pytest.mark.parametrize("text", ["GIF89a is a format of 1989.\n" * 3, "GIF87a", "RIFF1234WEBP\n", "BM\n"])
async def test_j01_text_that_begins_like_an_image_is_text(tools: Tools, text: str) -> None:
    (tools.folder / "a").write_text(text, encoding="utf-8", newline="")
    assert text_of(await tools.read("a")) == text


@pytest.mark.fault("J01")
async def test_j01_the_size_is_that_of_the_upright_image(tools: Tools) -> None:
    (tools.folder / "a").write_bytes(lying(JPEG, 6))
    assert "JPEG image, 6x8 pixels" in text_of(await tools.read("a"))


@needs("images")
@pytest.mark.parametrize(
    ("format", "name"), [("BMP", "BMP"), ("TIFF", "TIFF"), ("ICO", "icon"), ("AVIF", "AVIF")]
)
async def test_a_format_that_is_to_be_converted_is_read(tools: Tools, format: str, name: str) -> None:
    (tools.folder / "a").write_bytes(encoded(drawn(40, 30), format))
    result = await tools.read("a")
    assert f"[{name} image, " in text_of(result)
    assert isinstance(result.content[-1], ImageContent)


@pytest.mark.fault("J03")
@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\0\0\0\x18ftypheic" + bytes(20), ["a HEIF image", "Convert"]),
        (b"\xff\x0a" + bytes(20), ["a JPEG XL image", "Convert"]),
        (b"\x89PNG\r\n\x1a\n" + b"broken", ["begins like a PNG image", "damaged"]),
        (PNG[:60], ["begins like a PNG image", "damaged"]),
        (b"\xff\xd8\xff\xe0" + bytes(40), ["begins like a JPEG image", "damaged"]),
        (b"GIF89a" + bytes(8), ["begins like a GIF image", "damaged"]),
        (claiming(20_000, 20_000), ["20000x20000 pixels", "smaller copy"]),
    ],
)
async def test_j03_an_image_that_can_not_be_shown_is_refused_in_words(
    tools: Tools, data: bytes, words: list[str]
) -> None:
    (tools.folder / "a").write_bytes(data)
    failure = await tools.failure("read", path="a")
    assert failure.startswith("a ") and all(word in failure for word in words), failure


async def test_a_huge_file_is_refused_before_it_is_read(tools: Tools) -> None:
    with (tools.folder / "a").open("wb") as file:
        file.write(PNG)
        file.truncate(MAX_SOURCE * 40)
    failure = await tools.failure("read", path="a")
    assert f"at most {MAX_SOURCE:,}" in failure


async def test_an_abort_ends_the_reading_of_an_image(tools: Tools) -> None:
    (tools.folder / "a").write_bytes(png(600, 600))
    context = FakeContext()
    context.controller.abort("Stop")
    with pytest.raises(ToolError, match="Stop"):
        await tools.call("read", {"path": "a"}, context)
