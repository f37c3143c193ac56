"""Histories that become too long: compacted by themselves, between the turns, and after an overflow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.interop.case import Case, call, calls

_FULL = {"input": 29_500, "output": 10}
_OVERFLOW = {
    "error": {"status": 400, "message": "The prompt is too long.", "code": "context_length_exceeded"}
}
_SUMMARY = {"content": "## Goal\nThe road.", "usage": {"input": 700, "output": 70}}
_LONG = " ".join(["A long road."] * 40)


def _case(name: str, answers: Sequence[Any], prompts: Sequence[str], **more: Any) -> Case:
    compaction = {"keepRecentTokens": 100, "reserveTokens": 1000, **more.pop("compaction", {})}
    settings: Mapping[str, Any] = {"compaction": compaction, "retry": {"baseDelayMs": 1}}
    return Case(
        name=f"compaction-{name}",
        words=("--mode", "json", *prompts),
        answers=answers,
        settings=settings,
        model={"contextWindow": more.pop("window", 30_000), "maxTokens": 4096},
        prefix=False,
        **more,
    )


def _said(words: str, usage: dict[str, int] | None = None) -> dict[str, Any]:
    return {"content": words, **({"usage": usage} if usage else {})}


_READ = calls(call("read", {"path": "big.txt"}, 1))
_BIG = {"big.txt": "The road goes on.\n" * 2_000}

CASES = [
    _case(
        "after-a-run",
        [_said(_LONG), _said("Two.", _FULL), _SUMMARY, "Three."],
        [_LONG, "2", "3"],
    ),
    _case(
        "between-turns",
        ["One.", {**_READ, "usage": _FULL}, _SUMMARY, _SUMMARY, "Read."],
        [_LONG, "Read big.txt."],
        files=_BIG,
    ),
    _case("of-whole-turns", ["One.", _said("Two.", _FULL), _SUMMARY, "Three."], ["1", _LONG, "3"]),
    _case(
        "twice",
        [
            _said(_LONG),
            _said(_LONG, _FULL),
            _SUMMARY,
            _SUMMARY,
            _said(_LONG, _FULL),
            _SUMMARY,
            _SUMMARY,
            "4.",
        ],
        [_LONG, "2", "3", "4"],
    ),
    _case("nothing-to-compact", ["One.", _said("Two.", _FULL), "Three."], ["1", "2", "3"]),
    _case(
        "off",
        [_said(_LONG), _said("Two.", _FULL), "Three."],
        [_LONG, "2", "3"],
        compaction={"enabled": False},
    ),
    _case(
        "of-this-model",
        [_said(_LONG), _said("Two.", _FULL), _SUMMARY, "Three."],
        [_LONG, "2", "3"],
        window=100_000,
        compaction={"modelOverrides": {"loop/m": {"reserveTokens": 80_000}}},
    ),
    _case("overflow", [_said(_LONG), _OVERFLOW, _SUMMARY, "Two."], [_LONG, "2"]),
    _case("overflow-again", [_said(_LONG), _OVERFLOW, _SUMMARY, _OVERFLOW], [_LONG, "2"]),
    _case("overflow-off", [_said(_LONG), _OVERFLOW], [_LONG, "2"], compaction={"enabled": False}),
    _case(
        "overflow-that-answered",
        [_said(_LONG), _said("Two.", {"input": 31_000, "output": 10}), _SUMMARY, "3."],
        [_LONG, "2", "3"],
    ),
    _case(
        "cut-early", [_said(_LONG), {"content": "Tw", "stopReason": "length"}, _SUMMARY, "Two."], [_LONG, "2"]
    ),
    _case(
        "cut-at-the-limit",
        [_said(_LONG), {"content": "Tw", "stopReason": "length", "usage": {"input": 100, "output": 4096}}],
        [_LONG, "2"],
    ),
    _case(
        "that-fails",
        [_said(_LONG), _said("Two.", _FULL), {"error": {"status": 400, "message": "no"}}],
        [_LONG, "2"],
    ),
    _case(
        "that-is-cut",
        [_said(_LONG), _said("Two.", _FULL), {**_SUMMARY, "stopReason": "length"}],
        [_LONG, "2"],
    ),
    _case(
        "that-is-tried-again",
        [_said(_LONG), _said("Two.", _FULL), {"error": {"status": 503, "message": "busy"}}, _SUMMARY],
        [_LONG, "2"],
    ),
]
