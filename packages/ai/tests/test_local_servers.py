"""Servers of this machine are asked for their models, and what comes of it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from cantle_ai.codec import encode_json
from cantle_ai.errors import ConfigurationError
from cantle_ai.listening import may_listen
from cantle_ai.local_servers import SMALL_WINDOW, served_models, server_url
from cantle_ai.model import Model, Provider
from cantle_ai.models import Models
from cantle_ai.models_file import load_models_file
from cantle_ai.providers import BUILTIN_PROVIDERS
from cantle_ai.transport.urllib3_thread import Urllib3Transport
from packages.ai.tests.http_peer import Link, Peer, refused_port
from packages.ai.tests.server_programs import (
    LLAMA_CPP,
    LLAMA_ROUTER,
    LM_STUDIO,
    OLLAMA,
    SGLANG,
    VLLM,
    Answers,
    Program,
)

PROVIDERS = {row.id: row for row in BUILTIN_PROVIDERS if row.server is not None}


@pytest.fixture
async def transport() -> AsyncIterator[Urllib3Transport]:
    made = Urllib3Transport(environ={})
    yield made
    await made.aclose()


def at(provider_id: str, url: str) -> Provider:
    return msgspec.structs.replace(PROVIDERS[provider_id], base_url=f"{url}/v1")


async def served(provider_id: str, answers: Answers, transport: Urllib3Transport) -> list[Model]:
    with Program(answers) as program:
        models = await served_models(at(provider_id, program.url), transport=transport)
        assert all(model.base_url == f"{program.url}/v1" for model in models)
    assert all(model.provider == provider_id and model.api == "openai-completions" for model in models)
    assert all(model.price is not None and model.price.input == 0 for model in models)
    assert all(0 < model.max_tokens < model.context_window for model in models)
    return models


def test_five_programs_are_known() -> None:
    assert set(PROVIDERS) == {"llama.cpp", "ollama", "lmstudio", "vllm", "sglang"}
    for row in PROVIDERS.values():
        assert row.key_optional
        assert not row.automatic


@pytest.mark.fault("B21")
async def test_b21_llama_cpp_the_window_is_that_of_the_loaded_model(transport: Urllib3Transport) -> None:
    (model,) = await served("llama.cpp", LLAMA_CPP, transport)
    assert (model.id, model.name) == ("../models/qwen3-4b.gguf", "qwen3-4b")
    assert model.context_window == 8192
    assert model.input == ("text", "image")
    assert model.reasoning
    assert model.compat["chatTemplateKwargs"] == {"enable_thinking": {"$var": "thinking.enabled"}}


async def test_llama_cpp_before_it_had_properties_says_its_window_in_its_list(
    transport: Urllib3Transport,
) -> None:
    (model,) = await served("llama.cpp", {"/v1/models": LLAMA_CPP["/v1/models"]}, transport)
    assert (model.context_window, model.reasoning, model.input) == (8192, False, ("text",))


async def test_a_router_of_llama_cpp_lists_what_can_write_and_loads_nothing(
    transport: Urllib3Transport,
) -> None:
    models = await served("llama.cpp", LLAMA_ROUTER, transport)
    assert {model.id: model.context_window for model in models} == {
        "org/gemma:Q4": 4096,
        "unloaded": 16384,
        "unknown": SMALL_WINDOW,
    }
    assert models[0].id == "org/gemma:Q4"  # what is loaded comes first
    assert models[0].input == ("text", "image")


@pytest.mark.fault("B21")
async def test_b21_ollama_the_window_is_what_the_model_runs_with_or_would(
    transport: Urllib3Transport,
) -> None:
    models = await served("ollama", OLLAMA, transport)
    assert {model.id: model.context_window for model in models} == {
        "qwen3:4b": 32768,
        "llama3.2:latest": SMALL_WINDOW,
        "tuned:latest": 16384,
    }
    thinks = models[0]
    assert thinks.id == "qwen3:4b"
    assert thinks.input == ("text", "image")
    assert thinks.levels() == ("off", "low", "medium", "high")
    assert thinks.thinking_levels["off"] == "none"
    assert not models[1].reasoning


@pytest.mark.fault("B21")
async def test_b21_lm_studio_the_window_is_that_of_the_loaded_model(transport: Urllib3Transport) -> None:
    models = await served("lmstudio", LM_STUDIO, transport)
    assert [(model.id, model.context_window, model.input) for model in models] == [
        ("meta-llama-3.1-8b-instruct", 8192, ("text",)),
        ("qwen2-vl-7b-instruct", SMALL_WINDOW, ("text", "image")),
    ]


@pytest.mark.fault("B21")
@pytest.mark.parametrize(
    ("provider", "answers", "window"), [("vllm", VLLM, 40960), ("sglang", SGLANG, 131072)]
)
async def test_b21_vllm_and_sglang_say_their_window(
    provider: str, answers: Answers, window: int, transport: Urllib3Transport
) -> None:
    (model,) = await served(provider, answers, transport)
    assert model.context_window == window


# --- what can be wrong


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_when_nothing_listens_the_sentence_says_what_to_do(
    provider: str, transport: Urllib3Transport
) -> None:
    with refused_port() as port, pytest.raises(ConfigurationError) as caught:
        await served_models(at(provider, f"http://127.0.0.1:{port}"), transport=transport)
    text = str(caught.value)
    assert PROVIDERS[provider].name in text
    assert f"127.0.0.1:{port} does not answer: nothing listens there. Start it with `" in text
    assert text.endswith(f"give the provider {provider} its baseUrl in models.json")


async def test_a_server_that_is_silent_is_not_waited_for_long(transport: Urllib3Transport) -> None:
    with (
        Peer(lambda link: link.wait_gone()) as peer,
        pytest.raises(ConfigurationError, match="did not answer in time"),
    ):
        await served_models(at("ollama", peer.url), transport=transport, patience=0.2)


async def test_a_server_that_drips_is_not_waited_for_long(transport: Urllib3Transport) -> None:
    def drip(link: Link) -> None:
        link.request()
        link.head("content-type: application/json", "content-length: 100000")
        while not link.gone.wait(0.02):
            link.send(b" ")

    with Peer(drip) as peer, pytest.raises(ConfigurationError, match="did not answer in time"):
        await served_models(at("vllm", peer.url), transport=transport, patience=0.1)


async def test_what_starts_a_server_is_written_as_it_is_typed(transport: Urllib3Transport) -> None:
    with refused_port() as port, pytest.raises(ConfigurationError, match="Start it with `vllm serve MODEL`"):
        await served_models(at("vllm", f"http://127.0.0.1:{port}"), transport=transport)


async def test_the_list_of_ollama_does_not_wait_for_what_it_says_of_each_model(
    transport: Urllib3Transport,
) -> None:
    class Stuck(dict[str, object]):
        """Answers about the model that is loaded, and about no other."""

        def get(self, key: str, default: object = None) -> object:
            if key != "loaded":
                gone.wait(30)
            return {"capabilities": ["completion", "vision"]}

    gone = threading.Event()
    names = [*(f"m{number}" for number in range(40)), "loaded"]
    answers: Answers = {
        "/api/tags": {"models": [{"model": name} for name in names]},
        "/api/ps": {"models": [{"model": "loaded", "context_length": 8192}]},
        "/api/show": Stuck(),
    }
    with Program(answers) as program:
        try:
            models = await served_models(at("ollama", program.url), transport=transport, patience=0.4)
        finally:
            gone.set()
    assert {model.id for model in models} == {*names}
    assert (models[0].id, models[0].context_window, models[0].input) == ("loaded", 8192, ("text", "image"))
    assert {model.context_window for model in models[1:]} == {SMALL_WINDOW}


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_refusal_that_calls_itself_a_success_is_told(
    provider: str, transport: Urllib3Transport
) -> None:
    refusal = {"error": "Unexpected endpoint or method. (GET /api/v0/models)"}
    paths = ("/v1/models", "/api/v0/models", "/api/tags")
    with Program(dict.fromkeys(paths, refusal)) as program:
        with pytest.raises(ConfigurationError, match="refuses to list its models: Unexpected endpoint"):
            await served_models(at(provider, program.url), transport=transport)


async def test_ids_that_cannot_be_shown_are_no_models(transport: Urllib3Transport) -> None:
    odd = ["", "red\x1b[31m", "two\nlines", "\u202eback", "\ud800"]
    entries = [{"id": name, "model": name, "type": "llm"} for name in [*odd, "org/модель:q4 K"]]
    paths = ("/v1/models", "/api/v0/models", "/api/tags")
    listed: Answers = {"data": entries, "models": entries}
    for provider in PROVIDERS:
        (model,) = await served(provider, dict.fromkeys(paths, listed), transport)
        assert model.id == "org/модель:q4 K"


@pytest.mark.parametrize("body", [b"<html>", b"[]", b'"text"', b"\xff\x00", b""])
async def test_something_else_that_listens_there_is_no_server(
    body: bytes, transport: Urllib3Transport
) -> None:
    with Program({"/v1/models": body}) as program, pytest.raises(ConfigurationError, match="something else"):
        await served_models(at("vllm", program.url), transport=transport)


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_server_without_its_list_is_told_from_one_that_does_not_run(
    provider: str, transport: Urllib3Transport
) -> None:
    with Program({}) as program, pytest.raises(ConfigurationError, match="refuses to list its models: 404"):
        await served_models(at(provider, program.url), transport=transport)


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"data": None, "models": None},
        {"data": [None, 1, "x", {}, {"id": 7}], "models": [None, {}, {"name": 1}]},
        {"data": {"id": "x"}, "models": {"name": "x"}},
    ],
)
@pytest.mark.parametrize("provider", PROVIDERS)
async def test_odd_lists_have_no_models(provider: str, answer: Answers, transport: Urllib3Transport) -> None:
    paths = ("/v1/models", "/api/v0/models", "/api/tags", "/api/ps", "/props")
    assert await served(provider, dict.fromkeys(paths, answer), transport) == []


@pytest.mark.parametrize("size", [None, 0, -1, "x", 1.5, True, [], {}, 10**30, "9" * 5000])
async def test_a_window_that_is_none_is_taken_for_a_small_one(
    size: object, transport: Urllib3Transport
) -> None:
    (model,) = await served("vllm", {"/v1/models": {"data": [{"id": "m", "max_model_len": size}]}}, transport)
    assert model.context_window == SMALL_WINDOW


async def test_a_key_is_sent_and_never_told(transport: Urllib3Transport) -> None:
    with Program(VLLM, key="secret-key-1") as program:
        row = at("vllm", program.url)
        right = {"Authorization": "Bearer secret-key-1"}
        assert await served_models(row, transport=transport, headers=right)
        with pytest.raises(
            ConfigurationError, match=r"wants a key: 401 Invalid API Key\. Set VLLM_API_KEY"
        ) as caught:
            await served_models(row, transport=transport, headers={"authorization": "Bearer wrong-key-22"})
        assert "wrong-key" not in str(caught.value)


# --- addresses


@pytest.mark.parametrize(
    ("address", "url"),
    [
        ("0.0.0.0", "http://127.0.0.1:11434/v1"),
        ("0.0.0.0:80", "http://127.0.0.1:80/v1"),
        (":12000", "http://127.0.0.1:12000/v1"),
        ("gpu.example", "http://gpu.example:11434/v1"),
        ("gpu.example:12000", "http://gpu.example:12000/v1"),
        ("http://gpu.example:12000", "http://gpu.example:12000/v1"),
        ("https://gpu.example/", "https://gpu.example/v1"),
        ("https://gpu.example/ollama/v1/", "https://gpu.example/ollama/v1"),
        ("[::]:1", "http://127.0.0.1:1/v1"),
        ("[::1]:1", "http://[::1]:1/v1"),
    ],
)
def test_addresses_as_servers_write_their_own(address: str, url: str) -> None:
    assert server_url(address, "http://127.0.0.1:11434/v1") == url


def test_an_address_that_is_none_is_told() -> None:
    with pytest.raises(ConfigurationError, match="is not the address of a server"):
        server_url("host:port", "http://127.0.0.1:11434/v1")


def test_whether_anything_listens() -> None:
    with Program({}) as program:
        assert may_listen(f"{program.url}/v1")
    with refused_port() as port:
        assert not may_listen(f"http://127.0.0.1:{port}/v1")
    assert may_listen("http://another.example/v1")  # is not tried


# --- among all models


async def test_models_are_served_after_they_were_asked_for_and_at_no_other_time() -> None:
    with Program(OLLAMA) as ollama, Program(LLAMA_CPP) as llama:
        environ = {"OLLAMA_HOST": ollama.address, "LLAMA_BASE_URL": llama.url}
        models = Models(environ=environ)
        assert models.list("ollama") == []
        assert models.find("ollama", "qwen3:4b") is None
        assert (ollama.asked, llama.asked) == ([], [])
        await models.refresh("ollama")
        assert llama.asked == []
        found = models.find("ollama", "qwen3:4b")
        assert found is not None
        assert found.base_url == f"{ollama.url}/v1"
        assert models.configured("ollama")
        await models.refresh()
        assert len(models.list("llama.cpp")) == 1
        await models.refresh("openai")  # is no server
        await models.aclose()


async def test_the_models_of_a_server_stay_while_it_is_asked_again() -> None:
    asked, answer = threading.Event(), threading.Event()
    listed = b'{"data": [{"id": "m"}]}'

    def serve(link: Link) -> None:
        if asked.is_set():
            answer.wait(30)
        link.answer(listed, "content-type: application/json")
        asked.set()

    with Peer(serve) as peer:
        models = Models(providers=[at("vllm", peer.url)], environ={})
        await models.refresh("vllm")
        again = asyncio.create_task(models.refresh("vllm"))
        for _ in range(5):
            await asyncio.sleep(0)
        assert models.find("vllm", "m") is not None
        answer.set()
        await again
        assert models.find("vllm", "m") is not None
        await models.aclose()


async def test_a_server_that_is_gone_has_no_models_any_more() -> None:
    with Program(VLLM) as program:
        models = Models(providers=[at("vllm", program.url)], environ={})
        await models.refresh()
        assert models.list("vllm")
    await models.refresh()
    assert models.list("vllm") == []
    with pytest.raises(ConfigurationError, match=r"vLLM at .* does not answer"):
        await models.refresh("vllm")
    await models.aclose()


async def test_models_json_changes_where_a_server_is_and_what_its_models_are(tmp_path: Path) -> None:
    with Program(VLLM, key="secret-key-1") as program:
        file = tmp_path / "models.json"
        said = {
            "baseUrl": f"{program.url}/v1",
            "apiKey": "secret-key-1",
            "modelOverrides": {"Qwen/Qwen3-8B": {"reasoning": True, "name": "Mine"}},
            "models": [{"id": "by-hand"}],
        }
        file.write_bytes(encode_json({"providers": {"vllm": said}}))
        models = Models(environ={})
        models.apply(load_models_file(file))
        assert [model.id for model in models.list("vllm")] == ["by-hand"]
        await models.refresh("vllm")
        served_now = {model.id: model for model in models.list("vllm")}
        await models.aclose()
    assert set(served_now) == {"Qwen/Qwen3-8B", "by-hand"}
    changed = served_now["Qwen/Qwen3-8B"]
    assert (changed.name, changed.reasoning, changed.context_window) == ("Mine", True, 40960)
