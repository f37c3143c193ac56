"""AWS's own SDK reads ConverseStream as we do, knows the requests that we make, and signs and frames alike."""

from __future__ import annotations

import base64
import json
from functools import cache
from random import Random
from typing import Any
from urllib.parse import unquote

from cantle_ai.apis.bedrock_event_stream import EventStreamParser
from cantle_ai.codec import decode_json
from cantle_ai.testing.server.exchange import Call as HttpCall
from packages.ai.tests.conformance.columns.bedrock_converse_stream import COLUMN
from packages.ai.tests.oracles.answers import Kinds, hostile
from packages.ai.tests.oracles.canonical import Call, Canonical
from packages.ai.tests.oracles.oracle import check_answers, check_requests
from tests.support.extras import needs
from tests.support.samples import samples

pytestmark = needs("oracles")


@cache
def _client(base_url: str) -> Any:
    import boto3
    from botocore.config import Config

    return boto3.client(
        "bedrock-runtime",
        region_name="us-east-1",
        endpoint_url=base_url,
        aws_access_key_id="AKIAEXAMPLE",
        aws_secret_access_key="secret",
        config=Config(retries={"total_max_attempts": 1}),
    )


class _Read:
    """Puts the SDK's events together: it decodes frames and events, and has no accumulator of its own."""

    def __init__(self) -> None:
        self.text = ""
        self.thinking = ""
        self.signatures: list[str] = []
        self.calls: dict[int, dict[str, str]] = {}
        self.stop: str | None = None
        self.usage: dict[str, Any] = {}

    def add(self, event: dict[str, Any]) -> None:
        if (start := event.get("contentBlockStart")) is not None:
            use = start["start"]["toolUse"]
            self.calls[start["contentBlockIndex"]] = {**use, "input": ""}
        elif (piece := event.get("contentBlockDelta")) is not None:
            delta, thought = piece["delta"], piece["delta"].get("reasoningContent", {})
            self.text += delta.get("text", "")
            self.thinking += thought.get("text", "")
            if "signature" in thought:
                self.signatures.append(thought["signature"])
            if "toolUse" in delta:
                self.calls[piece["contentBlockIndex"]]["input"] += delta["toolUse"]["input"]
        elif "messageStop" in event:
            self.stop = event["messageStop"]["stopReason"]
        elif "metadata" in event:
            self.usage = event["metadata"]["usage"]


def read(base_url: str) -> Canonical:
    """By botocore's stream of events."""
    answer = _client(base_url).converse_stream(
        modelId="m-1",
        messages=[{"role": "user", "content": [{"text": "Hi"}]}],
        inferenceConfig={"maxTokens": 100},
    )
    said = _Read()
    for event in answer["stream"]:
        said.add(event)
    return Canonical(
        text=said.text,
        thinking=said.thinking,
        signatures=said.signatures,
        calls=[Call.of(call["toolUseId"], call["name"], call["input"]) for call in said.calls.values()],
        stop=said.stop,
        input=said.usage["inputTokens"],
        output=said.usage["outputTokens"],
        cache_read=said.usage["cacheReadInputTokens"],
        cache_write=said.usage["cacheWriteInputTokens"],
    )


@cache
def _input_shape() -> Any:
    from botocore.session import get_session

    return get_session().get_service_model("bedrock-runtime").operation_model("ConverseStream").input_shape


def validate(body: dict[str, Any], call: HttpCall) -> None:
    """The parameters that botocore's own check lets pass, and nothing that its model does not have."""
    from botocore.validate import ParamValidator

    given = _typed(_input_shape(), {**body, "modelId": unquote(call.path.split("/")[-2])})
    report = ParamValidator().validate(given, _input_shape())
    assert not report.has_errors(), report.generate_report()


def _typed(shape: Any, value: Any) -> Any:
    """The request as a program gives it to botocore: what is Base64 in JSON is bytes there."""
    if getattr(shape, "is_document_type", False):
        return value
    match shape.type_name:
        case "structure":
            return {
                name: _typed(shape.members[name], each) if name in shape.members else each
                for name, each in value.items()
            }
        case "list":
            return [_typed(shape.member, each) for each in value]
        case "blob":
            return base64.b64decode(value, validate=True)
        case _:
            return value


async def test_answers_agree():
    _client.cache_clear()
    kinds = Kinds(call_id="tooluse_{:09d}", reasoning=False)
    await check_answers(COLUMN, read, kinds=kinds)
    _client.cache_clear()


async def test_requests_are_what_the_sdk_knows():
    await check_requests(COLUMN, validate)


def test_frames_agree():
    """Messages with headers of every type, cut anywhere: the same events as from botocore's buffer."""
    from botocore.eventstream import EventStreamBuffer

    for seed in range(samples(300, 60)):
        random = Random(seed)
        data = b"".join(_message(random) for _ in range(random.randint(1, 6)))
        theirs, ours = EventStreamBuffer(), EventStreamParser()
        said: list[Any] = []
        read: list[Any] = []
        place = 0
        while place < len(data):
            end = place + random.choice([1, 3, 40, 4000])
            theirs.add_data(data[place:end])
            said += [(m.headers[":event-type"], m.payload) for m in theirs]
            read += [(event.event, event.data) for event in ours.feed(data[place:end])]
            place = end
        assert read == said


def _message(random: Random) -> bytes:
    """One event in AWS's framing, with headers that nobody needs among those that count."""
    from binascii import crc32

    values = {
        0: b"",
        1: b"",
        2: random.randbytes(1),
        3: random.randbytes(2),
        4: random.randbytes(4),
        5: random.randbytes(8),
        6: b"\x00\x03abc",
        7: b"\x00\x04text",
        8: (10**12).to_bytes(8, "big"),
        9: random.randbytes(16),
    }
    headers = [b"\x01" + bytes([97 + kind, kind]) + value for kind, value in values.items()]
    headers = random.sample(headers, random.randint(0, len(headers)))
    name = f"name{random.randint(0, 3)}".encode()
    for header, text in ((b":event-type", name), (b":message-type", b"event")):
        block = bytes([len(header)]) + header + b"\x07" + len(text).to_bytes(2, "big") + text
        headers.insert(random.randint(0, len(headers)), block)
    block = b"".join(headers)
    payload = json.dumps(hostile(random)).encode()
    prelude = (16 + len(block) + len(payload)).to_bytes(4, "big") + len(block).to_bytes(4, "big")
    message = prelude + crc32(prelude).to_bytes(4, "big") + block + payload
    assert decode_json(payload) is not None or payload == b"null"
    return message + crc32(message).to_bytes(4, "big")
