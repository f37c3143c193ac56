"""The wire APIs that the strict server speaks: one row each, its module loaded when the first request comes.

The server takes a request by its path. A path that begins with an API's name is that API's
(`/anthropic-messages/v1/messages`); any other goes to the first row whose `ending` it has
(`/v1/chat/completions`). `port.py` says how a dialect is written.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import import_module
from typing import cast

from msgspec import Struct

from cantle_ai.testing.server.dialects.port import Dialect

__all__ = ["DIALECTS", "Row", "api_of_path", "dialect"]

_HOME = "cantle_ai.testing.server.dialects."


class Row(Struct, frozen=True):
    """Where a dialect is. `root` follows the server's address in a provider's `base_url`."""

    module: str
    root: str
    ending: str
    """A pattern for the end of a path that asks for an answer."""


DIALECTS: Mapping[str, Row] = {
    "openai-completions": Row("openai_completions", "/v1", r"/chat/completions"),
    "openai-responses": Row("openai_responses", "/v1", r"/responses"),
    "anthropic-messages": Row("anthropic_messages", "", r"/messages"),
    "google-generative-ai": Row("google_generative_ai", "/v1beta", r"/models/[^/]+:\w*[gG]enerateContent"),
    "bedrock-converse-stream": Row("bedrock_converse_stream", "", r"/model/[^/]+/converse-stream"),
    "mistral-conversations": Row("mistral_conversations", "", r"/chat/completions"),
    "azure-openai-responses": Row("azure_openai_responses", "/openai/v1", r"/responses"),
    "openai-codex-responses": Row("openai_codex_responses", "/backend-api", r"/codex/responses"),
    "google-vertex": Row("google_vertex", "", r"/models/[^/]+:\w*[gG]enerateContent"),
}
"""By the API's name."""


def dialect(api: str) -> Dialect:
    """The dialect of a row. Raises KeyError for an unknown API."""
    return cast("Dialect", import_module(_HOME + DIALECTS[api].module).DIALECT)


def api_of_path(path: str) -> str | None:
    """The API that a path asks for an answer; None when it asks for something else."""
    first = path.split("/", 2)[1] if path.startswith("/") else ""
    candidates = [first] if first in DIALECTS else list(DIALECTS)
    return next((api for api in candidates if re.search(DIALECTS[api].ending + r"$", path)), None)
