"""Sessions that branch, compact and never lose a line."""

from tools.acceptance_issues import Row

PYTEST = "uv run --frozen pytest -q"
OPTIONAL = "uv run --frozen --group local --group oracles pytest -q"
REFERENCE = "CANTLE_REF=1 uv run --frozen pytest -q -n 2"
PYTHON = "uv run --frozen python"
SESSION = "packages/session/tests"
HUB = "packages/cantle/tests/hub"

ROWS = [
    Row(
        1,
        "any sequence of tree operations keeps every line, replays to the same tree and gives a context that is accepted",
        (
            f"{PYTEST} -n 2 {SESSION}/proof/test_operations.py {SESSION}/proof/test_damaged_ends.py",
            f"{PYTEST} -n 2 {HUB}/test_any_sequence.py",
        ),
    ),
    Row(
        2,
        "a writer killed at a random byte, two writers, a full disk, SIGKILL while compacting",
        (
            f"{PYTEST} -n 2 {SESSION}/proof/test_killed_writers.py {SESSION}/proof/test_full_disk.py {SESSION}/test_writers.py",
            f"{PYTEST} -n 2 tests/e2e/test_kill.py tests/e2e/test_kill_compaction.py",
        ),
    ),
    Row(
        3,
        "the reference and Cantle open, continue, fork and compact what the other wrote; the ledger",
        (
            f"{REFERENCE} tests/interop/test_both_ways.py tests/interop/test_drawn_sessions.py tests/interop/test_sessions.py",
            f"{REFERENCE} tests/interop/test_cases.py -k compact",
            f"{PYTEST} tests/parity",
        ),
    ),
    Row(
        4,
        "one suite for every back-end, a real PostgreSQL server among them; a second process sees an entry within 100 ms",
        (f"{OPTIONAL} -n 2 {SESSION}/storage",),
    ),
    Row(
        5,
        "resume of long sessions next to the reference, growth, and what a list of 2,000 sessions reads",
        (
            "python3 bench/run.py --suites print,resume --rounds 5",
            f"{PYTEST} -n 2 {SESSION}/proof/test_growth.py {SESSION}/test_listing.py",
        ),
    ),
    Row(
        6,
        "the HTML page in a headless browser: colours, phone, branches, attack strings",
        (f"{OPTIONAL} -n 2 packages/cantle/tests/export",),
    ),
    Row(
        7,
        "the documented format and the guide's examples",
        (f"{PYTEST} -n 2 tests/docs",),
    ),
    Row(
        8,
        "what survives 1, 3 and 10 compactions in a row",
        (f"{PYTHON} tools/drift.py", f"{PYTEST} {SESSION}/compaction"),
    ),
    Row(
        9,
        "the faults of other agents in loops, sessions and compaction",
        (
            f"{PYTEST} tests/faults",
            f"CANTLE_FULL= {OPTIONAL} -n 2 -m fault {SESSION} packages/cantle/tests packages/agent/tests tests/e2e",
        ),
    ),
]
