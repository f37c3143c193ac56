"""Server-sent events that say nothing, as sloppy servers and proxies send them between others."""

from __future__ import annotations

from cantle_ai.testing.response import Noise

__all__ = ["data_noise", "named_noise"]


def data_noise(kind: Noise, newline: str) -> bytes:
    """Of an API whose events have no name."""
    match kind:
        case "unknown":
            return f'data: {{"object":"something.new","novelty":[1,null]}}{newline}{newline}'.encode()
        case "garbage":
            return f'data: {{"cut off in the mid{newline}{newline}'.encode()
        case "comment":
            return f": ping{newline}{newline}".encode()
        case "empty" | "repeated":
            return f"data:{newline}{newline}".encode()


def named_noise(kind: Noise, newline: str, unknown: str = "something.new") -> bytes:
    """Of an API whose events have a name, which their data say again as `type`."""
    match kind:
        case "unknown":
            data = f'data: {{"type":"{unknown}","novelty":[1,null]}}'
            return f"event: {unknown}{newline}{data}{newline}{newline}".encode()
        case "garbage":
            return f'event: {unknown}{newline}data: {{"cut off in the mid{newline}{newline}'.encode()
        case _:
            return data_noise(kind, newline)
