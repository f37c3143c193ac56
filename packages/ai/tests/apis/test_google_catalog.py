"""Every model of the catalog that is asked in Google's way: at each of its levels the strictest server takes it."""

import pytest

from cantle_ai.apis.google_compat import compat_of
from cantle_ai.apis.google_payload import request_body
from cantle_ai.catalog import load_catalog
from cantle_ai.content import ImageContent, TextContent, ThinkingContent, ToolCall
from cantle_ai.context import Context
from cantle_ai.messages import Message, ToolResultMessage, UserMessage
from cantle_ai.model import THINKING_LEVELS, Model, StreamOptions
from cantle_ai.providers import BUILTIN_PROVIDERS
from cantle_ai.testing.server.dialects.google_fields import check_request
from cantle_ai.testing.server.strictness import Strictness
from packages.ai.tests.apis.google import answer_by, model
from packages.ai.tests.apis.test_google_payload import GO, IMAGE

APIS = ("google-generative-ai", "google-vertex")
MODELS = [each for provider in BUILTIN_PROVIDERS for each in load_catalog(provider) if each.api in APIS]
FOREIGN = model("other", provider="elsewhere", api="openai-completions")


def test_there_are_such_models():
    assert {each.provider for each in MODELS} >= {"google", "google-vertex"}


@pytest.mark.parametrize("asked", MODELS, ids=[each.key for each in MODELS])
def test_a_model_of_the_catalog_is_asked_as_it_wants_it(asked: Model):
    images: list[TextContent | ImageContent] = [TextContent("look"), IMAGE]
    messages: list[Message] = [
        UserMessage(images, timestamp=1),
        answer_by(
            FOREIGN, ThinkingContent("hm", signature="x"), ToolCall("1|2", "go", {}), ToolCall("3", "go", {})
        ),
        ToolResultMessage("1|2", "go", [IMAGE], timestamp=1),
        ToolResultMessage("3", "go", [TextContent("")], is_error=True, timestamp=1),
        answer_by(asked, ThinkingContent("hm", signature="QUJD"), TextContent("done")),
        UserMessage("go on", timestamp=1),
    ]
    for level in THINKING_LEVELS:
        options = StreamOptions(thinking=level, temperature=1)
        body = request_body(asked, Context("Be brief.", messages, [GO]), options, compat_of(asked))
        check_request({"content-type": "application/json"}, body, asked.id, Strictness())
