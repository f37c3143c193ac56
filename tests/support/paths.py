"""Where things lie in a checkout."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
"""The root of the checkout."""

PACKAGES = {
    "cantle-ai": ROOT / "packages/ai",
    "cantle-agent": ROOT / "packages/agent",
    "cantle-session": ROOT / "packages/session",
    "cantle": ROOT / "packages/cantle",
}
"""The folder of each distribution, lowest layer first."""

_IGNORED = {".git", ".venv", ".tools", "build", "dist"}


def own_files() -> list[Path]:
    """Every file that belongs to the repository: what git tracks, else (no git here) what lies there."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False, encoding="utf-8"
    )
    if listed.returncode == 0:
        return [path for name in listed.stdout.split("\0") if name and (path := ROOT / name).is_file()]
    return [
        path
        for path in ROOT.rglob("*")
        if path.is_file() and not _IGNORED & set(path.relative_to(ROOT).parts)
    ]
