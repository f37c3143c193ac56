"""How tools, the choice among them, the form of the answer and bounds on thinking go out."""

import json

import pytest

from cantle_ai.apis.openai_completions_compat import compat_of
from cantle_ai.apis.openai_completions_payload import request_body
from cantle_ai.codec import JsonObject
from cantle_ai.context import Context, ToolDefinition
from cantle_ai.events import ToolCallEnd
from cantle_ai.messages import UserMessage
from cantle_ai.model import NamedTool, ResponseSchema, StreamOptions
from packages.ai.tests.apis.completions import DONE, ask, call, delta, model

FITS = ToolDefinition(
    "fits", "d", {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
)
OPTIONAL = ToolDefinition("optional", "d", {"type": "object", "properties": {"a": {"type": "string"}}})
UNTYPED = ToolDefinition("untyped", "d", {"type": "object", "properties": {"a": {"description": "anything"}}})


def body(*tools, options=None, **fields):
    asked = model(**fields)
    context = Context("", [UserMessage("u", timestamp=1)], tools)
    return json.loads(request_body(asked, context, options or StreamOptions(), compat_of(asked)))


def functions(*tools, **compat):
    return [tool["function"] for tool in body(*tools, compat=compat)["tools"]]


@pytest.mark.fault("B05", "B06")
@pytest.mark.parity("completions.strict-tools", "completions.strict-by-wish")
def test_b05_tools_are_strict_where_the_endpoint_and_their_schema_allow_it():
    fits, optional, untyped = functions(FITS, OPTIONAL, UNTYPED, supportsStrictMode=True)
    assert fits == {
        "name": "fits",
        "description": "d",
        "parameters": {**FITS.parameters, "additionalProperties": False},
        "strict": True,
    }
    assert optional["strict"] is True
    assert optional["parameters"] == {
        "type": "object",
        "properties": {"a": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
        "required": ["a"],
        "additionalProperties": False,
    }
    assert untyped == {
        "name": "untyped",
        "description": "d",
        "parameters": UNTYPED.parameters,
        "strict": False,
    }


async def test_a_null_that_strict_mode_asked_for_never_reaches_the_tool():
    context = Context("", [UserMessage("u", timestamp=1)], [OPTIONAL, UNTYPED])
    pieces = [
        delta(tool_calls=[call('{"a":null}', id="c1", index=0, name="optional")]),
        delta(tool_calls=[call('{"a":null}', id="c2", index=1, name="untyped")]),
        delta(tool_calls=[call('{"a":null}', id="c3", index=2, name="unheard_of")]),
        delta("tool_calls"),
        DONE,
    ]
    strict = await ask(pieces, context=context, compat={"supportsStrictMode": True})
    assert [each.arguments for each in strict.message.tool_calls] == [{}, {"a": None}, {"a": None}]
    ended = [event.tool_call.arguments for event in strict.events if isinstance(event, ToolCallEnd)]
    assert ended == [{}, {"a": None}, {"a": None}]
    plain = await ask(pieces, context=context)
    assert [each.arguments for each in plain.message.tool_calls] == [{"a": None}] * 3


@pytest.mark.fault("B06")
def test_b06_an_endpoint_that_is_not_known_gets_no_strict_tools():
    for function in functions(FITS, OPTIONAL, UNTYPED):
        assert "strict" not in function


@pytest.mark.fault("B06")
def test_b06_compat_requires_uniform_strict_mode():
    compat = {"supportsStrictMode": True, "requiresUniformStrictMode": True}
    mixed = functions(FITS, UNTYPED, **compat)
    assert [function["strict"] for function in mixed] == [False, False]
    assert mixed[0]["parameters"] == FITS.parameters
    assert [function["strict"] for function in functions(FITS, OPTIONAL, **compat)] == [True, True]


@pytest.mark.fault("B02")
def test_b02_no_tools_no_field():
    sent = body(options=StreamOptions(tool_choice="required"), compat={"supportsStrictMode": True})
    assert "tools" not in sent
    assert "tool_choice" not in sent


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ("auto", "auto"),
        ("none", "none"),
        ("required", "required"),
        (NamedTool("fits"), {"type": "function", "function": {"name": "fits"}}),
    ],
)
def test_tool_choice(choice, expected):
    assert body(FITS, options=StreamOptions(tool_choice=choice))["tool_choice"] == expected
    assert "tool_choice" not in body(FITS)


def test_a_response_schema_goes_out_in_strict_form_if_that_says_the_same():
    schema: JsonObject = {
        "type": "object",
        "properties": {"a": {"type": "string", "default": None}},
        "required": ["a"],
    }
    sent = body(options=StreamOptions(response_schema=ResponseSchema("thing", schema)))
    assert sent["response_format"] == {
        "type": "json_schema",
        "json_schema": {
            "name": "thing",
            "strict": True,
            "schema": {
                "type": "object",
                "properties": {"a": {"type": "string"}},
                "required": ["a"],
                "additionalProperties": False,
            },
        },
    }


@pytest.mark.parametrize("strict", [True, False])
def test_a_response_schema_whose_values_would_change_goes_out_as_it_is(strict):
    schema: JsonObject = {"type": "object", "properties": {"a": {"type": "string"}}}
    sent = body(options=StreamOptions(response_schema=ResponseSchema("thing", schema, strict=strict)))
    assert sent["response_format"]["json_schema"] == {"name": "thing", "schema": schema, "strict": False}
    assert "response_format" not in body()


# --- bounds on thinking


def budget(level="high", budgets=None, *, field="thinking_budget", limit=32_000, **fields):
    options = StreamOptions(thinking=level, thinking_budgets=budgets or {})
    sent = body(
        options=options,
        max_tokens=limit,
        reasoning=True,
        compat={"thinkingTokenBudgetField": field},
        **fields,
    )
    return sent.get(field)


@pytest.mark.parity("completions.thinking-budget")
@pytest.mark.parametrize("field", ["thinking_token_budget", "thinking_budget", "thinking_budget_tokens"])
def test_compat_thinking_token_budget_field(field):
    assert budget(budgets={"high": 5000}, field=field) == 5000


@pytest.mark.parity("completions.thinking-budget")
def test_compat_supports_thinking_token_budget():
    options = StreamOptions(thinking="low")
    sent = body(options=options, reasoning=True, compat={"supportsThinkingTokenBudget": True})
    assert sent["thinking_token_budget"] == 2048
    assert "thinking_token_budget" not in body(options=options, reasoning=True)
    assert "thinking_token_budget" not in body(options=options, compat={"supportsThinkingTokenBudget": True})


@pytest.mark.parity("completions.thinking-budget")
@pytest.mark.parametrize(
    ("level", "expected"),
    [("off", None), ("minimal", 1024), ("low", 2048), ("medium", 8192), ("high", 16384), ("xhigh", 16384)],
)
def test_levels_stand_for_tokens_where_nobody_says_how_many(level, expected):
    assert budget(level) == expected


@pytest.mark.parity("completions.thinking-budget")
def test_a_budget_leaves_room_for_the_answer():
    assert budget(budgets={"high": 500_000}) == 30_976
    assert budget(budgets={"high": 3_900}, limit=4_000) == 2_976
    assert budget(limit=1_000) is None
    assert budget(budgets={"high": 0}) is None


def test_a_strong_level_has_its_own_budget_or_that_of_high():
    levels = {"xhigh": "xhigh"}
    assert budget("xhigh", {"high": 5, "xhigh": 77}, thinking_levels=levels) == 77
    assert budget("xhigh", {"high": 5}, thinking_levels=levels) == 5


@pytest.mark.parametrize(("level", "expected"), [("high", {"b": 5000, "on": True}), ("off", {"on": False})])
def test_the_budget_is_a_variable_of_chat_templates(level, expected):
    compat = {
        "thinkingFormat": "chat-template",
        "chatTemplateKwargs": {"b": {"$var": "thinking.budget"}, "on": {"$var": "thinking.enabled"}},
    }
    options = StreamOptions(thinking=level, thinking_budgets={"high": 5000})
    assert body(options=options, reasoning=True, compat=compat)["chat_template_kwargs"] == expected
