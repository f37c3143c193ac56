"""The header of a GGUF file is read without loading it, and what is no such file is refused with a sentence."""

import os
import struct
from pathlib import Path
from random import Random

import pytest

from cantle_ai.errors import ConfigurationError
from cantle_ai.local.gguf import read_header
from cantle_ai.local.weights import find_weights
from packages.ai.tests.local.gguf_files import FIELDS, gguf
from tests.support.extras import needs
from tests.support.samples import samples


def written(folder: Path, data: bytes) -> Path:
    path = folder / "m.gguf"
    path.write_bytes(data)
    return path


def refused(path: Path) -> str:
    with pytest.raises(ConfigurationError) as caught:
        read_header(path)
    return str(caught.value)


def test_a_header_says_what_the_model_is(tmp_path: Path) -> None:
    header = read_header(written(tmp_path, gguf()))
    assert (header.architecture, header.name, header.context_length) == ("llama", "Tiny", 4096)
    assert header.chat_template == "{{ messages }}"
    # Two layers, two heads of 16 numbers, keys and values, two bytes each.
    assert header.cache_bytes_per_token == 2 * 2 * (16 + 16) * 2


def test_heads_may_differ_from_layer_to_layer(tmp_path: Path) -> None:
    fields = {**FIELDS, "llama.attention.head_count_kv": [1, 3], "llama.attention.key_length": 8}
    assert read_header(written(tmp_path, gguf(fields))).cache_bytes_per_token == 2 * 3 * (8 + 16) * 2


def test_what_a_file_does_not_say_is_left_open(tmp_path: Path) -> None:
    header = read_header(written(tmp_path, gguf({"general.architecture": "new"}, tensors=0)))
    assert (header.context_length, header.cache_bytes_per_token, header.chat_template) == (0, 0, "")


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "is not a GGUF file"),
        (b"hello, this is a text", "is not a GGUF file"),
        (b"GGUF", "cut off or damaged"),
        (gguf(version=1), "of version 1"),
        (gguf(version=3 << 24), "cut off or damaged"),
        (gguf()[:-40], "cut off or damaged"),
        (gguf({**FIELDS, "general.type": "adapter"}), "no model that can talk"),
        (gguf({"general.architecture": "clip"}), "no model that can talk"),
        (gguf({"general.architecture": "bert", "bert.attention.causal": False}), "no model that can talk"),
        (gguf({"general.name": "x"}), "no model that can talk"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_no_model_is_named(tmp_path: Path, data: bytes, says: str) -> None:
    path = written(tmp_path, data)
    text = refused(path)
    assert says in text and str(path) in text


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    assert "cannot be read: " in refused(tmp_path / "missing.gguf")
    assert "is not a file" in refused(tmp_path)
    refused(tmp_path / "a\0b.gguf")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "m.gguf")
    assert "is not a file" in refused(tmp_path / "m.gguf")


def test_a_file_cut_anywhere_in_its_header_is_refused(tmp_path: Path) -> None:
    whole = gguf({**FIELDS, "tokenizer.ggml.scores": [0.5]})
    for end in range(len(whole) - 33):
        refused(written(tmp_path, whole[:end]))


@pytest.mark.parametrize("position", [0, 1, 2], ids=["first", "middle", "last"])
def test_a_text_that_claims_more_than_any_file_holds_is_refused(tmp_path: Path, position: int) -> None:
    whole = gguf({**FIELDS, "tokenizer.ggml.tokens": ["one", "two", "six"]})
    start = whole.index(struct.pack("<Q", 3) + b"one") + 11 * position
    refused(written(tmp_path, whole[:start] + b"\xff" * 8 + whole[start + 8 :]))


def test_damage_is_an_error_and_never_a_crash(tmp_path: Path) -> None:
    whole = gguf({**FIELDS, "tokenizer.ggml.scores": [0.5]})
    random = Random(7)
    read = 0
    for _ in range(samples(5000, 500)):
        data = bytearray(whole)
        for _ in range(random.randrange(1, 6)):
            data[random.randrange(4, len(data))] = random.randrange(256)
        try:
            read_header(written(tmp_path, bytes(data)))
            read += 1
        except ConfigurationError:
            pass
    assert read  # some damage is harmless, so the loop did reach the end of the reader


@needs("local")
def test_the_header_of_the_packaged_weights() -> None:
    path = find_weights()
    assert path is not None
    header = read_header(path)
    assert (header.architecture, header.context_length, header.cache_bytes_per_token) == (
        "llama",
        8192,
        23_040,
    )
    assert "<|im_start|>" in header.chat_template
