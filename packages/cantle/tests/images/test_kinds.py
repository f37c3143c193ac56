"""What a file is, its bytes say."""

import pytest

from cantle.images.kinds import HEAD, identify_image
from packages.cantle.tests.images.pictures import (
    ANIMATED_GIF,
    EVERY_KIND,
    GIF,
    JPEG,
    LOSSY_WEBP,
    PNG,
    drawn,
    encoded,
)
from tests.support.extras import needs


def box(brand: bytes, *others: bytes) -> bytes:
    body = b"ftyp" + brand + bytes(4) + b"".join(others)
    return (len(body) + 4).to_bytes(4, "big") + body + bytes(60)


HEADS = {
    "PNG": [PNG],
    "JPEG": [JPEG, b"\xff\xd8\xff\xdb" + bytes(40)],
    "GIF": [GIF, ANIMATED_GIF, b"GIF89a" + bytes(40)],
    "WebP": [EVERY_KIND["image/webp"], LOSSY_WEBP, b"RIFF\0\0\0\0WEBPVP8X" + bytes(40)],
    "BMP": [b"BM\x46\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0" + bytes(40)],
    "TIFF": [b"II*\0\x08\0\0\0" + bytes(40), b"MM\0*\0\0\0\x08", b"II+\0\x08\0\0\0", b"MM\0+\0\x08\0\0"],
    "icon": [b"\0\0\1\0\1\0\x10\x10\0\0\1\0\x20\0" + bytes(40)],
    "AVIF": [box(b"avif"), box(b"avis", b"msf1"), box(b"mif1", b"miaf", b"avif")],
    "HEIF": [box(b"heic"), box(b"heix"), box(b"mif1", b"heic"), box(b"msf1", b"hevc"), box(b"mif1")],
    "JPEG 2000": [b"\0\0\0\x0cjP  \r\n\x87\n" + bytes(40), b"\xff\x4f\xff\x51" + bytes(40)],
    "JPEG XL": [b"\0\0\0\x0cJXL \r\n\x87\n" + bytes(40), b"\xff\x0a" + bytes(40)],
}


@pytest.mark.fault("J01")
@pytest.mark.parametrize(("name", "head"), [(name, head) for name in HEADS for head in HEADS[name]])
def test_j01_the_first_bytes_tell_the_format(name: str, head: bytes) -> None:
    kind = identify_image(head[:HEAD])
    assert kind is not None and kind.name == name
    assert kind.accepted == (kind.mime_type in EVERY_KIND)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x89PNG",
        b"BMW is a maker of cars, and of motorcycles",
        b"BM",
        b"\0\0\1\0\0\0" + bytes(40),
        b"\0\0\2\0\1\0\x10\x10\0\0\1\0\x20\0" + bytes(40),
        b"RIFF\0\0\0\0WAVEfmt " + bytes(40),
        box(b"isom", b"mp42"),
        box(b"qt  "),
        b"II",
        b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        b"\xff\xd9\xff",
    ],
)
def test_other_files_are_no_images(data: bytes) -> None:
    assert identify_image(data[:HEAD]) is None


@needs("images")
@pytest.mark.parametrize(
    ("format", "name"),
    [
        ("PNG", "PNG"),
        ("JPEG", "JPEG"),
        ("GIF", "GIF"),
        ("WEBP", "WebP"),
        ("BMP", "BMP"),
        ("TIFF", "TIFF"),
        ("ICO", "icon"),
        ("AVIF", "AVIF"),
        ("JPEG2000", "JPEG 2000"),
    ],
)
def test_what_another_program_writes_is_recognised(format: str, name: str) -> None:
    kind = identify_image(encoded(drawn(40, 30), format)[:HEAD])
    assert kind is not None and kind.name == name
