"""The file of a scripted model: what `--provider scripted --model FILE` plays.

    {"model"?: {"name", "contextWindow", "maxTokens", "price"},
     "seed"?: n, "chunk"?: n | [min, max], "rate"?: deltas/second,
     "responses": [response | "text", …]}

A response is drawn in :mod:`cantle_ai.testing.response`; `docs/formats/scripted-model.md` explains the format.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from cantle_ai.errors import ConfigurationError
from cantle_ai.messages import now_ms
from cantle_ai.model import Model
from cantle_ai.system_errors import reason_of
from cantle_ai.testing.response import Chunk, Response, check_chunk, response_of
from cantle_ai.testing.scripted import ScriptedModel, scripted_model
from cantle_ai.usage import Price

__all__ = ["ScriptFile", "load_script", "read_script"]

_FORMAT = "Correct the file; docs/formats/scripted-model.md describes the format"


class _Price(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    input: float = 0
    output: float = 0
    cache_read: float = 0
    cache_write: float = 0


class _ModelRow(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    id: str | None = None
    name: str | None = None
    reasoning: bool = True
    context_window: Annotated[int, Meta(ge=1)] = 128_000
    max_tokens: Annotated[int, Meta(ge=1)] = 16_384
    price: _Price = _Price()


class ScriptFile(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """What a script file holds."""

    responses: tuple[Response | str, ...]
    model: _ModelRow = _ModelRow()
    seed: int = 0
    chunk: Chunk = (1, 16)
    rate: Annotated[float, Meta(gt=0)] | None = None

    def __post_init__(self) -> None:
        check_chunk(self.chunk)

    def all(self) -> list[Response]:
        """The responses, those written as text too."""
        return [response_of(response) for response in self.responses]


def read_script(path: Path | str) -> ScriptFile:
    """The content of a script file.

    Raises ConfigurationError, which names the file and the line or the JSON path at fault.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise ConfigurationError(
            path, f"the script cannot be read: {reason_of(error)}; check the path"
        ) from error
    try:
        return msgspec.json.decode(data, type=ScriptFile)
    except msgspec.ValidationError as error:
        raise ConfigurationError(path, f"this is no script: {_sentence(error)}. {_FORMAT}") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigurationError(
            path, f"this is not JSON: {_place(data, str(error))}. Correct the file"
        ) from error


def load_script(path: Path | str, *, clock: Callable[[], int] = now_ms) -> ScriptedModel:
    """The scripted model that a file describes. Its id is `path` as given, unless the file names one.

    `clock` gives Unix milliseconds. Raises ConfigurationError as :func:`read_script` does.
    """
    script = read_script(path)
    row, chunk = script.model, script.chunk
    given = scripted_model(
        row.id or str(path),
        price=Price(
            input=row.price.input,
            output=row.price.output,
            cache_read=row.price.cache_read,
            cache_write=row.price.cache_write,
        ),
    )
    model: Model = msgspec.structs.replace(
        given,
        name=row.name or given.name,
        reasoning=row.reasoning,
        context_window=row.context_window,
        max_tokens=row.max_tokens,
    )
    return ScriptedModel(
        script.all(), seed=script.seed, chunk=chunk, rate=script.rate, model=model, clock=clock
    )


def _sentence(error: msgspec.ValidationError) -> str:
    text, _, place = str(error).partition(" - at ")
    return f"{text} at {place}" if place else text


def _place(data: bytes, text: str) -> str:
    """The line and column of a JSON fault, which msgspec names by its byte, if at all."""
    import json

    from cantle_ai.json_mistake import json_mistake

    try:
        json.loads(data.decode("utf-8"))
    except json.JSONDecodeError as error:
        mistake = json_mistake(error)
        return f"line {mistake.line}, column {mistake.column}: {mistake.reason}"
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return f"line {line}: the bytes are not UTF-8"
    except RecursionError:
        return "it is nested too deeply"
    return text
