"""Where a prompt comes from: words, files, standard input, and what the user adds to the system prompt."""

from __future__ import annotations

import struct
import zlib

from tests.interop.case import Case


def png(width: int, height: int, *, alpha: bool = False) -> bytes:
    """A picture of one colour."""
    pixel = b"\x20\x80\xc0\xff" if alpha else b"\x20\x80\xc0"
    parts = {
        b"IHDR": struct.pack(">IIBBBBB", width, height, 8, 6 if alpha else 2, 0, 0, 0),
        b"IDAT": zlib.compress((b"\0" + pixel * width) * height),
        b"IEND": b"",
    }
    chunks = (
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in parts.items()
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


PNG = png(8, 8)
_JSON = ("--mode", "json")

CASES = [
    Case(name="several-prompts", answers=["One.", "Two.", "Three."], words=(*_JSON, "1", "2", "3")),
    Case(name="several-prompts-print", answers=["One.", "Two."], words=("-p", "1", "2")),
    Case(
        name="text-file", files={"notes.md": "# Notes\n\nmilk\n"}, words=(*_JSON, "@notes.md", "What is it?")
    ),
    Case(name="text-file-alone", files={"notes.md": "milk"}, words=(*_JSON, "@notes.md")),
    Case(
        name="two-files",
        files={"a.md": "a\n", "b/c d.md": "b\n"},
        words=(*_JSON, "@a.md", "Look.", "@b/c d.md"),
    ),
    Case(name="empty-file", files={"a.md": ""}, words=(*_JSON, "@a.md", "What is it?")),
    Case(name="missing-file", words=("-p", "@none.md", "What is it?"), answers=[]),
    Case(
        name="image-file",
        files={"dot.png": PNG},
        words=(*_JSON, "@dot.png", "What is it?"),
        model={"input": ["text", "image"]},
    ),
    Case(name="image-file-without-eyes", files={"dot.png": PNG}, words=(*_JSON, "@dot.png", "What is it?")),
    Case(name="stdin", stdin="a diff\n", words=("-p", "Review it.")),
    Case(name="stdin-alone", stdin="Hello there.\n", words=("-p",)),
    Case(
        name="stdin-json", stdin="a diff\n", words=(*_JSON, "Review it.", "Again."), answers=["One.", "Two."]
    ),
    Case(
        name="stdin-and-file",
        stdin="a diff\n",
        files={"n.md": "notes\n"},
        words=(*_JSON, "@n.md", "Review it."),
    ),
    Case(name="dash-prompt", words=(*_JSON, "--", "- one\n- two")),
    Case(
        name="append-prompt",
        words=(*_JSON, "--append-system-prompt", "MARK-1", "--append-system-prompt", "MARK-2", "Hi"),
        marks=("MARK-1", "MARK-2"),
    ),
    Case(
        name="append-prompt-file",
        files={"p.md": "MARK-3\n"},
        words=(*_JSON, "--append-system-prompt", "p.md", "Hi"),
        marks=("MARK-3",),
    ),
    Case(name="system-prompt", words=(*_JSON, "--system-prompt", "MARK-4", "Hi"), marks=("MARK-4",)),
    Case(
        name="context-files",
        files={"AGENTS.md": "MARK-5\n"},
        words=(*_JSON, "Hi"),
        marks=("MARK-5", "AGENTS.md"),
    ),
    Case(
        name="context-file-of-another-name",
        files={"CLAUDE.md": "MARK-6\n", "sub/AGENTS.md": "MARK-7\n"},
        words=(*_JSON, "Hi"),
        marks=("MARK-6", "MARK-7"),
    ),
    Case(
        name="no-context-files",
        files={"AGENTS.md": "MARK-8\n", "CLAUDE.md": "MARK-9\n"},
        words=(*_JSON, "-nc", "Hi"),
        marks=("MARK-8", "MARK-9"),
    ),
]
