"""The tables of what exists: providers as rows, and wire APIs by name. Adding one is adding a row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from cantle_ai.model import Provider

if TYPE_CHECKING:
    from cantle_ai.apis.port import WireApi
    from cantle_ai.codec import Json

__all__ = ["BUILTIN_PROVIDERS", "LOCAL_API", "WIRE_APIS"]

LOCAL_API = "llama-cpp"
"""The API of models that run in this process. Their `base_url` is the path of a GGUF file."""

_COMPLETIONS = "openai-completions"
_RESPONSES = "openai-responses"
_MESSAGES = "anthropic-messages"

# The quirks of services that have several rows.

_QWEN: Mapping[str, Json] = {"supportsStrictMode": True, "thinkingFormat": "qwen"}

_XIAOMI: Mapping[str, Json] = {
    "supportsStore": True,
    "supportsStrictMode": True,
    "supportsReasoningEffort": False,
    "thinkingFormat": "deepseek",
    "requiresReasoningContentOnAssistantMessages": True,
}

_ZAI: Mapping[str, Json] = {
    "supportsStrictMode": True,
    "maxTokensField": "max_tokens",
    "thinkingFormat": "zai",
    "zaiToolStream": True,
}

# A session's cache is found by `prompt_cache_key`, as Moonshot's own client sends it:
# https://github.com/MoonshotAI/kimi-cli/blob/main/packages/kosong/src/kosong/chat_provider/kimi.py
# While Kimi thinks, it refuses calls without thoughts, as those of other models are:
# https://platform.moonshot.ai/docs/guide/use-kimi-k2-thinking-model, and github.com/continuedev/continue/issues/11600
_MOONSHOT: Mapping[str, Json] = {
    "maxTokensField": "max_tokens",
    "promptCacheKeyMode": "enabled",
    "requiresReasoningContentOnAssistantMessages": True,
}

_OPENCODE: Mapping[str, Json] = {"maxTokensField": "max_tokens"}

BUILTIN_PROVIDERS: tuple[Provider, ...] = (
    Provider(
        id="openai",
        name="OpenAI",
        base_url="https://api.openai.com/v1",
        api=_RESPONSES,
        key_variables=("OPENAI_API_KEY",),
        login="openai",
        # https://platform.openai.com/docs/api-reference/responses/create, …/chat/create
        compat={
            "supportsStore": True,
            "supportsDeveloperRole": True,
            "supportsStrictMode": True,
            "promptCacheKeyMode": "enabled",
            "supportsLongCacheRetention": True,
        },
    ),
    Provider(
        id="anthropic",
        name="Anthropic",
        base_url="https://api.anthropic.com",
        api=_MESSAGES,
        key_variables=("ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_OAUTH_TOKEN", "ANTHROPIC_API_KEY"),
        key_kinds={"ANTHROPIC_AUTH_TOKEN": "bearer", "ANTHROPIC_OAUTH_TOKEN": "oauth"},
        login="anthropic",
        ambient="anthropic-federation",
        # https://platform.claude.com/docs/en/build-with-claude/structured-outputs
        compat={"supportsStrictTools": True},
    ),
    Provider(
        id="google",
        name="Google Gemini",
        base_url="https://generativelanguage.googleapis.com/v1beta",
        api="google-generative-ai",
        key_variables=("GEMINI_API_KEY",),
    ),
    Provider(
        id="google-vertex",
        name="Google Vertex AI",
        base_url="",  # follows from GOOGLE_CLOUD_LOCATION
        api="google-vertex",
        key_variables=("GOOGLE_CLOUD_API_KEY",),
        ambient="google-cloud",
    ),
    Provider(
        id="amazon-bedrock",
        name="Amazon Bedrock",
        base_url="",  # the region's own; see bedrock_converse_endpoint.py
        api="bedrock-converse-stream",
        key_variables=("AWS_BEARER_TOKEN_BEDROCK",),
        ambient="aws",
    ),
    Provider(
        id="azure",
        name="Azure OpenAI",
        base_url="",  # comes from AZURE_OPENAI_BASE_URL or AZURE_OPENAI_RESOURCE_NAME
        api="azure-openai-responses",
        key_variables=("AZURE_OPENAI_API_KEY",),
        compat={"azureResource": True, "supportsStore": True, "supportsStrictMode": True},
    ),
    Provider(
        id="openai-codex",
        name="ChatGPT subscription",
        base_url="https://chatgpt.com/backend-api",
        api="openai-codex-responses",
        login="openai-codex",
    ),
    Provider(
        id="github-copilot",
        name="GitHub Copilot",
        base_url="https://api.individual.githubcopilot.com",
        api=_RESPONSES,
        key_variables=("COPILOT_GITHUB_TOKEN",),
        key_header="Authorization",  # whatever the API's own way is
        login="github-copilot",
        # Copilot answers editors only, and bills by who speaks last:
        # https://docs.github.com/copilot/concepts/billing/copilot-requests
        headers={
            "User-Agent": "GitHubCopilotChat/0.35.0",
            "Editor-Version": "vscode/1.107.0",
            "Editor-Plugin-Version": "copilot-chat/0.35.0",
            "Copilot-Integration-Id": "vscode-chat",
            "Openai-Intent": "conversation-edits",
        },
        live_headers={"X-Initiator": "initiator", "Copilot-Vision-Request": "vision"},
        compat={"supportsStrictMode": True, "supportsStrictTools": True},
    ),
    Provider(
        id="openrouter",
        name="OpenRouter",
        base_url="https://openrouter.ai/api/v1",
        endpoints={_MESSAGES: "https://openrouter.ai/api"},
        api=_COMPLETIONS,
        key_variables=("OPENROUTER_API_KEY",),
        login="openrouter",
        # https://openrouter.ai/docs/use-cases/reasoning-tokens, https://openrouter.ai/docs/guides/best-practices/prompt-caching
        compat={
            "supportsStore": True,
            "supportsStrictMode": True,
            "reportsCost": True,
            "thinkingFormat": "openrouter",
            "sendSessionAffinityHeaders": True,
            "sessionAffinityFormat": "openrouter",
        },
    ),
    Provider(
        id="vercel-ai-gateway",
        name="Vercel AI Gateway",
        base_url="https://ai-gateway.vercel.sh",
        endpoints={
            _COMPLETIONS: "https://ai-gateway.vercel.sh/v1",
            _RESPONSES: "https://ai-gateway.vercel.sh/v1",
        },
        api=_MESSAGES,
        key_variables=("AI_GATEWAY_API_KEY",),
        # Models of all makers stand behind Anthropic's API here; the thinking of most is not signed.
        compat={"allowEmptySignature": True},
    ),
    Provider(
        id="cloudflare-ai-gateway",
        name="Cloudflare AI Gateway",
        base_url="https://gateway.ai.cloudflare.com/v1/{CLOUDFLARE_ACCOUNT_ID}/{CLOUDFLARE_GATEWAY_ID}/compat",
        endpoints={
            _MESSAGES: "https://gateway.ai.cloudflare.com/v1/{CLOUDFLARE_ACCOUNT_ID}/{CLOUDFLARE_GATEWAY_ID}/anthropic",
            _RESPONSES: "https://gateway.ai.cloudflare.com/v1/{CLOUDFLARE_ACCOUNT_ID}/{CLOUDFLARE_GATEWAY_ID}/openai",
        },
        api=_COMPLETIONS,
        key_variables=("CLOUDFLARE_API_KEY",),
        # https://developers.cloudflare.com/ai-gateway/configuration/authentication/
        key_header="cf-aig-authorization",
        compat={"maxTokensField": "max_tokens", "sendSessionAffinityHeaders": True},
    ),
    Provider(
        id="cloudflare-workers-ai",
        name="Cloudflare Workers AI",
        base_url="https://api.cloudflare.com/client/v4/accounts/{CLOUDFLARE_ACCOUNT_ID}/ai/v1",
        api=_COMPLETIONS,
        key_variables=("CLOUDFLARE_API_KEY",),
        # https://developers.cloudflare.com/workers-ai/features/prompt-caching
        compat={"supportsStrictMode": True, "sendSessionAffinityHeaders": True},
    ),
    Provider(
        id="opencode",
        name="OpenCode Zen",
        base_url="https://opencode.ai/inference/openai/v1",
        endpoints={
            _MESSAGES: "https://opencode.ai/inference/anthropic",
            "google-generative-ai": "https://opencode.ai/inference/google/v1beta",
        },
        api=_COMPLETIONS,
        key_variables=("OPENCODE_API_KEY",),
        # https://opencode.ai/docs/zen
        live_headers={"x-opencode-session": "session"},
        compat=_OPENCODE,
    ),
    Provider(
        id="opencode-go",
        name="OpenCode Go",
        base_url="https://opencode.ai/inference/go/openai/v1",
        endpoints={
            _MESSAGES: "https://opencode.ai/inference/go/anthropic",
            "google-generative-ai": "https://opencode.ai/inference/go/google/v1beta",
        },
        api=_COMPLETIONS,
        key_variables=("OPENCODE_API_KEY",),
        # Requests without the header are refused: https://opencode.ai/docs/go
        live_headers={"x-opencode-session": "session"},
        compat=_OPENCODE,
    ),
    Provider(
        id="mistral",
        name="Mistral",
        base_url="https://api.mistral.ai",
        api="mistral-conversations",
        key_variables=("MISTRAL_API_KEY",),
    ),
    Provider(
        id="xai",
        name="xAI",
        base_url="https://api.x.ai/v1",
        api=_RESPONSES,
        key_variables=("XAI_API_KEY",),
        login="xai",
        # https://docs.x.ai/developers/advanced-api-usage/prompt-caching: nothing says how long
        compat={"supportsLongCacheRetention": False},
    ),
    Provider(
        id="deepseek",
        name="DeepSeek",
        base_url="https://api.deepseek.com",
        api=_COMPLETIONS,
        key_variables=("DEEPSEEK_API_KEY",),
        # https://api-docs.deepseek.com/guides/thinking_mode
        compat={
            "supportsStrictMode": True,
            "maxTokensField": "max_tokens",
            "thinkingFormat": "deepseek",
            "requiresReasoningContentOnAssistantMessages": True,
        },
    ),
    Provider(
        id="groq",
        name="Groq",
        base_url="https://api.groq.com/openai/v1",
        api=_COMPLETIONS,
        key_variables=("GROQ_API_KEY",),
        # https://console.groq.com/docs/api-reference#chat-create
        compat={"supportsStore": True, "supportsStrictMode": True},
    ),
    Provider(
        id="cerebras",
        name="Cerebras",
        base_url="https://api.cerebras.ai/v1",
        api=_COMPLETIONS,
        key_variables=("CEREBRAS_API_KEY",),
    ),
    Provider(
        id="fireworks",
        name="Fireworks",
        base_url="https://api.fireworks.ai/inference/v1",
        endpoints={_MESSAGES: "https://api.fireworks.ai/inference"},
        api=_COMPLETIONS,
        key_variables=("FIREWORKS_API_KEY",),
        # https://docs.fireworks.ai/guides/prompt-caching
        compat={
            "supportsStrictMode": True,
            "sendSessionAffinityHeaders": True,
            "supportsLongCacheRetention": False,
            "supportsEagerToolInputStreaming": False,
            "supportsCacheControlOnTools": False,
            "allowEmptySignature": True,
        },
    ),
    Provider(
        id="together",
        name="Together AI",
        base_url="https://api.together.ai/v1",
        api=_COMPLETIONS,
        key_variables=("TOGETHER_API_KEY",),
        # https://docs.together.ai/docs/inference/chat/reasoning
        compat={
            "supportsReasoningEffort": False,
            "maxTokensField": "max_tokens",
            "thinkingFormat": "together",
        },
    ),
    Provider(
        id="baseten",
        name="Baseten",
        base_url="https://inference.baseten.co/v1",
        api=_COMPLETIONS,
        key_variables=("BASETEN_API_KEY",),
        compat={
            "supportsStrictMode": True,
            "maxTokensField": "max_tokens",
            "sendSessionAffinityHeaders": True,
        },
    ),
    Provider(
        id="huggingface",
        name="Hugging Face",
        base_url="https://router.huggingface.co/v1",
        api=_COMPLETIONS,
        key_variables=("HF_TOKEN",),
        compat={"supportsStore": True, "supportsStrictMode": True},
    ),
    Provider(
        id="nvidia",
        name="NVIDIA NIM",
        base_url="https://integrate.api.nvidia.com/v1",
        api=_COMPLETIONS,
        key_variables=("NVIDIA_API_KEY",),
        # For how long a request may be held open, instead of answered with a ticket to ask again with.
        headers={"NVCF-POLL-SECONDS": "3600"},
        compat={"supportsReasoningEffort": False, "maxTokensField": "max_tokens"},
    ),
    Provider(
        id="moonshotai",
        name="Moonshot AI",
        base_url="https://api.moonshot.ai/v1",
        api=_COMPLETIONS,
        key_variables=("MOONSHOT_API_KEY",),
        compat=_MOONSHOT,
    ),
    Provider(
        id="moonshotai-cn",
        name="Moonshot AI (China)",
        base_url="https://api.moonshot.cn/v1",
        api=_COMPLETIONS,
        key_variables=("MOONSHOT_API_KEY",),
        compat=_MOONSHOT,
    ),
    Provider(
        id="kimi-coding",
        name="Kimi For Coding",
        base_url="https://api.kimi.com/coding/v1",
        api=_COMPLETIONS,
        key_variables=("KIMI_API_KEY",),
        login="kimi-coding",
        compat=_MOONSHOT,
    ),
    Provider(
        id="minimax",
        name="MiniMax",
        base_url="https://api.minimax.io/anthropic",
        api=_MESSAGES,
        key_variables=("MINIMAX_API_KEY",),
    ),
    Provider(
        id="minimax-cn",
        name="MiniMax (China)",
        base_url="https://api.minimaxi.com/anthropic",
        api=_MESSAGES,
        key_variables=("MINIMAX_CN_API_KEY",),
    ),
    Provider(
        id="zai",
        name="Z.AI Coding Plan",
        base_url="https://api.z.ai/api/coding/paas/v4",
        api=_COMPLETIONS,
        key_variables=("ZAI_API_KEY",),
        compat=_ZAI,
    ),
    Provider(
        id="zai-coding-cn",
        name="Z.AI Coding Plan (China)",
        base_url="https://open.bigmodel.cn/api/coding/paas/v4",
        api=_COMPLETIONS,
        key_variables=("ZAI_CODING_CN_API_KEY",),
        compat=_ZAI,
    ),
    Provider(
        id="qwen-token-plan",
        name="Qwen Token Plan Team",
        base_url="https://token-plan.maas.qwencloudapi.com/compatible-mode/v1",
        api=_COMPLETIONS,
        key_variables=("QWEN_TOKEN_PLAN_TEAM_API_KEY", "QWEN_TOKEN_PLAN_API_KEY"),
        compat=_QWEN,
    ),
    Provider(
        id="qwen-token-plan-cn",
        name="Qwen Token Plan Team (China)",
        base_url="https://token-plan.maas.qianwenaiapi.com/compatible-mode/v1",
        api=_COMPLETIONS,
        key_variables=("QWEN_TOKEN_PLAN_TEAM_CN_API_KEY", "QWEN_TOKEN_PLAN_CN_API_KEY"),
        compat=_QWEN,
    ),
    Provider(
        id="qwen-token-plan-individual",
        name="Qwen Token Plan Individual",
        base_url="https://token-plan.maas.qwencloudapi.com/compatible-mode/v1",
        api=_COMPLETIONS,
        key_variables=("QWEN_TOKEN_PLAN_INDIVIDUAL_API_KEY", "QWEN_TOKEN_PLAN_API_KEY"),
        compat=_QWEN,
    ),
    Provider(
        id="qwen-token-plan-individual-cn",
        name="Qwen Token Plan Individual (China)",
        base_url="https://token-plan.maas.qianwenaiapi.com/compatible-mode/v1",
        api=_COMPLETIONS,
        key_variables=("QWEN_TOKEN_PLAN_INDIVIDUAL_CN_API_KEY", "QWEN_TOKEN_PLAN_CN_API_KEY"),
        compat=_QWEN,
    ),
    Provider(
        id="xiaomi",
        name="Xiaomi MiMo",
        base_url="https://api.xiaomimimo.com/v1",
        api=_COMPLETIONS,
        key_variables=("XIAOMI_API_KEY",),
        compat=_XIAOMI,
    ),
    Provider(
        id="xiaomi-token-plan-cn",
        name="Xiaomi MiMo Token Plan (China)",
        base_url="https://token-plan-cn.xiaomimimo.com/v1",
        api=_COMPLETIONS,
        key_variables=("XIAOMI_TOKEN_PLAN_CN_API_KEY",),
        compat=_XIAOMI,
    ),
    Provider(
        id="xiaomi-token-plan-ams",
        name="Xiaomi MiMo Token Plan (Amsterdam)",
        base_url="https://token-plan-ams.xiaomimimo.com/v1",
        api=_COMPLETIONS,
        key_variables=("XIAOMI_TOKEN_PLAN_AMS_API_KEY",),
        compat=_XIAOMI,
    ),
    Provider(
        id="xiaomi-token-plan-sgp",
        name="Xiaomi MiMo Token Plan (Singapore)",
        base_url="https://token-plan-sgp.xiaomimimo.com/v1",
        api=_COMPLETIONS,
        key_variables=("XIAOMI_TOKEN_PLAN_SGP_API_KEY",),
        compat=_XIAOMI,
    ),
    Provider(
        id="ant-ling",
        name="Ant Ling",
        base_url="https://api.ant-ling.com/v1",
        api=_COMPLETIONS,
        key_variables=("ANT_LING_API_KEY",),
        compat={
            "supportsStrictMode": True,
            "supportsReasoningEffort": False,
            "maxTokensField": "max_tokens",
            "thinkingFormat": "ant-ling",
        },
    ),
    Provider(
        id="meta",
        name="Meta",
        base_url="https://api.meta.ai/v1",
        api=_RESPONSES,
        key_variables=("META_API_KEY",),
        login="meta",
    ),
    # Servers of this machine. Each is asked for its models when somebody wants them: cantle_ai.local_servers.
    # https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md
    Provider(
        id="llama.cpp",
        name="llama.cpp",
        base_url="http://127.0.0.1:9931/v1",
        api=_COMPLETIONS,
        key_variables=("LLAMA_API_KEY",),
        key_optional=True,
        compat={"maxTokensField": "max_tokens", "thinkingTokenBudgetField": "thinking_budget_tokens"},
        server="llama.cpp",
        url_variable="LLAMA_BASE_URL",
        automatic=False,
    ),
    # https://docs.ollama.com/api/openai-compatibility
    Provider(
        id="ollama",
        name="Ollama",
        base_url="http://127.0.0.1:11434/v1",
        api=_COMPLETIONS,
        key_variables=("OLLAMA_API_KEY",),
        key_optional=True,
        compat={"maxTokensField": "max_tokens"},
        server="ollama",
        url_variable="OLLAMA_HOST",
        automatic=False,
    ),
    # https://lmstudio.ai/docs/developer/openai-compat
    Provider(
        id="lmstudio",
        name="LM Studio",
        base_url="http://127.0.0.1:1234/v1",
        api=_COMPLETIONS,
        key_variables=("LM_API_TOKEN",),
        key_optional=True,
        compat={"maxTokensField": "max_tokens"},
        server="lm-studio",
        automatic=False,
    ),
    # https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html
    Provider(
        id="vllm",
        name="vLLM",
        base_url="http://127.0.0.1:8000/v1",
        api=_COMPLETIONS,
        key_variables=("VLLM_API_KEY",),
        key_optional=True,
        compat={"maxTokensField": "max_tokens", "thinkingTokenBudgetField": "thinking_token_budget"},
        server="openai",
        automatic=False,
    ),
    # https://docs.sglang.io/docs/basic_usage/openai_api_completions, and the reference's manual for the thinking budget
    Provider(
        id="sglang",
        name="SGLang",
        base_url="http://127.0.0.1:30000/v1",
        api=_COMPLETIONS,
        key_variables=("SGLANG_API_KEY",),
        key_optional=True,
        compat={"maxTokensField": "max_tokens", "thinkingTokenBudgetField": "thinking_budget"},
        server="openai",
        automatic=False,
    ),
    Provider(
        id="local",
        name="Local model",
        base_url="",
        api=LOCAL_API,
        key_optional=True,
        automatic=False,
    ),
)
"""The providers that are known without configuration. Their models are in :mod:`cantle_ai.catalog`.

Of those with a key the first is chosen where nobody named one. A quirk without a page of the vendor's beside it is
what version 1.6.0 of the reference has in its catalog, or was seen to send."""


def _openai_completions() -> WireApi:
    from cantle_ai.apis import openai_completions

    return openai_completions.source


def _mistral_conversations() -> WireApi:
    from cantle_ai.apis import mistral_conversations

    return mistral_conversations.source


def _google_generative_ai() -> WireApi:
    from cantle_ai.apis import google_generative_ai

    return google_generative_ai.source


def _google_vertex() -> WireApi:
    from cantle_ai.apis.google_vertex import GoogleVertex

    return GoogleVertex()


def _openai_responses() -> WireApi:
    from cantle_ai.apis import openai_responses

    return openai_responses.source


def _azure_openai_responses() -> WireApi:
    from cantle_ai.apis import azure_openai_responses

    return azure_openai_responses.source


def _openai_codex_responses() -> WireApi:
    from cantle_ai.apis import openai_codex_responses

    return openai_codex_responses.source


def _bedrock_converse_stream() -> WireApi:
    from cantle_ai.apis.bedrock_converse_stream import BedrockConverse

    return BedrockConverse()


def _llama_cpp() -> WireApi:
    from cantle_ai.apis.llama_cpp import LlamaCpp

    return LlamaCpp()


def _anthropic_messages() -> WireApi:
    from cantle_ai.apis import anthropic_messages

    return anthropic_messages.source


WIRE_APIS: Mapping[str, Callable[[], WireApi]] = {
    LOCAL_API: _llama_cpp,
    "anthropic-messages": _anthropic_messages,
    "openai-completions": _openai_completions,
    "openai-responses": _openai_responses,
    "azure-openai-responses": _azure_openai_responses,
    "openai-codex-responses": _openai_codex_responses,
    "mistral-conversations": _mistral_conversations,
    "google-generative-ai": _google_generative_ai,
    "google-vertex": _google_vertex,
    "bedrock-converse-stream": _bedrock_converse_stream,
}
"""What loads the module of a wire API, by the API's name; called when the first request speaks it."""
