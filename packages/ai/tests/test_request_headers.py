"""Headers of a provider's row that differ from request to request, and the header that carries a gateway's key."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from cantle_ai.auth.request_auth import RequestAuth
from cantle_ai.content import ImageContent, TextContent
from cantle_ai.context import Context
from cantle_ai.messages import AssistantMessage, Message, ToolResultMessage, UserMessage
from cantle_ai.model import LiveHeader, Model, Provider, StreamOptions
from cantle_ai.models import Models
from cantle_ai.providers import BUILTIN_PROVIDERS
from cantle_ai.request_headers import with_live_headers
from cantle_ai.testing.server.server import StrictServer
from cantle_ai.testing.server.strictness import Strictness

ANSWER = AssistantMessage(content=[TextContent("a")], api="a", provider="p", model="m", stop_reason="stop")
RESULT = ToolResultMessage(tool_call_id="c", tool_name="t", content=[TextContent("r")])
SEEN = ToolResultMessage(tool_call_id="c", tool_name="t", content=[ImageContent("aGk=", "image/png")])


def live(kind: LiveHeader, messages: Sequence[Message], options: StreamOptions | None = None) -> str | None:
    row = Provider(id="p", name="P", base_url="", api="a", live_headers={"x-it": kind})
    auth = with_live_headers(row, RequestAuth(), Context(messages=messages), options or StreamOptions())
    return auth.headers.get("x-it")


@pytest.mark.parametrize(
    ("messages", "speaker"),
    [
        ([], "user"),
        ([UserMessage("hi")], "user"),
        ([UserMessage("hi"), ANSWER, RESULT], "agent"),
        ([UserMessage("hi"), ANSWER], "agent"),
        ([UserMessage("hi"), ANSWER, RESULT, UserMessage("more")], "user"),
    ],
)
def test_who_speaks_last_is_said(messages: Sequence[Message], speaker: str) -> None:
    assert live("initiator", messages) == speaker


def test_images_are_announced_only_where_some_are_sent() -> None:
    shown = UserMessage([TextContent("look"), ImageContent("aGk=", "image/png")])
    assert live("vision", [UserMessage("hi"), ANSWER, RESULT]) is None
    assert live("vision", [shown, ANSWER]) == live("vision", [UserMessage("hi"), ANSWER, SEEN]) == "true"
    assert live("vision", [shown], StreamOptions(images=False)) is None


def test_a_session_has_an_id_of_bounded_length_and_a_lone_request_one_of_its_own() -> None:
    assert live("session", [], StreamOptions(session_id="s-1")) == "s-1"
    long = live("session", [], StreamOptions(session_id="s" * 100))
    assert long is not None and len(long) == 64
    first, second = live("session", []), live("session", [])
    assert first and second and first != second


def test_what_is_configured_stays() -> None:
    row = Provider(id="p", name="P", base_url="", api="a", live_headers={"X-Initiator": "initiator"})
    given = RequestAuth(api_key="k", headers={"x-initiator": "agent"})
    assert with_live_headers(row, given, Context(), StreamOptions()) == given


async def test_a_request_through_a_gateway_carries_them() -> None:
    with StrictServer(["Hello."], strictness=Strictness(need_key=False)) as server:
        row = Provider(
            id="gate",
            name="Gate",
            base_url=server.base_url,
            api="openai-completions",
            key_header="x-gate-key",
            live_headers={"x-session": "session", "x-vision": "vision"},
        )
        model = Model(id="m", provider="gate", api="openai-completions", base_url=server.base_url)
        models = Models(providers=[], environ={})
        models.add_provider(row, [model])
        options = StreamOptions(api_key="secret", session_id="s-1")
        answer = await models.complete(model, Context(messages=[UserMessage("hi")]), options)
        await models.aclose()
    assert (answer.error_message, answer.text) == (None, "Hello.")
    headers = {name.lower(): value for name, value in server.requests[0].call.headers.items()}
    assert (headers["x-gate-key"], headers["x-session"]) == ("Bearer secret", "s-1")
    assert "authorization" not in headers and "x-vision" not in headers


def test_the_rows_that_ask_for_them() -> None:
    rows = {row.id: row for row in BUILTIN_PROVIDERS}
    assert rows["github-copilot"].live_headers == {
        "X-Initiator": "initiator",
        "Copilot-Vision-Request": "vision",
    }
    assert (
        rows["opencode"].live_headers == rows["opencode-go"].live_headers == {"x-opencode-session": "session"}
    )
    assert rows["cloudflare-ai-gateway"].key_header == "cf-aig-authorization"
