"""Tools whose names no provider takes."""

import json
from typing import Any

import pytest

from cantle_ai.content import TextContent
from cantle_ai.context import Context, ToolDefinition
from cantle_ai.messages import Message, ToolResultMessage, UserMessage
from cantle_ai.model import Model, NamedTool, Provider, StreamOptions
from cantle_ai.models import Models
from cantle_ai.testing.server.server import StrictServer

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"q": {"type": "string"}, "n": {"type": "integer"}},
    "required": ["q"],
}
TOOLS = [ToolDefinition("mcp.search", "Search.", SCHEMA), ToolDefinition("plain", "Else.", SCHEMA)]
CALL = {"content": [{"type": "toolCall", "id": "c1", "name": "mcp_search", "arguments": {"q": "x"}}]}


def asked(server: StrictServer, api: str) -> tuple[Models, Model]:
    models = Models(environ={"AWS_REGION": "eu-west-1"})
    url = server.base_url_for(api)
    models.add_provider(Provider(id="here", name="Here", base_url=url, api=api, api_key="sk-here"))
    return models, Model(id="m", provider="here", api=api, base_url=url)


@pytest.mark.parametrize("api", ["openai-completions", "openai-responses", "anthropic-messages", "google-generative-ai",
                                 "mistral-conversations", "bedrock-converse-stream"])  # fmt: skip
async def test_a_name_that_does_not_fit_is_fitted_and_told_as_it_is(api):
    with StrictServer([CALL, "Found."]) as server:
        models, model = asked(server, api)
        question = UserMessage("Search.")
        options = StreamOptions(tool_choice=NamedTool("mcp.search"))
        answer = await models.complete(model, Context("Be brief.", [question], TOOLS), options)
        assert answer.error_message is None
        (call,) = answer.tool_calls
        assert (call.name, call.arguments) == ("mcp.search", {"q": "x"})
        history: list[Message] = [
            question,
            answer,
            ToolResultMessage(call.id, call.name, [TextContent("a result")]),
        ]
        last = await models.complete(model, Context("Be brief.", history, TOOLS), StreamOptions())
        assert last.text == "Found.", last.error_message
        server.assert_clean()
        sent = [json.dumps(json.loads(body)) for body in server.bodies]
        assert all("mcp_search" in body and "mcp.search" not in body for body in sent)
        await models.aclose()


async def test_arguments_are_mended_by_the_tool_s_schema_all_the_same():
    nulled = {**CALL, "content": [{**CALL["content"][0], "arguments": {"q": "x", "n": None}}]}
    with StrictServer([nulled]) as server:
        models, model = asked(server, "openai-completions")
        strict = Model(
            **{
                **{f: getattr(model, f) for f in model.__struct_fields__},
                "compat": {"supportsStrictMode": True},
            }
        )
        answer = await models.complete(strict, Context("", [UserMessage("Search.")], TOOLS))
        assert answer.tool_calls[0].arguments == {"q": "x"}
        await models.aclose()


async def test_two_tools_that_are_one_to_a_provider_are_refused():
    with StrictServer(["never"]) as server:
        models, model = asked(server, "openai-completions")
        tools = [ToolDefinition("a.b", "One.", SCHEMA), ToolDefinition("a_b", "Two.", SCHEMA)]
        answer = await models.complete(model, Context("", [UserMessage("Go.")], tools))
        assert (
            answer.error_message
            == 'The tools "a.b" and "a_b" are both "a_b" to a provider. Rename one of them'
        )
        assert not server.requests
        await models.aclose()
