"""The reader of the pages itself."""

from pathlib import Path

import pytest

from tests.docs.blocks import Command, blocks, commands, matches

PAGE = """\
# Title

```json title="a.json"
{}
```

<!-- not run: needs a key -->
```sh
cantle
```

  ```python
  if True:
      pass
  ```
"""


def test_blocks_carry_language_title_reason_and_text(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE, encoding="utf-8")
    first, second, third = blocks(page)
    assert (first.language, first.title, first.text, first.line) == ("json", "a.json", "{}\n", 4)
    assert (second.language, second.not_run) == ("sh", "needs a key")
    assert (third.language, third.text) == ("python", "if True:\n    pass\n")


def test_a_console_block_is_split_at_its_prompts() -> None:
    assert commands("$ one \\\n  two\nout\n$ three\n") == [
        Command("one \\\n  two", "out\n"),
        Command("three", ""),
    ]


@pytest.mark.parametrize(
    ("expected", "printed", "fits"),
    [
        ("a\nb\n", "a\nb\n", True),
        ("a\n", "a\nb\n", False),
        ("a\n...\nd\n", "a\nb\nc\nd\n", True),
        ("a\n...\nd\n", "a\nd\n", True),
        ("...\n", "", True),
        ("took ... s\n", "took 1.5 s\n", True),
        ("took ... s\n", "took 1.5 m\n", False),
        ("a.b\n", "axb\n", False),
        ("", "", True),
        ("", "noise\n", False),
    ],
)
def test_dots_stand_for_anything_and_nothing_else_does(expected: str, printed: str, fits: bool) -> None:
    assert matches(expected, printed) is fits
