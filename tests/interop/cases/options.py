"""Tools that are chosen, figures of models.json, and calls that cannot be meant."""

from __future__ import annotations

from typing import Any

from tests.interop.case import Case, call, calls, text
from tests.interop.cases.inputs import PNG

_JSON = ("--mode", "json")


def _compat(name: str, compat: dict[str, Any], **more: Any) -> Case:
    return Case(name=f"compat-{name}", provider={"compat": compat}, **more)


_REASONS: dict[str, Any] = {"reasoning": True, "compat": {"supportsReasoningEffort": True}}
_HARD: dict[str, Any] = {
    "model": {"reasoning": True, "maxTokens": 32000},
    "words": (*_JSON, "--thinking", "high", "Hi"),
}
_BUDGET: dict[str, Any] = {"$var": "thinking.budget"}
_EFFORT: dict[str, Any] = {"$var": "thinking.effort"}
_HISTORY: dict[str, Any] = {
    "answers": [calls(text("I look."), call("bash", {"command": "echo hi"})), "One.", "Two."],
    "words": (*_JSON, "1", "2"),
}

CASES = [
    Case(name="tools", words=(*_JSON, "--tools", "read,bash", "Hi")),
    Case(name="tools-added", words=(*_JSON, "--tools", "+grep,-write", "Hi")),
    Case(name="tools-excluded", words=(*_JSON, "--exclude-tools", "b*", "Hi")),
    Case(name="tools-none", words=(*_JSON, "--no-tools", "Hi")),
    Case(name="tools-read-only", words=(*_JSON, "--tools", "read,grep,find,ls", "Hi")),
    Case(name="tools-in-settings", settings={"defaultTools": ["read"]}),
    Case(name="tools-unknown", words=("-p", "--tools", "read,teleport", "Hi")),
    Case(name="version", words=("--version",), choose_model=False),
    Case(name="bad-option", words=("--no-such-option", "-p", "Hi"), answers=[]),
    Case(name="bad-short-option", words=("-Q", "-p", "Hi"), answers=[]),
    Case(name="bad-mode", words=("--mode", "dance", "Hi"), answers=[]),
    Case(name="bad-thinking", words=("--thinking", "deeply", "-p", "Hi"), answers=["Hello."]),
    Case(name="no-prompt", words=("-p",), answers=[]),
    Case(
        name="no-such-model", words=("--provider", "loop", "--model", "other", "-p", "Hi"), choose_model=False
    ),
    Case(
        name="no-such-provider",
        words=("--provider", "nobody", "--model", "m", "-p", "Hi"),
        choose_model=False,
        answers=[],
    ),
    Case(name="model-with-provider", words=("--model", "loop/m", *_JSON, "Hi"), choose_model=False),
    Case(
        name="model-with-level",
        words=("--model", "loop/m:high", *_JSON, "Hi"),
        choose_model=False,
        model={"reasoning": True, "compat": {"supportsReasoningEffort": True}},
    ),
    Case(
        name="model-in-settings",
        words=(*_JSON, "Hi"),
        choose_model=False,
        settings={"defaultProvider": "loop", "defaultModel": "m"},
    ),
    Case(name="key-of-the-run", words=("--api-key", "sk-run", *_JSON, "Hi")),
    Case(name="settings-broken", settings={"defaultTools": 7}),
    Case(
        name="settings-of-others",
        settings={"$schema": "https://example.com/s.json", "theme": "dark", "later": {"a": 1}},
    ),
    Case(name="level-in-settings", settings={"defaultThinkingLevel": "low"}, model=_REASONS),
    Case(name="level-of-the-model", settings={"modelThinkingLevels": {"loop/m": "high"}}, model=_REASONS),
    Case(name="level-by-default", model=_REASONS),
    Case(
        name="images-blocked",
        settings={"images": {"blockImages": True}},
        files={"dot.png": PNG},
        words=(*_JSON, "@dot.png", "See?"),
        model={"input": ["text", "image"]},
    ),
    Case(name="key-without-model", words=("--api-key", "sk-run", "-p", "Hi"), choose_model=False, answers=[]),
    Case(name="provider-alone", words=("--provider", "loop", "-p", "Hi"), choose_model=False),
    Case(
        name="part-of-a-model",
        words=("--model", "test-model", *_JSON, "Hi"),
        choose_model=False,
        model={"name": "The test-model"},
    ),
    Case(
        name="key-from-the-environment", provider={"apiKey": "$LOOP_KEY"}, environment={"LOOP_KEY": "sk-env"}
    ),
    Case(name="key-from-a-command", provider={"apiKey": "!echo sk-command"}),
    Case(name="auth-header", provider={"authHeader": True}),
    Case(name="headers", provider={"headers": {"X-Team": "blue"}}, model={"headers": {"X-Model": "m"}}),
    Case(name="sampling", model={"samplingParams": {"temperature": 0.5, "top_p": 0.9}}),
    Case(
        name="cache-retention",
        provider={"compat": {"supportsLongCacheRetention": True}},
        variables={"CACHE_RETENTION": "long"},
    ),
    _compat("store", {"supportsStore": True}),
    _compat("no-store", {"supportsStore": False}),
    _compat("developer", {"supportsDeveloperRole": True}, model={"reasoning": True}),
    _compat("no-developer", {"supportsDeveloperRole": False}, model={"reasoning": True}),
    _compat("no-usage", {"supportsUsageInStreaming": False}),
    _compat("max-tokens", {"maxTokensField": "max_tokens"}),
    _compat("max-completion-tokens", {"maxTokensField": "max_completion_tokens"}),
    _compat("tool-result-name", {"requiresToolResultName": True}, **_HISTORY),
    _compat("assistant-after-tool", {"requiresAssistantAfterToolResult": True}, **_HISTORY),
    _compat(
        "content-not-null",
        {"requiresNonNullAssistantContent": True},
        answers=[calls(call("bash", {"command": "echo hi"}))],
    ),
    _compat(
        "thinking-as-text",
        {"requiresThinkingAsText": True},
        model={"reasoning": True},
        answers=[
            calls({"type": "thinking", "thinking": "I think."}, {"type": "text", "text": "One."}),
            "Two.",
        ],
        words=(*_JSON, "1", "2"),
    ),
    _compat("cache-control", {"cacheControlFormat": "anthropic"}, **_HISTORY, prefix=False),
    _compat("affinity", {"sendSessionAffinityHeaders": True}),
    _compat("affinity-openai", {"sendSessionAffinityHeaders": True, "sessionAffinityFormat": "openai"}),
    _compat(
        "affinity-openrouter", {"sendSessionAffinityHeaders": True, "sessionAffinityFormat": "openrouter"}
    ),
    _compat("cache-key", {"promptCacheKeyMode": "enabled"}),
    _compat("no-cache-key", {"promptCacheKeyMode": "disabled"}),
    _compat("strict", {"supportsStrictMode": True}),
    _compat("qwen", {"thinkingFormat": "qwen"}, model={"reasoning": True}, extra_fields=["enable_thinking"]),
    _compat("zai", {"thinkingFormat": "zai"}, model={"reasoning": True}, extra_fields=["thinking"]),
    _compat(
        "openrouter", {"thinkingFormat": "openrouter"}, model={"reasoning": True}, extra_fields=["reasoning"]
    ),
    _compat("deepseek", {"thinkingFormat": "deepseek"}, model={"reasoning": True}, extra_fields=["thinking"]),
    _compat("together", {"thinkingFormat": "together"}, **_HARD, extra_fields=["reasoning"]),
    _compat("string-thinking", {"thinkingFormat": "string-thinking"}, **_HARD, extra_fields=["thinking"]),
    _compat(
        "qwen-chat-template",
        {"thinkingFormat": "qwen-chat-template"},
        **_HARD,
        extra_fields=["chat_template_kwargs"],
    ),
    _compat(
        "chat-template",
        {
            "thinkingFormat": "chat-template",
            "chatTemplateKwargs": {"budget": _BUDGET, "effort": _EFFORT, "x": 1},
        },
        **_HARD,
        extra_fields=["chat_template_kwargs"],
    ),
    _compat(
        "baseten",
        {"thinkingFormat": "baseten", "chatTemplateArgs": {"effort": _EFFORT}},
        **_HARD,
        extra_fields=["chat_template_args"],
    ),
    _compat(
        "budget-vllm", {"supportsThinkingTokenBudget": True}, **_HARD, extra_fields=["thinking_token_budget"]
    ),
    _compat(
        "budget-llama",
        {"thinkingTokenBudgetField": "thinking_budget_tokens"},
        **_HARD,
        settings={"thinkingBudgets": {"high": 7777}},
        extra_fields=["thinking_budget_tokens"],
    ),
    _compat(
        "reasoning-content", {"requiresReasoningContentOnAssistantMessages": True}, **{**_HARD, **_HISTORY}
    ),
    _compat(
        "affinity-nosession",
        {"sendSessionAffinityHeaders": True, "sessionAffinityFormat": "openai-nosession"},
    ),
    _compat(
        "routing",
        {
            "openRouterRouting": {"order": ["a"]},
            "vercelGatewayRouting": {"only": ["b"]},
            "zaiToolStream": True,
        },
        extra_fields=["provider", "providerOptions", "tool_stream"],
    ),
    _compat("priority", {"vllmPriority": 3}, extra_fields=["priority"]),
]
