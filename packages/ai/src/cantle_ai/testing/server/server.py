"""A scripted server of every wire API that checks each request as the strictest vendor would.

    with StrictServer(["Hello."]) as server:        # or: async with
        ...ask {server.base_url_for("anthropic-messages")}...
    server.assert_clean()

It listens on 127.0.0.1 in a thread of its own, so that blocking and asynchronous clients can both use it. A
request that breaks a rule is answered 400 with the reason, uses up no response, and is remembered as a violation.

    POST /<api>/…              the scripted answers, in the wire format of the API: one script for all of them
    POST …/chat/completions    the same without the API's name, where the rest of the path tells it
    GET  /<api>/…/models       the list of models, as the API words it
    GET  /control/log          {"count", "violations", "requests"}: what came so far
    POST /control/stop         stops the server
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import TracebackType
from typing import Self, TypeAlias, cast

from msgspec.structs import replace

from cantle_ai.codec import JsonObject, encode_json
from cantle_ai.testing.playback import seeded
from cantle_ai.testing.response import (
    Answer,
    Chunk,
    Failure,
    HttpAnswer,
    Response,
    check_chunk,
    response_of,
    responses_of,
)
from cantle_ai.testing.script import Script
from cantle_ai.testing.server.dialects import DIALECTS, api_of_path, dialect
from cantle_ai.testing.server.dialects.port import Asked, Dialect, Play
from cantle_ai.testing.server.exchange import Call, Sender, read_call
from cantle_ai.testing.server.prefix import PrefixRule
from cantle_ai.testing.server.received import Received
from cantle_ai.testing.server.refusal import Refusal
from cantle_ai.testing.server.strictness import Strictness

__all__ = ["RequestFunction", "StrictServer"]

RequestFunction: TypeAlias = Callable[[JsonObject], Answer]
"""Makes the response to one request from its body. Runs in the server's thread."""

_JSON = "application/json"


class StrictServer:
    """Answers requests of any API from one script. Start it with `with`, `async with` or :meth:`start`."""

    def __init__(
        self,
        responses: Iterable[Answer | RequestFunction] | RequestFunction = (),
        *,
        seed: int = 0,
        chunk: Chunk = (1, 16),
        rate: float | None = None,
        slices: tuple[int, int] = (1, 2048),
        cut: int | None = None,
        newline: str = "\n",
        prefix: bool = True,
        models: Sequence[str] = (),
        strictness: Strictness | None = None,
        port: int = 0,
        idle: float | None = None,
    ) -> None:
        """`chunk` is the characters of a delta, `slices` the bytes of a write, both chosen with `seed`; `cut` is
        a seed of its own for the writes, so that one answer can come in other pieces.

        `rate` is deltas per second; `newline` ends each line of the event stream. `prefix` asks for the prefix
        rule, within the requests of one conversation (by `prompt_cache_key` or what else an API has for it).
        `models` are the ids that a list of models has. `idle` is the seconds after which a server that nobody
        asks anything stops by itself.
        """
        check_chunk(chunk)
        self.requests: list[Received] = []
        self._always = responses if callable(responses) else None
        self._script: Script[RequestFunction] = Script(() if callable(responses) else responses_of(responses))
        self._seed = seed
        self._chunk = chunk
        self._rate = rate
        self._slices = slices
        self._cut = seed if cut is None else cut
        self._newline = newline
        self._prefix = PrefixRule() if prefix else None
        self._models = models
        self._strictness = strictness or Strictness()
        self._port = port
        self._idle = idle
        self._arrival = threading.Condition()
        self._ready = threading.Event()
        self._failure: OSError | None = None
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._heard = time.monotonic()

    # --- life ---------------------------------------------------------------------------------

    def start(self) -> Self:
        """Listen. Raises OSError when the port cannot be had."""
        self._thread = threading.Thread(target=self._run, name="strict-server", daemon=True)
        self._thread.start()
        self._ready.wait()
        if self._failure is not None:
            raise self._failure
        return self

    def stop(self) -> None:
        """Break off all connections and end the thread."""
        if self._loop is not None and self._stop is not None and not self._loop.is_closed():
            try:
                self._loop.call_soon_threadsafe(self._stop.set)
            except RuntimeError:
                pass  # It stopped by itself in this moment.
        self.join()

    def join(self, timeout: float | None = None) -> bool:
        """Wait until the server has stopped, or for so many seconds. Returns whether it has."""
        if self._thread is None:
            return True
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        return self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.stop)

    # --- what a test asks ----------------------------------------------------------------------

    @property
    def port(self) -> int:
        return self._port

    @property
    def base_url(self) -> str:
        """What the `base_url` of a provider with the API `openai-completions` must be."""
        return f"http://127.0.0.1:{self._port}/v1"

    def base_url_for(self, api: str) -> str:
        """What the `base_url` of a provider with this API must be. Raises KeyError for an unknown API."""
        return f"http://127.0.0.1:{self._port}/{api}{DIALECTS[api].root}"

    @property
    def bodies(self) -> list[bytes]:
        """The bodies of all requests, as they came."""
        return [received.body for received in self.requests]

    @property
    def violations(self) -> list[Received]:
        """The requests that broke a rule."""
        return [received for received in self.requests if received.rule is not None]

    def assert_clean(self) -> None:
        """Raise AssertionError when a request broke a rule, or found no response."""
        found = [f"request {bad.number}: {bad.rule}: {bad.text}" for bad in self.violations]
        assert not found, "\n".join(found)

    def extend(self, responses: Iterable[Answer | RequestFunction]) -> None:
        """Add responses at the end of the script."""
        self._script.extend(responses_of(responses))

    def new_conversation(self) -> None:
        """Do not hold the next request against those before it."""
        if self._prefix is not None:
            self._prefix.forget()

    def wait_for(self, count: int, timeout: float = 10) -> None:
        """Block until so many requests have come. Raises TimeoutError."""
        with self._arrival:
            if not self._arrival.wait_for(lambda: len(self.requests) >= count, timeout):
                raise TimeoutError(f"{len(self.requests)} of {count} requests came in {timeout} s")

    async def received(self, count: int, timeout: float = 10) -> None:
        """Return when so many requests have come. Raises TimeoutError."""
        await asyncio.to_thread(self.wait_for, count, timeout)

    # --- the server's thread -------------------------------------------------------------------

    def _run(self) -> None:
        try:
            asyncio.run(self._main())
        except OSError as error:
            self._failure = error
        finally:
            self._ready.set()

    async def _main(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._connected, "127.0.0.1", self._port, limit=2**20)
        self._port = server.sockets[0].getsockname()[1]
        self._heard = time.monotonic()
        self._ready.set()
        await self._until_stopped(self._stop)
        server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _until_stopped(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            left = None if self._idle is None else self._heard + self._idle - time.monotonic()
            if left is not None and left <= 0:
                return
            try:
                async with asyncio.timeout(left):
                    await stop.wait()
            except TimeoutError:
                pass

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = cast("asyncio.Task[None]", asyncio.current_task())
        self._connections.add(task)
        try:
            while (call := await read_call(reader)) is not None:
                self._heard = time.monotonic()
                await self._answer(call, reader, writer)
        except (ConnectionError, _HungUp):
            pass
        except asyncio.CancelledError:
            writer.transport.abort()
        finally:
            self._connections.discard(task)
            writer.close()

    async def _answer(self, call: Call, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        api = api_of_path(call.path)
        if api is None:
            await self._control(call, Sender(writer, (2**16, 2**16), seeded()))
            return
        with self._arrival:
            received = Received(len(self.requests) + 1, call, api)
            self.requests.append(received)
            self._arrival.notify_all()
        sender = Sender(writer, self._slices, seeded(self._cut, "slices", received.number))
        spoken = dialect(api)
        try:
            await self._complete(received, spoken, reader, sender)
        except Refusal as refusal:
            received.rule, received.text = refusal.rule, refusal.text
            failure = Failure(message=refusal.text, code=refusal.rule, status=refusal.status)
            await sender.whole(refusal.status, spoken.error(failure, refusal.status), _JSON, {})

    async def _complete(
        self, received: Received, spoken: Dialect, reader: asyncio.StreamReader, sender: Sender
    ) -> None:
        call = received.call
        if call.method != "POST":
            raise Refusal("method", f"{call.method} is not POST", status=405)
        asked = spoken.check(call, self._strictness)
        cached = 0 if self._prefix is None else self._prefix.check(_within(received.api, asked))
        response = self._choose(asked, received.number)
        if response.delay_ms:
            await asyncio.sleep(response.delay_ms / 1000)
        if response.http is not None:
            await _odd(response.http, reader, sender)
        elif response.refusal is not None:
            await _refuse(response.refusal, spoken, sender)
        else:
            play = Play(
                response=response,
                asked=asked,
                random=seeded(self._seed, received.number, len(asked.pieces)),
                chunk=self._chunk,
                cached=cached,
                newline=self._newline,
            )
            await self._play(play, spoken, reader, sender)

    def _choose(self, asked: Asked, number: int) -> Response:
        entry = self._always or self._script.take(asked.last)
        if entry is None:
            left = len(self._script)
            raise Refusal(
                "script", f"the script has no response for request {number} ({left} left, for others)"
            )
        return entry if isinstance(entry, Response) else response_of(entry(asked.body.values))

    async def _play(self, play: Play, spoken: Dialect, reader: asyncio.StreamReader, sender: Sender) -> None:
        response, playback = play.response, spoken.play(play)
        rate = self._rate if response.rate is None else response.rate
        await sender.begin(spoken.content_type, {})
        if rate is None:
            await sender.send(b"".join(_with_noise(playback.events(), play, spoken)))
        else:
            for event in _with_noise(playback.events(), play, spoken):
                await sender.send(event)
                await asyncio.sleep(1 / rate)
        if response.stall:
            await _until_hung_up(reader)
        elif response.cut is True:
            sender.cut()
            raise _HungUp
        elif response.error is not None:
            await sender.send(playback.failing(response.error))
        elif not response.cut:
            await sender.send(b"".join(_with_noise(playback.ending(), play, spoken, ending=True)))
        await sender.end()

    async def _control(self, call: Call, sender: Sender) -> None:
        match call.method, call.path:
            case "GET", "/control/log":
                log: JsonObject = {
                    "count": len(self.requests),
                    "violations": [bad.to_json() for bad in self.violations],
                    "requests": [received.to_json() for received in self.requests],
                }
                await sender.whole(200, encode_json(log), _JSON, {})
            case "POST", "/control/stop":
                await sender.whole(200, b"{}", _JSON, {})
                assert self._stop is not None
                self._stop.set()
            case "GET", path if path.endswith("/models"):
                first = path.split("/")[1]
                spoken = dialect(first if first in DIALECTS else "openai-completions")
                await sender.whole(200, spoken.models(self._models), _JSON, {})
            case method, path:
                body: JsonObject = {"message": f"{method} {path} is not known here", "code": "not_found"}
                await sender.whole(404, encode_json({"error": body}), _JSON, {})


class _HungUp(Exception):
    """The connection is over."""


def _within(api: str, asked: Asked) -> Asked:
    """A conversation that visits another API is another one to the prefix rule."""
    return replace(asked, conversation=f"{api} {asked.model} {asked.conversation}")


def _with_noise(
    events: Iterator[bytes], play: Play, spoken: Dialect, *, ending: bool = False
) -> Iterator[bytes]:
    for event in events:
        for kind in play.response.noise:
            if kind != "repeated":
                yield spoken.noise(kind, play) or b""
        yield event
        if ending and "repeated" in play.response.noise:
            yield event


async def _odd(answer: HttpAnswer, reader: asyncio.StreamReader, sender: Sender) -> None:
    if answer.drop:
        sender.cut()
        raise _HungUp
    if answer.stall:
        await _until_hung_up(reader)
    await sender.whole(answer.status, answer.body.encode("utf-8"), answer.content_type, answer.headers)


async def _refuse(failure: Failure, spoken: Dialect, sender: Sender) -> None:
    headers: dict[str, str] = {}
    if failure.retry_after_ms is not None:
        seconds = failure.retry_after_ms / 1000
        headers["Retry-After"] = str(int(seconds)) if seconds == int(seconds) else str(seconds)
    status = 500 if failure.status is None else failure.status
    await sender.whole(status, spoken.error(failure, status), _JSON, headers)


async def _until_hung_up(reader: asyncio.StreamReader) -> None:
    while await reader.read(4096):
        pass
    raise _HungUp
