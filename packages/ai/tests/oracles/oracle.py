"""The vendor's own SDK beside our reader, on the same bytes; and our requests before its types.

An API's test brings two small functions, and is skipped where the SDK is not installed:

    pytestmark = needs("oracles")

    def read(base_url: str) -> Canonical:          # one streamed answer, put together by the SDK; may be async
        client = openai.OpenAI(base_url=base_url, api_key="k", max_retries=0)
        ...

    def validate(body: dict[str, Any], call: Call) -> None:       # raises for what is not of the SDK's types
        TypeAdapter(CompletionCreateParamsStreaming).validate_python(body)

    async def test_answers_agree():
        await check_answers(COLUMN, read, kinds=Kinds(cache_write=False))

    async def test_requests_are_what_the_sdk_knows():
        await check_requests(COLUMN, validate)
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable, Sequence
from random import Random
from typing import Any, TypeAlias

from cantle_ai.messages import AssistantMessage, ThinkingLevel
from cantle_ai.model import StreamOptions
from cantle_ai.testing.checker import checked
from cantle_ai.testing.server.exchange import Call as HttpCall
from cantle_ai.testing.server.server import StrictServer
from packages.ai.tests.conformance.column import Column
from packages.ai.tests.conformance.lab import Lab
from packages.ai.tests.oracles.answers import Kinds, answers
from packages.ai.tests.oracles.canonical import Canonical, differences, of_message
from packages.ai.tests.oracles.histories import Author, histories
from tests.support.samples import samples

__all__ = ["Sdk", "check_answers", "check_requests"]

Sdk: TypeAlias = Callable[[str], Canonical] | Callable[[str], Awaitable[Canonical]]
"""Asks the server at a base URL for one answer and reduces it. A blocking one runs in a thread of its own."""

Reduce: TypeAlias = Callable[[AssistantMessage], Canonical]

_NEWLINES = ("\n", "\r\n")


async def check_answers(
    column: Column,
    sdk: Sdk,
    *,
    kinds: Kinds | None = None,
    count: int | None = None,
    reduce: Reduce = of_message,
) -> None:
    """Generated answers, cut at random places, come out of the SDK and of our reader as the same message.

    At least 200 in a full run. `reduce` is for an API whose messages say something in another place.
    """
    count = samples(250, 40) if count is None else count
    responses = answers(count, kinds or Kinds(), seed=column.api)
    lab, found = Lab(column), list[str]()
    for newline in _NEWLINES:
        share = responses[:: len(_NEWLINES)] if newline == "\n" else responses[1 :: len(_NEWLINES)]
        options: dict[str, Any] = {"prefix": False, "newline": newline, "slices": (1, 200)}
        async with (
            StrictServer(share, cut=1, **options) as for_them,
            StrictServer(share, cut=2, **options) as for_us,
        ):
            url = for_them.base_url_for(column.api)
            model = lab.model(for_us)
            models = lab.models(model)
            for number, response in enumerate(share):
                theirs = await _asked(sdk, url)
                answer = await lab.ask(for_us, "Hi", through=models)
                assert answer.message.error_message is None, (number, response, answer.message.error_message)
                if wrong := differences(theirs, reduce(answer.message)):
                    found.append(f"answer {number} ({response}): {wrong}")
            await models.aclose()
            for_them.assert_clean()
            for_us.assert_clean()
    assert not found, f"{len(found)} of {count} differ; the first: {found[0]}"


async def check_requests(
    column: Column,
    validate: Callable[[dict[str, Any], HttpCall], None],
    *,
    authors: Sequence[Author] = (),
    count: int | None = None,
    levels: Sequence[ThinkingLevel] = ("off", "low", "high"),
) -> None:
    """Requests of generated conversations are taken by the strict server, and `validate` finds nothing wrong.

    The answers in them are by the model itself, by others of its API, and by `authors`.
    """
    count = samples(250, 40) if count is None else count
    own = (column.api, "p", "m-1")
    everybody = [own, own, (column.api, "p", "m-0"), ("openai-completions", "q", "m-1"), *authors]
    lab, random = Lab(column), Random(column.api)
    async with StrictServer([{"content": "ok", "repeat": "forever"}], prefix=False) as server:
        model = lab.model(server)
        models = lab.models(model)
        for context in histories(count, everybody, seed=column.api):
            options = StreamOptions(
                thinking=random.choice(levels),
                session_id=random.choice([None, "s"]),
                cache_retention=random.choice(["none", "short", "long"]),
                max_tokens=random.choice([None, 3000]),
            )
            message = await checked(models.stream(model, context, options)).result()
            assert message.text == "ok", (message.error_message, server.bodies[-1:])
            validate(json.loads(server.bodies[-1]), server.requests[-1].call)
        await models.aclose()
        server.assert_clean()


async def _asked(sdk: Sdk, url: str) -> Canonical:
    answer: Any = sdk(url) if inspect.iscoroutinefunction(sdk) else asyncio.to_thread(sdk, url)
    canonical: Canonical = await answer
    return canonical
