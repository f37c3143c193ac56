"""What the largest images cost, measured in a process of their own."""

import subprocess
import sys

import pytest

from tests.support.extras import needs

PROGRAM = """
import io, resource, sys
from PIL import Image

image = Image.new(sys.argv[1], (int(sys.argv[3]), int(sys.argv[4])))
target = io.BytesIO()
image.save(target, sys.argv[2])
data = target.getvalue()
del image, target
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")

def peak():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) // 1024

before = peak()
from cantle.images.limits import ImageLimits
from cantle.images.preparation import prepare

made = prepare(data, ImageLimits(), lambda: None)
assert made.note
print(peak() - before)
"""


@needs("images")
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads the peak from /proc")
@pytest.mark.parametrize(
    ("mode", "format", "width", "height", "megabytes"),
    [
        ("L", "JPEG", 12_000, 12_000, 60),
        ("RGBA", "PNG", 7_000, 7_000, 320),
        ("LA", "PNG", 7_000, 7_000, 320),
        ("P", "PNG", 7_000, 7_000, 150),
    ],
)
def test_memory_is_bounded_by_the_pixels_that_are_decoded(
    mode: str, format: str, width: int, height: int, megabytes: int
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, mode, format, str(width), str(height)],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < megabytes, done.stdout
