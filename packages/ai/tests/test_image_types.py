"""What an image is, its bytes say."""

import base64

import pytest

from cantle_ai.content import ImageContent, TextContent, UnknownContent, UserContent
from cantle_ai.history_images import shown_blocks
from cantle_ai.image_types import base64_image_type, image_type

HEADS = {
    "image/png": b"\x89PNG\r\n\x1a\n\0\0\0\x0d",
    "image/jpeg": b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01",
    "image/gif": b"GIF89a\x01\0\x01\0\0\0",
    "image/webp": b"RIFF\x1a\0\0\0WEBPVP8L",
}


@pytest.mark.parametrize(("kind", "head"), HEADS.items())
@pytest.mark.parametrize("length", range(12, 40))
def test_an_image_is_known_by_its_first_bytes(kind: str, head: bytes, length: int) -> None:
    data = (head + bytes(range(40)))[:length]
    assert image_type(data) == kind
    assert base64_image_type(base64.b64encode(data).decode()) == kind


@pytest.mark.parametrize(
    "data",
    [b"", b"\x89PNG", b"GIF88a" + b"\0" * 20, b"RIFF\0\0\0\0WAVEfmt ", b"BM" + b"\0" * 60, b"hello, world!"],
)
def test_other_bytes_are_no_image(data: bytes) -> None:
    assert image_type(data) is None
    assert base64_image_type(base64.b64encode(data).decode()) is None


GOOD = base64.b64encode(HEADS["image/png"] + bytes(100)).decode()


@pytest.mark.parametrize(
    "data",
    [
        GOOD[:-1],
        GOOD + "=",
        GOOD[:40] + "\n" + GOOD[40:] + "aaa",
        GOOD[:40] + "-" + GOOD[41:],
        GOOD[:40] + "=" + GOOD[41:],
        GOOD[:40] + "é" + GOOD[41:],
        GOOD[:40] + "\ud800" + GOOD[41:],
        "data:image/png;base64," + GOOD,
        "====",
    ],
)
def test_what_is_no_strict_base64_is_no_image(data: str) -> None:
    assert base64_image_type(data) is None


@pytest.mark.parametrize("padding", ["", "=", "=="])
def test_every_padding_is_base64(padding: str) -> None:
    data = base64.b64encode(HEADS["image/png"] + bytes({"": 6, "=": 5, "==": 4}[padding])).decode()
    assert data.endswith(padding) and base64_image_type(data) == "image/png"


def test_an_image_knows_its_own_type_whatever_is_said_of_it() -> None:
    block = ImageContent(GOOD, "image/jpeg")
    assert block.detected_type == "image/png"
    assert block.to_json()["mimeType"] == "image/jpeg"
    assert ImageContent("nonsense", "image/png").detected_type is None


def test_notes_in_place_of_images_that_follow_each_other_are_one() -> None:
    good, bad = ImageContent(GOOD, "image/png"), ImageContent("x", "image/png")
    blocks: list[UserContent] = [good, UnknownContent({"type": "x"}), good, TextContent("a"), good, bad]
    assert [type(block).__name__ for block in shown_blocks(blocks, "no")] == ["TextContent"] * 3
    shown = shown_blocks([bad, bad, good, bad], None)
    assert [block.type for block in shown] == ["text", "image", "text"]
    assert shown[1] is good
