"""What goes out to Gemini: the body, from a conversation of any origin."""

import json
from typing import Any

import pytest

from cantle_ai.apis.google_compat import GoogleCompat, compat_of
from cantle_ai.apis.google_messages import SKIP_SIGNATURE
from cantle_ai.apis.google_request import model_path
from cantle_ai.auth.request_auth import RequestAuth
from cantle_ai.content import ImageContent, TextContent, ThinkingContent, ToolCall
from cantle_ai.context import Context, ToolDefinition
from cantle_ai.errors import ConfigurationError
from cantle_ai.history import INTERRUPTED
from cantle_ai.messages import Message, ToolResultMessage, UserMessage
from cantle_ai.model import NamedTool, ResponseSchema, StreamOptions
from cantle_ai.testing.server.server import StrictServer
from packages.ai.tests.apis.asking import HELLO
from packages.ai.tests.apis.google import KEY, PRO, answer_by, ask, body_of, chunk, model

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
IMAGE = ImageContent(PNG, "image/png")
GIF = ImageContent("R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw==", "image/gif")
INLINE = {"inlineData": {"mimeType": "image/png", "data": PNG}}
FLASH = "gemini-2.5-flash"
GO = ToolDefinition("go", "Goes.", {"type": "object", "properties": {"a": {"type": "string"}}})
NEW, OLD = model(), model(FLASH)
FOREIGN = model("gpt-5", provider="openai", api="openai-responses")


def user(*blocks: Any) -> UserMessage:
    return UserMessage([TextContent(b) if isinstance(b, str) else b for b in blocks], timestamp=1)


def result(call_id: str, *blocks: Any, is_error: bool = False) -> ToolResultMessage:
    content = [TextContent(b) if isinstance(b, str) else b for b in blocks]
    return ToolResultMessage(call_id, "go", content, is_error=is_error, timestamp=3)


def contents(asked: Any, *messages: Message) -> list[dict[str, Any]]:
    return body_of(asked, Context("", messages))["contents"]


async def test_the_request_whole():
    asked = await ask([chunk("ok", finish="STOP")], options=StreamOptions(max_tokens=9, temperature=0.5))
    request = asked.requests[0]
    assert request.line.startswith(f"POST /v1beta/models/{PRO}:streamGenerateContent?alt=sse ")
    assert request.headers["x-goog-api-key"] == KEY
    assert "authorization" not in request.headers
    assert asked.body == {
        "contents": [{"role": "user", "parts": [{"text": "hello"}]}],
        "systemInstruction": {"parts": [{"text": "Be brief."}], "role": "user"},
        "generationConfig": {"maxOutputTokens": 9, "temperature": 0.5},
    }


def test_the_output_limit_is_the_model_s_unless_one_is_given():
    assert body_of(model(max_tokens=77), HELLO)["generationConfig"] == {"maxOutputTokens": 77}


@pytest.mark.parametrize(("wanted", "sent"), [(10**6, 77), (78, 77), (5, 5), (0, 1)])
def test_no_more_output_is_asked_for_than_the_model_can_give(wanted, sent):
    body = body_of(model(max_tokens=77), HELLO, StreamOptions(max_tokens=wanted))
    assert body["generationConfig"] == {"maxOutputTokens": sent}


async def test_a_bearer_token_goes_out_as_one():
    auth = RequestAuth(api_key="token-123", kind="bearer")
    request = (await ask([chunk("ok", finish="STOP")], auth=auth)).requests[0]
    assert request.headers["authorization"] == "Bearer token-123"
    assert "x-goog-api-key" not in request.headers


async def test_headers_of_the_row_and_of_the_request_go_over_our_own():
    auth = RequestAuth(api_key=KEY, headers={"User-Agent": "row", "X-Goog-Api-Key": "other-key"})
    options = StreamOptions(headers={"USER-AGENT": "request"})
    request = (await ask([chunk("ok", finish="STOP")], auth=auth, options=options)).requests[0]
    assert (request.headers["user-agent"], request.headers["x-goog-api-key"]) == ("request", "other-key")


@pytest.mark.parametrize(
    ("id", "path"),
    [
        ("gemini-3-pro", "models/gemini-3-pro"),
        ("models/gemini-3-pro", "models/gemini-3-pro"),
        ("tunedModels/mine", "tunedModels/mine"),
        ("a b?c#d", "models/a%20b%3Fc%23d"),
    ],
)
def test_the_path_of_a_model(id, path):
    assert model_path(id) == path


def test_without_a_system_prompt_the_field_is_left_out():
    assert "systemInstruction" not in body_of(NEW, Context(" \n", HELLO.messages))


# --- the conversation


@pytest.mark.parity("google.conversation")
@pytest.mark.parity("google.call-ids")
def test_own_answers_go_back_as_they_came():
    answer = answer_by(
        NEW,
        ThinkingContent("hm", signature="QUJD"),
        TextContent("ok", signature="QUJE"),
        ToolCall("c1|x", "go", {"a": "v"}, thought_signature="QUJF"),
        ToolCall("c2", "go", {}),
    )
    assert contents(NEW, user("x"), answer, result("c1|x", "one"), result("c2", "two"), user("y")) == [
        {"role": "user", "parts": [{"text": "x"}]},
        {
            "role": "model",
            "parts": [
                {"text": "hm", "thought": True, "thoughtSignature": "QUJD"},
                {"text": "ok", "thoughtSignature": "QUJE"},
                {
                    "functionCall": {"name": "go", "args": {"a": "v"}, "id": "c1|x"},
                    "thoughtSignature": "QUJF",
                },
                {"functionCall": {"name": "go", "args": {}, "id": "c2"}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"name": "go", "response": {"output": "one"}, "id": "c1|x"}},
                {"functionResponse": {"name": "go", "response": {"output": "two"}, "id": "c2"}},
            ],
        },
        {"role": "user", "parts": [{"text": "y"}]},
    ]


@pytest.mark.fault("C01", "C03")
@pytest.mark.parity("google.foreign-answers")
@pytest.mark.parametrize("author", [FOREIGN, model("gemini-2.5-pro"), model(provider="elsewhere")])
def test_of_other_models_no_signature_goes_out_and_thinking_is_text(author):
    answer = answer_by(
        author,
        ThinkingContent("hm", signature="QUJD"),
        ThinkingContent("", signature="QUJD", redacted=True),
        TextContent("ok", signature="QUJE"),
        ToolCall("c1|" + "x" * 80, "go", {}, thought_signature="QUJF"),
    )
    _, said, responses = contents(NEW, user("x"), answer, result("c1|" + "x" * 80, "one"))
    assert [part["text"].strip() for part in said["parts"][:2]] == ["hm", "ok"]
    assert not any("thought" in part for part in said["parts"])
    call_id = said["parts"][2]["functionCall"]["id"]
    assert 0 < len(call_id) <= 64 and "|" not in call_id
    assert responses["parts"][0]["functionResponse"]["id"] == call_id
    for signature in ("QUJD", "QUJE", "QUJF"):
        assert signature not in json.dumps(said)


@pytest.mark.fault("B16")
@pytest.mark.parity("google.unsigned-calls")
@pytest.mark.parametrize("author", [NEW, FOREIGN])
def test_b16_the_first_of_unsigned_calls_gets_the_word_that_skips_the_check(author):
    answer = answer_by(author, TextContent("ok"), ToolCall("a", "go", {}), ToolCall("b", "go", {}))
    _, said, _ = contents(NEW, user("x"), answer, result("a", "r"), result("b", "r"))
    assert [part.get("thoughtSignature") for part in said["parts"]] == [None, SKIP_SIGNATURE, None]


def test_older_models_need_no_signature():
    answer = answer_by(FOREIGN, ToolCall("a", "go", {}))
    _, said, _ = contents(OLD, user("x"), answer, result("a", "r"))
    assert said["parts"] == [{"functionCall": {"name": "go", "args": {}}}]


def test_a_signature_that_is_no_base64_is_not_sent():
    odd = "no base64!"
    alone = [TextContent("", signature=odd), ThinkingContent("", signature=odd)]
    answer = answer_by(NEW, *alone, TextContent("ok", signature=odd), ToolCall("a", "go", {}))
    _, said, _ = contents(NEW, user("x"), answer, result("a", "r"))
    assert said["parts"][0] == {"text": "ok"}
    assert len(said["parts"]) == 2


def test_text_without_content_stays_for_its_signature_alone():
    answer = answer_by(NEW, TextContent(" "), TextContent("a"), TextContent("", signature="QUJD"))
    _, said = contents(NEW, user("x"), answer)
    assert said["parts"] == [{"text": "a"}, {"text": "", "thoughtSignature": "QUJD"}]


@pytest.mark.parity("google.call-ids")
def test_older_models_are_not_told_ids_of_calls():
    answer = answer_by(OLD, ToolCall("a", "go", {}))
    sent = contents(OLD, user("x"), answer, result("a", "r"))
    assert '"id"' not in json.dumps(sent)


@pytest.mark.fault("B15")
@pytest.mark.parity("google.results")
def test_b15_results_are_output_or_error_in_one_content_in_order():
    calls = [ToolCall(name, "go", {}) for name in "abc"]
    results = [result("c", "three"), result("a", "one", is_error=True), result("b", "x", "y")]
    sent = contents(NEW, user("x"), answer_by(NEW, *calls), *results)
    responses = [part["functionResponse"] for part in sent[2]["parts"]]
    assert [(each["id"], each["response"]) for each in responses] == [
        ("c", {"output": "three"}),
        ("a", {"error": "one"}),
        ("b", {"output": "x\ny"}),
    ]


@pytest.mark.fault("B15")
def test_b15_without_ids_responses_stand_in_the_order_of_the_calls():
    calls = [ToolCall(name, "go", {}) for name in "abc"]
    history: list[Message] = [
        user("x"),
        answer_by(OLD, *calls),
        result("c", "three", IMAGE),
        result("a", "one", IMAGE),
    ]
    sent = contents(OLD, *history, user("and?"))
    responses = [part["functionResponse"]["response"] for part in sent[2]["parts"]]
    assert responses == [{"output": "one"}, {"error": INTERRUPTED}, {"output": "three"}]
    assert sent[3]["parts"][1:] == [INLINE, INLINE, {"text": "and?"}]


@pytest.mark.fault("B15")
@pytest.mark.parity("google.images-in-results")
def test_b15_images_of_results_lie_inside_for_new_models_and_after_for_older_ones():
    for asked, inside in ((NEW, True), (OLD, False)):
        answer = answer_by(asked, ToolCall("a", "go", {}), ToolCall("b", "go", {}))
        sent = contents(asked, user("x"), answer, result("a", IMAGE), result("b", "see", IMAGE), user("y"))
        responses = [part["functionResponse"] for part in sent[2]["parts"]]
        assert [each.get("parts") for each in responses] == ([[INLINE], [INLINE]] if inside else [None, None])
        assert responses[1]["response"] == {"output": "see"}
        assert responses[0]["response"]["output"].strip()
        (following,) = sent[3:]
        assert following["role"] == "user"
        assert following["parts"][-1] == {"text": "y"}
        assert following["parts"].count(INLINE) == (0 if inside else 2)


@pytest.mark.fault("B03")
@pytest.mark.parametrize("blocks", [(), ("",), (" \n",)])
def test_b03_a_result_without_text_says_so(blocks):
    answer = answer_by(NEW, ToolCall("a", "go", {}))
    sent = contents(NEW, user("x"), answer, result("a", *blocks))
    assert sent[2]["parts"][0]["functionResponse"]["response"] == {"output": "(no output)"}


@pytest.mark.fault("B04")
def test_b04_an_image_alone_has_no_text_beside_it():
    assert contents(NEW, user("", IMAGE)) == [{"role": "user", "parts": [INLINE]}]


def test_an_image_of_a_type_that_gemini_does_not_take_is_a_note():
    answer = answer_by(NEW, ToolCall("a", "go", {}))
    sent = contents(NEW, user(GIF), answer, result("a", GIF))
    assert "image/gif" in sent[0]["parts"][0]["text"]
    response = sent[2]["parts"][0]["functionResponse"]
    assert "image/gif" in response["response"]["output"]
    assert "parts" not in response


@pytest.mark.fault("C08")
def test_c08_a_model_without_eyes_gets_notes():
    sent = contents(model(input=("text",)), user("x", IMAGE))
    assert PNG not in json.dumps(sent)
    assert len(sent[0]["parts"]) == 2


def test_messages_of_one_role_are_one_content():
    answers = [answer_by(NEW, TextContent("a")), answer_by(NEW, TextContent("b"))]
    sent = contents(NEW, user("x"), user("y"), *answers, user("z"))
    assert [(each["role"], [part["text"] for part in each["parts"]]) for each in sent] == [
        ("user", ["x", "y"]),
        ("model", ["a", "b"]),
        ("user", ["z"]),
    ]


def test_a_conversation_begins_with_the_user():
    assert contents(NEW, answer_by(NEW, TextContent("a")), user("x"))[0]["role"] == "user"
    assert contents(NEW)[0]["role"] == "user"


@pytest.mark.fault("C05", "C07")
def test_a_call_without_a_result_gets_one():
    answer = answer_by(NEW, ToolCall("a", "go", {}), ToolCall("b", "go", {}))
    sent = contents(NEW, user("x"), answer, result("b", "r"), user("y"))
    assert [set(part["functionResponse"]["response"]) for part in sent[2]["parts"]] == [{"output"}, {"error"}]


@pytest.mark.parametrize(
    ("name", "sent"),
    [
        ("functions.bash:0", "functions_bash_0"),
        ("mcp__a-b", "mcp__a-b"),
        ("a b/ü", "a_b__"),
        ("7up", "_7up"),
        ("", "unnamed"),
        ("x" * 130, "x" * 64),
    ],
)
def test_names_of_calls_fit_on_both_sides(name, sent):
    answer = answer_by(NEW, ToolCall("a", name, {}))
    made = contents(NEW, user("x"), answer, ToolResultMessage("a", name, [TextContent("r")], timestamp=1))
    assert made[1]["parts"][0]["functionCall"]["name"] == sent
    assert made[2]["parts"][0]["functionResponse"]["name"] == sent


def test_lone_surrogates_do_not_reach_the_wire():
    answer = answer_by(NEW, ToolCall("a", "go", {"a": "\ud83d"}))
    asked = body_of(NEW, Context("\udc00", [user("a\ud83d"), answer, result("a", "\ud83d")]))
    json.dumps(asked, ensure_ascii=False).encode("utf-8")


def test_each_message_is_encoded_once():
    messages: list[Message] = [user("x"), answer_by(NEW, ToolCall("a", "go", {})), result("a", "r")]
    first = contents(NEW, *messages)
    kept = [dict(message.wire) for message in messages]
    assert contents(NEW, *messages) == first
    assert all(kept)
    for message, before in zip(messages, kept, strict=True):
        assert message.wire.keys() == before.keys()
        assert all(message.wire[key] is data for key, data in before.items())


# --- tools


@pytest.mark.fault("B02")
def test_b02_without_tools_the_field_is_left_out():
    assert "tools" not in body_of(NEW, HELLO, StreamOptions(tool_choice="required"))
    assert "toolConfig" not in body_of(NEW, HELLO, StreamOptions(tool_choice="required"))


@pytest.mark.parity("google.tools")
def test_tools_are_declared_with_json_schema():
    assert body_of(NEW, Context("", HELLO.messages, [GO]))["tools"] == [
        {
            "functionDeclarations": [
                {"name": "go", "description": "Goes.", "parametersJsonSchema": GO.parameters}
            ]
        }
    ]


SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {"a": {"const": "v"}, "b": {"$ref": "#/$defs/B"}, "c": {"type": ["string", "null"]}},
    "$defs": {"B": {"type": "integer", "minimum": 1}},
    "required": ["a"],
}


@pytest.mark.parity("google.tools")
@pytest.mark.parity("google.schema-references")
@pytest.mark.fault("B07")
def test_b07_references_are_inlined_const_is_an_enum_and_schema_is_gone():
    tool = ToolDefinition("go", "Goes.", SCHEMA)
    (declared,) = body_of(NEW, Context("", HELLO.messages, [tool]))["tools"][0]["functionDeclarations"]
    sent = declared["parametersJsonSchema"]
    assert sent["properties"]["a"]["enum"] == ["v"]
    assert sent["properties"]["b"] == {"type": "integer", "minimum": 1}
    assert not {"$schema", "$defs"} & sent.keys()
    assert "$ref" not in json.dumps(sent)


def test_a_server_of_an_older_kind_gets_the_schemas_of_openapi():
    asked = model(compat={"supportsParametersJsonSchema": False})
    tools = [ToolDefinition("go", "Goes.", SCHEMA), ToolDefinition("stop", "Stops.", {"type": "object"})]
    options = StreamOptions(response_schema=ResponseSchema("r", SCHEMA))
    body = body_of(asked, Context("", HELLO.messages, tools), options)
    first, second = body["tools"][0]["functionDeclarations"]
    assert first["parameters"]["properties"]["c"] == {"type": "string", "nullable": True}
    assert "parametersJsonSchema" not in first
    assert second == {"name": "stop", "description": "Stops."}
    assert body["generationConfig"]["responseSchema"]["properties"]["b"]["type"] == "integer"


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        ("auto", {"mode": "AUTO"}),
        ("none", {"mode": "NONE"}),
        ("required", {"mode": "ANY"}),
        (NamedTool("go"), {"mode": "ANY", "allowedFunctionNames": ["go"]}),
    ],
)
def test_the_choice_of_a_tool(choice, sent):
    body = body_of(NEW, Context("", HELLO.messages, [GO]), StreamOptions(tool_choice=choice))
    assert body["toolConfig"] == {"functionCallingConfig": sent}


def test_the_form_of_an_answer():
    body = body_of(NEW, HELLO, StreamOptions(response_schema=ResponseSchema("r", SCHEMA)))
    config = body["generationConfig"]
    assert config["responseMimeType"] == "application/json"
    assert config["responseJsonSchema"]["properties"]["a"]["enum"] == ["v"]


# --- thinking


def thinking(id: str, level: Any, budgets: Any = None, **fields: Any) -> Any:
    asked = model(id, reasoning=True, **fields)
    options = StreamOptions(thinking=level, thinking_budgets=budgets or {})
    return body_of(asked, HELLO, options)["generationConfig"].get("thinkingConfig")


PRO_LEVELS = {"off": None, "minimal": None, "low": "low", "medium": "medium", "high": "high"}
NEON_LEVELS = {"off": None, "minimal": None, "low": "low", "xhigh": "xhigh"}
GEMMA_LEVELS = {"off": None, "minimal": "MINIMAL", "low": None, "medium": None, "high": "HIGH"}


@pytest.mark.fault("B11", "B12")
@pytest.mark.parity("google.thinking")
@pytest.mark.parity("google.thinking-off-of-pro")
@pytest.mark.parametrize(
    ("id", "levels", "level", "sent"),
    [
        (PRO, PRO_LEVELS, "high", {"includeThoughts": True, "thinkingLevel": "HIGH"}),
        (PRO, PRO_LEVELS, "minimal", {"includeThoughts": True, "thinkingLevel": "LOW"}),
        (PRO, PRO_LEVELS, "off", {"thinkingLevel": "LOW"}),
        ("gemma-4-31b-it", GEMMA_LEVELS, "off", {"thinkingLevel": "MINIMAL"}),
        ("gemma-4-31b-it", GEMMA_LEVELS, "low", {"includeThoughts": True, "thinkingLevel": "HIGH"}),
        ("gemini-4-neon", NEON_LEVELS, "xhigh", {"includeThoughts": True, "thinkingLevel": "XHIGH"}),
        ("gemini-pro-latest", {}, "off", {"thinkingLevel": "LOW"}),
        ("gemini-2.5-pro", {}, "off", {"thinkingBudget": 128}),
        ("gemini-2.5-pro", {}, "minimal", {"includeThoughts": True, "thinkingBudget": 128}),
        ("gemini-2.5-pro", {}, "high", {"includeThoughts": True, "thinkingBudget": 32768}),
        ("gemini-2.5-flash", {}, "off", {"thinkingBudget": 0}),
        ("gemini-2.5-flash", {}, "low", {"includeThoughts": True, "thinkingBudget": 2048}),
        ("gemini-2.5-flash-preview-09", {}, "high", {"includeThoughts": True, "thinkingBudget": 24576}),
        ("gemini-2.5-flash-lite", {}, "minimal", {"includeThoughts": True, "thinkingBudget": 512}),
        ("gemini-2.5-flash-lite", {}, "medium", {"includeThoughts": True, "thinkingBudget": 8192}),
        ("gemini-2.5-other", {}, "low", {"includeThoughts": True, "thinkingBudget": -1}),
    ],
)
def test_a_level_is_said_in_the_way_of_the_generation(id, levels, level, sent):
    assert thinking(id, level, thinking_levels=levels) == sent


def test_models_that_do_not_reason_are_not_told_to():
    assert body_of(NEW, HELLO, StreamOptions(thinking="high"))["generationConfig"].keys() == {
        "maxOutputTokens"
    }


@pytest.mark.parametrize(
    ("id", "budgets", "levels", "sent"),
    [
        (FLASH, {"low": 777}, {}, 777),
        (FLASH, {"low": 99999}, {}, 24576),
        (FLASH, {"low": -1}, {}, -1),
        ("gemini-2.5-pro", {"low": 5}, {}, 128),
        (FLASH, {}, {"low": "555"}, 555),
    ],
)
def test_a_budget_of_one_s_own_is_kept_within_what_the_model_takes(id, budgets, levels, sent):
    assert thinking(id, "low", budgets, thinking_levels=levels)["thinkingBudget"] == sent


# --- sampling and quirks


@pytest.mark.parity("google.sampling")
def test_sampling_goes_where_the_api_has_a_place_for_it():
    asked = model(
        sampling={"topP": 0.5, "topK": 4, "safetySettings": [{"category": "C"}]},
        sampling_by_level={"off": {"topK": 5}},
    )
    options = StreamOptions(sampling={"generationConfig": {"seed": 7}, "contents": [], "candidateCount": 3})
    body = body_of(asked, HELLO, options)
    assert body["generationConfig"] == {"maxOutputTokens": 16384, "topP": 0.5, "topK": 5, "seed": 7}
    assert body["safetySettings"] == [{"category": "C"}]
    assert body["contents"]


@pytest.mark.parametrize(
    ("id", "modern"),
    [
        ("gemini-3-flash-preview", True),
        ("gemini-4-neon", True),
        ("gemini-flash-latest", True),
        ("my-own", True),
        ("gemini-2.0-flash", False),
        ("models/gemini-1.5-pro", False),
        ("google/gemini-2.5-pro", False),
        ("gemini-30-pro", True),
    ],
)
def test_what_a_generation_takes_follows_from_the_id(id, modern):
    compat = compat_of(model(id))
    assert compat.requires_thought_signatures is modern
    assert compat.supports_call_ids is modern
    assert compat.supports_images_in_function_responses is modern
    assert (compat.thinking_format == "level") is modern


QUIRKS: dict[str, Any] = {
    "thinkingFormat": "budget",
    "leastThinkingBudget": 7,
    "mostThinkingBudget": 9,
    "supportsThinkingOff": False,
    "requiresThoughtSignatures": False,
    "supportsCallIds": False,
    "supportsImagesInFunctionResponses": False,
    "supportsParametersJsonSchema": False,
}


def test_a_row_may_say_otherwise():
    compat = compat_of(model(compat={**QUIRKS, "supportsStore": True}))
    assert compat == GoogleCompat(
        thinking_format="budget",
        least_thinking_budget=7,
        most_thinking_budget=9,
        supports_thinking_off=False,
        requires_thought_signatures=False,
        supports_call_ids=False,
        supports_images_in_function_responses=False,
        supports_parameters_json_schema=False,
    )
    asked = model(reasoning=True, compat=QUIRKS)
    assert thinking(PRO, "off", compat=QUIRKS) == {"thinkingBudget": 7}
    assert thinking(PRO, "high", compat=QUIRKS)["thinkingBudget"] == 9
    sent = contents(asked, user("x"), answer_by(asked, ToolCall("a", "go", {})), result("a", IMAGE))
    assert sent[1]["parts"] == [{"functionCall": {"name": "go", "args": {}}}]
    assert sent[3]["parts"][-1] == INLINE


def test_a_quirk_of_the_wrong_type_is_named():
    with pytest.raises(ConfigurationError, match=r"compat\.supportsCallIds"):
        compat_of(model(compat={"supportsCallIds": "no"}))


# --- the prefix, on the wire


async def test_requests_of_one_conversation_begin_alike():
    """Also with images that follow results, and with what is said meanwhile."""
    for id in (PRO, FLASH):
        async with StrictServer(["ok"] * 6) as server:
            asked = model(id, base_url=server.base_url_for("google-generative-ai"))
            messages: list[Message] = [user("look", IMAGE), user("and?")]
            for turn in range(6):
                sent = await ask_at(asked, Context("Be brief.", messages, [GO]))
                assert sent.error_message is None, sent.error_message
                calls = [ToolCall(f"{turn}a", "go", {"n": turn}), ToolCall(f"{turn}b", "go", {})]
                messages = [
                    *messages,
                    answer_by(
                        asked, ThinkingContent("hm", signature="QUJD"), TextContent(f"t{turn}"), *calls
                    ),
                    result(f"{turn}b", IMAGE),
                    result(f"{turn}a", " "),
                    *([user(f"go on {turn}", IMAGE)] if turn % 2 else []),
                ]
            server.assert_clean()


async def ask_at(asked: Any, context: Context) -> Any:
    from cantle_ai.apis.google_generative_ai import source
    from cantle_ai.builder import AnswerBuilder
    from cantle_ai.stream import AssistantMessageStream
    from cantle_ai.transport.urllib3_thread import Urllib3Transport

    transport = Urllib3Transport(environ={})
    made = source(asked, context, StreamOptions(), transport=transport, auth=RequestAuth(api_key=KEY))
    stream = AssistantMessageStream(made, AnswerBuilder.of(asked))
    message = await stream.result()
    await transport.aclose()
    return message
