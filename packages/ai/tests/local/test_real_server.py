"""llama.cpp's own HTTP server, in a process of its own, asked over three wire APIs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from cantle_ai.abort import AbortController
from cantle_ai.content import TextContent, ToolCall
from cantle_ai.context import Context, ToolDefinition
from cantle_ai.events import AssistantMessageEvent
from cantle_ai.messages import AssistantMessage, Message, ToolResultMessage, UserMessage
from cantle_ai.model import Model, Provider, StreamOptions
from cantle_ai.models import Models
from cantle_ai.overflow import is_overflow
from cantle_ai.providers import BUILTIN_PROVIDERS
from cantle_ai.testing.checker import checked
from tests.support.extras import needs

pytestmark = [needs("local"), pytest.mark.slow]

WINDOW = 1024
KEY = "key-of-the-real-server"
APIS = {"openai-completions": "/v1", "openai-responses": "/v1", "anthropic-messages": ""}
"""Each API, and what its base URL has behind the server's address."""
READ = ToolDefinition(
    "read",
    "Reads a file.",
    {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
)

SERVE = """
import sys, xllamacpp
from cantle_ai.local.weights import find_weights

path, window, key = sys.argv[1], int(sys.argv[2]), sys.argv[3]
parameters = xllamacpp.CommonParams()
parameters.model.path = path
parameters.n_ctx = window
parameters.n_parallel = 1
parameters.n_batch = parameters.n_ubatch = 64
parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
parameters.fit_params = parameters.warmup = parameters.ui = False
parameters.verbosity = -1
parameters.hostnames = ["127.0.0.1"]
parameters.port = 0
parameters.api_keys = [key]
parameters.n_threads_http = 2
server = xllamacpp.Server(parameters)
print(server.listening_address, flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Where the server listens. It ends with the tests."""
    from cantle_ai.local.weights import find_weights

    path = find_weights(())
    with subprocess.Popen(
        [sys.executable, "-c", SERVE, str(path), str(WINDOW), KEY],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
            process.stdin.close()
            process.wait(20)
        finally:
            process.kill()


@pytest.fixture(params=APIS)
async def asked(request: pytest.FixtureRequest, address: str) -> tuple[Models, Model]:
    api: str = request.param
    row = Provider(id="real", name="Real", base_url=address + APIS[api], api=api, api_key=KEY)
    model = Model(
        id="smollm2",
        provider=row.id,
        api=api,
        base_url=row.base_url,
        context_window=WINDOW,
        max_tokens=256,
        compat={"supportsStore": False},
    )
    models = Models(providers=[], environ={})
    models.add_provider(row, [model])
    return models, model


async def answer(
    asked: tuple[Models, Model], context: Context, options: StreamOptions | None = None
) -> tuple[list[AssistantMessageEvent], AssistantMessage]:
    models, model = asked
    stream = checked(models.stream(model, context, options))
    events = [event async for event in stream]
    return events, await stream.result()


def said(text: str = "Count from one to ten.") -> Context:
    return Context("You are helpful.", [UserMessage(text, timestamp=1)])


async def test_an_answer_streams(asked: tuple[Models, Model]) -> None:
    events, message = await answer(asked, said(), StreamOptions(max_tokens=24, temperature=0.0))
    assert message.stop_reason in ("stop", "length"), message.error_message
    assert len([event for event in events if event.type == "text_delta"]) > 3
    assert message.text.strip()
    assert message.usage.output > 3
    assert message.usage.input + message.usage.cache_read > 10
    await asked[0].aclose()


async def test_the_limit_ends_an_answer(asked: tuple[Models, Model]) -> None:
    _, message = await answer(asked, said(), StreamOptions(max_tokens=16, temperature=0.0))
    # Over responses this server calls every answer completed.
    assert message.stop_reason == ("stop" if message.api == "openai-responses" else "length")
    assert message.usage.output == 16
    await asked[0].aclose()


async def test_an_abort_in_the_middle_frees_the_server(asked: tuple[Models, Model]) -> None:
    models, model = asked
    controller = AbortController()
    options = StreamOptions(signal=controller.signal, max_tokens=256)
    long = said("Write a very long story about a lighthouse, as long as you can.")
    stream = checked(models.stream(model, long, options))
    async for event in stream:
        if event.type == "text_delta":
            controller.abort()
    message = await stream.result()
    assert message.stop_reason == "aborted"
    assert message.text
    # It has one place: an answer that went on would be waited for.
    _, next_message = await answer(asked, said("Say hi."), StreamOptions(max_tokens=4))
    assert next_message.stop_reason in ("stop", "length")
    await models.aclose()


async def test_a_history_with_tools_is_accepted(asked: tuple[Models, Model]) -> None:
    _, model = asked
    call = ToolCall("call_1", "read", {"path": "a.txt"})
    history: list[Message] = [
        UserMessage("Read a.txt", timestamp=1),
        AssistantMessage([call], model.api, model.provider, model.id, stop_reason="toolUse", timestamp=2),
        ToolResultMessage("call_1", "read", [TextContent("hello")], is_error=False, timestamp=3),
        UserMessage("What does it say?", timestamp=4),
    ]
    _, message = await answer(asked, Context("Be brief.", history, [READ]), StreamOptions(max_tokens=16))
    assert message.stop_reason in ("stop", "length", "toolUse"), message.error_message
    await asked[0].aclose()


async def test_too_long_a_request_is_told_from_other_failures(asked: tuple[Models, Model]) -> None:
    models, model = asked
    _, message = await answer(asked, said("word " * 3000))
    assert message.stop_reason == "error"
    assert is_overflow(message, model.context_window)
    await models.aclose()


async def test_a_wrong_key_is_refused_in_words(address: str, asked: tuple[Models, Model]) -> None:
    _, message = await answer(asked, said(), StreamOptions(api_key="wrong-key-1234"))
    assert message.stop_reason == "error"
    assert message.error_message is not None
    assert "401" in message.error_message
    assert "wrong-key" not in message.error_message
    await asked[0].aclose()


@pytest.mark.fault("B21")
async def test_b21_the_real_server_says_the_window_of_the_loaded_model(address: str) -> None:
    row = next(row for row in BUILTIN_PROVIDERS if row.id == "llama.cpp")
    models = Models(providers=[row], environ={"LLAMA_BASE_URL": address, "LLAMA_API_KEY": KEY})
    await models.refresh("llama.cpp")
    (model,) = models.list()
    assert model.context_window == WINDOW
    message = await models.complete(model, said(), StreamOptions(max_tokens=8))
    assert message.stop_reason in ("stop", "length"), message.error_message
    assert message.usage.output > 0
    assert message.usage.cost.total == 0
    await models.aclose()
