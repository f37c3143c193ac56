"""One conversation over every wire API, begun there, and taken over from another."""

from __future__ import annotations

import base64

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
_MODEL = ("--provider", "loop", "--model", "m")
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
FILES = {"a.txt": "one\n", "b.txt": "two\n", "dot.png": PIXEL}
MODEL = {"reasoning": True, "input": ["text", "image"]}
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

CASES = [
    *(
        Case(
            name=f"api-{api}",
            apis=(api,),
            model=MODEL,
            files=FILES,
            answers=TALK,
            words=("--mode", "json", "--thinking", "high", "Look at the files"),
            then=(("--mode", "json", "-c", "--thinking", "high", "And?"),),
            prefix=False,
        )
        for api in APIS
    ),
    *(
        Case(
            name=f"handover-{api}",
            apis=("anthropic-messages" if api == "openai-completions" else "openai-completions", api),
            model=MODEL,
            files=FILES,
            answers=TALK,
            words=(*_MODEL, "--mode", "json", "--thinking", "high", "Look at the files"),
            then=(
                ("--provider", "loop2", "--model", "m", "--mode", "json", "-c", "--thinking", "high", "And?"),
            ),
            choose_model=False,
            prefix=False,
        )
        for api in APIS
    ),
]
