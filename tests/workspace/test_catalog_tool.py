"""The script that makes the catalog's files, on a few made-up facts; and the committed files, on the real ones."""

import json
from pathlib import Path
from typing import Any

import pytest

from cantle_ai.catalog import FOLDER, load_catalog
from cantle_ai.model import Provider
from cantle_ai.usage import Price, PriceTier
from tests.support.reference import reference_folder
from tools.catalog.__main__ import dumped, made, main
from tools.catalog.rows import catalog_text

ROW = Provider(
    id="p",
    name="P",
    base_url="https://p.example/v1",
    api="openai-completions",
    endpoints={"anthropic-messages": "https://p.example"},
    headers={"X-Always": "1"},
    compat={"maxTokensField": "max_tokens"},
)


def model(id: str, **fields: Any) -> dict[str, Any]:
    return {
        "id": id,
        "name": id.title(),
        "type": "chat",
        "provider": "p",
        "api": "openai-completions",
        "baseUrl": "https://p.example/v1/",
        "reasoning": False,
        "input": ["text"],
        "cost": {"input": 1, "output": 2.0, "cacheRead": 0.1 + 0.2, "cacheWrite": 0},
        "contextWindow": 1000,
        "maxTokens": 100,
        **fields,
    }


def entries(*models: dict[str, Any], first: str | None = None) -> list[dict[str, Any]]:
    """The file's entries with their defaults, as the loader sees them."""
    text = catalog_text(ROW, {"first": first, "models": list(models)}, source="s", date="2026-01-01")
    raw = json.loads(text)
    return [{**raw["defaults"].get(entry.get("api", ROW.api), {}), **entry} for entry in raw["models"]]


def test_a_model_is_a_line_of_what_its_row_does_not_say() -> None:
    text = catalog_text(ROW, {"models": [model("a")]}, source="s", date="2026-01-01")
    assert text.splitlines() == [
        "{",
        '  "source": "s",',
        '  "date": "2026-01-01",',
        '  "provider": "p",',
        '  "defaults": {},',
        '  "models": [',
        '    {"id": "a", "name": "A", "contextWindow": 1000, "maxTokens": 100, "cost": {"input": 1, "output": 2, "cacheRead": 0.3, "cacheWrite": 0}}',
        "  ]",
        "}",
    ]


def test_reading_a_cache_is_free_only_where_all_reading_is() -> None:
    paid = {"input": 1, "output": 2, "cacheRead": 0, "cacheWrite": 0}
    tier = {"inputTokensAbove": 9, **paid}
    told = entries(model("a", cost={**paid, "tiers": [tier]}), model("b", cost={**paid, "input": 0}))
    rates = {"input": 1, "output": 2, "cacheWrite": 0}
    assert [entry["cost"] for entry in told] == [
        {**rates, "tiers": [{"inputTokensAbove": 9, **rates}]},
        {**paid, "input": 0},
    ]


def test_the_first_to_offer_stands_first_and_the_others_keep_their_order() -> None:
    assert [entry["id"] for entry in entries(model("a"), model("b"), model("c"), first="c")] == [
        "c",
        "a",
        "b",
    ]


def test_addresses_and_apis_of_the_row_are_not_repeated() -> None:
    spoken = model("a", api="anthropic-messages", baseUrl="https://p.example")
    elsewhere = model("b", baseUrl="https://eu.p.example/v1")
    told = [(entry.get("api"), entry.get("baseUrl")) for entry in entries(spoken, elsewhere)]
    assert told == [("anthropic-messages", None), (None, "https://eu.p.example/v1")]
    free = Provider(id="p", name="P", base_url="", api="openai-completions")
    assert "baseUrl" not in catalog_text(free, {"models": [elsewhere]}, source="s", date="2026-01-01")


def test_what_most_models_have_is_said_once_and_taken_back_where_it_is_not_so() -> None:
    limits = {"images": {"maxPerRequest": 7}}
    many = [model(id, reasoning=True, inputLimits=limits, thinkingLevelMap={"off": None}) for id in "abc"]
    text = catalog_text(ROW, {"models": [*many, model("d")]}, source="s", date="2026-01-01")
    assert text.count("maxPerRequest") == 1
    *same, other = entries(*many, model("d"))
    assert all(entry["inputLimits"] == limits and entry["reasoning"] for entry in same)
    assert (other["inputLimits"], other["reasoning"], other["thinkingLevelMap"]) == (None, None, None)


def test_an_unpriced_model_has_no_price_unless_it_says_that_it_is_free() -> None:
    nothing = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}
    unknown, free, odd = entries(
        model("a", cost=nothing), model("b:free", cost=nothing), model("c", cost={**nothing, "input": -1})
    )
    assert ("cost" in unknown, free["cost"], "cost" in odd) == (False, nothing, False)


def test_tiers_are_kept() -> None:
    cost = {"input": 1, "output": 2, "cacheRead": 0.1, "cacheWrite": 0, "tiers": [
        {"inputTokensAbove": 500, "input": 2, "output": 4, "cacheRead": 0.2, "cacheWrite": 0}]}  # fmt: skip
    (told,) = entries(model("a", cost=cost))
    assert told["cost"] == cost


def test_quirks_are_those_that_an_api_reads_and_the_row_does_not_give() -> None:
    said = {
        "maxTokensField": "max_tokens",
        "supportsStrictMode": True,
        "supportsStore": False,
        "supportsFlight": True,
    }
    (told,) = entries(model("a", compat=said))
    assert told["compat"] == {"supportsStrictMode": True}
    (marked,) = entries(model("a", compat={"cacheControlFormat": "anthropic"}))
    assert marked["compat"] == {"cacheControlFormat": "anthropic", "supportsLongCacheRetention": True}
    (spoken,) = entries(model("a", api="openai-responses"))
    assert spoken["compat"] == {"supportsDeveloperRole": True}


def test_headers_of_a_model_alone_are_kept() -> None:
    (told,) = entries(model("a", headers={"X-Always": "1", "X-Mine": "2"}))
    assert told["headers"] == {"X-Mine": "2"}


def test_the_command_writes_checks_and_makes_what_the_loader_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tiers = [{"inputTokensAbove": 9, "input": 3, "output": 4, "cacheRead": 1, "cacheWrite": 0}]
    cost = {"input": 1, "output": 2, "cacheRead": 0.5, "cacheWrite": 0, "tiers": tiers}
    facts = {
        "version": "1.6.0",
        "providers": {
            "groq": {"first": "b", "models": [model("a", cost=cost), model("b")]},
            "nobody": {"first": None, "models": [model("c")]},
        },
    }
    source = tmp_path / "facts.json"
    source.write_text(json.dumps(facts), encoding="utf-8")
    words = ["--facts", str(source), "--into", str(tmp_path)]
    assert main([*words, "--check"]) == 1 and not (tmp_path / "groq.json").exists()
    assert (main(words), main([*words, "--check"]), main(words)) == (0, 0, 0)
    assert capsys.readouterr().out.count("groq.json") == 2
    assert [path.name for path in tmp_path.glob("*.json")].count("nobody.json") == 0
    monkeypatch.setattr("cantle_ai.catalog.FOLDER", tmp_path)
    first, second = load_catalog(
        Provider(id="groq", name="Groq", base_url="https://g", api="openai-completions")
    )
    assert (first.id, second.id) == ("b", "a")
    tier = PriceTier(input_tokens_above=9, input=3, output=4, cache_read=1, cache_write=0)
    assert second.price == Price(input=1, output=2, cache_read=0.5, cache_write=0, tiers=(tier,))


@pytest.mark.reference
def test_the_committed_files_are_what_the_script_makes() -> None:
    different = [
        name
        for name, text in made(dumped(reference_folder())).items()
        if (FOLDER / name).read_text(encoding="utf-8") != text
    ]
    assert different == []
