"""The foundations, and one real task done end to end."""

from tools.acceptance_issues import Row

PYTEST = "uv run --frozen pytest -q"
# A clone and a home folder that nobody has used, and no uv on the path: Python and a network only.
FRESH = (
    'new=$(mktemp -d); git clone -q . "$new/cantle"; cd "$new/cantle"; '
    'python=$(python3 -c "import sys; print(sys.executable)"); '
    'env -i HOME="$new/home" PATH=/usr/bin:/bin ${SSL_CERT_FILE:+"SSL_CERT_FILE=$SSL_CERT_FILE"} '
    '${PIP_CERT:+"PIP_CERT=$PIP_CERT"} '
    '"$python" tools/dev.py '
)

ROWS = [
    Row(
        1,
        "a fresh clone with Python only: the demo ends well and the tests pass",
        (FRESH + "demo", FRESH + "test -q"),
    ),
    Row(
        2,
        "the same task over HTTP, in print and JSON mode, with a prefix-stable request",
        (f"{PYTEST} tests/e2e/test_http_task.py",),
    ),
    Row(
        3,
        "the rules of stream and loop hold, whatever is aborted, raises, hangs or is cancelled",
        (
            f"{PYTEST} packages/ai/tests/stream",
            f"{PYTEST} packages/agent/tests",
        ),
    ),
    Row(
        4,
        "an edit changes nothing but its match, over encodings, line ends and BOMs",
        (f"{PYTEST} packages/cantle/tests/tools/test_edit_bytes.py",),
    ),
    Row(
        5,
        "kill -9 at 100 random moments: the session opens, continues and is accepted",
        (f"{PYTEST} tests/e2e/test_kill.py",),
    ),
    Row(
        6,
        "the loop is read at a sitting, contracts hold, --version starts light",
        (
            "awk 'END { print NR, \"lines, fewer than 250\"; exit NR >= 250 }' packages/agent/src/cantle_agent/loop.py",
            "uv run --frozen lint-imports",
            f"{PYTEST} tests/surface",
        ),
    ),
]
