"""Asks programs that serve models on this machine which they serve now, and with how large a context.

A model's context window is that of the model as it is loaded, never what it was trained for: a server cuts or
refuses what does not fit. Where a model is not loaded yet, it is what the server would load it with, as far as
that can be told, else :data:`SMALL_WINDOW`.

=========== ============================================================== ==================================
program     asked                                                          window
=========== ============================================================== ==================================
llama.cpp   `/v1/models`, `/props`                                         `n_ctx`, or the arguments of a router
ollama      `/api/tags`, `/api/ps`, `/api/show`                            `context_length`, or `num_ctx`
lm-studio   `/api/v0/models`                                               `loaded_context_length`
openai      `/v1/models` (vLLM, SGLang, and others)                        `max_model_len`
=========== ============================================================== ==================================

Nothing is asked before :func:`served_models` is called.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Awaitable, Callable, Mapping
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Literal
from urllib.parse import quote, urlsplit

from msgspec import Struct

from cantle_ai.apis.http_errors import error_from_json, error_from_response, redacted, secrets_of
from cantle_ai.codec import Json, JsonObject, decode_json, wire_json
from cantle_ai.errors import ConfigurationError, ProviderError
from cantle_ai.model import LocalServer, Model, Provider
from cantle_ai.transport.port import HttpRequest, Transport, TransportError
from cantle_ai.usage import Price

__all__ = ["SMALL_WINDOW", "served_models", "server_url"]

SMALL_WINDOW = 4096
"""The context where a server does not say. Ollama, too, loads a model with so much where nothing else is set."""

_PATIENCE = 2.0
"""Seconds for one answer: servers of this machine know what they serve."""
_WHOLE = 3
"""All answers of one server may take so many times as long."""
_LONGEST_ANSWER = 16 * 1024 * 1024
_AT_ONCE = 8
_ANSWER = 4
"""The longest answer is a quarter of the window."""
_DIGITS = 10
"""No window has so many."""
_FREE = Price(input=0.0, output=0.0, cache_read=0.0, cache_write=0.0)

_STARTS: Mapping[str, str] = {
    "llama.cpp": "llama-server -m MODEL.gguf",
    "ollama": "ollama serve",
    "lmstudio": "lms server start",
    "vllm": "vllm serve MODEL",
    "sglang": "python -m sglang.launch_server --model-path MODEL",
}
"""What starts a provider's server, to be named when nothing listens."""


async def served_models(
    provider: Provider,
    *,
    transport: Transport,
    headers: Mapping[str, str] | None = None,
    patience: float = _PATIENCE,
) -> list[Model]:
    """The models that `provider`'s server can be asked for now, those that are loaded first.

    `headers` authorise the requests; `patience` is in seconds, for one answer. Raises :class:`ConfigurationError` when nothing listens there, or it is
    something else; the text says what to do.
    """
    if provider.server is None:
        raise ConfigurationError(None, f"The provider {provider.id} cannot be asked for its models")
    server = _Server(provider, transport, headers or {}, patience)
    try:
        async with asyncio.timeout_at(server.deadline):
            found = await _LISTS[provider.server](server)
    except TimeoutError:
        raise server.problem("did not answer in time") from None
    return [_model(provider, each) for each in sorted(found, key=lambda each: not each.loaded)]


def server_url(address: str, default: str) -> str:
    """The base URL for an address as servers write their own: `HOST`, `HOST:PORT`, `:PORT` or a URL.

    What is missing comes from `default`. An address that means all interfaces is one to listen at, and this
    machine's own to connect to.
    """
    usual = urlsplit(default)
    given = urlsplit(address if "://" in address else f"{usual.scheme}://{address}")
    host = given.hostname or ""
    if host in ("", "0.0.0.0", "::"):
        host = "127.0.0.1"
    if ":" in host:
        host = f"[{host}]"
    try:
        port = given.port or (usual.port if "://" not in address else None)
    except ValueError:
        raise ConfigurationError(None, f'"{address}" is not the address of a server') from None
    path = given.path.rstrip("/")
    return f"{given.scheme}://{host}{f':{port}' if port else ''}{path or usual.path}"


class _Found(Struct, frozen=True, kw_only=True):
    """What a server says of one model."""

    id: str
    window: int | None = None
    loaded: bool = False
    images: bool = False
    thinks: Literal["no", "template", "effort"] = "no"
    """Whether it thinks, and how that is told: by a variable of its template, or by an effort."""


def _model(provider: Provider, found: _Found) -> Model:
    window = found.window or SMALL_WINDOW
    compat: JsonObject = {}
    if found.thinks == "template":
        switch: JsonObject = {"enable_thinking": {"$var": "thinking.enabled"}}
        compat = {"thinkingFormat": "chat-template", "chatTemplateKwargs": switch}
    return Model(
        id=found.id,
        provider=provider.id,
        api=provider.api,
        base_url=provider.url_of(provider.api),
        name=PurePosixPath(found.id.replace("\\", "/")).stem if found.id.endswith(".gguf") else found.id,
        reasoning=found.thinks != "no",
        thinking_levels={"off": "none", "minimal": None} if found.thinks == "effort" else {},
        input=("text", "image") if found.images else ("text",),
        price=_FREE,
        context_window=window,
        max_tokens=max(1, window // _ANSWER),
        compat=compat,
    )


class _Server:
    """One server, as it is asked."""

    def __init__(
        self, provider: Provider, transport: Transport, headers: Mapping[str, str], patience: float
    ) -> None:
        self._patience = patience
        self.deadline = asyncio.get_running_loop().time() + _WHOLE * patience
        """For all of its answers, by the loop's clock."""
        self.details_deadline = self.deadline - patience / 2
        """For what it says of single models, which the list can do without."""
        self._provider = provider
        self._transport = transport
        self._headers = {name.lower(): value for name, value in headers.items()}
        self.root = provider.base_url.rstrip("/").removesuffix("/v1")

    async def get(self, path: str) -> JsonObject:
        """What it answers. Raises :class:`ConfigurationError` where that is no JSON object."""
        return await self._ask(HttpRequest("GET", self.root + path, self._headers, timeout=self._patience))

    async def detail(self, path: str, body: JsonObject | None = None) -> JsonObject:
        """What it says beside its list, asked with `body` if there is one; empty where it does not."""
        request = HttpRequest("GET", self.root + path, self._headers, timeout=self._patience)
        if body is not None:
            headers = {**self._headers, "content-type": "application/json"}
            request = HttpRequest("POST", self.root + path, headers, wire_json(body), timeout=self._patience)
        try:
            return await self._ask(request)
        except ConfigurationError:
            return {}

    def problem(self, what: str) -> ConfigurationError:
        provider = self._provider
        start = _STARTS.get(provider.id)
        steps = [f"start it with `{start}`"] if start else ["start it"]
        if provider.url_variable:
            steps.append(f"say with {provider.url_variable} where it is")
        steps.append(f"give the provider {provider.id} its baseUrl in models.json")
        return ConfigurationError(
            None,
            f"{provider.name} at {self.root} {what}. S{', or '.join(steps)[1:]}",
        )

    async def _ask(self, request: HttpRequest) -> JsonObject:
        try:
            response = await self._transport.send(request)
            try:
                if not 200 <= response.status < 300:
                    raise await error_from_response(response, secrets_of(request.headers))
                body = await response.read(_LONGEST_ANSWER)
                response.release()
            finally:
                await response.aclose()
        except TransportError as error:
            raise self.problem(
                "did not answer in time"
                if error.kind == "timeout"
                else "does not answer: nothing listens there"
            ) from None
        except ProviderError as error:
            raise self._refusal(error, request) from None
        try:
            answer = decode_json(body)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise self.problem("sent something else than its list of models")
        if answer.get("error"):  # LM Studio says so with a status of 200
            raise self._refusal(error_from_json(answer["error"]), request)
        return answer

    def _refusal(self, error: ProviderError, request: HttpRequest) -> ConfigurationError:
        said = redacted(error.message, secrets_of(request.headers))
        if error.status in (401, 403):
            keys = " or ".join(self._provider.key_variables)
            way = f"Set {keys}" if keys else "Give the provider its apiKey in models.json"
            return ConfigurationError(
                None, f"{self._provider.name} at {self.root} wants a key: {said}. {way}"
            )
        return self.problem(f"refuses to list its models: {said}")


# --- llama.cpp

_SIZE_ARGUMENTS = ("-c", "-ctx", "--ctx-size")


async def _llama_cpp(server: _Server) -> list[_Found]:
    """One model, or, of a router, all that it knows. Those that classify and do not write are left out."""
    listed = _objects((await server.get("/v1/models")).get("data"))
    found: list[_Found] = []
    for entry in listed:
        model_id = _id(entry.get("id"))
        writes = _object(entry.get("architecture")).get("output_modalities")
        if model_id is None or (isinstance(writes, list) and "decisions" in writes):
            continue
        status = entry.get("status")
        if isinstance(status, dict) and (
            status.get("failed") is True or status.get("value") == "downloading"
        ):
            continue
        found.append(await _llama_cpp_model(server, model_id, entry, routed=isinstance(status, dict)))
    return found


async def _llama_cpp_model(server: _Server, model_id: str, entry: JsonObject, *, routed: bool) -> _Found:
    status = _object(entry.get("status"))
    loaded = not routed or status.get("value") == "loaded"
    props: JsonObject = {}
    if loaded:
        # A router loads a model for this question unless it is told not to.
        which = f"?model={quote(model_id, safe='')}&autoload=false" if routed else ""
        props = await server.detail(f"/props{which}")
    window = (
        _count(_object(props.get("default_generation_settings")).get("n_ctx"))
        or _count(_object(entry.get("meta")).get("n_ctx"))
        or _size_argument(status.get("args"))
    )
    reads = _object(entry.get("architecture")).get("input_modalities")
    template = props.get("chat_template")
    return _Found(
        id=model_id,
        window=window,
        loaded=loaded,
        images=_object(props.get("modalities")).get("vision") is True
        or (isinstance(reads, list) and "image" in reads),
        thinks=_thinks(template if isinstance(template, str) else ""),
    )


def _thinks(template: str) -> Literal["no", "template", "effort"]:
    if "enable_thinking" in template:
        return "template"
    return "effort" if "reasoning_effort" in template else "no"


def _size_argument(arguments: Json) -> int | None:
    if isinstance(arguments, list):
        for name, value in pairwise(arguments):
            if name in _SIZE_ARGUMENTS and isinstance(value, str):
                return _count(value)
    return None


# --- Ollama


async def _ollama(server: _Server) -> list[_Found]:
    """The models that are on the disk. Those of a cloud are among them."""
    names = [
        name for entry in _objects((await server.get("/api/tags")).get("models")) if (name := _name(entry))
    ]
    running = {
        name: _count(entry.get("context_length"))
        for entry in _objects((await server.detail("/api/ps")).get("models"))
        if (name := _name(entry))
    }
    details: dict[str, JsonObject] = {}
    left = iter(sorted(names, key=lambda name: name not in running))

    async def show() -> None:
        for name in left:
            details[name] = await server.detail("/api/show", {"model": name})

    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout_at(server.details_deadline), asyncio.TaskGroup() as group:
            for _ in range(_AT_ONCE):
                group.create_task(show())
    return [
        found for name in names if (found := _ollama_model(name, details.get(name, {}), running)) is not None
    ]


def _ollama_model(name: str, shown: JsonObject, running: Mapping[str, int | None]) -> _Found | None:
    able = shown.get("capabilities")
    abilities = able if isinstance(able, list) else ["completion"]
    if "completion" not in abilities:
        return None
    return _Found(
        id=name,
        window=running.get(name) or _ollama_window(shown),
        loaded=name in running,
        images="vision" in abilities,
        thinks="effort" if "thinking" in abilities else "no",
    )


def _ollama_window(shown: JsonObject) -> int:
    """What a model that is not loaded will be loaded with: what its own file says, else little."""
    trained = next(
        (
            _count(value)
            for key, value in _object(shown.get("model_info")).items()
            if key.endswith(".context_length")
        ),
        None,
    )
    if isinstance(shown.get("remote_model"), str) and trained:
        return trained  # a cloud's model has all of its window
    parameters = shown.get("parameters")
    asked = re.search(r"(?m)^num_ctx\s+(\d+)", parameters) if isinstance(parameters, str) else None
    size = int(asked[1]) if asked else SMALL_WINDOW
    return min(size, trained or size)


def _name(entry: JsonObject) -> str | None:
    return _id(entry.get("model", entry.get("name")))


# --- LM Studio


async def _lm_studio(server: _Server) -> list[_Found]:
    """The models that are on the disk: it loads one when it is asked for."""
    found: list[_Found] = []
    for entry in _objects((await server.get("/api/v0/models")).get("data")):
        model_id, kind = _id(entry.get("id")), entry.get("type")
        if model_id is None or kind not in ("llm", "vlm"):
            continue
        loaded = entry.get("state") == "loaded"
        size = _count(entry.get("loaded_context_length"))
        if not loaded:
            size = min(_count(entry.get("max_context_length")) or SMALL_WINDOW, SMALL_WINDOW)
        found.append(_Found(id=model_id, window=size, loaded=loaded, images=kind == "vlm"))
    return found


# --- vLLM, SGLang and others


async def _openai(server: _Server) -> list[_Found]:
    return [
        _Found(id=model_id, window=_count(entry.get("max_model_len")), loaded=True)
        for entry in _objects((await server.get("/v1/models")).get("data"))
        if (model_id := _id(entry.get("id"))) is not None
    ]


_LISTS: Mapping[LocalServer, Callable[[_Server], Awaitable[list[_Found]]]] = {
    "llama.cpp": _llama_cpp,
    "ollama": _ollama,
    "lm-studio": _lm_studio,
    "openai": _openai,
}


def _object(raw: Json) -> JsonObject:
    return raw if isinstance(raw, dict) else {}


def _objects(raw: Json) -> list[JsonObject]:
    return [entry for entry in raw if isinstance(entry, dict)] if isinstance(raw, list) else []


def _id(raw: Json) -> str | None:
    """An id that can be shown; no program gives its models others."""
    return raw if isinstance(raw, str) and raw and raw.isprintable() else None


def _count(raw: Json) -> int | None:
    """A number of tokens that can be one."""
    if isinstance(raw, str) and raw.isdecimal():
        raw = int(raw[: _DIGITS + 1])
    return raw if type(raw) is int and 0 < raw < 10**_DIGITS else None
