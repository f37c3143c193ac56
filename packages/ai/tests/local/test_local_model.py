"""The model in the box for real: it answers, calls tools in valid JSON, is aborted at once, and leaves nothing behind."""

import asyncio
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema_rs
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cantle_ai.abort import AbortController
from cantle_ai.content import ImageContent, TextContent
from cantle_ai.context import Context, ToolDefinition
from cantle_ai.local.rows import PACKAGED_MODEL
from cantle_ai.messages import AssistantMessage, ToolResultMessage, UserMessage
from cantle_ai.model import Model, StreamOptions
from cantle_ai.models import Models
from cantle_ai.overflow import is_overflow
from cantle_ai.retry import retryable
from cantle_ai.testing.checker import RuleChecker
from cantle_ai.usage import Cost
from packages.ai.tests.local.listeners import listening
from packages.ai.tests.local.test_llama_cpp_grammar import objects, schemas
from tests.support.extras import needs
from tests.support.samples import samples

pytestmark = [needs("local"), pytest.mark.timeout(180)]  # it shares the processor with other tests

TOOLS = (
    ToolDefinition(
        "read",
        "Read a file.",
        {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    ),
    ToolDefinition(
        "bash",
        "Run a shell command.",
        {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
    ),
)
LONG = "The quick brown fox jumps over the lazy dog while seven wizards look on from the river bank. "
STEADY = StreamOptions(temperature=0, max_tokens=24, sampling={"frequency_penalty": 0})
AT_ONCE = 0.2
"""Seconds an abort may take. It takes less than one thousandth; the rest is for a busy machine."""


@pytest.fixture(autouse=True)
def nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> Any:
    """llama.cpp's log belongs on nobody's screen."""
    yield
    assert capfd.readouterr() == ("", "")


def ask(text: str, *tools: ToolDefinition) -> Context:
    return Context("You are a helpful assistant.", [UserMessage(text)], tools)


async def answered(
    models: Models, model: Model, context: Context, options: StreamOptions
) -> AssistantMessage:
    """The answer, whose events keep the rules."""
    stream, checker = models.stream(model, context, options), RuleChecker()
    async for event in stream:
        checker.check(event)
    return checker.finish(await stream.result())


async def test_it_answers_a_prompt(box: Models, tiny: Model) -> None:
    message = await answered(box, tiny, ask("Name the capital of Germany."), STEADY)
    assert "Berlin" in message.text and message.stop_reason == "stop"
    assert (message.provider, message.model, message.thinking_level) == ("local", PACKAGED_MODEL, "off")
    usage = message.usage
    assert usage.input + usage.cache_read > 20 and 0 < usage.output <= 24
    assert usage.cost == Cost() and not usage.cost.unknown


async def test_it_calls_a_tool_and_goes_on_with_the_result(box: Models, tiny: Model) -> None:
    context = ask("Read the file notes.txt", *TOOLS)
    message = await answered(box, tiny, context, STEADY)
    (call,) = message.tool_calls
    assert (call.name, call.arguments, message.stop_reason) == ("read", {"path": "notes.txt"}, "toolUse")
    result = ToolResultMessage(call.id, call.name, [TextContent("The password is swordfish.")])
    more = Context(context.system_prompt, [*context.messages, message, result], TOOLS)
    final = await answered(box, tiny, more, STEADY)
    assert final.stop_reason in ("stop", "toolUse", "length")
    assert final.usage.cache_read >= 100  # the prompt of the first turn was not read again


async def test_the_same_question_has_the_same_answer(box: Models, tiny: Model) -> None:
    warm = msgspec.structs.replace(STEADY, temperature=0.9, sampling={"seed": 5})
    for options in (STEADY, warm):
        answers = [(await answered(box, tiny, ask("Tell me of a fox."), options)).text for _ in range(3)]
        assert answers[1] == answers[2] and answers[1]


async def test_a_call_cut_at_the_limit_is_marked(box: Models, tiny: Model) -> None:
    options = StreamOptions(temperature=0, max_tokens=12)
    message = await answered(box, tiny, ask("Read the file notes.txt", *TOOLS), options)
    assert message.stop_reason == "length" and message.raw_stop_reason == "length"
    assert [call.invalid_arguments is not None for call in message.tool_calls] == [True]


async def test_a_stop_word_ends_the_answer(box: Models, tiny: Model) -> None:
    options = msgspec.structs.replace(STEADY, sampling={"stop": ["Berlin"], "stream": False, "messages": []})
    message = await answered(box, tiny, ask("Name the capital of Germany."), options)
    assert message.stop_reason == "stop" and "Berlin" not in message.text and message.text


async def test_an_image_is_a_note(box: Models, tiny: Model) -> None:
    eyes = msgspec.structs.replace(tiny, input=("text", "image"))
    picture = UserMessage([TextContent("Say yes."), ImageContent("aGk=", "image/png")])
    message = await answered(box, eyes, Context(messages=[picture]), STEADY)
    assert message.stop_reason in ("stop", "length") and message.text


async def test_a_level_of_thinking_is_that_it_does_not(box: Models, tiny: Model) -> None:
    options = msgspec.structs.replace(STEADY, thinking="high")
    message = await answered(box, tiny, ask("Say yes."), options)
    assert message.thinking_level == "off" and all(block.type == "text" for block in message.content)


async def test_what_does_not_fit_is_an_overflow(box: Models, tiny: Model) -> None:
    message = await answered(box, tiny, ask(LONG * 600), STEADY)
    assert is_overflow(message, tiny.context_window) and not retryable(message)
    assert "too long for the local model" in str(message.error_message) and "8192" in str(
        message.error_message
    )


async def test_odd_text_goes_in(box: Models, tiny: Model) -> None:
    for text in ("\ud800 half", "\x00\x1b[0m", "<|im_end|><|im_start|>system", '{"answer": "'):
        message = await answered(box, tiny, ask(text, *TOOLS), StreamOptions(max_tokens=2))
        assert message.stop_reason in ("stop", "length"), message.error_message


@pytest.mark.parametrize("moment", ["in the prompt", "in the answer"])
async def test_an_abort_ends_it_at_once(
    box: Models, tiny: Model, moment: str, record_property: Callable[[str, object], None]
) -> None:
    await answered(box, tiny, ask("Hi"), StreamOptions(max_tokens=1))  # loaded
    controller = AbortController()
    text = LONG * 200 if moment == "in the prompt" else "Write a long story about a fox."
    stream = box.stream(tiny, ask(text), StreamOptions(signal=controller.signal, max_tokens=1000))
    checker = RuleChecker()
    reader = aiter(stream)
    checker.check(await anext(reader))
    if moment == "in the answer":
        for _ in range(5):
            checker.check(await anext(reader))
    else:
        pending = asyncio.ensure_future(anext(reader))
        await asyncio.wait([pending], timeout=0.2)  # the prompt takes many seconds
        assert not pending.done()
    began = time.monotonic()
    controller.abort()
    message = await stream.result()
    took = time.monotonic() - began
    assert message.stop_reason == "aborted" and took < AT_ONCE
    assert len(message.content) == (1 if moment == "in the answer" else 0)
    after = await answered(box, tiny, ask("Name the capital of Germany."), STEADY)
    again = time.monotonic() - began
    record_property(
        "figure", f"abort {moment}: ended after {took * 1000:.1f} ms, next answer {again:.1f} s later"
    )
    assert "Berlin" in after.text


async def test_two_requests_are_answered_one_after_the_other(box: Models, tiny: Model) -> None:
    order: list[str] = []

    async def run(name: str) -> None:
        async for event in box.stream(tiny, ask(f"Count to {name}."), StreamOptions(max_tokens=8)):
            if event.type == "text_delta":
                order.append(name)

    await asyncio.gather(run("two"), run("three"))
    assert set(order) == {"two", "three"} and order == sorted(order, key=order.index)


@given(
    st.dictionaries(st.text(min_size=1, max_size=8), objects(schemas), min_size=1, max_size=3),
    st.integers(0, 99),
)
@settings(
    max_examples=samples(60, 4), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_whatever_the_tools_a_call_is_one_of_them_and_fits(
    box: Models, tiny: Model, tables: dict[str, Any], seed: int
) -> None:
    tools = [
        ToolDefinition(name, "Use me.", {**table, "$defs": {"s": {"type": "string"}}})
        for name, table in tables.items()
    ]
    options = StreamOptions(temperature=1, max_tokens=32, sampling={"seed": seed})
    message = asyncio.run(answered(box, tiny, ask("Use a tool.", *tools), options))
    assert message.stop_reason in ("stop", "toolUse", "length"), message.error_message
    for call in message.tool_calls:
        schema = next(tool.parameters for tool in tools if tool.name == call.name)
        if message.stop_reason == "toolUse":
            assert call.invalid_arguments is None
            jsonschema_rs.validate(schema, call.arguments)


ODD_SCHEMAS: list[dict[str, Any]] = [
    {},
    {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(?=x)", "format": "uri"}}},
    {"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1/other"}}, "required": ["a"]},
    {"$ref": "#"},
    {"anyOf": [{"$ref": "#"}, {"type": "object", "required": ['é\n"\\']}]},
    {"type": "object", "properties": {"a": {"type": "array", "items": {"$ref": "#"}, "minItems": 1}}},
    {"type": "object", "properties": {f"p{number}": {"type": "string"} for number in range(300)}},
    {"type": "object", "properties": {"a": {"enum": [f"v{number}" for number in range(1000)]}}},
    {"type": "object", "properties": {"a": {"type": "string", "minLength": 190, "maxLength": 200}}},
    {
        "type": "object",
        "properties": {
            "a": {"type": "array", "maxItems": 50, "items": {"type": "string", "maxLength": 100}},
            "b": {"type": "array", "minItems": 200, "items": {"type": "string", "minLength": 200}},
        },
    },
]


@pytest.mark.parametrize("schema", ODD_SCHEMAS, ids=lambda schema: json.dumps(schema)[:50])
async def test_schemas_that_a_grammar_cannot_express_do_no_harm(
    box: Models, tiny: Model, schema: dict[str, Any]
) -> None:
    tool = ToolDefinition("t", "Use me.", schema)
    message = await answered(box, tiny, ask("Use the tool t.", tool), StreamOptions(max_tokens=16))
    assert message.stop_reason in ("stop", "toolUse", "length"), message.error_message


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
async def test_nobody_can_reach_it_and_closing_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tiny: Model
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    small = msgspec.structs.replace(tiny, context_window=512)
    left: list[int] = []
    for _ in range(4):
        models = Models(environ={})
        before, sockets = set(threading.enumerate()), listening()
        message = await answered(models, small, ask("Hi"), StreamOptions(max_tokens=1))
        assert message.stop_reason == "length"
        assert listening() == sockets and not list(tmp_path.iterdir())
        (engine,) = (
            each for each in set(threading.enumerate()) - before if each.name == "cantle-local-model"
        )
        long = await answered(models, small, ask(LONG * 40), STEADY)
        assert "context window has 512" in str(long.error_message)
        await models.aclose()
        assert not engine.is_alive()
        left.append(len(list(Path("/proc/self/task").iterdir())) - threading.active_count())
    assert left[3] - left[0] <= 1  # one that has just ended may still be listed


_FIGURES = """
import asyncio, json, time
from cantle_ai.context import Context
from cantle_ai.messages import UserMessage
from cantle_ai.model import StreamOptions
from cantle_ai.models import Models

async def main():
    models = Models(environ={})
    model = models.find("local", "smollm2-135m")
    began = time.monotonic()
    context = Context(messages=[UserMessage("Hi")])
    message = await models.complete(model, context, StreamOptions(max_tokens=1))
    first = time.monotonic() - began
    assert message.stop_reason == "length", message.error_message
    CLOSE
    status = dict(line.split(":", 1) for line in open("/proc/self/status", encoding="utf-8"))
    memory = int(status["VmHWM"].split()[0]) / 1024
    print(json.dumps({"first_answer_seconds": round(first, 2), "peak_mib": round(memory)}))

asyncio.run(main())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("close", ["await models.aclose()", "pass"], ids=["closed", "forgotten"])
def test_a_program_with_it_stays_small_and_ends_well(
    close: str, record_property: Callable[[str, object], None]
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _FIGURES.replace("CLOSE", close)], capture_output=True, text=True, timeout=50
    )
    assert (done.returncode, done.stderr) == (0, "")
    figures = json.loads(done.stdout)
    record_property("figure", ", ".join(f"{name} {value}" for name, value in figures.items()))
    assert figures["peak_mib"] < 450
