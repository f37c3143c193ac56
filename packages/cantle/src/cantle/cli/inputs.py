"""What the command line asks for beside options: prompts, `@file`s and piped stdin, joined in that order of use."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from cantle.errors import UserError
from cantle.paths import is_file
from cantle_ai.content import TextContent, UserContent
from cantle_ai.system_errors import reason_of

__all__ = ["collect_prompts", "piped_stdin", "text_or_file"]


def piped_stdin() -> str | None:
    """All of stdin when it is not a terminal; None when it is one, is closed, or holds nothing but white space.

    Raises UserError when it is no text.
    """
    if sys.stdin is None or sys.stdin.closed or sys.stdin.isatty():
        return None
    try:
        data = sys.stdin.buffer.read()
    except OSError:
        return None
    text = _decoded(data)
    return text if text.strip() else None


def collect_prompts(
    prompts: Sequence[str], files: Sequence[str], stdin: str | None, cwd: Path
) -> list[str | Sequence[UserContent]]:
    """The prompts to run, as text, or as blocks where images came with it.

    Those of nothing but white space are none. Stdin, then files, come before the first one's own text, and make
    one without any.

    Raises UserError for a file that cannot be read or sent.
    """
    said = [_without_surrogates(prompt) for prompt in prompts if prompt.strip()]
    images: list[UserContent] = []
    texts = [stdin] if stdin else []
    for name in files:
        _attach(name, cwd, texts, images)
    text = "\n".join([*texts, *said[:1]])
    if images:
        return [[TextContent(text), *images], *said[1:]]
    return [text, *said[1:]] if text else [*said[1:]]


def text_or_file(value: str) -> str:
    """The text itself, or what is in the file of that name.

    Raises UserError when there is such a file and it cannot be read.
    """
    if not is_file(Path(value)):
        return _without_surrogates(value)
    try:
        return Path(value).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise UserError(
            f"The file {value} cannot be read: {reason_of(error)}.", "Check its permissions."
        ) from None


def _decoded(data: bytes) -> str:
    if b"\0" not in data:
        try:
            return data.decode("utf-8-sig")
        except UnicodeDecodeError:
            pass
    from cantle.cli.attachments import text_of

    text = text_of(data)
    if text is None:
        raise UserError(
            "What is piped in is binary data, which a prompt cannot hold.",
            "Save it as a file, and name that in the prompt.",
        )
    return text


def _attach(name: str, cwd: Path, texts: list[str], images: list[UserContent]) -> None:
    from cantle.cli.attachments import read_attachment

    path, content = read_attachment(name, cwd)
    if isinstance(content, str):
        texts.append(f'<file name="{path}">\n{content}\n</file>')
    else:
        texts.append(f'<file name="{path}"></file>')
        images.append(content)


def _without_surrogates(text: str) -> str:
    """Arguments that are not UTF-8 arrive with lone surrogates, which no request may hold."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
