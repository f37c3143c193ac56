"""How the reference comes into its cache folder, with a npm of our own that needs no network."""

from __future__ import annotations

import os
import stat
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.reference import PACKAGE, VERSION, Unusable, install

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="npm is a shell script here")

_WORKS = f"""#!/bin/sh
echo "$@" >> calls
mkdir -p node_modules/.bin 'node_modules/{PACKAGE}/dist/bundle'
printf '{{"version": "{VERSION}"}}' > 'node_modules/{PACKAGE}/package.json'
touch 'node_modules/{PACKAGE}/dist/bundle/cli.js'
printf '#!/bin/sh\\necho {VERSION}\\n' > node_modules/.bin/node
chmod +x node_modules/.bin/node
"""


def program(folder: Path, text: str) -> str:
    path = folder / "npm"
    path.write_text(text, "utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def calls(folder: Path) -> list[str]:
    return (folder / "calls").read_text("utf-8").splitlines()


def test_it_is_installed_once(tmp_path: Path) -> None:
    npm, folder = program(tmp_path, _WORKS), tmp_path / "cache"
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda _: install(folder, npm), range(4))) == [folder] * 4
    assert len(calls(folder)) == 1
    assert f"{PACKAGE}@{VERSION}" in calls(folder)[0]


def test_what_is_there_needs_no_npm(tmp_path: Path) -> None:
    npm, folder = program(tmp_path, _WORKS), tmp_path / "cache"
    install(folder, npm)
    assert install(folder, str(tmp_path / "nowhere")) == folder


def test_another_version_is_replaced(tmp_path: Path) -> None:
    npm, folder = program(tmp_path, _WORKS), tmp_path / "cache"
    install(folder, npm)
    old = folder / "node_modules" / PACKAGE
    (old / "package.json").write_text('{"version": "0.1.0"}', "utf-8")
    (old / "left-over").touch()
    install(folder, npm)
    assert len(calls(folder)) == 2
    assert not (old / "left-over").exists()


def test_an_attempt_that_failed_half_way_is_cleaned_and_made_again(tmp_path: Path) -> None:
    half = "#!/bin/sh\nif [ -e tried ]; then rm tried; else mkdir -p node_modules/half; touch tried; exit 1; fi\n"
    npm, folder = program(tmp_path, half + _WORKS.removeprefix("#!/bin/sh\n")), tmp_path / "cache"
    assert install(folder, npm) == folder
    assert not (folder / "node_modules/half").exists()


def test_a_failure_says_what_npm_said(tmp_path: Path) -> None:
    npm = program(tmp_path, "#!/bin/sh\necho 'network is unreachable' >&2\nexit 1\n")
    with pytest.raises(Unusable, match=r"it is not there\nnetwork is unreachable"):
        install(tmp_path / "cache", npm)


def test_an_installation_that_does_not_start_is_told(tmp_path: Path) -> None:
    npm = program(tmp_path, _WORKS.replace(f"echo {VERSION}", "echo broken >&2; exit 3"))
    with pytest.raises(Unusable, match="--version gave '': broken"):
        install(tmp_path / "cache", npm)


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="paths are made otherwise")
def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Unusable, match="cannot be made"):
        install(tmp_path / "file" / "cache", "npm")
