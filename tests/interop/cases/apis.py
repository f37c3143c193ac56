"""One conversation over every wire API, begun there, and taken over from another."""

from __future__ import annotations

import base64
from typing import Any

from tests.interop.case import Case, call, calls, text

__all__ = ["CASES"]

APIS = (
    "openai-completions",
    "openai-responses",
    "anthropic-messages",
    "google-generative-ai",
    "mistral-conversations",
    "bedrock-converse-stream",
)
_IDS = {"google-generative-ai": "gemini-2.5-flash"}
"""Where what a model takes follows from its id: one of which both programs think the same. Else it is `m`."""
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
FILES = {"a.txt": "one\n", "b.txt": "two\n", "dot.png": PIXEL}
TALK = (
    calls(
        {"type": "thinking", "thinking": "Both files."},
        text("I read them."),
        call("read", {"path": "a.txt"}, 1),
        call("read", {"path": "b.txt"}, 2),
    ),
    calls(call("read", {"path": "dot.png"}, 3), call("read", {"path": "gone.txt"}, 4)),
    "A dot, and nothing.",
    "That is all.",
)
"""Thinking, text, calls side by side, an image in a result, a result that is an error, an answer; and one more."""


def _talk(api: str) -> tuple[Any, ...]:
    """With the image last where the reference puts it among the results of its batch, which Google refuses."""
    if api != "google-generative-ai":
        return TALK
    read, looked, *rest = TALK
    swapped = {**looked, "content": looked["content"][::-1]}
    return (read, swapped, *rest)


def _model(api: str) -> dict[str, Any]:
    return {"id": _IDS.get(api, "m"), "reasoning": True, "input": ["text", "image"]}


def _chosen(api: str, provider: str = "loop") -> tuple[str, ...]:
    return ("--provider", provider, "--model", _IDS.get(api, "m"))


CASES = [
    *(
        Case(
            name=f"api-{api}",
            apis=(api,),
            model=_model(api),
            files=FILES,
            answers=_talk(api),
            words=(*_chosen(api), "--mode", "json", "--thinking", "high", "Look at the files"),
            then=(("--mode", "json", "-c", "--thinking", "high", "And?"),),
            choose_model=False,
            prefix=False,
        )
        for api in APIS
    ),
    *(
        Case(
            name=f"handover-{api}",
            apis=("anthropic-messages" if api == "openai-completions" else "openai-completions", api),
            model=_model(api),
            files=FILES,
            answers=_talk(api),
            words=(*_chosen(api), "--mode", "json", "--thinking", "high", "Look at the files"),
            then=((*_chosen(api, "loop2"), "--mode", "json", "-c", "--thinking", "high", "And?"),),
            choose_model=False,
            prefix=False,
        )
        for api in APIS
    ),
]
