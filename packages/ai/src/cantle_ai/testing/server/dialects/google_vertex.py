"""Vertex AI: Gemini's API behind other paths, with a key or with an access token."""

from __future__ import annotations

import re
from urllib.parse import unquote

from cantle_ai.testing.server.dialects.google_generative_ai import GenerateContent
from cantle_ai.testing.server.dialects.port import Dialect
from cantle_ai.testing.server.exchange import Call
from cantle_ai.testing.server.refusal import Refusal
from cantle_ai.testing.server.strictness import Strictness, check_bearer, check_key

__all__ = ["DIALECT"]

_PATH = re.compile(
    r"/v1(?:beta1)?(?P<place>/projects/[a-z0-9:.-]+/locations/[a-z0-9-]+)?"
    r"/publishers/[a-z0-9-]+/models/(?P<model>[^/]+):streamGenerateContent"
)


class VertexAI(GenerateContent):
    """A token asks within a project and a location, a key outside of any."""

    def model_of(self, call: Call, strictness: Strictness) -> str:
        found = _PATH.search(call.path)
        if found is None:
            raise Refusal("path", f"{call.path} is not the path of a model's stream", status=404)
        if found["place"] is None:
            if "authorization" in call.headers:
                raise Refusal("authorization", "without a project only an API key will do", status=401)
            check_key(call.headers.get("x-goog-api-key", ""), strictness, "x-goog-api-key")
        else:
            if "x-goog-api-key" in call.headers:
                raise Refusal("authorization", "API keys are not supported within a project", status=401)
            check_bearer(call.headers, strictness)
        return unquote(found["model"])


DIALECT: Dialect = VertexAI()
