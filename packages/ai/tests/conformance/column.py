"""What the table must know of a wire API: a column is data, and it lies in `columns/<api with _>.py`.

    COLUMN = Column(
        api="anthropic-messages",
        model={"reasoning": True, "input": ("text", "image"), "max_tokens": 4096},
        refusal="refusal",
        counts=("cache_read", "cache_write"),
        ...
    )

The rows are in `cases.py`; a case that cannot be asked of an API stands in `without`, with the reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

__all__ = ["APIS", "Column", "columns"]

APIS = (
    "openai-completions",
    "openai-responses",
    "azure-openai-responses",
    "openai-codex-responses",
    "anthropic-messages",
    "google-generative-ai",
    "google-vertex",
    "mistral-conversations",
    "bedrock-converse-stream",
)
"""Every wire API over HTTP, in the order of the table."""


@dataclass(frozen=True, kw_only=True)
class Column:
    """One API. Texts that a request must hold are parts of its body as it is sent."""

    api: str
    model: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the `Model` row beside id, provider, api and base_url."""
    provider: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the `Provider` row beside id, name, api, base_url and api_key."""
    environ: Mapping[str, str] = field(default_factory=dict)
    api_key: str | None = "sk-conformance"
    without: Mapping[str, str] = field(default_factory=dict)
    """Cases that this API cannot have -> why."""

    refusal: str = "content_filter"
    """The raw stop reason of an answer that a filter stopped."""
    length: str = "length"
    """The raw stop reason of an answer that was cut at its limit."""
    overload: Mapping[str, Any] = field(
        default_factory=lambda: {"status": 503, "code": "overloaded", "message": "The server is overloaded"}
    )
    overflow: Mapping[str, Any] = field(
        default_factory=lambda: {
            "status": 400,
            "code": "context_length_exceeded",
            "message": "This model's maximum context length is 100 tokens",
        }
    )
    counts: tuple[str, ...] = ("cache_read", "reasoning")
    """Which figures of a usage the API reports beside input and output: `cache_read`, `cache_write`, `reasoning`."""
    replays: str | None = "text"
    """What of its own thinking goes back: its `signature`, its `text`, or nothing (None)."""
    max_tokens: str = '"max_tokens":77'
    """How a limit of 77 tokens is said."""
    top_p: str = "top_p"
    """What the API calls nucleus sampling."""
    cache: Mapping[str, str] = field(default_factory=dict)
    """What the body holds for a retention (`short`, `long`) and does not for `none`; nothing where it is automatic."""
    choices: Mapping[str, str] = field(default_factory=dict)
    """How a tool choice is said: `none`, `required`, and `named` for the tool `read`."""
    schema: str = ""
    """What the body holds for a response schema whose property is called `capital`, beside that word."""


def columns() -> list[Column]:
    """All columns that there are, in the order of the table."""
    folder = Path(__file__).parent / "columns"
    found: list[Column] = []
    for api in APIS:
        name = api.replace("-", "_")
        if (folder / f"{name}.py").exists():
            found.append(import_module(f"packages.ai.tests.conformance.columns.{name}").COLUMN)
    return found
