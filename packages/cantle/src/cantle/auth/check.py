"""`cantle auth check`: where each provider's key would come from."""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import Sequence

from msgspec import Struct

from cantle.auth.providers import Runtime, runtime
from cantle.console import Results
from cantle.errors import UserError
from cantle.hub.model_selection import find_model
from cantle_ai.auth.resolution import AuthSource
from cantle_ai.codec import JsonObject
from cantle_ai.model import Model, Provider

__all__ = ["check"]

_PROBE = "Answer with the word ok."


class Finding(Struct, frozen=True, kw_only=True):
    """What is known of one provider."""

    provider: str
    source: AuthSource | None
    live: str | None = None
    """Why the provider refused; empty when it answered, None when it was not asked."""

    @property
    def ready(self) -> bool:
        return self.source is not None and self.source.usable and not self.live


def check(options: argparse.Namespace) -> int:
    """Say what there is. Returns 0 if the provider, or at least one, is ready. Raises :class:`UserError`."""
    known = runtime()
    model = find_model(known.models, options.model).model if options.model else None
    name = options.named or options.provider or (model.provider if model is not None else None)
    if model is not None and name != model.provider:
        raise UserError(f"The model {model.key} is not one of {name}.", "Name one of the two.")
    rows = [known.row(name)] if name else known.rows
    findings = [Finding(provider=row.id, source=known.models.auth_source(row.id)) for row in rows]
    if not name:
        findings = [finding for finding in findings if finding.source is not None]
    if options.live:
        findings = asyncio.run(_asked(known, findings, model))
    results = Results()
    if options.json:
        listed = [_record(finding, known) for finding in findings]
        results.say(json.dumps(listed[0] if name else listed) + "\n")
    else:
        results.say(_table(findings, known, rows))
    return results.code or (0 if any(finding.ready for finding in findings) else 1)


async def _asked(known: Runtime, findings: Sequence[Finding], model: Model | None) -> list[Finding]:
    try:
        return [
            Finding(
                provider=finding.provider,
                source=finding.source,
                live=await _refusal(known, finding.provider, model) if finding.ready else None,
            )
            for finding in findings
        ]
    finally:
        await known.models.aclose()


async def _refusal(known: Runtime, provider: str, model: Model | None) -> str:
    """Why a short request to one of the provider's models fails; empty when it is answered."""
    from cantle_ai.context import Context
    from cantle_ai.messages import UserMessage
    from cantle_ai.model import StreamOptions

    model = model or next(iter(known.models.list(provider)), None)
    if model is None:
        return "it has no model to ask; name one in models.json"
    message = await known.models.complete(
        model,
        Context(messages=[UserMessage(_PROBE, int(time.time() * 1000))]),
        StreamOptions(max_tokens=64, cache_retention="none"),
    )
    return (message.error_message or message.stop_reason) if message.stop_reason == "error" else ""


def _record(finding: Finding, known: Runtime) -> JsonObject:
    source = finding.source
    record: JsonObject = {
        "provider": finding.provider,
        "status": "ready" if finding.ready else "not_ready",
    }
    if source is not None:
        record["authType"] = "oauth" if source.kind == "login" else "api_key"
        record["source"] = source.kind
        record["name"] = source.name or (known.store.place if _is_stored(source) else "")
        record["expires"] = source.expires
        record["missing"] = [*source.missing, *source.needed]
        if source.problem:
            record["problem"] = source.problem
    if finding.live is not None:
        record["live"] = {"ok": not finding.live, "error": finding.live or None}
    return record


def _table(findings: Sequence[Finding], known: Runtime, rows: Sequence[Provider]) -> str:
    if not findings:
        return f"None of {len(rows)} providers has a key. Save one: cantle auth login\n"
    width = max(len(finding.provider) for finding in findings)
    lines = [f"{finding.provider:<{width}}  {_sentence(finding, known)}\n" for finding in findings]
    if len(rows) > len(findings):
        lines.append(f"{len(rows) - len(findings)} others have no key\n")
    return "".join(lines)


def _sentence(finding: Finding, known: Runtime) -> str:
    source = finding.source
    if source is None:
        return f"no key; run `cantle auth login {finding.provider}`"
    if source.problem:
        return source.problem
    text = _origin(source, known)
    if not source.usable:
        text += f", but {' and '.join([*source.missing, *source.needed])} is not set"
    if source.expires is not None:
        text += f", {_remaining(source.expires)}"
    if finding.live is not None:
        text += f"; refused: {finding.live}" if finding.live else "; answered"
    return text


def _origin(source: AuthSource, known: Runtime) -> str:
    match source.kind:
        case "stored-key":
            return f"key in {known.store.place}"
        case "login":
            return f"login in {known.store.place}"
        case "models.json":
            return f"apiKey in {known.paths.models}"
        case "headers":
            return f"headers in {known.paths.models}"
        case "environment":
            return f"variable {source.name}"
        case "ambient":
            return source.name
        case "not-needed":
            return "needs no key"
        case "option":
            return "given"


def _is_stored(source: AuthSource) -> bool:
    return source.kind in ("stored-key", "login")


def _remaining(expires: int) -> str:
    seconds = expires / 1000 - time.time()
    if seconds <= 0:
        return "expired; it is renewed at the next request"
    if seconds > 10 * 365 * 86_400:
        return "which does not expire"
    for unit, size in (("days", 86_400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"good for {seconds / size:.0f} {unit}"
    return f"good for {seconds:.0f} seconds"
