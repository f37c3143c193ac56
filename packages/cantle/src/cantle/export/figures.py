"""What a session took: tokens, dollars and time, in all, by model, and answer by answer; and how figures are written."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from cantle_ai.messages import AssistantMessage, ToolResultMessage
from cantle_ai.usage import Usage, total_usage
from cantle_session.entries import CompactionEntry, Entry, MessageEntry, UsageEntry, usage_of
from cantle_session.stamps import milliseconds

__all__ = [
    "Figures",
    "ModelFigures",
    "Moment",
    "counted",
    "dollars",
    "figures",
    "in_dollars",
    "lasting",
    "prompt_tokens",
    "tokens",
]


class Moment(Struct, frozen=True):
    """One request: when (Unix milliseconds), the tokens of its context, of these the cached, and the dollars until then."""

    at: int
    context: int
    cached: int
    spent: float
    compacted: bool = False
    """It is a compaction: the context shrinks here."""


class ModelFigures(Struct, frozen=True):
    """What one model took."""

    name: str
    requests: int
    usage: Usage


class Figures(Struct, frozen=True):
    """A session in numbers."""

    total: Usage
    models: list[ModelFigures]
    moments: list[Moment]
    prompts: int
    answers: int
    calls: int
    first: int | None
    """When the first entry was written, in Unix milliseconds."""
    last: int | None


def figures(entries: Sequence[Entry]) -> Figures:
    """The numbers of all entries, on every branch."""
    by_model: dict[str, list[Usage]] = {}
    moments: list[Moment] = []
    prompts = answers = calls = 0
    spent = 0.0
    for entry in entries:
        message = entry.message if isinstance(entry, MessageEntry) else None
        answer = message if isinstance(message, AssistantMessage) else None
        prompts += message is not None and message.role == "user"
        if answer is not None:
            answers += 1
            calls += len(answer.tool_calls)
        usage = usage_of(entry)
        if usage is None and not isinstance(entry, CompactionEntry):
            continue
        usage = usage or Usage()
        spent += usage.cost.total
        by_model.setdefault(_source(entry), []).append(usage)
        if isinstance(entry, CompactionEntry) or (answer is not None and usage.total_tokens):
            at = milliseconds(entry.timestamp) or 0
            context = 0 if answer is None else prompt_tokens(usage) + usage.output
            cached = 0 if answer is None else usage.cache_read
            moments.append(Moment(at, context, cached, spent, answer is None))
    times = [time for entry in entries if (time := milliseconds(entry.timestamp)) is not None]
    models = [ModelFigures(name, len(usages), total_usage(usages)) for name, usages in by_model.items()]
    return Figures(
        total_usage([model.usage for model in models]),
        models,
        moments,
        prompts,
        answers,
        calls,
        min(times, default=None),
        max(times, default=None),
    )


def prompt_tokens(usage: Usage) -> int:
    """The tokens that were sent, cached ones included."""
    return usage.input + usage.cache_read + usage.cache_write


def counted(number: int, one: str, many: str = "") -> str:
    """`1 branch`, `1,234 branches`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def tokens(number: int) -> str:
    """Tokens in three digits: `987`, `12.3k`, `1.2M`."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= 999.5 * size / 1e3 and number >= 1000:
            value = number / size
            return f"{value:.0f}{unit}" if value >= 99.95 else f"{value:.1f}{unit}"
    return str(number)


def dollars(usage: Usage) -> str:
    """What it cost: `$1.23`, `$0.0042`; with what could not be priced, `at least $1.23`, or `unknown`."""
    value = usage.cost.total
    if usage.cost.unknown and not value:
        return "unknown"
    shown = in_dollars(value)
    return f"at least {shown}" if usage.cost.unknown else shown


def lasting(ms: float) -> str:
    """A time span: `0.4 s`, `12 s`, `3 min 20 s`, `2 h 5 min`, `3 d 4 h`."""
    seconds = max(ms, 0) / 1000
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    for size, unit, smaller, small in (
        (86_400, "d", "h", 3_600),
        (3_600, "h", "min", 60),
        (60, "min", "s", 1),
    ):
        if whole >= size:
            rest = whole % size // small
            return f"{whole // size} {unit}" + (f" {rest} {smaller}" if rest else "")
    return f"{whole} s"


def in_dollars(value: float) -> str:
    """Dollars with as many digits as they need."""
    if value == 0 or value >= 0.995:
        return f"${value:,.2f}"
    return f"${value:.3f}" if value >= 0.00995 else f"${value:.2g}" if value < 0.0001 else f"${value:.4f}"


def _source(entry: Entry) -> str:
    match entry:
        case MessageEntry(message=AssistantMessage() as answer):
            return f"{answer.provider}/{answer.model}" if answer.provider else answer.model or "unknown"
        case MessageEntry(message=ToolResultMessage() as result):
            return f"tool {result.tool_name}"
        case UsageEntry():
            return f"{entry.provider}/{entry.model} ({entry.kind})"
        case CompactionEntry():
            return "summaries of history"
    return "summaries of branches"
