"""Tool calls: each tool, several at once, and calls that cannot be run."""

from __future__ import annotations

from typing import Any

from tests.interop.case import Case, call, calls, text

_LINES = "".join(f"line {number}\n" for number in range(1, 11))


def _one(name: str, tool: str, arguments: Any, **more: Any) -> Case:
    return Case(name=name, answers=[calls(call(tool, arguments)), "Done."], **more)


def _edit(*pairs: tuple[str, str]) -> dict[str, Any]:
    return {"path": "a.txt", "edits": [{"oldText": old, "newText": new} for old, new in pairs]}


_JSON = ("--mode", "json", "Hi")
_FILE = {"a.txt": _LINES}

CASES = [
    _one("read", "read", {"path": "a.txt"}, files=_FILE),
    _one("read-window", "read", {"path": "a.txt", "offset": 3, "limit": 2}, files=_FILE),
    _one("read-missing", "read", {"path": "none.txt"}),
    _one("write", "write", {"path": "new/a.txt", "content": "one\n"}),
    _one("write-over", "write", {"path": "a.txt", "content": "one"}, files=_FILE),
    _one("edit", "edit", _edit(("line 3", "third"), ("line 7\n", "")), files=_FILE),
    _one("edit-not-found", "edit", _edit(("line 30", "third")), files=_FILE),
    _one("edit-not-unique", "edit", _edit(("line 1", "first")), files=_FILE),
    _one("edit-old-shape", "edit", {"path": "a.txt", "oldText": "line 3", "newText": "third"}, files=_FILE),
    _one("bash", "bash", {"command": "echo out; echo err >&2"}),
    _one("bash-fails", "bash", {"command": "echo out; exit 3"}),
    _one("bash-silent", "bash", {"command": "true"}),
    _one("bash-time-out", "bash", {"command": "echo out; sleep 20", "timeout": 0.3}),
    _one("bash-long", "bash", {"command": "seq 1 3000"}),
    _one(
        "bash-variables",
        "bash",
        {"command": "env | grep -c '^PI_\\(PROVIDER\\|MODEL\\)=\\|^CANTLE_\\(PROVIDER\\|MODEL\\)='"},
    ),
    _one("bash-markers", "bash", {"command": 'test -n "$AI_AGENT" && env | grep -c CODING_AGENT=true'}),
    _one(
        "bash-no-session", "bash", {"command": "env | grep -c _SESSION_FILE="}, words=("--no-session", *_JSON)
    ),
    _one(
        "grep",
        "grep",
        {"pattern": "line [35]"},
        files=_FILE,
        words=("--tools", "grep", "--mode", "json", "Hi"),
        without=("rg",),
    ),
    _one(
        "find",
        "find",
        {"pattern": "*.txt"},
        files=_FILE,
        words=("--tools", "find", *_JSON),
        without=("fd", "fdfind"),
    ),
    _one("ls", "ls", {}, files={**_FILE, "b/c.txt": ""}, words=("--tools", "ls", "--mode", "json", "Hi")),
    Case(
        name="parallel",
        answers=[
            calls(
                text("All at once."),
                call("read", {"path": "a.txt"}, 1),
                call("write", {"path": "b.txt", "content": "b\n"}, 2),
                call("read", {"path": "none.txt"}, 3),
            ),
            "Done.",
        ],
        files=_FILE,
    ),
    _one("unknown-tool", "teleport", {"to": "the moon"}),
    _one("disabled-tool", "grep", {"pattern": "a"}),
    _one("text-for-number", "read", {"path": "a.txt", "limit": "2"}, files=_FILE),
    _one(
        "arguments-as-text",
        "edit",
        {"path": "a.txt", "edits": '[{"oldText": "line 3", "newText": "third"}]'},
        files=_FILE,
    ),
    _one("argument-missing", "write", {"path": "a.txt"}),
    _one("argument-of-wrong-kind", "read", {"path": ["a.txt"]}, files=_FILE),
    _one("argument-unknown", "read", {"path": "a.txt", "colour": "red"}, files=_FILE),
    _one("arguments-broken", "read", '{"path": "a.txt", "limit": '),
    _one("arguments-empty", "ls", "", words=("--tools", "ls,read", "--mode", "json", "Hi")),
]
