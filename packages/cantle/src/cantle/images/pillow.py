"""The only place that uses Pillow, which is optional: `pip install 'cantle[images]'`.

The decoder is chosen by what the bytes say, and never guessed. One image is worked on at a time, whoever else
waits: so the memory that it takes is bounded, and Pillow's warnings can be kept from the terminal.
"""

from __future__ import annotations

import io
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from time import monotonic
from typing import Any, Final, Protocol, cast

from cantle.images.errors import UnusableImageError
from cantle.images.kinds import ImageKind

__all__ = ["Check", "Picture", "blank", "has_pillow", "lanczos", "opened", "saved", "turned"]

Check = Callable[[], None]
"""Called again and again; raises whatever when the work is no longer wanted."""

_lock: Final = threading.Lock()
_WAIT: Final = 0.05
_LONGEST: Final = 60.0
"""Seconds for one image: twenty times what the largest that are decoded take. Longer ones are made to waste time."""


class Picture(Protocol):
    """What is used of Pillow's image."""

    mode: str
    info: dict[str, object]

    @property
    def size(self) -> tuple[int, int]: ...
    @property
    def has_transparency_data(self) -> bool: ...
    def load(self) -> object: ...
    def draft(self, mode: str | None, size: tuple[int, int]) -> object: ...
    def convert(self, mode: str) -> Picture: ...
    def point(self, lut: Callable[[Any], Any]) -> Picture: ...
    def getextrema(self) -> tuple[Any, ...]: ...
    def getchannel(self, channel: str) -> Picture: ...
    def crop(self, box: tuple[int, int, int, int]) -> Picture: ...
    def resize(
        self, size: tuple[int, int], resample: object, box: tuple[float, float, float, float] | None = None
    ) -> Picture: ...
    def transpose(self, method: object) -> Picture: ...
    def save(self, fp: io.BytesIO, format: str, **options: object) -> None: ...
    def paste(self, im: Picture, box: tuple[int, int] | None, mask: Picture | None = None) -> None: ...


def has_pillow() -> bool:
    """Whether Pillow is installed and can be loaded."""
    try:
        import_module("PIL.Image")
    except ImportError:
        return False
    return True


@contextmanager
def opened(kind: ImageKind, data: bytes, check: Check) -> Iterator[tuple[Picture, Check]]:
    """The image in `data`, not decoded yet, and the check to call between steps of the work on it.

    It calls `check`, as reading the data does, and bounds the time. What `check` raises comes through; whatever
    Pillow raises inside the block becomes :class:`UnusableImageError`.
    """
    assert kind.decoder is not None
    module, name = kind.decoder
    with _alone(check):
        watch = _Watch(kind, check)
        try:
            decoder = getattr(import_module(f"PIL.{module}"), name)
            yield cast("Picture", decoder(_Source(data, watch))), watch
        except UnusableImageError:
            raise
        except Exception as error:  # noqa: BLE001 - on data made to break it, a decoder may raise anything
            if watch.stopped is not None:
                raise watch.stopped from None
            said = (str(error).partition("\n")[0] or type(error).__name__)[:100]
            raise UnusableImageError(
                f"is {kind.described} that can't be decoded ({said})",
                "Make it anew, or convert it to PNG with a program that can read it.",
            ) from None


def saved(picture: Picture, format: str, **options: object) -> bytes:
    """The picture encoded as `format`."""
    target = io.BytesIO()
    picture.save(target, format, **options)
    return target.getvalue()


def blank(mode: str, size: tuple[int, int], colour: str | int = 0) -> Picture:
    """A picture of one colour."""
    return cast("Picture", import_module("PIL.Image").new(mode, size, colour))


def lanczos() -> object:
    """The filter that is best for making images smaller."""
    return import_module("PIL.Image").Resampling.LANCZOS


def turned(picture: Picture, orientation: int) -> Picture:
    """The picture upright, `orientation` being how EXIF says that it lies."""
    method = _TURNS.get(orientation)
    if method is None:
        return picture
    return picture.transpose(getattr(import_module("PIL.Image").Transpose, method))


_TURNS: Final = {
    2: "FLIP_LEFT_RIGHT",
    3: "ROTATE_180",
    4: "FLIP_TOP_BOTTOM",
    5: "TRANSPOSE",
    6: "ROTATE_270",
    7: "TRANSVERSE",
    8: "ROTATE_90",
}


class _Source(io.BytesIO):
    """Bytes that look whether they are still wanted each time that some of them are read."""

    def __init__(self, data: bytes, check: Check) -> None:
        super().__init__(data)
        self._check = check

    def read(self, size: int | None = -1, /) -> bytes:
        self._check()
        return super().read(size)


class _Watch:
    """A check that also ends work that takes too long, and keeps what was raised: decoders may hide it."""

    def __init__(self, kind: ImageKind, check: Check) -> None:
        self._kind = kind
        self._check = check
        self._end = monotonic() + _LONGEST
        self.stopped: Exception | None = None

    def __call__(self) -> None:
        try:
            self._check()
            if monotonic() > self._end:
                raise UnusableImageError(
                    f"is {self._kind.described} that takes more than {_LONGEST:.0f} seconds to decode",
                    "Convert it to PNG with a program that can read it.",
                )
        except Exception as stop:  # raised again: kept, because a decoder may make another one of it
            self.stopped = stop
            raise


@contextmanager
def _alone(check: Check) -> Iterator[None]:
    while not _lock.acquire(timeout=_WAIT):
        check()
    try:
        # Filters belong to the whole process; nobody else changes them from here while the lock is held.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # An icon holds images whose sizes only Pillow sees, when it decodes them.
            warnings.simplefilter("error", import_module("PIL.Image").DecompressionBombWarning)
            yield
    finally:
        _lock.release()
