"""The table of providers in their page, made from their rows: `python -m tests.docs.providers_page` renews it."""

import re
from collections.abc import Iterator
from pathlib import Path

from cantle_ai.catalog import load_catalog
from cantle_ai.model import Provider
from cantle_ai.providers import BUILTIN_PROVIDERS, LOCAL_API
from tests.support.paths import ROOT

PAGE = ROOT / "docs/guide/providers/README.md"
BEGIN = "<!-- made from the rows of providers, by python -m tests.docs.providers_page -->"
END = "<!-- end of what is made from the rows -->"
_PART = re.compile(f"{re.escape(BEGIN)}\n.*?{re.escape(END)}", re.DOTALL)

_PAGES = {
    "openai-completions": "compatible.md",
    "openai-responses": "openai.md",
    "openai-codex-responses": "openai.md",
    "azure-openai-responses": "azure.md",
    "anthropic-messages": "anthropic.md",
    "google-generative-ai": "google.md",
    "google-vertex": "google.md",
    "mistral-conversations": "mistral.md",
    "bedrock-converse-stream": "bedrock.md",
}
_GATEWAYS = {
    "openrouter",
    "vercel-ai-gateway",
    "cloudflare-ai-gateway",
    "cloudflare-workers-ai",
    "opencode",
    "opencode-go",
    "github-copilot",
}


def table() -> str:
    """A row for each provider that a request goes out to, in the order in which one is chosen."""
    rows = "".join(f"| {' | '.join(_cells(row))} |\n" for row in _listed())
    return f"| provider | | key | sign in | models | speaks |\n|---|---|---|---|---|---|\n{rows}"


def _listed() -> Iterator[Provider]:
    return (row for row in BUILTIN_PROVIDERS if row.api != LOCAL_API and row.server is None)


def _cells(row: Provider) -> tuple[str, ...]:
    models = load_catalog(row)
    apis = dict.fromkeys([row.api, *(model.api for model in models)])
    page = "gateways.md" if row.id in _GATEWAYS else _PAGES[row.api]
    return (
        f"[`{row.id}`]({page})",
        row.name,
        ", ".join(f"`{name}`" for name in row.key_variables),
        "yes" if row.login else "",
        str(len(models)),
        ", ".join(f"`{api}`" for api in apis),
    )


def renewed(text: str) -> str:
    """A page's text with the part between the marks made anew."""
    return _PART.sub(lambda _: f"{BEGIN}\n\n{table()}\n{END}", text)


def main(page: Path = PAGE) -> None:
    page.write_text(renewed(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
