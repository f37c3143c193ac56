"""What a model may answer: text, thinking, limits, figures."""

from __future__ import annotations

from tests.interop.case import Case, call, calls, text

_PRICE = {"input": 3, "output": 15, "cacheRead": 0.3, "cacheWrite": 3.75}
_JSON = ("--mode", "json", "Hi")
_THOUGHT = {
    "content": [{"type": "thinking", "thinking": "They greet me."}, text("Hello.")],
    "usage": {"input": 10, "output": 20, "reasoning": 12},
}
_REASONING = {"reasoning": True, "compat": {"supportsReasoningEffort": True}}


def _level(level: str) -> Case:
    return Case(
        name=f"thinking-{level}",
        answers=[_THOUGHT],
        words=("--thinking", level, *_JSON),
        model={**_REASONING, "thinkingLevelMap": {"minimal": None, "xhigh": "xhigh"}},
    )


CASES = [
    Case(name="text"),
    Case(name="text-print", words=("-p", "Hi")),
    Case(
        name="text-deltas",
        answers=[{"content": "A long answer, in many small pieces. Ä ö 🙂 \u2028", "chunk": 2}],
    ),
    Case(name="text-blank-lines", answers=["\n\nHello.\n\n  "], words=("-p", "Hi")),
    Case(name="thinking", answers=[_THOUGHT], model={"reasoning": True}),
    Case(
        name="thinking-replayed",
        answers=[_THOUGHT, "Yes."],
        words=(*_JSON, "Really?"),
        model={"reasoning": True},
    ),
    Case(
        name="thinking-with-call",
        answers=[
            calls(
                {"type": "thinking", "thinking": "I look."},
                text("I look."),
                call("bash", {"command": "echo hi"}),
            ),
            "Done.",
        ],
        model={"reasoning": True},
    ),
    *(_level(level) for level in ("off", "minimal", "low", "medium", "high", "xhigh", "max")),
    Case(name="thinking-without-reasoning", words=("--thinking", "high", *_JSON)),
    Case(name="length", answers=[{"content": "Cut sho", "stopReason": "length"}]),
    Case(name="length-print", answers=[{"content": "Cut sho", "stopReason": "length"}], words=("-p", "Hi")),
    Case(
        name="length-in-call",
        answers=[
            {"content": [call("write", '{"path": "a.txt", "content": "cut sh')], "stopReason": "length"},
            "Sorry.",
        ],
    ),
    Case(name="unknown-finish", answers=[{"content": "Hm.", "rawStopReason": "content_filter"}]),
    Case(
        name="usage-and-cost",
        answers=[
            {"content": "One.", "usage": {"input": 1000, "output": 500, "cacheRead": 2000, "reasoning": 100}},
            {"content": "Two.", "usage": {"input": 10, "output": 5}},
        ],
        words=(*_JSON, "Again"),
        model={"cost": _PRICE},
    ),
    Case(
        name="cost-tiers",
        answers=[{"content": "One.", "usage": {"input": 1000, "output": 500}}],
        model={"cost": {**_PRICE, "tiers": [{**_PRICE, "inputTokensAbove": 900, "input": 6}]}},
    ),
]
