"""One conversation over every wire API, begun there, and taken over from another; then what is only asked once."""

from __future__ import annotations

import base64
import json
from typing import Any
from urllib.parse import quote

from tests.interop.case import Case, call, calls, text

__all__ = ["CASES"]

_MODELS: dict[str, dict[str, Any]] = {
    "openai-completions": {},
    "openai-responses": {},
    "azure-openai-responses": {},
    "openai-codex-responses": {},
    "anthropic-messages": {},
    "google-generative-ai": {"id": "gemini-2.5-flash"},
    "google-vertex": {"id": "gemini-2.5-flash"},
    "mistral-conversations": {"id": "mistral-small-latest"},
    "bedrock-converse-stream": {"id": "anthropic.claude-sonnet-4-5-20250929-v1:0", "maxTokens": 32_000},
}
"""The APIs, and where what a model takes follows from its id: one of which both programs think the same."""
APIS = tuple(_MODELS)
_GOOGLE = ("google-generative-ai", "google-vertex")
_SIGNED = ("anthropic-messages", "bedrock-converse-stream")


def _token() -> str:
    """What a login with ChatGPT gives: it names the account, and nobody has signed it."""
    claims = {"https://api.openai.com/auth": {"chatgpt_account_id": "account"}, "exp": 4_000_000_000}
    parts = [{"alg": "none"}, claims]
    return ".".join(
        [*(base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts), "x"]
    )


_PROVIDERS = {"openai-codex-responses": {"apiKey": _token()}}
_SETTINGS = {"openai-codex-responses": {"transport": "sse"}}
_PLAIN_BODIES = quote(
    "import zlib from 'node:zlib';import {syncBuiltinESMExports} from 'node:module';"
    "for(const name of ['zstdCompress','zstdCompressSync','createZstdCompress'])delete zlib[name];"
    "syncBuiltinESMExports()"
)
_ENVIRONMENT = {
    # The reference compresses what it sends to ChatGPT, where its runtime can, in a way that Python cannot read.
    "openai-codex-responses": {"NODE_OPTIONS": f"--import=data:text/javascript,{_PLAIN_BODIES}"},
    "bedrock-converse-stream": {
        "AWS_REGION": "us-east-1",
        "AWS_BEARER_TOKEN_BEDROCK": "token",
        "AWS_BEDROCK_FORCE_HTTP1": "1",  # the reference would speak HTTP/2, which needs TLS elsewhere
    },
}
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
FILES = {"a.txt": "one\n", "b.txt": "two\n", "dot.png": PIXEL}


def _talk(api: str) -> tuple[Any, ...]:
    """Thinking, text, calls side by side, an image in a result, a result that is an error, an answer; one more.

    The image is last where the reference puts it among the results of its batch, which Google refuses.
    """
    looks = [_read("dot.png", 3), _read("gone.txt", 4)]
    return (
        calls(
            _thought(api),
            text("I read them."),
            _read("a.txt", 1),
            _read("b.txt", 2),
        ),
        calls(*(looks[::-1] if api in _GOOGLE else looks)),
        "A dot, and nothing.",
        "That is all.",
    )


def _thought(api: str) -> dict[str, Any]:
    """Thinking, signed where the API signs it."""
    thought = {"type": "thinking", "thinking": "Both files."}
    return {**thought, "thinkingSignature": "c2lnbmF0dXJl"} if api in _SIGNED else thought


def _read(path: str, number: int) -> dict[str, Any]:
    """Reads a file. The id is one that every API takes."""
    return {**call("read", {"path": path}), "id": f"call{number:05}"}


def _foreign(answer: Any) -> Any:
    """An answer whose calls have ids that are too long for Mistral."""
    if isinstance(answer, str):
        return answer
    return calls(*({**one, "id": f"long_{one['id']}"} if "id" in one else one for one in answer["content"]))


def _case(kind: str, api: str, **more: Any) -> Case:
    """`more["model"]` is beside what is common to all."""
    common: dict[str, Any] = {"id": "m", "reasoning": True, "input": ["text", "image"], **_MODELS[api]}
    apis = more.pop("apis", (api,))
    return Case(
        name=f"{kind}-{api}",
        apis=apis,
        model={**common, **more.pop("model", {})},
        provider={**_PROVIDERS.get(api, {}), **more.pop("provider", {})},
        settings={**_SETTINGS.get(api, {}), **more.pop("settings", {})},
        environment=_ENVIRONMENT.get(api, {}),
        choose_model=False,
        prefix=False,
        **more,
    )


def _chosen(api: str, provider: str = "loop") -> tuple[str, ...]:
    return ("--provider", provider, "--model", _MODELS[api].get("id", "m"), "--mode", "json")


_LOOP = ("--provider", "loop", "--model")
_HIGH = ("--thinking", "high")


def _cases(api: str) -> list[Case]:
    chosen = _chosen(api)
    other = "anthropic-messages" if api == "openai-completions" else "openai-completions"
    return [
        _case(
            "api",
            api,
            files=FILES,
            answers=_talk(api),
            words=(*chosen, *_HIGH, "Look at the files"),
            then=(("--mode", "json", "-c", *_HIGH, "And?"),),
        ),
        _case(
            "handover",
            api,
            apis=(other, api),
            files=FILES,
            answers=[*map(_foreign, _talk("anthropic-messages" if api == "openai-completions" else api))],
            words=(*chosen, *_HIGH, "Look at the files"),
            then=((*_chosen(api, "loop2"), "-c", *_HIGH, "And?"),),
        ),
        _case(
            "hardest",
            api,
            answers=[
                {"error": {"status": 429, "message": "too many requests", "retryAfterMs": 1000}},
                {
                    **calls({"type": "thinking", "thinking": "Hard."}, text("Hello.")),
                    "usage": {"input": 10, "output": 20, "reasoning": 12},
                },
            ],
            words=(*chosen, "--thinking", "max", "Hi"),
            model={"maxTokens": 64_000, "thinkingLevelMap": {} if api in _GOOGLE else {"max": "max"}},
            settings={"retry": {"baseDelayMs": 5}},
        ),
        _case(
            "ends",
            api,
            answers=[
                {"error": {"status": 400, "message": "the messages are odd"}},
                {"content": "Cut sho", "stopReason": "length"},
                {"content": "I am", "rawStopReason": _FILTERED[api]},
            ],
            words=(*chosen, "Odd"),
            then=((*chosen, "Long"), (*chosen, "Bad")),
        ),
        _case(
            "cached",
            api,
            answers=[{"content": "One.", "usage": {"input": 100, "output": 10, "cacheRead": 64}}, "Two."],
            words=(*chosen, "--thinking", "off", "1", "2"),
            variables={"CACHE_RETENTION": "long"},
        ),
    ]


_FILTERED = {
    "openai-completions": "content_filter",
    "openai-responses": "incomplete.content_filter",
    "azure-openai-responses": "incomplete.content_filter",
    "openai-codex-responses": "incomplete.content_filter",
    "anthropic-messages": "refusal",
    "google-generative-ai": "SAFETY",
    "google-vertex": "SAFETY",
    "mistral-conversations": "content_filter",
    "bedrock-converse-stream": "guardrail_intervened",
}

_BEYOND = [
    _case(
        "signed-third",
        "google-generative-ai",
        files=FILES,
        model={"id": "gemini-3-pro-preview"},
        answers=[
            calls(
                {"type": "thinking", "thinking": "A file."},
                {**_read("a.txt", 1), "thoughtSignature": "b2YgY2FsbA=="},
            ),
            calls({**_read("dot.png", 2), "thoughtSignature": "YW5vdGhlcg=="}),
            {"content": [{"type": "text", "text": "One, and a dot.", "textSignature": "b2YgdGV4dA=="}]},
            "Yes.",
        ],
        words=(*_LOOP, "gemini-3-pro-preview", "--mode", "json", *_HIGH, "Look at the file", "Really?"),
    ),
    _case(
        "adaptive",
        "anthropic-messages",
        model={"compat": {"forceAdaptiveThinking": True}, "thinkingLevelMap": {"max": "max"}},
        answers=[{**calls(_thought("anthropic-messages"), text("Hello."))}, "Yes."],
        words=(*_LOOP, "m", "--mode", "json", "--thinking", "max", "Hi", "Really?"),
    ),
    _case(
        "from-responses",
        "anthropic-messages",
        apis=("openai-responses", "anthropic-messages"),
        files=FILES,
        answers=_talk("openai-responses"),
        words=(*_LOOP, "m", "--mode", "json", *_HIGH, "Look at the files"),
        then=(("--provider", "loop2", "--model", "m", "--mode", "json", "-c", *_HIGH, "And?"),),
    ),
]
"""What models of one API alone do."""

CASES = [*(case for api in APIS for case in _cases(api)), *_BEYOND]
