"""HTTP/1.1 on asyncio streams, as far as a loopback server needs it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from http import HTTPStatus
from random import Random

from msgspec import Struct

__all__ = ["Call", "Sender", "read_call"]

_LARGEST = 256 * 1024 * 1024


class Call(Struct, frozen=True):
    """A request as it came. Header names are in lower case; `path` and `query` are as they were written."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    query: str = ""


async def read_call(reader: asyncio.StreamReader) -> Call | None:
    """The next request of a connection; None when there is none, or what comes is not HTTP."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, target, _ = head[0].split(" ", 2)
        headers = {
            name.strip().lower(): value.strip()
            for name, _, value in (line.partition(":") for line in head[1:-2])
        }
        body = await _body(reader, headers)
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError, ConnectionError):
        return None
    path, _, query = target.partition("?")
    if "://" in path:
        path = "/" + path.partition("://")[2].partition("/")[2]
    return Call(method, path, headers, body, query)


async def _body(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> bytes:
    if headers.get("transfer-encoding", "").lower() != "chunked":
        return await reader.readexactly(_size(headers.get("content-length", "0"), 10))
    parts: list[bytes] = []
    while size := _size((await reader.readuntil(b"\r\n")).partition(b";")[0].strip().decode("latin-1"), 16):
        parts.append(await reader.readexactly(size))
        await reader.readexactly(2)
    await reader.readuntil(b"\r\n")
    return b"".join(parts)


def _size(text: str, base: int) -> int:
    size = int(text, base)
    if not 0 <= size <= _LARGEST:
        raise ValueError(f"a body of {size} bytes")
    return size


class Sender:
    """Writes the answer to one request. `slices` bounds the bytes of each write; `random` chooses in between."""

    def __init__(self, writer: asyncio.StreamWriter, slices: tuple[int, int], random: Random) -> None:
        self._writer = writer
        self._slices = slices
        self._random = random

    async def whole(self, status: int, body: bytes, content_type: str, headers: Mapping[str, str]) -> None:
        """A complete answer with its length."""
        self._head(status, {"Content-Type": content_type, "Content-Length": str(len(body)), **headers})
        await self._sliced(body, chunked=False)

    async def begin(self, content_type: str, headers: Mapping[str, str]) -> None:
        """The head of an event stream, whose body comes in chunks."""
        kind = {"Content-Type": content_type, "Cache-Control": "no-cache"}
        self._head(200, {**kind, "Transfer-Encoding": "chunked", **headers})
        await self._writer.drain()

    async def send(self, data: bytes) -> None:
        """More of the event stream."""
        await self._sliced(data, chunked=True)

    async def end(self) -> None:
        """The end of the event stream."""
        self._writer.write(b"0\r\n\r\n")
        await self._writer.drain()

    def cut(self) -> None:
        """Break the connection off."""
        self._writer.transport.abort()

    def _head(self, status: int, headers: Mapping[str, str]) -> None:
        reason = HTTPStatus(status).phrase if status in HTTPStatus._value2member_map_ else "Unknown"
        lines = [f"HTTP/1.1 {status} {reason}", *(f"{name}: {value}" for name, value in headers.items())]
        self._writer.write("\r\n".join([*lines, "", ""]).encode("latin-1"))

    async def _sliced(self, data: bytes, *, chunked: bool) -> None:
        place = 0
        while place < len(data):
            piece = data[place : place + self._random.randint(*self._slices)]
            place += len(piece)
            self._writer.write(b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece)
            await self._writer.drain()
