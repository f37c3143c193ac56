"""All models at hand, and the way to ask one of them.

    models = Models()
    message = await models.complete(models.find("openai", "gpt-5"), Context(messages=[UserMessage("hello")]))

A request finds its provider by the model's `provider`, its wire API by the model's `api`, and its key when
it is made, in the order of :mod:`cantle_ai.auth.resolution`. Nothing is loaded or connected before that.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from cantle_ai.abort import AbortSignal
from cantle_ai.auth.keys import filled
from cantle_ai.auth.resolution import AuthResolver
from cantle_ai.builder import AnswerBuilder
from cantle_ai.context import Context
from cantle_ai.errors import ConfigurationError, ProviderError
from cantle_ai.events import AssistantMessageEvent
from cantle_ai.messages import AssistantMessage
from cantle_ai.model import THINKING_LEVELS, Model, Provider, StreamOptions
from cantle_ai.model_shelf import CatalogModels, GivenModels, LocalModels, ModelShelf
from cantle_ai.providers import BUILTIN_PROVIDERS, LOCAL_API, WIRE_APIS
from cantle_ai.stream import AssistantMessageStream, EventSource, StreamFunction

if TYPE_CHECKING:
    from pathlib import Path

    from cantle_ai.apis.port import OwningApi, WireApi
    from cantle_ai.auth.credentials import Credentials
    from cantle_ai.auth.login import Login
    from cantle_ai.auth.resolution import AuthSource, ResolvedAuth
    from cantle_ai.model_entries import ModelEntry
    from cantle_ai.models_file import ModelsFile, ProviderEntry
    from cantle_ai.transport.port import Transport

__all__ = ["Models"]

_UNAUTHORISED = 401


class Models:
    """Providers and their models; finds them, resolves their keys and dispatches requests. One event loop."""

    def __init__(
        self,
        *,
        providers: Iterable[Provider] = BUILTIN_PROVIDERS,
        transport: Transport | None = None,
        credentials: Credentials | None = None,
        environ: Mapping[str, str] | None = None,
        weights_folders: Sequence[Path] = (),
        explain_no_key: Callable[[Provider], str] | None = None,
        find_login: Callable[[str], Login | None] | None = None,
    ) -> None:
        """`providers` come with the catalog's models. The default transport is made at the first request.

        `environ` is what keys are looked up in, and what key commands run with; the process's by default.
        In `weights_folders` the weights of local models are looked for, ahead of installed packages.
        `explain_no_key` words the failure of a request for which a provider has no key, and what to do about it.
        `find_login` gives the login that a provider's row names, in place of the built-in ones. Logins are renewed
        over connections of their own, never over `transport`, which belongs to one event loop.
        """
        self._environ = os.environ if environ is None else environ
        self._auth = AuthResolver(
            self._environ,
            credentials,
            explain_no_key=explain_no_key or _no_key,
            connect=_new_transport,
            find_login=find_login,
        )
        self._transport = transport
        self._owns_transport = transport is None
        self._shelves: dict[str, ModelShelf] = {}
        self._apis: dict[str, Callable[[], WireApi]] = dict(WIRE_APIS)
        self._owning: dict[Callable[[], WireApi], OwningApi] = {}
        self._streams: dict[str, StreamFunction] = {}
        catalog, local = CatalogModels(), LocalModels(weights_folders)
        for provider in providers:
            self.add_provider(provider, local if provider.api == LOCAL_API else catalog)

    def add_provider(self, provider: Provider, models: GivenModels = ()) -> None:
        """Add a provider with its models, in place of one of the same id:

        models.add_provider(
            Provider(id="home", name="Home", base_url="http://127.0.0.1:8080/v1", api="openai-completions"),
            [ModelEntry(id="qwen3-coder", context_window=32_768)],
        )
        """
        address = self._environ.get(provider.url_variable, "").strip() if provider.url_variable else ""
        if address:
            from cantle_ai.local_servers import server_url

            provider = msgspec.structs.replace(provider, base_url=server_url(address, provider.base_url))
        self._shelves[provider.id] = ModelShelf(provider, models)

    def register_api(self, name: str, loader: Callable[[], WireApi]) -> None:
        """Serve models whose `api` is `name` with the wire API that `loader` gives; called at each request.

        A wire API that has an `aclose` holds something: it is kept for the next request, and closed with this.
        """
        self._apis[name] = loader

    def register_stream(self, provider_id: str, stream_function: StreamFunction) -> None:
        """Serve all models of a provider with a stream function: no wire API, no key."""
        self._streams[provider_id] = stream_function

    def apply(self, file: ModelsFile) -> None:
        """Add and change what a models file says, over what is registered now.

        Raises :class:`ConfigurationError` when it describes a new provider only in part.
        """
        for entry in file.providers.values():
            shelf = self._shelves.get(entry.id)
            models = file.models.get(entry.id, ())
            if shelf is None or _takes_name(entry, models, shelf.provider):
                if not models and entry.server is None:
                    continue
                shelf = self._shelves[entry.id] = ModelShelf(_described(entry, models), ())
            shelf.apply(file, entry)

    @property
    def providers(self) -> list[Provider]:
        """All providers, in the order in which they were added."""
        return [shelf.provider for shelf in self._shelves.values()]

    def provider(self, provider_id: str) -> Provider | None:
        shelf = self._shelves.get(provider_id)
        return None if shelf is None else shelf.provider

    def list(self, provider: str | None = None) -> list[Model]:
        """All models, or those of one provider; of an unknown one, none."""
        shelves = self._shelves.values() if provider is None else [self._shelves.get(provider)]
        return [model for shelf in shelves if shelf is not None for model in shelf.models.values()]

    def find(self, provider_id: str, model_id: str) -> Model | None:
        """The model of exactly that provider and id; of `local`, also of a file by its path."""
        shelf = self._shelves.get(provider_id)
        return None if shelf is None else shelf.find(model_id)

    def get(self, pattern: str) -> Model:
        """The model that `pattern` means: `provider/id`, or part of a name (:mod:`cantle_ai.model_patterns`).

        Raises :class:`cantle_ai.model_patterns.ModelPatternError` when none is meant, or models of several providers.
        A level behind the name is for :func:`cantle_ai.model_patterns.resolve_model`, which gives it beside the model.
        """
        provider_id, _, model_id = pattern.partition("/")
        if (exact := self.find(provider_id, model_id)) is not None:
            return exact
        from cantle_ai.model_patterns import resolve_model

        return resolve_model(pattern, self.list(), has_auth=self.configured, unlisted=False).model

    async def refresh(self, provider_id: str | None = None) -> None:
        """Ask servers of this machine which models they serve now: that of one provider, or all that can be asked.

        A provider that is named has to answer: raises :class:`ConfigurationError` with what to do where it does
        not. Of all, those that do not answer have no models. Names that are no server's are passed over.
        """
        asked = [
            shelf
            for shelf in self._shelves.values()
            if shelf.provider.server is not None and provider_id in (None, shelf.provider.id)
        ]
        if provider_id is not None:
            for shelf in asked:
                await self._ask(shelf)
            return
        import asyncio

        from cantle_ai.listening import may_listen

        async def ask(shelf: ModelShelf) -> None:
            with contextlib.suppress(ConfigurationError):
                await self._ask(shelf)

        async with asyncio.TaskGroup() as group:
            for shelf in asked:
                if may_listen(shelf.provider.base_url):
                    group.create_task(ask(shelf))
                else:
                    shelf.serve(())

    def configured(self, provider_id: str) -> bool:
        """Whether a request to the provider would have a key, as far as can be told without running a command."""
        provider = self.provider(provider_id)
        if provider_id in self._streams:
            return True
        return provider is not None and self._auth.configured(provider)

    def api_problem(self, model: Model) -> str | None:
        """Why no request can be made to `model`, whatever its key: its API is not known here. None when it is."""
        if model.provider in self._streams or model.api in self._apis:
            return None
        return (
            f'The model {model.key} speaks the API "{model.api}", which is not one of '
            f"{', '.join(sorted(self._apis))}. Correct its `api`"
        )

    async def has_auth(self, provider_id: str) -> bool:
        """The same as :meth:`configured`, with credentials that take time to ask."""
        provider = self.provider(provider_id)
        if provider_id in self._streams:
            return True
        return provider is not None and await self._auth.has_auth(provider)

    def stream(
        self, model: Model, context: Context, options: StreamOptions | None = None
    ) -> AssistantMessageStream:
        """Ask a model. Never raises: whatever is wrong becomes an `error` event and a final message."""
        options = options or StreamOptions()
        registered = self._streams.get(model.provider)
        if registered is not None:
            return registered(model, context, options)
        level = model.clamp(options.thinking) if options.thinking in THINKING_LEVELS else None
        builder = AnswerBuilder.of(model, thinking_level=level)

        def source(
            builder: AnswerBuilder, signal: AbortSignal
        ) -> AsyncIterator[Sequence[AssistantMessageEvent]]:
            return self._events(model, context, options, builder, signal)

        return AssistantMessageStream(source, builder, signal=options.signal)

    async def complete(
        self, model: Model, context: Context, options: StreamOptions | None = None
    ) -> AssistantMessage:
        """Ask a model and wait for the whole answer. Raises nothing of its own: see `stop_reason`."""
        return await self.stream(model, context, options).result()

    async def api_key(self, model: Model, options: StreamOptions | None = None) -> str | None:
        """The key that a request to `model` would be made with now; None when its provider needs none.

        Raises :class:`ConfigurationError` when there is none, or it cannot be resolved.
        """
        given = options.api_key if options is not None else None
        return (await self._auth.resolve(self._provider_of(model), model, given)).auth.api_key

    def auth_source(self, provider_id: str) -> AuthSource | None:
        """Where the authorisation of a request to the provider would come from; None from nowhere."""
        provider = self.provider(provider_id)
        return None if provider is None else self._auth.source(provider)

    async def aclose(self) -> None:
        """Close the transport, if it was made here, and what wire APIs hold, such as a model that is loaded."""
        transport, apis = self._transport, list(self._owning.values())
        self._owning.clear()
        try:
            if self._owns_transport and transport is not None:
                self._transport = None
                await transport.aclose()
        finally:
            for api in apis:
                await api.aclose()

    async def _events(
        self,
        model: Model,
        context: Context,
        options: StreamOptions,
        builder: AnswerBuilder,
        signal: AbortSignal,
    ) -> AsyncIterator[Sequence[AssistantMessageEvent]]:
        if options.thinking not in THINKING_LEVELS:
            levels = ", ".join(THINKING_LEVELS)
            raise ConfigurationError(
                None, f'"{options.thinking}" is not a thinking level; use one of {levels}'
            )
        provider = self._provider_of(model)
        api = self._api(model)
        if context.tools:
            from cantle_ai.tool_names import with_fitting_names

            context, options = with_fitting_names(context, options, builder)
        resolved = await self._auth.resolve(provider, model, options.api_key)
        while True:
            begun = False
            batches = self._source(api, provider, model, context, options, resolved)(builder, signal)
            try:
                async for batch in batches:
                    begun = True
                    yield batch
                return
            except ProviderError as error:
                if begun or error.status != _UNAUTHORISED or resolved.token is None:
                    raise
            finally:
                close = getattr(batches, "aclose", None)
                if close is not None:
                    await close()
            # Taken back before its time: renewed, once, and asked again. What comes of that has no token to renew.
            resolved = await self._auth.resolve(provider, model, options.api_key, refused=resolved.token)

    def _source(
        self,
        api: WireApi,
        provider: Provider,
        model: Model,
        context: Context,
        options: StreamOptions,
        resolved: ResolvedAuth,
    ) -> EventSource:
        auth = resolved.auth
        if provider.live_headers:
            from cantle_ai.request_headers import with_live_headers

            auth = with_live_headers(provider, auth, context, options)
        compat = {**provider.compat, **model.compat}
        base_url = filled(resolved.base_url or model.base_url, auth.environ, name=provider.id)
        if compat != model.compat or base_url != model.base_url:
            model = msgspec.structs.replace(model, base_url=base_url, compat=compat)
        return api(model, context, options, transport=self._port(), auth=auth)

    async def _ask(self, shelf: ModelShelf) -> None:
        from cantle_ai.local_servers import served_models

        try:
            auth = (await self._auth.resolve(shelf.provider, None, None)).auth
            headers = {"authorization": f"Bearer {auth.api_key}"} if auth.api_key else {}
            headers.update({name.lower(): value for name, value in auth.headers.items()})
            found = await served_models(shelf.provider, transport=self._port(), headers=headers)
        except ConfigurationError:
            shelf.serve(())
            raise
        shelf.serve(found)

    def _provider_of(self, model: Model) -> Provider:
        provider = self.provider(model.provider)
        if provider is None:
            known = ", ".join(self._shelves) or "none"
            raise ConfigurationError(
                None, f'There is no provider "{model.provider}" (known: {known}). Add it with add_provider'
            )
        return provider

    def _api(self, model: Model) -> WireApi:
        problem = self.api_problem(model)
        if problem is not None:
            raise ConfigurationError(None, problem)
        loader = self._apis[model.api]
        if (held := self._owning.get(loader)) is not None:
            return held
        from cantle_ai.apis.port import OwningApi

        api = loader()
        if isinstance(api, OwningApi):
            self._owning[loader] = api
        return api

    def _port(self) -> Transport:
        if self._transport is None:
            self._transport = _new_transport()
        return self._transport


def _new_transport() -> Transport:
    from cantle_ai.transport.urllib3_thread import Urllib3Transport

    return Urllib3Transport()


def _takes_name(entry: ProviderEntry, models: Sequence[ModelEntry], provider: Provider) -> bool:
    """Whether a file describes another provider, such as a server of one's own, under the name of the local one."""
    api = entry.api or (models[0].api if models else None)
    return provider.api == LOCAL_API and api not in (None, LOCAL_API)


def _described(entry: ProviderEntry, models: Sequence[ModelEntry]) -> Provider:
    """A provider of a models file alone. Its models may say for themselves where they are and what they speak."""
    base_url = entry.base_url or (models[0].base_url if models else None)
    api = entry.api or (models[0].api if models else None)
    if base_url is None or api is None:
        raise ConfigurationError(None, f'The new provider "{entry.id}" needs a baseUrl and an api')
    asked = entry.server is not None
    return Provider(
        id=entry.id,
        name=entry.name or entry.id,
        base_url=base_url,
        api=api,
        key_optional=asked,
        automatic=not asked,
    )


def _no_key(provider: Provider) -> str:
    from cantle_ai.auth.ambient import ambient_settings

    way = "pass StreamOptions(api_key=…)"
    if settings := [*provider.key_variables, *ambient_settings(provider)]:
        way = f"set {' or '.join(settings)}, or {way}"
    return f"No API key for the provider {provider.id}. {way[0].upper()}{way[1:]}"
