"""The rows and quirks of providers that speak chat completions, set beside what the reference sends to each."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from cantle_ai.content import TextContent, ToolCall
from cantle_ai.context import Context, ToolDefinition
from cantle_ai.messages import AssistantMessage, Message, ToolResultMessage, UserMessage
from cantle_ai.model import Model, StreamOptions
from cantle_ai.models import Models
from cantle_ai.transport.port import HttpRequest
from packages.ai.tests.wall import Wall
from tests.support.reference import evaluated

API = "openai-completions"
PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {"path": {"type": "string"}},
    "required": ["path"],
    "additionalProperties": False,
}
ENVIRON = {
    "CLOUDFLARE_ACCOUNT_ID": "account",
    "CLOUDFLARE_GATEWAY_ID": "gate",
    "AZURE_OPENAI_BASE_URL": "https://r.openai.azure.com",
}

OURS = frozenset({"messages", "tools", "prompt_cache_key"})
"""Compared in another way, or not: Moonshot's cache is found by a key that the reference does not send."""
OF_MOONSHOT = frozenset({"moonshotai", "moonshotai-cn", "kimi-coding"})
"""Whose models all have the field for thoughts here, and the newer ones there."""
OF_THE_PROGRAM = frozenset({"accept", "content-type", "user-agent"})
OF_A_KEY = frozenset({"authorization", "cf-aig-authorization"})
"""The reference's functions are called here below the place where it moves a gateway's key."""

SCRIPT = """
    import { builtinProviders } from "@earendil-works/pi-ai/providers/all";

    Object.assign(process.env, ENVIRON);
    let seen;
    globalThis.fetch = async (url, { body, headers }) => {
        seen ??= { url: String(url), headers: Object.fromEntries(new Headers(headers)), body: JSON.parse(body) };
        return new Response("{}", { status: 400 });
    };
    const tool = { name: "ls", description: "d", parameters: PARAMETERS };
    const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 };
    const usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 0, cost };
    const told = [];
    for (const provider of builtinProviders()) {
        const kinds = new Set();
        for (const model of provider.getModels().filter(({ api }) => api === API)) {
            const kind = JSON.stringify([model.reasoning, model.compat, model.thinkingLevelMap]);
            if (kinds.has(kind)) continue;
            kinds.add(kind);
            const call = { type: "toolCall", id: "call_1", name: "ls", arguments: { path: "x" } };
            const by = { api: API, provider: provider.id, model: model.id };
            const messages = [
                { role: "system", content: "Be brief.", toolsAdded: [tool], timestamp: 1 },
                { role: "user", content: "hi", timestamp: 1 },
                { role: "assistant", content: [call], ...by, usage, stopReason: "toolUse", timestamp: 1 },
                { role: "toolResult", toolCallId: "call_1", toolName: "ls", content: [{ type: "text", text: "out" }], isError: false, timestamp: 1 },
                { role: "user", content: "next", timestamp: 1 },
            ];
            seen = undefined;
            const options = { apiKey: "k", sessionId: "session", maxTokens: 777, maxRetries: 0, reasoning: "high", env: ENVIRON };
            for await (const event of provider.streamSimple(model, { messages }, options));
            told.push({ provider: provider.id, model: model.id, ...seen });
        }
    }
    console.log(JSON.stringify(told));
"""


async def ours(models: Models, wall: Wall, model: Model) -> HttpRequest:
    """The request that the same conversation makes here."""
    call = ToolCall(id="call_1", name="ls", arguments={"path": "x"})
    answer = AssistantMessage(
        content=[call], api=model.api, provider=model.provider, model=model.id, stop_reason="toolUse"
    )
    result = ToolResultMessage(tool_call_id="call_1", tool_name="ls", content=[TextContent("out")])
    messages: list[Message] = [UserMessage("hi"), answer, result, UserMessage("next")]
    tool = ToolDefinition(name="ls", description="d", parameters=PARAMETERS)
    options = StreamOptions(api_key="k", session_id="session", max_tokens=777, thinking="high")
    await models.complete(model, Context("Be brief.", messages, [tool]), options)
    return wall.requests.pop()


def shape(body: Mapping[str, Any]) -> list[tuple[str, list[str]]]:
    """Roles of the messages, and the fields that each has."""
    return [(message["role"], sorted(message)) for message in body["messages"]]


def differences(mine: HttpRequest, theirs: Mapping[str, Any]) -> dict[str, Any]:
    body, other = json.loads(mine.body or b""), theirs["body"]
    headers = {name.lower(): value for name, value in mine.headers.items()}
    compared = {
        "url": (mine.url, theirs["url"]),
        "messages": (shape(body), shape(other)),
        **{f"body.{name}": (body.get(name), other.get(name)) for name in {*body, *other} - OURS},
        **{
            f"headers.{name}": (headers.get(name), theirs["headers"].get(name))
            for name in {*headers, *theirs["headers"]} - OF_THE_PROGRAM - OF_A_KEY
            if not name.startswith("x-stainless-")
        },
    }
    return {where: pair for where, pair in compared.items() if pair[0] != pair[1]}


@pytest.mark.reference
@pytest.mark.parity("models.provider-quirks")
async def test_each_provider_is_asked_as_the_reference_asks_it() -> None:
    told = evaluated(
        SCRIPT.replace("ENVIRON", json.dumps(ENVIRON))
        .replace("PARAMETERS", json.dumps(PARAMETERS))
        .replace("=== API", f'=== "{API}"')
        .replace("api: API", f'api: "{API}"')
    )
    wall = Wall()
    models = Models(environ=ENVIRON, transport=wall)
    found: dict[str, dict[str, Any]] = {}
    for theirs in told:
        model = models.find(theirs["provider"], theirs["model"])
        assert model is not None, theirs["model"]
        if theirs["provider"] in OF_MOONSHOT:
            for message in theirs["body"]["messages"]:
                if message["role"] == "assistant":
                    message.setdefault("reasoning_content", "")
        if wrong := differences(await ours(models, wall, model), theirs):
            found[model.key] = wrong
    assert len({theirs["provider"] for theirs in told}) > 25
    assert found == {}


@pytest.mark.parity("completions.thoughts-at-moonshot")
@pytest.mark.parametrize(
    ("provider", "id"),
    [
        ("moonshotai", "kimi-k2.6"),
        ("moonshotai-cn", "kimi-k2.7-code"),
        ("kimi-coding", "kimi-for-coding-highspeed"),
    ],
)
async def test_calls_of_another_model_have_a_field_for_thoughts_at_moonshot(provider: str, id: str) -> None:
    wall = Wall()
    models = Models(environ={}, transport=wall)
    model = models.find(provider, id)
    assert model is not None
    body = json.loads((await ours(models, wall, model)).body or b"")
    assert body["thinking"] == {"type": "enabled"}
    (answer,) = [message for message in body["messages"] if message["role"] == "assistant"]
    assert answer["tool_calls"]
    assert answer["reasoning_content"] == ""
