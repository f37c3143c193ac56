"""What the cases work on: an answer as its bytes come from a server, messages, a file."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence

from cantle_agent.messages import AgentMessage
from cantle_ai.abort import AbortSignal
from cantle_ai.apis.openai_completions import source
from cantle_ai.auth.request_auth import RequestAuth
from cantle_ai.builder import AnswerBuilder
from cantle_ai.codec import Json, encode_json
from cantle_ai.content import TextContent, ToolCall
from cantle_ai.context import Context
from cantle_ai.messages import AssistantMessage, ToolResultMessage, UserMessage
from cantle_ai.model import Model, StreamOptions
from cantle_ai.stream import AssistantMessageStream, StreamFunction
from cantle_ai.transport.port import HttpRequest, HttpResponse
from cantle_ai.usage import Usage

__all__ = [
    "MODEL",
    "Memory",
    "answers",
    "blocks",
    "calls",
    "chunked",
    "conversation",
    "long_argument",
    "source_text",
    "text_answer",
    "words",
]

MODEL = Model(id="bench", provider="bench", api="openai-completions", base_url="http://127.0.0.1/v1")

_BLOCK = 64 * 1024
"""As much as the transport reads at once."""
_WORDS = (
    "the ",
    "parser ",
    "keeps a ",
    "small table ",
    "of tokens, ",
    "and moves ",
    "one step\n",
    "at a time: ",
)


def words(count: int) -> Iterator[str]:
    """So many pieces of text."""
    return (_WORDS[number % len(_WORDS)] for number in range(count))


def _event(delta: Json, finish: str | None = None) -> bytes:
    choice: Json = {"index": 0, "delta": delta, "finish_reason": finish}
    chunk: Json = {
        "id": "chatcmpl-bench",
        "object": "chat.completion.chunk",
        "created": 1_700_000_000,
        "model": "bench",
        "choices": [choice],
    }
    return b"data: " + encode_json(chunk) + b"\n\n"


_DONE = b"data: [DONE]\n\n"


def text_answer(deltas: int) -> list[bytes]:
    """The events of an answer of text."""
    return [*(_event({"content": piece}) for piece in words(deltas)), _event({}, "stop"), _DONE]


def long_argument(deltas: int) -> list[bytes]:
    """The events of an answer with one call, whose argument comes in so many pieces."""
    pieces = ['{"path":"a.txt","content":"', *(piece.replace("\n", "\\n") for piece in words(deltas)), '"}']
    return [*_call(0, "write", pieces), _event({}, "tool_calls"), _DONE]


def calls(count: int, name: str) -> list[bytes]:
    """The events of an answer with so many calls of one tool."""
    events = [event for number in range(count) for event in _call(number, name, ['{"text":"a"}'])]
    return [*events, _event({}, "tool_calls"), _DONE]


def _call(index: int, name: str, pieces: Sequence[str]) -> Iterator[bytes]:
    head: Json = {"index": index, "id": f"call_{index}", "function": {"name": name, "arguments": ""}}
    yield _event({"tool_calls": [head]})
    for piece in pieces:
        yield _event({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})


def blocks(events: Sequence[bytes]) -> list[bytes]:
    """The events as a socket gives them: cut anywhere, 64 KB at a time."""
    data = b"".join(events)
    return [data[start : start + _BLOCK] for start in range(0, len(data), _BLOCK)]


def chunked(events: Sequence[bytes]) -> list[bytes]:
    """The same in the chunked transfer coding, each event in a chunk of its own."""
    return blocks([*(b"%x\r\n%b\r\n" % (len(event), event) for event in events), b"0\r\n\r\n"])


class Memory:
    """A transport whose every answer has a given body. It keeps the requests."""

    def __init__(self, body: Sequence[bytes], content_type: str = "text/event-stream") -> None:
        self.requests: list[HttpRequest] = []
        self.body = body
        self._type = content_type

    async def send(self, request: HttpRequest, *, signal: AbortSignal | None = None) -> HttpResponse:
        self.requests.append(request)
        return HttpResponse(200, {"content-type": self._type}, self._chunks())

    async def _chunks(self) -> AsyncIterator[bytes]:
        for block in self.body:
            yield block

    async def aclose(self) -> None:
        return


def answers(*bodies: Sequence[bytes]) -> StreamFunction:
    """A model that gives these answers, one after the other, through the wire API."""
    left = iter(bodies)

    def stream(model: Model, context: Context, options: StreamOptions) -> AssistantMessageStream:
        transport = Memory(next(left))
        events = source(model, context, options, transport=transport, auth=RequestAuth())
        return AssistantMessageStream(events, AnswerBuilder.of(model), signal=options.signal)

    return stream


def conversation(messages: int) -> list[AgentMessage]:
    """A prompt, and answers with a call each, in turn with the call's result."""
    made: list[AgentMessage] = [UserMessage("Mend the parser.", timestamp=1)]
    usage = Usage(input=1000, output=50)
    for number in range(1, messages):
        name = f"call_{number // 2}"
        if number % 2:
            call = ToolCall(id=name, name="read", arguments={"path": f"src/part_{number}.py"})
            text = TextContent("I look at the next part, and then at its tests.")
            made.append(
                AssistantMessage(
                    [text, call], MODEL.api, "bench", "bench", usage=usage, stop_reason="toolUse"
                )
            )
        else:
            result = TextContent("".join(words(60)))
            made.append(ToolResultMessage(f"call_{(number - 1) // 2}", "read", [result]))
    return made


def source_text(lines: int) -> bytes:
    """A file of so many lines, each of its own."""
    return "".join(f"    value_{number} = step({number}, 'größe')\n" for number in range(lines)).encode()
