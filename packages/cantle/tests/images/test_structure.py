"""What is known of an image without decoding it."""

import struct

import pytest

from cantle.images.exif import UPRIGHT, orientation_of
from cantle.images.kinds import HEAD, identify_image
from cantle.images.structure import ImageFacts, facts_of
from packages.cantle.tests.images.pictures import (
    ANIMATED_GIF,
    EVERY_KIND,
    GIF,
    JPEG,
    LOSSY_WEBP,
    PNG,
    WEBP,
    drawn,
    encoded,
    exif,
    jpeg_segment,
    lying,
    png,
    png_chunk,
    with_segments,
)
from tests.support.extras import needs


def facts(data: bytes) -> ImageFacts | None:
    kind = identify_image(data[:HEAD])
    assert kind is not None
    return facts_of(kind, data)


@pytest.mark.parametrize("data", [*EVERY_KIND.values(), LOSSY_WEBP])
def test_the_size_of_each_kind(data: bytes) -> None:
    assert facts(data) == ImageFacts(8, 6)


@pytest.mark.fault("J03")
@pytest.mark.parametrize("data", [*EVERY_KIND.values(), LOSSY_WEBP, ANIMATED_GIF])
def test_j03_an_image_that_ends_early_is_damaged_wherever_it_ends(data: bytes) -> None:
    whole = facts(data)
    assert whole is not None
    # GIF images without their last byte are common, and shown everywhere; of an animation the first frame counts.
    kept = {len(data) - 1} if data in (GIF, ANIMATED_GIF) else set()
    if data == ANIMATED_GIF:
        kept |= set(range(data.index(b"!\xf9"), len(data)))
    for length in range(26, len(data)):
        assert (facts(data[:length]) is None) == (length not in kept), length


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_j01_how_a_jpeg_image_lies(order: str, orientation: int) -> None:
    segment = jpeg_segment(0xE1, b"Exif\0\0" + exif(orientation, order))
    found = facts(with_segments(JPEG, segment))
    assert found is not None and found.orientation == orientation
    assert found.upright_size == ((8, 6) if orientation < 5 else (6, 8))


@pytest.mark.fault("J03")
@pytest.mark.parametrize("kind", [b"IHDR", b"IDAT", b"IEND"])
def test_j03_a_png_image_with_a_wrong_checksum_is_damaged_though_it_can_be_decoded(kind: bytes) -> None:
    start = PNG.index(kind)
    end = start + 4 + int.from_bytes(PNG[start - 4 : start], "big")
    assert facts(PNG[:end] + bytes([PNG[end] ^ 1]) + PNG[end + 1 :]) is None
    assert facts(png(8, 6, png_chunk(b"teXt", b"a\0b")[:-1] + b"?")) == ImageFacts(
        8, 6
    )  # need not be understood


@pytest.mark.fault("J03")
def test_j03_a_png_image_without_the_colours_that_it_names_is_damaged() -> None:
    colours = png_chunk(b"PLTE", bytes(6))
    header = PNG[16:25] + b"\3" + PNG[26:29]
    without = PNG[:8] + png_chunk(b"IHDR", header) + PNG[33:]
    assert facts(without) is None
    assert facts(without[:33] + colours + without[33:]) == ImageFacts(8, 6)


def scans(count: int) -> bytes:
    """The JPEG image with its only scan repeated, each after a comment that looks like the image's end."""
    start = JPEG.index(b"\xff\xda")
    scan = jpeg_segment(0xFE, b"\xff\xd9") + JPEG[start:-2]
    return JPEG[:start] + scan * count + b"\xff\xd9"


def test_a_jpeg_image_of_very_many_scans_is_refused_for_each_is_a_pass_over_all_of_it() -> None:
    assert facts(scans(64)) == ImageFacts(8, 6)
    assert facts(scans(65)) is None


@pytest.mark.parametrize("tail", [b"\xff\xda" * 100, b"\xff\xd8 another image"])
def test_what_follows_the_end_of_a_jpeg_image_does_not_matter(tail: bytes) -> None:
    assert facts(JPEG + tail) == ImageFacts(8, 6)


def test_an_image_of_very_many_parts_is_refused() -> None:
    assert facts(png(8, 6, png_chunk(b"teXt") * 70_000)) is None
    assert facts(with_segments(JPEG, jpeg_segment(0xFE, b"") * 70_000)) is None
    assert facts(GIF[:25] + b"\x21\xfe\0" * 70_000 + GIF[25:]) is None


XMP = jpeg_segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0<x:xmpmeta/>")
JFXX = jpeg_segment(0xE0, b"JFXX\0\x13" + bytes(30))
FILLED = b"\xff\xff"


@pytest.mark.fault("J01")
@pytest.mark.parametrize("before", [XMP, JFXX, XMP + XMP + JFXX, XMP + FILLED])
def test_j01_how_it_lies_is_also_found_after_segments_of_the_same_kind(before: bytes) -> None:
    found = facts(with_segments(JPEG, before, jpeg_segment(0xE1, b"Exif\0\0" + exif(6))))
    assert found is not None and found.orientation == 6


def test_j01_how_a_png_image_lies() -> None:
    assert facts(png(8, 6, png_chunk(b"eXIf", exif(8)))) == ImageFacts(8, 6, 8)


def webp_with_exif(orientation: int, prefix: bytes = b"") -> bytes:
    data = prefix + exif(orientation)
    size = struct.pack("<BBBB", 0x08, 0, 0, 0) + (7).to_bytes(3, "little") + (5).to_bytes(3, "little")
    chunks = b"VP8X" + struct.pack("<I", len(size)) + size + WEBP[12:]
    chunks += b"\0" * (len(chunks) & 1) + b"EXIF" + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", len(chunks) + 4) + b"WEBP" + chunks


@pytest.mark.parametrize("prefix", [b"", b"Exif\0\0"])
def test_j01_how_a_webp_image_lies(prefix: bytes) -> None:
    assert facts(webp_with_exif(3, prefix)) == ImageFacts(8, 6, 3)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"II*\0",
        b"XX*\0" + bytes(40),
        exif(0),
        exif(9),
        exif(6)[:19],
        exif(6)[:4] + b"\xff\xff\xff\xff" + exif(6)[8:],
        b"II*\0\x08\0\0\0\xff\xff" + bytes(30),
        exif(6).replace(b"\x12\x01\x03\0", b"\x12\x01\x02\0"),
    ],
)
def test_exif_data_that_make_no_sense_say_nothing(data: bytes) -> None:
    assert orientation_of(data) == UPRIGHT


def test_animations_are_known() -> None:
    assert facts(ANIMATED_GIF) == ImageFacts(4, 4, animated=True)
    control = png_chunk(b"acTL", struct.pack(">II", 2, 0))
    assert facts(png(8, 6, control)) == ImageFacts(8, 6, animated=True)
    single = png_chunk(b"acTL", struct.pack(">II", 1, 0))
    assert facts(png(8, 6, single)) == ImageFacts(8, 6)


def test_a_progressive_jpeg_image_is_known() -> None:
    found = facts(JPEG.replace(b"\xff\xc0", b"\xff\xc2"))
    assert found is not None and found.progressive


@pytest.mark.parametrize(
    "data",
    [
        png(0, 6),
        JPEG[:2] + b"\xff\xe0\0\0" + JPEG[2:],
        b"\xff\xd8\xff" + b"\xff" * 3_000_000,
        b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", bytes(13)) + png_chunk(b"IEND"),
        b"GIF89a\x08\0\x06\0\0\0\0;",
        b"GIF89a\x08\0\x06\0\0\0\0\x21\xfe" + b"\x01a" * 2_000_000,
        b"RIFF\x1a\0\0\0WEBPXXXX" + bytes(40),
    ],
)
def test_data_made_to_confuse_are_damaged_and_cost_little(data: bytes) -> None:
    assert facts(data) is None


@needs("images")
@pytest.mark.parametrize("format", ["PNG", "JPEG", "GIF", "WEBP"])
@pytest.mark.parametrize("animated", [False, True])
def test_what_another_program_writes_is_understood(format: str, animated: bool) -> None:
    options = {"save_all": True, "append_images": [drawn(40, 30, colour="blue")]} if animated else {}
    if format == "JPEG":
        options = {"progressive": animated}
    found = facts(encoded(drawn(40, 30), format, **options))
    assert found is not None and (found.width, found.height) == (40, 30)
    assert animated == (found.progressive if format == "JPEG" else found.animated)


@needs("images")
@pytest.mark.parametrize("format", ["PNG", "JPEG", "WEBP"])
def test_exif_data_of_another_program_are_understood(format: str) -> None:
    from PIL import Image

    tags = Image.Exif()
    tags[0x010F], tags[0x0112] = "a maker", 6
    found = facts(encoded(drawn(40, 30), format, exif=tags))
    assert found is not None and found.orientation == 6


def test_lying_is_what_the_other_tests_rely_on() -> None:
    found = facts(lying(JPEG, 6))
    assert found is not None and found.orientation == 6
