"""Images from a file to the request, with a model that sees, one that does not, and no Pillow."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from cantle_ai.testing.server.received import Received
from cantle_ai.testing.server.server import StrictServer
from packages.cantle.tests.images.pictures import JPEG, PNG, claiming, drawn, encoded, lying, shown
from tests.support.cli import Cli
from tests.support.extras import needs

SEES = ("--provider", "loop", "--model", "sees")
BLIND = ("--provider", "loop", "--model", "blind")


def configure(cli: Cli, server: StrictServer, **settings: object) -> None:
    """Two models at `server`, one without eyes."""
    rows: list[dict[str, Any]] = [{"id": "sees", "input": ["text", "image"]}, {"id": "blind"}]
    provider = {"baseUrl": server.base_url, "api": "openai-completions", "apiKey": "sk-loop", "models": rows}
    (cli.config / "models.json").write_text(json.dumps({"providers": {"loop": provider}}), "utf-8")
    (cli.config / "settings.json").write_text(json.dumps(settings), "utf-8")


def run(cli: Cli, *words: str) -> str:
    done = cli.run(*words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def said(request: Received) -> list[dict[str, Any]]:
    """The messages of a request, without the system's."""
    messages: Any = request.json["messages"]
    return [message for message in messages if message["role"] not in ("system", "developer")]


def parts(message: dict[str, Any]) -> list[str]:
    """Text as it is, images as their media type."""
    content = message["content"]
    if isinstance(content, str):
        return [content]
    return [
        part["text"] if part["type"] == "text" else part["image_url"]["url"].partition(";")[0][5:]
        for part in content
    ]


def picture(message: dict[str, Any]) -> bytes:
    """The bytes of a message's first image."""
    urls = [part["image_url"]["url"] for part in message["content"] if part["type"] == "image_url"]
    return base64.b64decode(urls[0].partition(",")[2], validate=True)


def reading(name: str) -> dict[str, Any]:
    return {"content": [{"type": "toolCall", "name": "read", "arguments": {"path": name}}]}


def test_images_of_a_command_line_come_in_order_and_are_named(cli: Cli) -> None:
    (cli.cwd / "a.txt").write_bytes(PNG)
    (cli.cwd / "b").write_bytes(JPEG)
    with StrictServer(["ok"]) as server:
        configure(cli, server)
        run(cli, *SEES, "-p", "@a.txt", "@b", "compare")
    server.assert_clean()
    (message,) = said(server.requests[0])
    text, *images = parts(message)
    files = [f'<file name="{cli.cwd / name}"></file>' for name in ("a.txt", "b")]
    assert text == "\n".join([*files, "compare"])
    assert images == ["image/png", "image/jpeg"]


@needs("images")
def test_an_image_of_a_command_line_is_made_to_fit(cli: Cli) -> None:
    (cli.cwd / "a.bmp").write_bytes(encoded(drawn(3000, 1500), "BMP"))
    (cli.cwd / "b.jpg").write_bytes(lying(encoded(drawn(60, 40), "JPEG"), 6))
    with StrictServer(["ok"]) as server:
        configure(cli, server)
        run(cli, *SEES, "-p", "@a.bmp", "@b.jpg", "compare")
    server.assert_clean()
    (message,) = said(server.requests[0])
    _, first, png, second, jpeg = parts(message)
    assert "converted from BMP" in first and "2000x1000 of 3000x1500" in first
    assert "turned upright" in second
    assert (png, jpeg) == ("image/png", "image/jpeg")
    assert shown(picture(message)).size == (2000, 1000)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (PNG[:50], ["@a begins like a PNG image", "damaged"]),
        (b"\0\0\0\x18ftypheic" + bytes(40), ["@a is a HEIF image", "Convert"]),
    ],
)
def test_an_image_that_can_not_be_shown_ends_the_command_in_words(
    cli: Cli, data: bytes, words: list[str]
) -> None:
    (cli.cwd / "a").write_bytes(data)
    with StrictServer([]) as server:
        configure(cli, server)
        done = cli.run(*SEES, "-p", "@a", "look")
    assert done.returncode == 1 and not server.requests
    assert all(word in done.stderr for word in words) and "Traceback" not in done.stderr


@pytest.mark.parity("images.a-model-without-eyes")
def test_c08_a_note_stands_for_an_image_while_a_model_without_eyes_is_asked(cli: Cli) -> None:
    (cli.cwd / "a.png").write_bytes(PNG)
    (cli.cwd / "b.png").write_bytes(PNG)
    with StrictServer(["one", reading("a.png"), "two", "three", "four"], prefix=False) as server:
        configure(cli, server)
        run(cli, *SEES, "-p", "@a.png", "@b.png", "look")
        run(cli, *BLIND, "-c", "-p", "and now?")
        run(cli, *SEES, "-c", "-p", "and again?")
        run(cli, *BLIND, "-c", "-p", "at last?")
    server.assert_clean()
    first, _, blind, sees, last = (said(request) for request in server.requests)
    assert parts(first[0])[1:] == ["image/png", "image/png"]
    assert parts(blind[0])[0] == parts(first[0])[0]
    (note,) = parts(blind[0])[1:]
    assert "left out" in note and "text only" in note
    result = next(message for message in blind if message["role"] == "tool")
    assert "PNG image, 8x6 pixels" in result["content"] and "text only" in result["content"]
    assert sees[0] == first[0]
    assert [parts(message)[1:] for message in sees if message["role"] == "user"][2] == ["image/png"]
    assert blind == last[: len(blind)]
    (file,) = cli.sessions()
    assert file.read_text(encoding="utf-8").count('"type":"image"') == 3
    assert "left out" not in file.read_text(encoding="utf-8")


@pytest.mark.parity("images.blocked")
def test_images_that_are_blocked_are_stored_and_not_sent(cli: Cli) -> None:
    (cli.cwd / "a.png").write_bytes(PNG)
    with StrictServer([reading("a.png"), "one", "two"], prefix=False) as server:
        configure(cli, server, images={"blockImages": True})
        run(cli, *SEES, "-p", "@a.png", "look")
        configure(cli, server)
        run(cli, *SEES, "-c", "-p", "and now?")
    server.assert_clean()
    _, blocked, sent = (said(request) for request in server.requests)
    assert "turned off" in parts(blocked[0])[1] and "turned off" in blocked[2]["content"]
    assert parts(sent[0])[1] == "image/png" and parts(sent[3])[1] == "image/png"


@pytest.mark.fault("J03")
@pytest.mark.parametrize("bad", ["***", base64.b64encode(b"hello, world").decode(), ""])
def test_j03_a_session_that_holds_a_bad_block_already_goes_on(cli: Cli, bad: str) -> None:
    with StrictServer(["one", "two"], prefix=False) as server:
        configure(cli, server)
        run(cli, *SEES, "-p", "look")
        (file,) = cli.sessions()
        lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        for line in lines:
            if line["type"] == "message" and line["message"]["role"] == "user":
                line["message"]["content"].append({"type": "image", "data": bad, "mimeType": "image/png"})
        file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        run(cli, *SEES, "-c", "-p", "and now?")
    server.assert_clean()
    message, *_ = said(server.requests[1])
    assert parts(message)[0] == "look" and "left out" in parts(message)[1]


# --- without Pillow


@pytest.fixture
def bare(cli: Cli, tmp_path: Path) -> Cli:
    """A command line whose Python has no Pillow."""
    folder = tmp_path / "no-pillow" / "PIL"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("raise ImportError('there is no Pillow here')\n", encoding="utf-8")
    cli.variables["PYTHONPATH"] = str(folder.parent)
    return cli


def test_without_pillow_an_image_that_fits_is_shown_as_it_is(bare: Cli) -> None:
    (bare.cwd / "a.png").write_bytes(PNG)
    (bare.cwd / "b.jpg").write_bytes(lying(JPEG, 6))
    with StrictServer([reading("b.jpg"), "ok"]) as server:
        configure(bare, server)
        run(bare, *SEES, "-p", "@a.png", "look")
    server.assert_clean()
    prompt, _, result, images = said(server.requests[1])
    assert picture(prompt) == PNG
    assert picture(images) == lying(JPEG, 6)
    assert "it has to be turned by 90 degrees clockwise" in result["content"]


BMP = b"BM\x46\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\x01\0\0\0\x01\0\0\0\x01\0\x18\0" + bytes(40)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (BMP, ["is a BMP image, which has to be converted", "pip install 'cantle[images]'"]),
        (claiming(9000, 10), ["9000x10 pixels", "pip install 'cantle[images]'"]),
        (PNG[:-12] + bytes(4_000_000), ["begins like a PNG image, but is damaged"]),
    ],
)
def test_without_pillow_what_does_not_fit_is_told_with_what_to_install(
    bare: Cli, data: bytes, words: list[str]
) -> None:
    (bare.cwd / "a").write_bytes(data)
    with StrictServer([reading("a"), "ok"]) as server:
        configure(bare, server)
        done = bare.run(*SEES, "-p", "@a", "look")
        assert done.returncode == 1 and not server.requests
        assert all(word in done.stderr for word in words), done.stderr
        run(bare, *SEES, "-p", "look")
    server.assert_clean()
    result = said(server.requests[1])[-1]
    assert result["role"] == "tool" and all(word in result["content"] for word in words), result
