"""Models and providers as data: what is known about an endpoint, and nothing that runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct

from cantle_ai.abort import AbortSignal
from cantle_ai.codec import Json, JsonObject
from cantle_ai.messages import ThinkingLevel
from cantle_ai.usage import Price

if TYPE_CHECKING:
    from cantle_ai.history import ProjectionReport
    from cantle_ai.sse import ServerSentEvent
    from cantle_ai.transport.port import HttpRequest, HttpResponse

__all__ = [
    "THINKING_LEVELS",
    "AuthKind",
    "CacheRetention",
    "LiveHeader",
    "LocalServer",
    "Model",
    "NamedTool",
    "Provider",
    "ResponseSchema",
    "StreamOptions",
    "ToolChoice",
]

THINKING_LEVELS: tuple[ThinkingLevel, ...] = ("off", "minimal", "low", "medium", "high", "xhigh", "max")
"""All levels, weakest first."""

CacheRetention: TypeAlias = Literal["none", "short", "long"]
"""How long a provider is to keep the prompt for the next request: `none` is for requests that have no next."""

AuthKind: TypeAlias = Literal["key", "bearer", "oauth"]
"""How a credential travels: in the API's own way, as `Authorization: Bearer`, or as the token of a login to a
subscription, which some APIs want more headers with."""


LiveHeader: TypeAlias = Literal["session", "initiator", "vision"]
"""What a header of one request says: its session id; who speaks last, `user` or `agent`; `true` if there are images."""


LocalServer: TypeAlias = Literal["llama.cpp", "ollama", "lm-studio", "openai"]
"""Programs that serve models and can be asked which; `openai` stands for all that have `/v1/models` alone."""


class NamedTool(Struct, frozen=True):
    """The choice of one tool, by its name."""

    name: str


ToolChoice: TypeAlias = Literal["auto", "none", "required"] | NamedTool
"""Whether the model may call tools (`auto`, every API's default), may not, must call some, or must call this one."""


class ResponseSchema(Struct, frozen=True):
    """A JSON schema that the answer's text has to follow. `name` is what the provider knows it by."""

    name: str
    schema: JsonObject
    strict: bool = True
    """Whether the provider is to enforce it, where it makes a difference between asking and enforcing, and enforces
    schemas like this one."""


class Provider(Struct, frozen=True, kw_only=True):
    """A row of the provider table. Adding a provider that speaks a known API is adding one of these."""

    id: str
    name: str
    base_url: str
    """`{NAME}` in it stands for an environment variable, such as an account's id, filled in at each request."""
    api: str
    """The wire API that its models speak unless they say otherwise, such as `openai-completions`."""
    endpoints: Mapping[str, str] = {}
    """Where it speaks its other APIs, by the API's name; an API that is not here is at `base_url`."""
    key_variables: tuple[str, ...] = ()
    """Environment variables that may hold its key, the first that is set wins."""
    key_kinds: Mapping[str, AuthKind] = {}
    """How the value of a variable travels, for those whose value is no plain key."""
    login: str | None = None
    """The login flow of its subscription, by the name under which `cantle_ai.auth` knows it."""
    ambient: str | None = None
    """The credentials that a platform supplies, by their name in :data:`cantle_ai.auth.ambient.AMBIENT`."""
    api_key: str | None = None
    """A key from configuration: literal, `$NAME`, `${NAME}` or `!command`; resolved at each request."""
    key_optional: bool = False
    """Whether it answers without a key, as local servers do."""
    headers: Mapping[str, str] = {}
    """Extra request headers; values resolve like `api_key`."""
    auth_header: bool = False
    """Whether the key goes out as `Authorization: Bearer` whatever the API's own way is."""
    key_header: str | None = None
    """The header that carries the key, as `Bearer`, in place of the API's own: a gateway's, which leaves that to
    the key of whom it asks in turn."""
    live_headers: Mapping[str, LiveHeader] = {}
    """Headers whose value is of the one request; those that have none for it are left out."""
    compat: Mapping[str, Json] = {}
    """Named quirks, by the names of the wire API's compatibility fields."""
    server: LocalServer | None = None
    """How it is asked which models it serves now; None for a provider whose models are listed elsewhere."""
    url_variable: str | None = None
    """An environment variable that may hold another address for it, in place of `base_url`."""
    automatic: bool = True
    """Whether its models may be chosen where nobody named one. A small local model is offered, never chosen."""

    def url_of(self, api: str) -> str:
        """Where it speaks `api`."""
        return self.endpoints.get(api, self.base_url)


class Model(Struct, frozen=True, kw_only=True):
    """A model and what it can do. Token counts; prices in US dollars for a million tokens."""

    id: str
    provider: str
    api: str
    base_url: str
    name: str = ""
    reasoning: bool = False
    thinking_levels: Mapping[str, str | None] = {}
    """What the provider calls a level; None marks a level that the model does not have."""
    input: tuple[Literal["text", "image"], ...] = ("text",)
    price: Price | None = None
    context_window: int = 128_000
    max_tokens: int = 16_384
    headers: Mapping[str, str] = {}
    compat: Mapping[str, Json] = {}
    sampling: JsonObject = {}
    """Fields merged into every request body."""
    sampling_by_level: Mapping[str, JsonObject] = {}
    """More of them for one thinking level, over `sampling`."""
    input_limits: JsonObject = {}
    """What the endpoint takes: `maxRequestBytes`, `images` with `resize`, `maxPerMessage`, `maxPerRequest`."""
    prompt_cache: Mapping[str, float] = {}
    """Seconds that the provider keeps a prompt for, by retention (`short`, `long`)."""

    @property
    def key(self) -> str:
        """`provider/id`."""
        return f"{self.provider}/{self.id}"

    def levels(self) -> tuple[ThinkingLevel, ...]:
        """The thinking levels it has: all up to `high` unless its map says otherwise; only `off` without reasoning."""
        if not self.reasoning:
            return ("off",)
        return tuple(
            level
            for level in THINKING_LEVELS
            if self.thinking_levels.get(level, None if level in ("xhigh", "max") else level) is not None
        )

    def clamp(self, level: ThinkingLevel) -> ThinkingLevel:
        """The level itself, else the next stronger one that it has, else the next weaker; `off` without any."""
        levels = self.levels()
        wanted = THINKING_LEVELS.index(level)
        for candidate in (*THINKING_LEVELS[wanted:], *reversed(THINKING_LEVELS[:wanted])):
            if candidate in levels:
                return candidate
        return "off"


class StreamOptions(Struct, frozen=True, kw_only=True):
    """What one request asks for beside its context. Seconds for times."""

    thinking: ThinkingLevel = "off"
    signal: AbortSignal | None = None
    api_key: str | None = None
    """Used instead of what the provider's configuration would give."""
    session_id: str | None = None
    """Routes requests of one conversation to one cache, where a provider can."""
    cache_retention: CacheRetention = "short"
    max_tokens: int | None = None
    temperature: float | None = None
    headers: Mapping[str, str] = {}
    timeout: float | None = None
    """For the connection, the headers and each wait for more of the body; None is the transport's default."""
    sampling: JsonObject = {}
    """Fields merged into the request body, over the model's."""
    tool_choice: ToolChoice | None = None
    """None says nothing, which every API takes for `auto`."""
    response_schema: ResponseSchema | None = None
    """What the answer has to look like; an API without the means refuses the request with a clear error."""
    thinking_budgets: Mapping[ThinkingLevel, int] = {}
    """Tokens that a level may think for, where a provider counts in tokens."""
    images: bool = True
    """Whether images are sent; otherwise a note stands for each, as for a model that takes none."""
    on_projection: Callable[[ProjectionReport], None] | None = None
    """Is told what of the history this request leaves out or changes, when it is anything."""
    on_request: Callable[[HttpRequest], HttpRequest | None | Awaitable[HttpRequest | None]] | None = None
    """Is shown each request just before it is sent, with its key among the headers; what it returns is sent instead."""
    on_response: Callable[[HttpResponse], None | Awaitable[None]] | None = None
    """Is shown the head of each answer, before its body is read. It must leave the body alone."""
    on_event: Callable[[ServerSentEvent], None | Awaitable[None]] | None = None
    """Is shown each event of the provider's own stream, before it is read."""
