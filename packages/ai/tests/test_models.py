"""Models: found, authorised at each request, dispatched by API; whatever is wrong is an answer that says so."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import cast

import msgspec
import pytest

from cantle_ai.abort import AbortController, AbortSignal
from cantle_ai.apis.port import WireApi
from cantle_ai.auth.credentials import ApiKeyCredential, Credential, Credentials
from cantle_ai.auth.request_auth import RequestAuth
from cantle_ai.builder import AnswerBuilder
from cantle_ai.context import Context
from cantle_ai.errors import ConfigurationError
from cantle_ai.events import AssistantMessageEvent
from cantle_ai.messages import ThinkingLevel, UserMessage
from cantle_ai.model import Model, Provider, StreamOptions
from cantle_ai.model_entries import ModelEntry
from cantle_ai.model_patterns import ModelPatternError
from cantle_ai.models import Models
from cantle_ai.retry import retryable
from cantle_ai.stream import EventSource
from cantle_ai.testing.checker import check_events
from cantle_ai.testing.scripted import ScriptedModel
from cantle_ai.testing.server.server import StrictServer
from cantle_ai.transport.port import Transport
from cantle_ai.usage import Price, Usage

HELLO = Context(messages=[UserMessage("hello", 1)])
PROVIDER = Provider(
    id="p", name="P", base_url="http://127.0.0.1:1/v1", api="recorded", key_variables=("P_KEY", "P_OTHER_KEY")
)
MODEL = Model(
    id="m",
    provider="p",
    api="recorded",
    base_url="http://127.0.0.1:1/v1",
    reasoning=True,
    price=Price(input=1, output=2, cache_read=0, cache_write=0),
)


class Recorded:
    """A wire API that answers "ok" and remembers what it was called with."""

    def __init__(self) -> None:
        self.loads = 0
        self.keys: list[str | None] = []
        self.headers: list[dict[str, str]] = []
        self.models: list[Model] = []
        self.options: list[StreamOptions] = []
        self.closed = 0

    def load(self) -> WireApi:
        self.loads += 1
        return self.source

    def source(
        self,
        model: Model,
        context: Context,
        options: StreamOptions,
        *,
        transport: Transport,
        auth: RequestAuth,
    ) -> EventSource:
        self.keys.append(auth.api_key)
        self.headers.append(dict(auth.headers))
        self.models.append(model)
        self.options.append(options)

        async def events(
            builder: AnswerBuilder, signal: AbortSignal
        ) -> AsyncIterator[Sequence[AssistantMessageEvent]]:
            try:
                yield builder.take()
                index = builder.text_start()
                builder.text_delta(index, "ok")
                yield builder.take()
                builder.usage(Usage(input=1_000_000, output=500_000, total_tokens=1_500_000))
                builder.done("stop")
                yield builder.take()
            finally:
                self.closed += 1

        return events


class Stored:
    """Keys in memory."""

    def __init__(self, **keys: str) -> None:
        self.keys = keys

    async def get(self, provider_id: str) -> Credential | None:
        return self.peek(provider_id)

    def peek(self, provider_id: str) -> Credential | None:
        key = self.keys.get(provider_id)
        return None if key is None else ApiKeyCredential(key=key)


class Broken(Stored):
    """Credentials that cannot be read."""

    async def get(self, provider_id: str) -> Credential | None:
        raise ConfigurationError("auth.json", "line 1, column 1: expecting value")


class Slow(Stored):
    """Credentials that never come."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = asyncio.Event()

    async def get(self, provider_id: str) -> Credential | None:
        self.asked.set()
        await asyncio.get_running_loop().create_future()
        return None


class Idle:
    """A transport that is never asked for anything, and counts how often it is closed."""

    closed = 0

    async def send(self, request: object, *, signal: AbortSignal | None = None) -> object:
        raise AssertionError("nothing is sent here")

    async def aclose(self) -> None:
        self.closed += 1


def setup(
    *,
    environ: Mapping[str, str] | None = None,
    credentials: Credentials | None = None,
    provider: Provider = PROVIDER,
) -> tuple[Models, Recorded]:
    models = Models(
        providers=(),
        transport=cast("Transport", Idle()),
        credentials=credentials,
        environ={} if environ is None else environ,
    )
    api = Recorded()
    models.add_provider(provider, [MODEL])
    models.register_api("recorded", api.load)
    return models, api


async def failed(models: Models, model: Model = MODEL, options: StreamOptions | None = None) -> str:
    """The text of an answer that must be an error event and follow the rules of the stream."""
    events = [event async for event in models.stream(model, HELLO, options)]
    message = check_events(events)
    assert message.stop_reason == "error" and message.error_message
    assert not retryable(message)
    return message.error_message


# --- keys ----------------------------------------------------------------------------------------


@pytest.mark.parity("models.key-order")
async def test_a_key_is_looked_for_in_this_order() -> None:
    environ = {"P_OTHER_KEY": "environment 2", "C": "configured"}
    stored = Stored(p="stored")
    models, api = setup(
        environ=environ, credentials=stored, provider=msgspec.structs.replace(PROVIDER, api_key="$C")
    )
    await models.complete(MODEL, HELLO, StreamOptions(api_key="given"))
    await models.complete(MODEL, HELLO)
    stored.keys.clear()
    await models.complete(MODEL, HELLO)
    models.add_provider(PROVIDER, [MODEL])
    await models.complete(MODEL, HELLO)
    environ["P_KEY"] = "environment 1"
    await models.complete(MODEL, HELLO)
    assert api.keys == ["given", "stored", "configured", "environment 2", "environment 1"]


async def test_keys_are_resolved_at_each_request_and_not_before() -> None:
    """Even between making the stream and reading it."""
    environ: dict[str, str] = {}
    models, api = setup(environ=environ)
    stream = models.stream(MODEL, HELLO)
    environ["P_KEY"] = "late"
    assert (await stream.result()).text == "ok"
    environ["P_KEY"] = "later"
    await models.complete(MODEL, HELLO)
    assert api.keys == ["late", "later"]


async def test_a_given_key_needs_no_store() -> None:
    models, api = setup(credentials=Broken())
    assert (await models.complete(MODEL, HELLO, StreamOptions(api_key="k"))).text == "ok"
    assert api.keys == ["k"]


async def test_blanks_around_a_key_are_not_sent() -> None:
    models, api = setup(environ={"P_KEY": " k\n"})
    await models.complete(MODEL, HELLO)
    await models.complete(MODEL, HELLO, StreamOptions(api_key="g\r\n"))
    assert api.keys == ["k", "g"]
    models, _ = setup(environ={"P_KEY": "\n"})
    assert "No API key" in await failed(models)


async def test_a_configured_authorization_stands_against_auth_header() -> None:
    provider = msgspec.structs.replace(PROVIDER, headers={"authorization": "Basic b"}, auth_header=True)
    models, api = setup(provider=provider, environ={"P_KEY": "k"})
    await models.complete(MODEL, HELLO)
    assert api.headers == [{"authorization": "Basic b"}]


async def test_stored_keys_are_resolved_like_configured_ones() -> None:
    models, api = setup(credentials=Stored(p="${A}!"), environ={"A": "secret"})
    await models.complete(MODEL, HELLO)
    assert api.keys == ["secret!"]


@pytest.mark.parity("models.no-key")
async def test_without_a_key_the_answer_says_what_to_do() -> None:
    models, api = setup()
    assert await failed(models) == (
        "No API key for the provider p. Set P_KEY or P_OTHER_KEY, or pass StreamOptions(api_key=…)"
    )
    assert api.keys == []
    assert "Set OPENAI_API_KEY," in await failed(Models(environ={}), Models(environ={}).list()[0])


async def test_without_a_key_the_way_to_the_platforms_credentials_is_told_too() -> None:
    models = Models(environ={})
    text = await failed(models, models.list("amazon-bedrock")[0])
    assert "Set AWS_BEARER_TOKEN_BEDROCK or AWS_PROFILE, or pass" in text


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("$NOPE", "providers.p.apiKey in models.json refers to $NOPE, which is not set"),
        ("!exit 4", "The command for providers.p.apiKey in models.json failed with exit status 4"),
    ],
)
async def test_a_key_that_cannot_be_had_is_an_answer_that_says_so(key: str, text: str) -> None:
    models, _ = setup(provider=msgspec.structs.replace(PROVIDER, api_key=key))
    assert text in await failed(models)


async def test_a_store_that_cannot_be_read_is_an_answer_that_says_so() -> None:
    models, _ = setup(credentials=Broken(), environ={"P_KEY": "k"})
    assert await failed(models) == "auth.json: line 1, column 1: expecting value"


async def test_a_provider_may_need_no_key() -> None:
    models, api = setup(provider=msgspec.structs.replace(PROVIDER, key_optional=True))
    await models.complete(MODEL, HELLO)
    by_header = msgspec.structs.replace(PROVIDER, headers={"authorization": "Basic $B"})
    models, other = setup(provider=by_header, environ={"B": "b"})
    await models.complete(MODEL, HELLO)
    assert (api.keys, other.keys) == ([None], [None])
    assert other.headers == [{"authorization": "Basic b"}]


@pytest.mark.parametrize(
    ("provider", "environ", "stored", "expected"),
    [
        ({}, {}, {}, False),
        ({}, {"P_OTHER_KEY": "k"}, {}, True),
        ({}, {"P_KEY": ""}, {}, False),
        ({}, {}, {"p": "k"}, True),
        ({"api_key": "$A"}, {}, {}, False),
        ({"api_key": "$A"}, {"A": "a"}, {}, True),
        ({"api_key": "!exit 1"}, {}, {}, True),
        ({"key_optional": True}, {}, {}, True),
        ({"headers": {"X-API-Key": "k"}}, {}, {}, True),
        ({"headers": {"x-goog-api-key": "k"}}, {}, {}, True),
        ({"headers": {"x-other": "k"}}, {}, {}, False),
    ],
)
async def test_a_provider_is_configured_when_a_request_would_have_a_key(
    provider: dict[str, object], environ: dict[str, str], stored: dict[str, str], expected: bool
) -> None:
    changed = msgspec.structs.replace(PROVIDER, **provider)
    models, _ = setup(provider=changed, environ=environ, credentials=Stored(**stored))
    assert models.configured("p") is expected
    assert await models.has_auth("p") is expected
    assert not models.configured("q") and not await models.has_auth("q")


# --- dispatch ------------------------------------------------------------------------------------


async def test_an_unknown_api_provider_or_level_is_an_answer_that_says_so() -> None:
    models, _ = setup(environ={"P_KEY": "k"})
    text = await failed(models, msgspec.structs.replace(MODEL, api="smoke-signals"))
    assert 'speaks the API "smoke-signals", which is not one of ' in text
    assert ", openai-completions, " in text and ", recorded. " in text
    text = await failed(models, msgspec.structs.replace(MODEL, provider="nobody"))
    assert text.startswith('There is no provider "nobody" (known: p)')
    level = cast("ThinkingLevel", "ultra")
    assert '"ultra" is not a thinking level' in await failed(models, options=StreamOptions(thinking=level))


async def test_an_api_is_loaded_when_the_first_request_speaks_it() -> None:
    models, api = setup(environ={"P_KEY": "k"})
    stream = models.stream(MODEL, HELLO)
    assert (api.loads, api.keys) == (0, [])
    await stream.result()
    assert api.loads == 1


async def test_an_answer_carries_names_level_and_cost() -> None:
    models, _ = setup(environ={"P_KEY": "k"})
    message = await models.complete(MODEL, HELLO, StreamOptions(thinking="max"))
    assert (message.api, message.provider, message.model) == ("recorded", "p", "m")
    assert message.thinking_level == "high"
    assert message.usage.cost.total == pytest.approx(2.0)
    unpriced = msgspec.structs.replace(MODEL, price=None)
    assert (await models.complete(unpriced, HELLO)).usage.cost.unknown


async def test_headers_and_quirks_of_the_model_go_over_those_of_the_provider() -> None:
    provider = msgspec.structs.replace(
        PROVIDER,
        headers={"X-One": "$A", "X-Two": "p"},
        compat={"a": 1, "b": 1},
        auth_header=True,
    )
    models, api = setup(provider=provider, environ={"P_KEY": "k", "A": "a"})
    model = msgspec.structs.replace(MODEL, headers={"x-two": "m"}, compat={"b": 2})
    await models.complete(model, HELLO)
    assert api.headers == [{"X-One": "a", "x-two": "m", "Authorization": "Bearer k"}]
    assert api.models[0].compat == {"a": 1, "b": 2}


async def test_a_reader_that_leaves_closes_the_source() -> None:
    models, api = setup(environ={"P_KEY": "k"})
    stream = models.stream(MODEL, HELLO)
    async for _ in stream:
        break
    await stream.aclose()
    assert api.closed == 1


async def test_abort_ends_a_request_also_while_its_key_is_awaited() -> None:
    store = Slow()
    models, api = setup(credentials=store)
    controller = AbortController()
    result = asyncio.create_task(models.complete(MODEL, HELLO, StreamOptions(signal=controller.signal)))
    await store.asked.wait()
    controller.abort("enough")
    message = await result
    assert (message.stop_reason, message.error_message, api.keys) == ("aborted", "enough", [])


async def test_a_provider_can_be_served_by_a_stream_function() -> None:
    models = Models(environ={})
    scripted = ScriptedModel(["hi"])
    scripted.register(models)
    assert models.configured(scripted.model.provider)
    message = await models.complete(scripted.model, HELLO)
    assert message.text == "hi"
    assert models.providers[-1].id == scripted.model.provider


# --- finding, and the real thing -----------------------------------------------------------------


def test_models_are_listed_and_found() -> None:
    models, _ = setup()
    assert models.list() == models.list("p") == [MODEL]
    assert models.list("q") == []
    assert models.find("p", "m") is MODEL
    assert models.find("p", "M") is None and models.find("q", "m") is None
    assert models.provider("p") == PROVIDER and models.provider("q") is None


@pytest.mark.parity("models.catalog-refresh")
def test_models_are_listed_without_a_network() -> None:
    models = Models(environ={"OPENROUTER_API_KEY": "k"}, transport=cast("Transport", Idle()))
    assert len(models.list("openrouter")) > 300 and len(models.list()) > 1000


def test_models_of_a_provider_may_be_loaded_when_they_are_asked_for() -> None:
    models, _ = setup()
    asked: list[Provider] = []

    def load(provider: Provider) -> list[Model]:
        asked.append(provider)
        return [MODEL]

    models.add_provider(PROVIDER, load)
    assert models.providers and asked == []
    models.find("p", "m"), models.list("p")
    assert asked == [PROVIDER]


def test_models_may_be_given_as_entries_that_take_the_rest_from_their_provider() -> None:
    models, _ = setup()
    row = Provider(
        id="q", name="Q", base_url="http://q/v1", api="recorded", endpoints={"other": "http://q/other"}
    )
    models.add_provider(row, [ModelEntry(id="a", context_window=5), ModelEntry(id="b", api="other")])
    first, second = models.list("q")
    assert first == Model(id="a", provider="q", api="recorded", base_url="http://q/v1", context_window=5)
    assert (second.api, second.base_url) == ("other", "http://q/other")


def test_a_source_may_know_models_that_it_does_not_list() -> None:
    class Files:
        def listed(self, provider: Provider) -> Sequence[Model]:
            return [MODEL]

        def resolve(self, provider: Provider, model_id: str) -> Model | None:
            return msgspec.structs.replace(MODEL, id=model_id) if model_id.endswith(".txt") else None

    models, _ = setup()
    models.add_provider(PROVIDER, Files())
    found = models.find("p", "a.txt")
    assert found is not None and found.id == "a.txt"
    assert models.list("p") == [MODEL] and models.find("p", "a") is None


@pytest.fixture
def server() -> Iterator[StrictServer]:
    with StrictServer(["Hello.", "Again."]) as running:
        yield running
        running.assert_clean()


async def test_a_real_request_goes_to_a_real_server(server: StrictServer) -> None:
    models = Models(providers=(), environ={"P_KEY": "sk-1"})
    provider = msgspec.structs.replace(PROVIDER, base_url=server.base_url, api="openai-completions")
    model = msgspec.structs.replace(
        MODEL, base_url=server.base_url, api="openai-completions", reasoning=False
    )
    models.add_provider(provider, [model])
    stream = models.stream(model, HELLO)
    message = check_events([event async for event in stream])
    assert message.text == "Hello."
    again = await models.complete(model, Context(messages=[*HELLO.messages, message, UserMessage("and?", 2)]))
    assert again.text == "Again."
    await models.aclose()
    await models.aclose()


async def test_only_a_transport_of_its_own_is_closed() -> None:
    given = Idle()
    models = Models(transport=cast("Transport", given), environ={})
    await models.aclose()
    assert given.closed == 0


def test_importing_models_loads_no_wire_api_and_no_transport() -> None:
    code = (
        "import sys, cantle_ai.models, cantle_ai.model_patterns, cantle_ai.models_file\n"
        "models = cantle_ai.models.Models(environ={})\n"
        "assert models.find('openai', 'gpt-5') is not None\n"
        "late = ('cantle_ai.apis', 'cantle_ai.transport', 'urllib3', 'jiter', 'http')\n"
        "print([name for name in sys.modules if name.startswith(late)])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True)
    assert done.stdout == "[]\n"


class HoldingApi:
    """A wire API that holds something: it answers with how often it was asked."""

    def __init__(self) -> None:
        self.asked = 0
        self.closed = 0

    def __call__(self, model: Model, context: Context, options: StreamOptions, **_: object) -> EventSource:
        self.asked += 1

        async def events(
            builder: AnswerBuilder, signal: AbortSignal
        ) -> AsyncIterator[Sequence[AssistantMessageEvent]]:
            builder.text_delta(builder.text_start(), str(self.asked))
            builder.done("stop")
            yield builder.take()

        return events

    async def aclose(self) -> None:
        self.closed += 1


async def test_an_api_that_holds_something_is_kept_and_closed_with_the_models() -> None:
    made: list[HoldingApi] = []

    def loader() -> HoldingApi:
        made.append(HoldingApi())
        return made[-1]

    models = Models(environ={"P_KEY": "k"})
    models.add_provider(PROVIDER, [MODEL])
    models.register_api(MODEL.api, loader)
    answers = [(await models.complete(MODEL, HELLO)).text for _ in range(3)]
    assert answers == ["1", "2", "3"] and len(made) == 1
    await models.aclose()
    assert made[0].closed == 1
    assert (await models.complete(MODEL, HELLO)).text == "1"  # it takes hold again
    models.register_api(MODEL.api, HoldingApi)
    assert (await models.complete(MODEL, HELLO)).text == "1"
    await models.aclose()
    await models.aclose()
    assert [api.closed for api in made] == [1, 1]


def test_a_model_is_got_by_its_key_or_part_of_its_name_or_refused():
    models = Models(environ={})
    exact = models.get("anthropic/claude-sonnet-4-5")
    assert exact is models.find("anthropic", "claude-sonnet-4-5")
    assert models.get("openrouter/anthropic/claude-sonnet-4.5").provider == "openrouter"
    with pytest.raises(ModelPatternError, match="no-such-model"):
        models.get("no-such-model")
    with pytest.raises(ModelPatternError, match="no-such-model"):
        models.get("openai/no-such-model")


def test_a_part_of_a_name_means_the_provider_that_has_a_key():
    assert Models(environ={"ANTHROPIC_API_KEY": "k"}).get("sonnet").provider == "anthropic"
