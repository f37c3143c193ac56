"""Which tools and which model a session starts with."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from cantle.errors import ModelSelectionError, ToolSelectionError
from cantle.hub.model_selection import choose_level, choose_model, find_model, require_key
from cantle.hub.tool_selection import select_tools
from cantle.paths import ConfigPaths
from cantle.settings import Settings
from cantle_ai.auth.resolution import AuthSource
from cantle_ai.codec import JsonObject
from cantle_ai.model import Model, Provider

ALL = ("read", "bash", "edit", "write", "grep", "find")


def names(**options: object) -> list[str]:
    return select_tools(ALL, **options)[0]  # type: ignore[arg-type]


@pytest.mark.parity("tools.selection")
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, ["read", "bash", "edit", "write"]),
        ({"requested": ["bash", "read"]}, ["bash", "read"]),
        ({"requested": ["r*", "bash", "read"]}, ["read", "bash"]),
        ({"requested": ["*"]}, list(ALL)),
        ({"requested": []}, []),
        ({"requested": ["+grep", "-write"]}, ["read", "bash", "edit", "grep"]),
        ({"requested": ["-read", "+read"]}, ["bash", "edit", "write", "read"]),
        ({"excluded": ["r*", "bash"]}, ["edit", "write"]),
        ({"requested": ["read", "bash"], "excluded": ["*"]}, []),
        ({"defaults": [["grep"]]}, ["grep"]),
        ({"defaults": [[]]}, []),
        ({"defaults": [["+grep"], ["-bash"]]}, ["read", "edit", "write", "grep"]),
        ({"defaults": [["+grep"], ["find"]]}, ["find"]),
        ({"defaults": [["-read", "grep", "+find", "read"]]}, ["grep", "find"]),
        ({"defaults": [["grep"]], "requested": ["+find"]}, ["grep", "find"]),
        ({"defaults": [["grep"]], "requested": ["read"]}, ["read"]),
    ],
)
def test_tools_are_selected_as_the_manual_says(options: dict[str, object], expected: list[str]) -> None:
    assert names(**options) == expected


def test_an_unknown_tool_is_an_error_where_it_was_asked_for_and_a_warning_in_settings() -> None:
    for requested in (["nope"], ["read", "z*"], ["+nope"], ["-nope"]):
        with pytest.raises(ToolSelectionError, match=r"There is no tool .* There are: read, bash"):
            names(requested=requested)
    selected, warnings = select_tools(ALL, defaults=[["+codemode", "-gone", "-read"]])
    assert selected == ["bash", "edit", "write"]
    assert warnings == ["defaultTools in the settings names tools that do not exist: codemode."]


def test_a_mistyped_tool_to_leave_out_is_a_warning() -> None:
    selected, warnings = select_tools(ALL, excluded=["bahs", "write", "mcp_*", "[eg]*t"])
    assert selected == ["read", "bash"]
    (warning,) = warnings
    assert warning.startswith(
        "What is to be left out names tools that do not exist: bahs. There are: read, bash"
    )


def test_names_and_changes_cannot_be_mixed() -> None:
    with pytest.raises(ToolSelectionError, match=r"not both\. Write \+grep or read"):
        names(requested=["read", "+grep"])


# --- models ----------------------------------------------------------------------------------


def model(provider: str, id: str, **more: object) -> Model:
    row: dict[str, object] = {"api": "x", "base_url": "", **more}
    return Model(id=id, provider=provider, **row)  # type: ignore[arg-type]


PATHS = ConfigPaths(Path("/config"))


class Shelf:
    """Models on a shelf: a stand-in for the runtime, which is asked for nothing else here."""

    def __init__(self, *models: Model, keys: Sequence[str]) -> None:
        self._models = models
        self._keys = keys
        self.unset: dict[str, AuthSource] = {}
        ids = dict.fromkeys(model.provider for model in models)
        self.providers = [
            Provider(id=id, name=id, base_url="", api="x", key_variables=(f"{id.upper()}_API_KEY",))
            for id in ids
        ]

    def list(self, provider: str | None = None) -> Sequence[Model]:
        return [model for model in self._models if provider in (None, model.provider)]

    def find(self, provider_id: str, model_id: str) -> Model | None:
        return next((m for m in self._models if (m.provider, m.id) == (provider_id, model_id)), None)

    def configured(self, provider_id: str) -> bool:
        return provider_id in self._keys

    def auth_source(self, provider_id: str) -> AuthSource | None:
        return self.unset.get(provider_id)

    def api_problem(self, model: Model) -> str | None:
        return None if model.api == "x" else f"{model.key} speaks {model.api}"


SHELF = Shelf(
    model("alpha", "big-4", name="Big Four", reasoning=True),
    model("alpha", "big-4-20250101", name="Big Four, January"),
    model("alpha", "big-10", name="Big Ten"),
    model("alpha", "coder:7b", name="Coder"),
    model("beta", "big-4", name="Big Four by Beta"),
    model("beta", "vendor/small", name="Small"),
    model("gamma", "big-4", name="Big Four by Gamma"),
    model("delta", "alpha/odd", name="Odd"),
    keys=("beta", "delta"),
)


@pytest.mark.parametrize(
    ("pattern", "provider", "key", "level"),
    [
        ("alpha/big-4", None, "alpha/big-4", None),
        ("ALPHA/Big-4", None, "alpha/big-4", None),
        ("alpha/big-4:high", None, "alpha/big-4", "high"),
        ("big-4", "alpha", "alpha/big-4", None),
        ("big-4", None, "beta/big-4", None),  # the provider with a key
        ("alpha/coder:7b", None, "alpha/coder:7b", None),
        ("coder:7b:low", None, "alpha/coder:7b", "low"),
        ("coder", None, "alpha/coder:7b", None),
        ("vendor/small", None, "beta/vendor/small", None),
        ("vendor/small:off", "beta", "beta/vendor/small", "off"),
        ("alpha/odd", None, "delta/alpha/odd", None),  # an id may begin like a provider
        ("alpha/big", None, "alpha/big-10", None),  # the latest of several, undated before dated
        ("january", "alpha", "alpha/big-4-20250101", None),
        ("alpha/ten", None, "alpha/big-10", None),
    ],
)
def test_a_pattern_finds_its_model(pattern: str, provider: str | None, key: str, level: str | None) -> None:
    choice = find_model(SHELF, pattern, provider=provider)
    assert (choice.model.key, choice.level) == (key, level)


@pytest.mark.parametrize(
    ("pattern", "provider", "problem"),
    [
        ("nope", None, 'No model matches "nope"'),
        ("big-5", None, 'No model matches "big-5".* Close to it: big-4'),
        ("alpha/nope", None, 'The provider alpha has no model "nope"'),
        ("nope", "alpha", 'The provider alpha has no model "nope"'),
        ("nope/big-4", None, 'No model matches "nope/big-4"'),
        ("big-4", "nope", r'No provider "nope" has models \(those that have: alpha, beta'),
        ("big-4:huge", None, '"huge" is not a thinking level'),
        ("", None, "No model matches"),
    ],
)
def test_a_pattern_without_a_model_is_a_clear_error(pattern: str, provider: str | None, problem: str) -> None:
    with pytest.raises(ModelSelectionError, match=problem):
        find_model(SHELF, pattern, provider=provider)


def test_several_providers_without_a_key_are_told_apart_by_the_user() -> None:
    shelf = Shelf(model("a", "m"), model("b", "m"), keys=())
    with pytest.raises(
        ModelSelectionError, match=r'"m" is a model of several providers: a/m, b/m\. Name one'
    ):
        find_model(shelf, "m")
    assert find_model(shelf, "m", provider="b").model.key == "b/m"


def test_a_gateway_with_a_key_is_meant_by_another_providers_name_unless_a_key_is_given_for_that() -> None:
    shelf = Shelf(model("maker", "m"), model("gate", "maker/m"), keys=("gate",))
    assert find_model(shelf, "maker/m").model.key == "gate/maker/m"
    assert find_model(shelf, "maker/m:high").model.key == "gate/maker/m"
    assert find_model(shelf, "maker/m", given_key=True).model.key == "maker/m"
    assert find_model(shelf, "m", provider="maker").model.key == "maker/m"
    chosen = choose_model(shelf, Settings({}), paths=PATHS, explicit="maker/m", given_key=True)
    assert chosen.model.key == "maker/m"


def test_the_model_is_explicit_then_the_sessions_then_the_settings_then_the_first_with_a_key() -> None:
    settings = Settings({"defaultProvider": "beta", "defaultModel": "vendor/small"})
    stored = ("beta", "big-4")
    assert (
        choose_model(SHELF, settings, paths=PATHS, explicit="alpha/big-10", from_session=stored).model.key
        == "alpha/big-10"
    )
    assert choose_model(SHELF, settings, paths=PATHS, from_session=stored).model.key == "beta/big-4"
    assert choose_model(SHELF, settings, paths=PATHS).model.key == "beta/vendor/small"
    assert choose_model(SHELF, Settings(), paths=PATHS).model.key == "beta/big-4"
    assert choose_model(SHELF, settings, paths=PATHS, provider="gamma").model.key == "gamma/big-4"
    own = model("mine", "x")
    assert choose_model(SHELF, settings, paths=PATHS, explicit=own).model is own


@pytest.mark.parametrize(
    ("raw", "key"),
    [
        ({"defaultModel": "vendor/small"}, "beta/vendor/small"),
        ({"defaultProvider": "delta"}, "delta/alpha/odd"),
    ],
)
def test_half_a_default_is_enough(raw: JsonObject, key: str) -> None:
    assert choose_model(SHELF, Settings(raw), paths=PATHS).model.key == key


def test_stored_models_that_are_gone_or_locked_are_named_in_warnings() -> None:
    settings = Settings({"defaultProvider": "alpha", "defaultModel": "big-4"})
    choice = choose_model(SHELF, settings, paths=PATHS, from_session=("alpha", "gone"))
    assert choice.model.key == "beta/big-4"
    assert choice.warnings == (
        "The model alpha/gone of the session does not exist any more; using beta/big-4.",
        "There is no key for the model alpha/big-4 of the settings; using beta/big-4.",
    )


def test_no_key_anywhere_names_the_ways() -> None:
    shelf = Shelf(model("a", "m"), keys=())
    with pytest.raises(ModelSelectionError) as caught:
        choose_model(shelf, Settings(), paths=PATHS)
    for way in ("Set A_API_KEY", "`cantle auth login`", str(PATHS.models), "--api-key"):
        assert way in str(caught.value)
    with pytest.raises(ModelSelectionError, match=r"the model a/m of the session, .* no other provider"):
        choose_model(shelf, Settings(), paths=PATHS, from_session=("a", "m"))


def test_a_model_without_a_key_names_its_providers_variable() -> None:
    require_key(SHELF, model("beta", "any"), PATHS)
    with pytest.raises(
        ModelSelectionError,
        match=r"no key for the provider alpha\. Set ALPHA_API_KEY, run `cantle auth login alpha`, give --api-key",
    ):
        require_key(SHELF, model("alpha", "any"), PATHS)
    with pytest.raises(
        ModelSelectionError,
        match=r"no key for the provider other\. Run `cantle auth login other`, give --api-key",
    ):
        require_key(SHELF, model("other", "any"), PATHS)


def test_the_variable_that_is_named_is_the_one_for_a_plain_key() -> None:
    from cantle_ai.models import Models

    models = Models(environ={})
    claude = next(iter(models.list("anthropic")))
    with pytest.raises(ModelSelectionError, match=r"Set ANTHROPIC_API_KEY[, ]"):
        require_key(models, claude, PATHS)


def test_a_variable_that_is_named_as_a_key_and_not_set_is_named() -> None:
    shelf = Shelf(model("a", "m"), model("b", "m"), keys=())
    shelf.unset = {"b": AuthSource(kind="models.json", missing=("NOPE",))}
    unset = f"The variable NOPE, which {PATHS.models} names as the key of the provider b, is not set"
    with pytest.raises(ModelSelectionError) as caught:
        require_key(shelf, model("b", "m"), PATHS)
    assert str(caught.value) == f"{unset}. Set that environment variable, or give --api-key."
    with pytest.raises(ModelSelectionError) as caught:
        choose_model(shelf, Settings(), paths=PATHS)
    assert str(caught.value).startswith(
        f"{unset}, and no other provider has a key. Set NOPE, run `cantle auth login`,"
    )
    assert "A_API_KEY" not in str(caught.value)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (
            AuthSource(kind="stored-key", missing=("NOPE",)),
            "The variable NOPE, which the saved key of the provider b refers to, is not set.",
        ),
        (
            AuthSource(kind="environment", name="B_KEY", needed=("B_ACCOUNT",)),
            "The variable B_ACCOUNT, which the provider b needs, is not set.",
        ),
    ],
)
def test_a_variable_that_a_saved_key_or_an_address_needs_is_named(source: AuthSource, text: str) -> None:
    shelf = Shelf(model("b", "m"), keys=())
    shelf.unset = {"b": source}
    with pytest.raises(ModelSelectionError) as caught:
        require_key(shelf, model("b", "m"), PATHS)
    assert str(caught.value).startswith(f"{text} Set that environment variable")


def test_a_model_whose_api_is_unknown_is_not_chosen_by_itself() -> None:
    shelf = Shelf(model("a", "odd", api="smoke"), model("a", "plain"), keys=("a",))
    assert choose_model(shelf, Settings(), paths=PATHS).model.key == "a/plain"


def test_an_unlisted_model_is_told_where_the_listed_ones_are() -> None:
    with pytest.raises(ModelSelectionError) as caught:
        find_model(SHELF, "alpha/big-5")
    assert str(caught.value) == (
        'The provider alpha has no model "big-5". Close to it: big-4, big-10. '
        "List the models with --list-models, or add it to models.json."
    )
    with pytest.raises(ModelSelectionError) as caught:
        find_model(Shelf(model("a", "m"), model("b", "m"), keys=()), "m")
    assert str(caught.value) == '"m" is a model of several providers: a/m, b/m. Name one of these.'


def test_b12_the_level_is_explicit_then_the_sessions_then_the_settings_and_clamped() -> None:
    thinker = SHELF.list("alpha")[0]
    settings = Settings({"defaultThinkingLevel": "low", "modelThinkingLevels": {"alpha/big-4": "minimal"}})
    assert choose_level(thinker, Settings()) == "medium"
    assert choose_level(thinker, settings) == "minimal"
    assert choose_level(thinker, settings, from_session="low") == "low"
    assert choose_level(thinker, settings, explicit="high", from_session="low") == "high"
    assert choose_level(thinker, settings, explicit="max") == "high"
    assert choose_level(SHELF.list("beta")[0], settings, explicit="high") == "off"
