"""The model runtime, whole: every wire API, provider, login and history in one shape."""

from tools.acceptance_issues import Row

PYTEST = "uv run --frozen pytest -q"
OPTIONAL = "uv run --frozen --group local --group oracles pytest -q"
PYTHON = "uv run --frozen python"
AI = "packages/ai/tests"

ROWS = [
    Row(
        1,
        "the conformance table, wire API by case, and answers that are fuzzed",
        (f"{PYTHON} -m packages.ai.tests.conformance", f"{PYTEST} -n 2 {AI}/fuzz"),
    ),
    Row(
        2,
        "the vendors' SDKs read generated answers as we do; one conversation goes through the reference and Cantle",
        (
            f"{OPTIONAL} -n 2 {AI}/oracles",
            'CANTLE_REF=1 uv run --frozen pytest -q -n 2 tests/interop/test_cases.py -k "api- or handover-"',
        ),
    ),
    Row(
        3,
        "a session that visits the wire APIs in turn, on servers that check payloads strictly",
        (f"{PYTEST} {AI}/conformance/test_tour.py tests/e2e/test_five_apis.py",),
    ),
    Row(
        4,
        "logins, eight processes and one renewal, a kill after a rotation, on a loopback authorisation server",
        (
            f"{PYTEST} {AI}/auth/test_flows.py {AI}/auth/test_logins.py {AI}/auth/test_renewal.py",
            f"{OPTIONAL} tests/e2e/test_auth.py tests/e2e/test_auth_terminal.py tests/e2e/test_key_ring.py",
        ),
    ),
    Row(
        5,
        "a provider that speaks a known API is one row, its catalog file, and one test",
        (
            "git log -1 --format='%h %s' --stat --grep='Ant Ling.s models can be asked'",
            f"{PYTEST} {AI}/test_catalog.py",
        ),
    ),
    Row(
        6,
        "no wire API at import, one in a print run, and what 10,000 deltas cost by each",
        (f"{PYTEST} tests/surface", f"{PYTHON} bench/micro/run.py --apis", "python3 bench/run.py --rounds 7"),
    ),
    Row(7, "the guide's examples and the providers' pages", (f"{PYTEST} -n 2 tests/docs",)),
    Row(
        8,
        "the faults of other agents in streams, requests, histories and accounts",
        (
            f"{PYTEST} tests/faults",
            f"CANTLE_FULL= {OPTIONAL} -n 2 -m fault {AI} packages/cantle/tests tests/e2e",
        ),
    ),
    Row(
        9,
        "llama.cpp's own server answers over three wire APIs",
        (
            f"{OPTIONAL} {AI}/local/test_real_server.py {AI}/test_local_servers.py tests/e2e/test_local_servers.py",
        ),
    ),
]
