"""Images made to fit a model, and what is said of them."""

import io
import re
import struct
import threading
import zlib
from typing import Any

import pytest

from cantle.images import drawing, pillow
from cantle.images.errors import UnusableImageError
from cantle.images.kinds import PNG as PNG_KIND
from cantle.images.limits import MAX_SOURCE, ImageLimits, limits_of
from cantle.images.pillow import opened
from cantle.images.preparation import PreparedImage, prepare
from cantle_ai.model import Model
from packages.cantle.tests.images.pictures import (
    ANIMATED_GIF,
    EVERY_KIND,
    JPEG,
    PNG,
    claiming,
    drawn,
    encoded,
    exif,
    is_red,
    jpeg_segment,
    noise,
    png_chunk,
    shown,
    with_segments,
)
from tests.support.extras import needs
from tests.support.samples import samples

pytestmark = needs("images")


def never() -> None:
    return None


def prepared(data: bytes, **limits: Any) -> PreparedImage:
    return prepare(data, ImageLimits(**limits), never)


def refusal(data: bytes, **limits: Any) -> str:
    with pytest.raises(UnusableImageError) as caught:
        prepared(data, **limits)
    return str(caught.value)


def turned_exif(orientation: int) -> Any:
    from PIL import Image

    tags = Image.Exif()
    tags[0x0112] = orientation
    return tags


# --- what stays as it is


@pytest.mark.parametrize(("mime_type", "data"), EVERY_KIND.items())
def test_an_image_within_all_limits_stays_byte_for_byte(mime_type: str, data: bytes) -> None:
    image = prepared(data)
    assert image.data is data
    assert (image.mime_type, image.note) == (mime_type, "")


@pytest.mark.fault("J02")
def test_j02_the_limit_counts_base64_and_the_last_byte_below_it() -> None:
    data = encoded(noise(200, 200), "PNG")
    base64 = (len(data) + 2) // 3 * 4
    assert prepared(data, max_bytes=base64).data is data
    smaller = prepared(data, max_bytes=base64 - 1)
    assert (len(smaller.data) + 2) // 3 * 4 < base64


@pytest.mark.parametrize("size", [(2000, 2000), (2000, 1), (1, 2000)])
def test_the_largest_size_stays(size: tuple[int, int]) -> None:
    data = encoded(drawn(*size), "PNG")
    assert prepared(data).data is data


# --- size


@pytest.mark.parametrize(
    ("size", "limits", "expected", "factor"),
    [
        ((3000, 1500), {}, (2000, 1000), "coordinates by 1.5 "),
        ((1500, 3000), {}, (1000, 2000), "coordinates by 1.5 "),
        ((2001, 10), {}, (2000, 10), "coordinates by 1.0005 "),
        ((1000, 500), {"max_width": 300}, (300, 150), "coordinates by 3.3333 "),
        ((500, 1000), {"max_height": 100}, (50, 100), "coordinates by 10 "),
        ((3000, 2), {}, (2000, 1), "x by 1.5 and y by 2 "),
    ],
)
@pytest.mark.parametrize("format", ["PNG", "JPEG"])
@pytest.mark.parity("images.are-made-smaller")
def test_a_large_image_is_made_smaller_and_its_scale_is_told(
    size: tuple[int, int], limits: Any, expected: tuple[int, int], factor: str, format: str
) -> None:
    image = prepared(encoded(drawn(*size), format), **limits)
    assert shown(image.data).size == expected
    assert f"shown at {expected[0]}x{expected[1]} of {size[0]}x{size[1]} pixels" in image.note
    assert factor in image.note


@pytest.mark.fault("J02")
@pytest.mark.parametrize("mode", ["RGB", "RGBA"])
def test_j02_an_image_of_too_many_bytes_is_encoded_until_it_fits(mode: str) -> None:
    for limit in (200_000, 60_000, 8_000, 1_000):
        image = prepared(encoded(noise(400, 300, mode), "PNG"), max_bytes=limit)
        assert (len(image.data) + 2) // 3 * 4 <= limit
        assert image.mime_type == "image/jpeg"
        size = shown(image.data).size
        assert (f"{size[0]}x{size[1]} of 400x300" in image.note) == (size != (400, 300))


def test_what_can_not_be_made_to_fit_is_said() -> None:
    assert "stays above 50 bytes" in refusal(encoded(noise(40, 30), "PNG"), max_bytes=50)


@pytest.mark.fault("J02")
def test_j02_the_smaller_of_png_and_jpeg_is_taken() -> None:
    flat = prepared(encoded(drawn(3000, 1500), "PNG"))
    assert flat.mime_type == "image/png"
    busy = prepared(encoded(noise(600, 300), "PNG"), max_width=500)
    assert busy.mime_type == "image/jpeg"


def test_the_quality_of_jpeg_is_the_model_s() -> None:
    data = encoded(noise(600, 600), "JPEG")
    sizes = [len(prepared(data, max_width=300, jpeg_quality=quality).data) for quality in (20, 50, 90)]
    assert sizes == sorted(sizes) and sizes[0] < sizes[2] / 2


def test_without_shrinking_size_stays_and_hard_limits_count() -> None:
    data = encoded(drawn(3000, 1500), "JPEG")
    assert prepared(data, shrink=False).data is data
    assert "images.autoResize" in refusal(encoded(drawn(8001, 10), "PNG"), shrink=False)
    few = refusal(encoded(noise(300, 300), "PNG"), shrink=False, max_bytes=1000)
    assert "above 1,000 bytes" in few and "images.autoResize" in few
    converted = prepared(encoded(drawn(3000, 1500), "BMP"), shrink=False)
    assert shown(converted.data).size == (3000, 1500)


# --- position


@pytest.mark.fault("J01")
@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("format", ["JPEG", "PNG", "WEBP", "TIFF", "AVIF"])
@pytest.mark.parametrize("limits", [{}, {"max_width": 30, "max_height": 30}], ids=["as large", "smaller"])
@pytest.mark.parity("images.upright")
def test_j01_an_image_is_put_upright_as_its_exif_data_say(orientation: int, format: str, limits: Any) -> None:
    from PIL import Image, ImageOps

    lying = encoded(drawn(120, 80), format, exif=turned_exif(orientation))
    with Image.open(io.BytesIO(lying)) as image:
        expected = ImageOps.exif_transpose(image).convert("RGB")
    made = prepared(lying, **limits)
    upright = shown(made.data)
    if not limits:
        assert upright.size == expected.size
    ratio = upright.size[0] / expected.size[0]
    for x, y in ((10, 10), (expected.size[0] - 10, 10), (10, expected.size[1] - 10)):
        assert is_red(upright, int(x * ratio), int(y * ratio)) == is_red(expected, x, y)
    assert ("upright" in made.note) == (orientation > 1 and format != "TIFF")
    assert turned_exif(1).get(0x0112) == 1
    assert Image.open(io.BytesIO(made.data)).getexif().get(0x0112, 1) == 1


@pytest.mark.fault("J01")
def test_j01_also_where_another_segment_of_the_same_kind_comes_first() -> None:
    xmp = jpeg_segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0<x:xmpmeta/>")
    lying = with_segments(JPEG, xmp, jpeg_segment(0xE1, b"Exif\0\0" + exif(6)))
    made = prepared(lying)
    assert shown(made.data).size == (6, 8) and "upright" in made.note


def test_the_scale_of_a_turned_image_is_that_of_the_upright_one() -> None:
    made = prepared(encoded(drawn(300, 100), "JPEG", exif=turned_exif(8)), max_height=150)
    assert shown(made.data).size == (50, 150)
    assert "50x150 of 100x300" in made.note


# --- formats


@pytest.mark.fault("J01")
@pytest.mark.parametrize(
    ("format", "name"),
    [("BMP", "BMP"), ("TIFF", "TIFF"), ("ICO", "icon"), ("AVIF", "AVIF"), ("JPEG2000", "JPEG 2000")],
)
@pytest.mark.parity("images.are-converted")
def test_j01_what_models_do_not_take_is_converted(format: str, name: str) -> None:
    options = {"sizes": [(120, 80)]} if format == "ICO" else {}
    made = prepared(encoded(drawn(120, 80), format, **options))
    assert made.mime_type in ("image/png", "image/jpeg")
    assert made.note == f"[Image: converted from {name}.]"
    image = shown(made.data)
    assert image.size == (120, 80)
    assert is_red(image, 20, 20) and not is_red(image, 100, 60)


@pytest.mark.parametrize(
    "mode", ["1", "L", "LA", "P", "RGBA", "CMYK", "YCbCr", "PA", "LAB", "I", "F", "I;16"]
)
def test_every_mode_of_colour_is_shown_as_it_looks(mode: str) -> None:
    from PIL import Image

    original = drawn(120, 80, colour="black")
    if mode in ("I", "F", "I;16"):
        base = original.convert("L")
        image = Image.new(mode, base.size)
        for x in range(120):
            for y in range(80):
                image.putpixel((x, y), base.getpixel((x, y)) * 257)
    elif mode in ("PA", "LAB"):
        image = Image.new(mode, original.size)
    else:
        image = original.convert(mode)
    made = prepared(encoded(image, "TIFF"))
    result = shown(made.data)
    assert result.size == (120, 80)
    if mode in ("L", "LA", "P", "RGBA", "CMYK", "YCbCr"):
        wanted = original.convert("L") if mode in ("L", "LA") else original
        for point in ((20, 20), (100, 60)):
            found, true = result.getpixel(point), wanted.convert("RGB").getpixel(point)
            assert all(abs(a - b) < 40 for a, b in zip(found, true, strict=True)), (mode, found, true)


@pytest.mark.parametrize("depth", ["I;16", "I"])
def test_sixteen_bits_of_grey_are_scaled_and_not_cut_off(depth: str) -> None:
    from PIL import Image

    image = Image.new("I;16", (64, 8))
    for x in range(64):
        for y in range(8):
            image.putpixel((x, y), x * 1024)
    format = "PNG" if depth == "I;16" else "TIFF"
    data = encoded(image if depth == "I;16" else image.convert("I"), format)
    made = prepared(data, max_width=32)
    row = [shown(made.data).getpixel((x, 1))[0] for x in range(32)]
    assert row == sorted(row) and row[0] < 20 and row[-1] > 235 and len(set(row)) > 20


def test_transparency_is_kept_where_it_fits_and_white_otherwise() -> None:
    from PIL import Image

    clear = Image.new("RGBA", (300, 200), (0, 0, 0, 0))
    clear.paste((255, 0, 0, 255), (0, 0, 100, 100))
    for image in (clear, clear.quantize()):
        made = prepared(encoded(image, "PNG"), max_width=150)
        assert made.mime_type == "image/png"
        with Image.open(io.BytesIO(made.data)) as result:
            assert result.convert("RGBA").getpixel((140, 90))[3] == 0
    busy = noise(300, 200, "RGBA")
    busy.putalpha(Image.new("L", (300, 200), 0))
    made = prepared(encoded(busy, "TIFF"), max_bytes=20_000)
    assert made.mime_type == "image/jpeg"
    assert min(shown(made.data).getpixel((50, 50))) > 250


@pytest.mark.parity("images.animated")
def test_of_an_animation_the_first_frame_is_shown_and_said() -> None:
    made = prepared(ANIMATED_GIF)
    assert made.mime_type == "image/png" and made.note == "[Image: the first of several frames.]"
    assert set(shown(made.data).get_flattened_data()) == {(0, 0, 0)}
    options = {"save_all": True, "append_images": [drawn(120, 80, colour="blue")]}
    for format in ("WEBP", "TIFF", "AVIF", "PNG"):
        data = encoded(drawn(120, 80), format, **options)
        made = prepared(data)
        assert "the first of several frames" in made.note
        assert is_red(shown(made.data), 20, 20) and not is_red(shown(made.data), 100, 60)
        assert (made.data is data) == (format == "PNG")


# --- damage and excess


@pytest.mark.fault("J03")
@pytest.mark.parametrize("format", ["PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF", "ICO", "AVIF", "JPEG2000"])
def test_j03_data_that_end_early_are_refused(format: str) -> None:
    data = encoded(noise(60, 50), format)
    for part in (0.3, 0.6, 0.9):
        words = refusal(data[: int(len(data) * part)])
        assert "damaged or incomplete" in words or "can't be decoded" in words


@pytest.mark.fault("J03")
def test_j03_damage_inside_is_found_by_decoding() -> None:
    rows = bytearray(zlib.compress(bytes(9 * 6)))
    rows[-1] ^= 0xFF
    data = PNG[:33] + png_chunk(b"IDAT", bytes(rows)) + png_chunk(b"IEND")
    assert "can't be decoded" in refusal(data)


@pytest.mark.parametrize("seed", range(samples(2_000, 60)))
def test_random_damage_ends_in_an_image_or_in_words(seed: int) -> None:
    import random

    chance = random.Random(seed)
    format = chance.choice(["PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF", "ICO", "AVIF"])
    data = bytearray(encoded(drawn(40, 30), format))
    for _ in range(chance.randint(1, 6)):
        data[chance.randrange(len(data))] = chance.randrange(256)
    try:
        made = prepared(bytes(data), max_width=20)
    except UnusableImageError as problem:
        assert problem.reason and "\n" not in problem.reason and len(str(problem)) < 300
    else:
        assert max(shown(made.data).size) <= 2000


@pytest.mark.parametrize("size", [(20_000, 20_000), (1, 60_000_000)])
def test_too_many_pixels_are_refused_before_they_are_decoded(size: tuple[int, int]) -> None:
    assert f"{size[0]}x{size[1]} pixels, too many to decode" in refusal(claiming(*size))


def test_an_icon_that_holds_too_many_pixels_is_refused() -> None:
    inner = encoded(drawn(10_000, 9_500, "1"), "PNG")
    entry = b"\0\0\0\0\1\0\x01\0" + len(inner).to_bytes(4, "little") + (22).to_bytes(4, "little")
    assert "can't be decoded" in refusal(b"\0\0\1\0\1\0" + entry + inner)


def test_a_large_jpeg_image_is_decoded_smaller_but_a_progressive_one_can_not_be() -> None:
    from PIL import Image

    large = Image.new("L", (8000, 7000), 200)
    made = prepared(encoded(large, "JPEG"))
    assert shown(made.data).size == (2000, 1750)
    assert "too many to decode" in refusal(encoded(large, "JPEG", progressive=True))


def test_too_many_bytes_are_refused_before_anything_is_done() -> None:
    assert "at most" in refusal(JPEG + bytes(MAX_SOURCE))


@pytest.mark.parametrize("data", [b"", b"hello", b"BM", b"\0" * 100])
def test_what_is_no_image_is_said(data: bytes) -> None:
    assert "no image of a known format" in refusal(data)


@pytest.mark.parametrize("data", [b"\0\0\0\x18ftypheic" + bytes(40), b"\xff\x0a" + bytes(40)])
def test_formats_that_nothing_here_reads_are_named(data: bytes) -> None:
    words = refusal(data)
    assert ("HEIF" in words or "JPEG XL" in words) and "Convert" in words


# --- what is told of its size


@pytest.mark.parametrize(
    "size", [(3007, 2001), (2001, 3007), (9999, 1234), (299, 3000), (12_345, 40), (2001, 2001)]
)
def test_the_scale_that_is_told_leads_to_the_original_pixel(size: tuple[int, int]) -> None:
    made = prepared(encoded(drawn(*size, "1"), "PNG"))
    both = re.search(r"coordinates by ([\d.]+)", made.note)
    apart = re.search(r"x by ([\d.]+) and y by ([\d.]+)", made.note)
    assert both or apart
    factors = (float(both[1]),) * 2 if both else tuple(map(float, apart.groups())) if apart else ()
    for made_side, side, factor in zip(shown(made.data).size, size, factors, strict=True):
        assert abs(made_side * factor - side) <= side / made_side  # a pixel of what is shown
    if not apart:
        assert abs(max(shown(made.data).size) * factors[0] - max(size)) < 0.5


@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA", "CMYK", "I", "F"])
@pytest.mark.parametrize("size", [(7, 90), (90, 11), (45, 45), (83, 30)])
def test_strips_leave_no_seams(monkeypatch: pytest.MonkeyPatch, mode: str, size: tuple[int, int]) -> None:
    from PIL import Image, ImageChops

    smooth = noise(9, 10, "RGB").resize((90, 100), Image.Resampling.BICUBIC)
    if mode == "RGBA":
        smooth.putalpha(Image.linear_gradient("L").resize((90, 100)).point(lambda value: 128 + value // 2))
    image = (smooth.convert("L") if mode in ("I", "F") else smooth).convert(mode)
    whole = drawing._resized(image, size, never)
    monkeypatch.setattr(drawing, "_STRIP", 300)
    strips = drawing._resized(image, size, never)
    assert (strips.mode, strips.size) == (whole.mode, whole.size) and whole.size == size
    difference = ImageChops.difference(strips, whole).convert("RGB").getextrema()
    assert max(high for _, high in difference) <= 2


# --- what it was stored with


def test_a_long_comment_does_not_keep_an_image_from_being_converted() -> None:
    made = prepared(encoded(noise(40, 30, "L"), "GIF", comment=b"c" * 200_000), max_width=20)
    assert len(made.data) < 10_000 and "comment" not in opened_info(made.data)


def test_the_colour_profile_of_other_colours_is_not_passed_on() -> None:
    made = prepared(encoded(drawn(40, 30, "CMYK"), "TIFF", icc_profile=b"a profile of ink"))
    assert made.mime_type == "image/png" and "icc_profile" not in opened_info(made.data)
    assert is_red(shown(made.data), 5, 5)


def opened_info(data: bytes) -> dict[str, object]:
    from PIL import Image

    with Image.open(io.BytesIO(data)) as image:
        image.load()
        return dict(image.info)


# --- the thread that it is done in


class _StoppedError(Exception):
    pass


@pytest.mark.parametrize("format", ["PNG", "JPEG", "BMP", "TIFF"])
def test_what_the_check_raises_ends_the_work_at_once(format: str) -> None:
    data = encoded(noise(300, 300), format)
    limits = ImageLimits(max_width=100)
    calls = 0
    last = 0

    def check() -> None:
        nonlocal calls
        calls += 1
        if calls == last:
            raise _StoppedError

    prepare(data, limits, check)
    for last in range(1, calls + 1):
        calls = 0
        with pytest.raises(_StoppedError):
            prepare(data, limits, check)
        assert calls == last


def test_an_image_that_takes_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pillow, "_LONGEST", 0.0)
    # Runs of one pixel each, for which the decoder is slow.
    sizes = struct.pack("<IiiHHIIiiII", 40, 50, 50, 1, 8, 1, 0, 0, 0, 256, 0)
    head = b"BM" + struct.pack("<IHHI", 0, 0, 0, 54 + 1024) + sizes + bytes(1024)
    with pytest.raises(UnusableImageError, match="is a BMP image that takes more than 0 seconds to decode"):
        prepare(head + (b"\1\5" * 50 + b"\0\0") * 50 + b"\0\1", ImageLimits(), never)


def test_who_waits_for_another_image_can_be_stopped() -> None:
    entered, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with opened(PNG_KIND, EVERY_KIND["image/png"], never):
            entered.set()
            leave.wait(20)

    holder = threading.Thread(target=hold)
    holder.start()
    assert entered.wait(20)

    def check() -> None:
        raise _StoppedError

    try:
        with pytest.raises(_StoppedError):
            prepare(EVERY_KIND["image/png"], ImageLimits(), check)
    finally:
        leave.set()
        holder.join()
    assert prepared(EVERY_KIND["image/png"]).note == ""


def test_warnings_of_the_decoder_do_not_reach_anybody(recwarn: pytest.WarningsRecorder) -> None:
    clear = drawn(60, 40).convert("P")
    prepared(encoded(clear, "PNG", transparency=bytes(range(200))), max_width=20)
    assert not recwarn.list


# --- a model's own limits


def model(**limits: Any) -> Model:
    return Model(id="m", provider="p", api="a", base_url="", input_limits=limits)


@pytest.mark.parity("images.are-made-smaller")
def test_the_limits_of_a_model_come_from_its_entry() -> None:
    resize = {"maxWidth": 1568, "maxHeight": 1000, "maxBytes": 524_288, "jpegQuality": 75}
    assert limits_of(model(images={"resize": resize})) == ImageLimits(
        max_width=1568, max_height=1000, max_bytes=524_288, jpeg_quality=75
    )
    assert limits_of(model(), shrink=False) == ImageLimits(shrink=False)
    assert limits_of(model(images={"resize": {"maxWidth": 5}})) == ImageLimits(max_width=5)


@pytest.mark.parametrize("wrong", [0, -1, "9", True, 2.5, None])
def test_limits_that_make_no_sense_are_the_default_ones(wrong: Any) -> None:
    assert limits_of(model(images={"resize": {"maxWidth": wrong}})) == ImageLimits()
    assert limits_of(model(images={"resize": wrong})) == limits_of(model(images=wrong)) == ImageLimits()
