"""The named quirks of endpoints that speak OpenAI's chat completions.

The names are those of the `compat` objects in `models.json`, in camel case there. A quirk is set in the row
of a provider or model, never guessed from an address.
"""

# No `from __future__ import annotations` here: msgspec would have to compile the text of each field's type while a
# run starts, which costs more than all else in this module.

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from cantle_ai.apis.model_quirks import model_quirks
from cantle_ai.model import Model

__all__ = ["OpenAICompletionsCompat", "ThinkingFormat", "compat_of"]

ThinkingFormat: TypeAlias = Literal[
    "openai",
    "openrouter",
    "deepseek",
    "together",
    "baseten",
    "zai",
    "qwen",
    "chat-template",
    "qwen-chat-template",
    "string-thinking",
    "ant-ling",
]


class OpenAICompletionsCompat(Struct, frozen=True, kw_only=True, rename="camel"):
    """How an endpoint differs from the plainest one. The defaults suit a server that is not known."""

    supports_store: bool = False
    """It knows `store`, which is then sent as false: nothing is to be kept."""
    supports_developer_role: bool = False
    """The system prompt of reasoning models goes out in the role `developer`."""
    supports_reasoning_effort: bool = True
    """It knows `reasoning_effort`."""
    supports_usage_in_streaming: bool = True
    """It knows `stream_options.include_usage`."""
    reports_cost: bool = False
    """Its `usage.cost` is what the request was billed, in US dollars, and goes before what prices make of it:
    "Usage accounting" in OpenRouter's documentation."""
    supports_finish_reason: bool = True
    """Its last chunk names a `finish_reason`. Without one, the end of the stream ends the answer."""
    max_tokens_field: Literal["max_completion_tokens", "max_tokens"] = "max_completion_tokens"
    """What it calls the output limit."""
    requires_tool_result_name: bool = False
    """Tool results carry the tool's `name`."""
    requires_assistant_after_tool_result: bool = False
    """Between tool results and a user message it wants an assistant message."""
    requires_non_null_assistant_content: bool = False
    """An answer without text is replayed with the content `""`, not null."""
    requires_tools_with_tool_history: bool = False
    """A request without tools, whose history has tool calls, sends `"tools": []`."""
    requires_thinking_as_text: bool = False
    """Thinking is replayed as text between `<thinking>` tags."""
    requires_reasoning_content_on_assistant_messages: bool = False
    """Replayed answers of a reasoning model have a `reasoning_content`, empty if need be."""
    thinking_format: ThinkingFormat = "openai"
    """How thinking is asked for; see :func:`cantle_ai.apis.openai_completions_thinking.thinking_fields`."""
    chat_template_kwargs: Mapping[str, Any] = {}
    """With the format `chat-template`: what `chat_template_kwargs` holds. `{"$var": NAME}` stands for
    `thinking.enabled` (a boolean), `thinking.effort` (the level's name) or `thinking.budget` (its tokens); the
    last two are left out when off."""
    thinking_token_budget_field: (
        Literal["thinking_token_budget", "thinking_budget", "thinking_budget_tokens"] | None
    ) = None
    """Where it takes a bound on thinking, in tokens: vLLM; Qwen, DashScope and SGLang; llama.cpp."""
    supports_thinking_token_budget: bool = False
    """Another way to say `thinking_token_budget`."""
    chat_template_args: Mapping[str, Any] = {}
    """With the format `baseten`: what `chat_template_args` holds, in the same way."""
    open_router_routing: Mapping[str, Any] = {}
    """OpenRouter's routing preferences, sent as `provider`."""
    vercel_gateway_routing: Mapping[str, Any] = {}
    """Vercel AI Gateway's routing preferences, sent as `providerOptions.gateway`."""
    supports_strict_mode: bool = False
    """Tools are declared `strict` where their schemas can be; the endpoint then holds the model to them."""
    requires_uniform_strict_mode: bool = False
    """All tools of a request are strict, or none is, as at Cerebras."""
    zai_tool_stream: bool = False
    """Requests with tools send `tool_stream`, which z.ai needs to stream their arguments."""
    cache_control_format: Literal["anthropic"] | None = None
    """Marks for the prompt cache in Anthropic's form: on the system prompt, the last tool, the last message."""
    send_session_affinity_headers: bool = False
    """Headers carry the session id, so that one machine serves a conversation."""
    session_affinity_format: Literal["openai", "openai-nosession", "openrouter"] = "openai"
    """Which headers: `session_id`, `x-client-request-id` and `x-session-affinity`; those without the first;
    or `x-session-id`."""
    prompt_cache_key_mode: Literal["auto", "enabled", "disabled"] = "auto"
    """Whether `prompt_cache_key` is sent: always, never, or (`auto`) with long retention only."""
    supports_long_cache_retention: bool = False
    """It keeps prompts for long when asked: `prompt_cache_retention`, or a `ttl` in Anthropic's marks."""
    vllm_priority: int | None = None
    """vLLM's scheduling `priority`; lower is earlier."""
    azure_resource: bool = False
    """It is a resource of Azure's: its address and the names of its deployments are a user's own, in the variables
    of :mod:`cantle_ai.apis.azure_openai_address`. From the reference's manual, `providers.md`."""


def compat_of(model: Model) -> OpenAICompletionsCompat:
    """The quirks of a model. Names that belong to other APIs are passed over.

    Raises :class:`ConfigurationError` for a value of the wrong type.
    """
    return model_quirks(model, OpenAICompletionsCompat)
