"""Gemini's API as the strictest of its models would serve it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import cast
from urllib.parse import unquote

from cantle_ai.codec import JsonObject, encode_json
from cantle_ai.testing.response import Failure, Noise
from cantle_ai.testing.script import LastMessage
from cantle_ai.testing.server.body import Body, read_body
from cantle_ai.testing.server.dialects.google_contents import response_text
from cantle_ai.testing.server.dialects.google_fields import check_request
from cantle_ai.testing.server.dialects.google_playback import GooglePlayback, error_body
from cantle_ai.testing.server.dialects.port import Asked, Dialect, Play, Playback
from cantle_ai.testing.server.event_noise import data_noise
from cantle_ai.testing.server.exchange import Call
from cantle_ai.testing.server.prefix import elements
from cantle_ai.testing.server.refusal import Refusal
from cantle_ai.testing.server.strictness import Strictness, check_key

__all__ = ["DIALECT", "GenerateContent"]

_PATH = re.compile(r"/v1(?:beta)?/(?:models|tunedModels)/([^/]+):streamGenerateContent")


class GenerateContent:
    """Requests are held against the rules in `google_fields.py` and `google_contents.py`."""

    content_type = "text/event-stream"

    def check(self, call: Call, strictness: Strictness) -> Asked:
        model = self.model_of(call, strictness)
        if call.query != "alt=sse":
            raise Refusal("query", f"the query is {call.query!r}: alt=sse asks for events")
        body = check_request(call.headers, call.body, model, strictness)
        return Asked(
            body=body,
            model=model,
            head={"tools": body.raw.get("tools", ""), "system": body.raw.get("systemInstruction", "")},
            pieces=_pieces(body),
            last=_last(body.values),
        )

    def model_of(self, call: Call, strictness: Strictness) -> str:
        """The model that a path asks; refuses one that is not the API's, and a wrong key."""
        found = _PATH.search(call.path)
        if found is None:
            raise Refusal("path", f"{call.path} is not the path of a model's stream", status=404)
        if "authorization" in call.headers:
            raise Refusal("authorization", "an API key goes in x-goog-api-key", status=401)
        check_key(call.headers.get("x-goog-api-key", ""), strictness, "x-goog-api-key")
        return unquote(found[1])

    def play(self, play: Play) -> Playback:
        return GooglePlayback(play)

    def error(self, failure: Failure, status: int) -> bytes:
        # Where a stream was asked for, the API answers with a list.
        return encode_json([error_body(failure, status)])

    def noise(self, kind: Noise, play: Play) -> bytes | None:
        return data_noise(kind, play.newline)

    def models(self, ids: Sequence[str]) -> bytes:
        listed = [{"name": f"models/{id}", "supportedGenerationMethods": ["generateContent"]} for id in ids]
        return encode_json({"models": listed})


def _pieces(body: Body) -> list[str]:
    """Each content's role and its parts: a later part of the last content extends it."""
    pieces: list[str] = []
    for content in elements(body.raw["contents"]):
        raw = read_body(content.encode()).raw
        pieces.append(raw["role"])
        pieces.extend(elements(raw["parts"]))
    return pieces


def _last(values: JsonObject) -> LastMessage:
    """What a `when` looks at."""
    contents = cast("list[JsonObject]", values["contents"])
    parts = cast("list[JsonObject]", contents[-1]["parts"])
    if "functionResponse" in parts[-1]:
        name = cast("JsonObject", parts[-1]["functionResponse"])["name"]
        return LastMessage(role="toolResult", text=response_text(parts[-1]), tool=str(name))
    return LastMessage(role="user", text="\n".join(str(part["text"]) for part in parts if "text" in part))


DIALECT: Dialect = GenerateContent()
