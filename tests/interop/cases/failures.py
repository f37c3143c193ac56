"""Requests that fail: what is tried again, what is told, how the run ends."""

from __future__ import annotations

from typing import Any

from tests.interop.case import Case, calls, text

_QUICK = {"retry": {"baseDelayMs": 5}}


def _failing(status: int, message: str, **more: Any) -> dict[str, Any]:
    return {"error": {"status": status, "message": message, **more}}


def _case(name: str, answers: list[Any], **more: Any) -> Case:
    return Case(name=name, answers=answers, settings=_QUICK, **more)


CASES = [
    _case("error-400", [_failing(400, "the messages are odd")]),
    _case("error-400-print", [_failing(400, "the messages are odd")], words=("-p", "Hi")),
    _case("error-401", [_failing(401, "the key is wrong")]),
    _case("error-402", [_failing(402, "the balance is empty")]),
    _case("error-404", [_failing(404, "no such model")]),
    _case("error-429", [_failing(429, "too many requests"), "Hello."]),
    _case("error-429-after", [_failing(429, "too many requests", retryAfterMs=20), "Hello."]),
    _case(
        "error-429-quota",
        [_failing(429, "You exceeded your current quota", code="insufficient_quota"), "Hello."],
    ),
    _case("error-500", [_failing(500, "it broke"), "Hello."]),
    _case("error-503-for-good", [_failing(503, "overloaded")] * 4),
    _case("error-503-print", [_failing(503, "overloaded"), "Hello."], words=("-p", "Hi")),
    _case(
        "error-in-stream",
        [{"content": "Half an ", "error": {"message": "it broke", "status": 500}}, "Hello."],
    ),
    _case("cut", [{"content": "Half an ", "cut": True}, "Hello."]),
    _case("cut-quiet", [{"content": "Half an ", "cut": "quiet"}, "Hello."]),
    _case(
        "cut-in-call",
        [
            {
                **calls(
                    text("I "),
                    {"type": "toolCall", "name": "bash", "arguments": {"command": "touch x"}, "id": "c1"},
                ),
                "cut": True,
            },
            "Hello.",
        ],
    ),
    _case("dropped", [{"http": {"drop": True}}, "Hello."]),
    _case("empty-answer", [{"content": ""}, "Hello."]),
    _case("empty-answer-print", [{"content": ""}], words=("-p", "Hi")),
    _case("blank-answer", [{"content": "\n"}], words=("-p", "Hi")),
    _case(
        "not-a-stream",
        [{"http": {"status": 200, "contentType": "text/html", "body": "<html>Log in</html>"}}, "Hello."],
    ),
    _case(
        "too-long",
        [_failing(400, "This model's maximum context length is 100 tokens", code="context_length_exceeded")],
    ),
    Case(name="retry-off", answers=[_failing(503, "overloaded")], settings={"retry": {"enabled": False}}),
    Case(
        name="retry-once",
        answers=[_failing(503, "overloaded")] * 2,
        settings={"retry": {"maxRetries": 1, "baseDelayMs": 5}},
    ),
]
