"""Hardened tools, a model in the box, and the first comparison with the reference."""

from tools.acceptance_issues import Row

PYTEST = "uv run --frozen pytest -q"
OPTIONAL = "uv run --frozen --group local --group oracles pytest -q"
TOOLS = "packages/cantle/tests/tools"

ROWS = [
    Row(
        1,
        "processes: TERM ignored, session changed, pipe held, 1 GB of output, 10,000 commands",
        (
            f"{PYTEST} {TOOLS}/test_process_limits.py",
            f"{PYTEST} {TOOLS}/test_process_orphans.py {TOOLS}/test_bash_endings.py tests/e2e/test_commands.py",
        ),
    ),
    Row(
        2,
        "searching: ripgrep and our own reading agree over thousands of files",
        (
            f"{OPTIONAL} {TOOLS}/test_search_tree.py {TOOLS}/test_search_ignore.py {TOOLS}/test_search_globs.py",
        ),
    ),
    Row(
        3,
        "the model in the box answers, makes a valid tool call and is aborted",
        (f"{OPTIONAL} packages/ai/tests/local tests/e2e/test_local.py tests/e2e/test_local_model.py",),
    ),
    Row(
        4,
        "sessions change hands twice in turn, and the six-call task has the same events in the same order",
        (
            f"CANTLE_REF=1 {PYTEST} tests/interop/test_turns.py tests/interop/test_sessions.py",
            f"CANTLE_REF=1 {PYTEST} -n 2 tests/interop/test_cases.py tests/interop/test_json_mode.py",
        ),
    ),
    Row(
        5,
        "the budgets, as ratios to the reference in one run of seven rounds",
        ("python3 bench/run.py --rounds 7",),
    ),
    Row(
        6,
        "the faults of other agents: each row of the ledger names its tests, and they pass",
        (f"{PYTEST} tests/faults", f"CANTLE_FULL= {OPTIONAL} -n 2 -m fault"),
    ),
]
