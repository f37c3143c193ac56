"""What the scripted model of the demo answers: six calls, three mends, a closing word."""

from __future__ import annotations

import shlex
import sys
from typing import Any

from cantle.demo.project_tests import command

__all__ = ["PROMPT", "responses"]

PROMPT = "The tests of this project fail. Find out why, mend the code, and show that they pass."


def responses() -> list[dict[str, Any]]:
    """The answers in order, in the scripted-model file's format."""
    tests = _shell(command())
    return [
        _answer("I'll run the tests first.", _call("bash", command=tests)),
        _answer(
            "Three fail: two in reading orders, one in the discount. I'll read both modules.",
            _call("read", path="shop/order.py"),
            _call("read", path="shop/bill.py"),
        ),
        _answer(
            "In `order.py` lines are counted from 0, and a euro is taken for ten cents.",
            _call(
                "edit",
                path="shop/order.py",
                edits=[
                    {
                        "oldText": "enumerate(text.splitlines())",
                        "newText": "enumerate(text.splitlines(), start=1)",
                    },
                    {"oldText": "int(euros) * 10 + int(cents)", "newText": "int(euros) * 100 + int(cents)"},
                ],
            ),
        ),
        _answer(
            "In `bill.py` the discount starts one piece too late.",
            _call(
                "edit",
                path="shop/bill.py",
                edits=[
                    {"oldText": "item.quantity > DISCOUNT_FROM", "newText": "item.quantity >= DISCOUNT_FROM"}
                ],
            ),
        ),
        _answer("Now the tests again.", _call("bash", command=tests)),
        _answer(
            "All tests pass. Line numbers, prices above one euro and the discount at ten pieces are right now."
        ),
    ]


def _answer(text: str, *calls: dict[str, Any]) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}, *calls]}


def _call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "toolCall", "name": tool, "arguments": arguments}


def _shell(words: list[str]) -> str:
    if sys.platform == "win32":
        words = [word.replace("\\", "/") for word in words]
    return shlex.join(words)
