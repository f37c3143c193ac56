"""What the answers of each wire API cost: the same pieces, in each vendor's bytes, read from memory.

The bytes are those that the strict server's dialect of the API makes of one scripted response.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from bench.micro.cases import Case
from bench.micro.material import Memory, blocks, words
from bench.micro.measure import best
from cantle_ai.auth.request_auth import RequestAuth
from cantle_ai.builder import AnswerBuilder
from cantle_ai.context import Context
from cantle_ai.messages import UserMessage
from cantle_ai.model import Model, StreamOptions
from cantle_ai.providers import WIRE_APIS
from cantle_ai.stream import AssistantMessageStream
from cantle_ai.testing.playback import seeded
from cantle_ai.testing.response import CallBlock, Response, TextBlock, ThinkingBlock
from cantle_ai.testing.server.dialects import DIALECTS, dialect
from cantle_ai.testing.server.dialects.port import Asked, Play
from cantle_ai.testing.server.exchange import Call
from cantle_ai.testing.server.strictness import Strictness
from cantle_ai.transport.port import HttpRequest
from packages.ai.tests.conformance.column import Column, columns

__all__ = ["KINDS", "LIMIT", "ApiCost", "arguments_case", "measure", "table"]

DELTAS = 10_000
LIMIT = 1.5
"""How many times the leanest an API may cost."""
KINDS = ("text", "thinking", "argument")
_PIECE = 8
"""Characters in a delta: about two tokens."""


@dataclass(frozen=True, slots=True)
class ApiCost:
    """Milliseconds of CPU for 10,000 deltas, by their kind; a kind that the API does not stream is missing."""

    api: str
    milliseconds: dict[str, float]


def measure(*, rounds: int, share: float = 1.0) -> list[ApiCost]:
    """What each API costs. `share` makes the work smaller; the figures are for the whole all the same.

    The APIs take turns, so that what else the machine does meets all of them.
    """
    deltas = max(10, round(DELTAS * share))
    works: dict[tuple[str, str], tuple[_Work, int]] = {}
    for column in columns():
        for kind in KINDS:
            work = _Work(column, _response(kind, deltas))
            if (count := work()) >= deltas:  # else it arrives in one piece
                works[column.api, kind] = work, count
    seconds = dict.fromkeys(works, float("inf"))
    for _ in range(rounds):
        for name, (work, _) in works.items():
            seconds[name] = min(seconds[name], best(work, 1))
    costs = {column.api: ApiCost(column.api, {}) for column in columns()}
    for (api, kind), took in seconds.items():
        costs[api].milliseconds[kind] = took * 1000 * DELTAS / works[api, kind][1]
    return list(costs.values())


def arguments_case(column: Column) -> Case:
    """An answer with one call, whose arguments come in so many pieces."""
    return Case(
        f"{column.api}: argument",
        "delta",
        500,
        lambda size, folder: _Work(column, _response("argument", size)),
    )


def table(costs: Sequence[ApiCost], limit: float = LIMIT) -> tuple[list[str], bool]:
    """The lines of a table, each figure with its ratio to the leanest API, and whether all are within `limit`."""
    lines = [
        f"| CPU of {DELTAS:,} deltas | "
        + " | ".join(f"{kind}, ms | of the leanest" for kind in KINDS)
        + " |",
        "|---" * (1 + 2 * len(KINDS)) + "|",
    ]
    leanest = {
        kind: min((cost.milliseconds[kind] for cost in costs if kind in cost.milliseconds), default=0.0)
        for kind in KINDS
    }
    within = True
    for cost in costs:
        cells = [cost.api]
        for kind in KINDS:
            figure = cost.milliseconds.get(kind)
            if figure is None:
                cells += ["in one piece", ""]
                continue
            ratio = figure / leanest[kind]
            within = within and ratio <= limit
            cells += [f"{figure:.0f}", f"{ratio:.2f}{' (too much)' if ratio > limit else ''}"]
        lines.append("| " + " | ".join(cells) + " |")
    return lines, within


class _Work:
    """Reads one answer; gives how many deltas it had."""

    def __init__(self, column: Column, response: Response) -> None:
        url = f"http://127.0.0.1:1{DIALECTS[column.api].root}"
        row = {"id": "m-1", "provider": "bench", "api": column.api, "base_url": url}
        self._model = Model(**{**row, **column.model})
        self._auth = RequestAuth(
            api_key=column.api_key, headers=column.provider.get("headers", {}), environ=column.environ
        )
        self._source = WIRE_APIS[column.api]()
        self._body: list[bytes] = []
        self._type = dialect(column.api).content_type
        asked = self._asked(column.api)
        play = Play(response=response, asked=asked, random=seeded("bench"), chunk=_PIECE)
        playback = dialect(column.api).play(play)
        self._body = blocks([*playback.events(), *playback.ending()])

    def __call__(self) -> int:
        return asyncio.run(self._read(Memory(self._body, self._type)))

    async def _read(self, transport: Memory) -> int:
        context = Context("", [UserMessage("Go on.", timestamp=1)])
        source = self._source(self._model, context, StreamOptions(), transport=transport, auth=self._auth)
        stream = AssistantMessageStream(source, AnswerBuilder.of(self._model))
        count = 0
        async for event in stream:
            count += event.type.endswith("_delta")
        failed = stream.partial.failed and bool(transport.body or not transport.requests)
        assert not failed, stream.partial.error_message
        return count

    def _asked(self, api: str) -> Asked:
        """What the dialect makes of the request."""
        transport = Memory([], self._type)
        asyncio.run(self._read(transport))
        request: HttpRequest = transport.requests[0]
        url = urlsplit(request.url)
        headers = {name.lower(): value for name, value in request.headers.items()}
        return dialect(api).check(
            Call(request.method, url.path, headers, request.body, url.query), Strictness()
        )


def _response(kind: str, deltas: int) -> Response:
    text = "".join(words(deltas))[: deltas * _PIECE].ljust(deltas * _PIECE, ".")
    match kind:
        case "text":
            return Response(content=(TextBlock(text=text),))
        case "thinking":
            return Response(content=(ThinkingBlock(thinking=text, signature="c2ln"), TextBlock(text=".")))
        case _:
            return Response(content=(CallBlock(id="call_abcd1", name="write", arguments={"content": text}),))
