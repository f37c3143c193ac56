"""The Markdown of a branch: what it says, and that nothing in it leaves its place."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from cantle.export.contained import contained, escaped, fenced, quoted
from cantle.export.markdown import export_markdown
from cantle_session.errors import SessionFileError
from cantle_session.session import Session
from packages.cantle.tests.export.attacks import ATTACKS, attacked
from packages.cantle.tests.export.sample_sessions import Story, call, picture, tidepool, write_session

READER = MarkdownIt("commonmark", {"html": True}).enable("table")
LINES = st.lists(
    st.sampled_from(["```", "````", "~~~", "> ```", "- ```", "    code", "# head", "<div>", "<!--", "<script>", "</script>",
                     "text `<b>` <i>", "[a]: /b", "| a |", "|---|", "***", "", "  ```", "`", "``", "<?php", "<!X", "<a", "\t<p>", "1. ~~~"])
    | st.text(max_size=20),
    max_size=8,
).map("\n".join)  # fmt: skip


def markdown_of(story: Story, folder, **options) -> str:
    with Session.open(write_session(folder / "session.jsonl", story.entries)) as session:
        return export_markdown(session, folder / "session.md", **options).read_text("utf-8")


@given(LINES | st.sampled_from(ATTACKS))
@example("`\ntext `<b>` <i>")
@example("| ` | <b> ` |\n|---|---|")
def test_contained_text_opens_nothing(source):
    page = READER.parse(f"{contained(source)}\n\nAFTER\n")
    assert [token.type for token in page if token.type == "html_block"] == []
    assert not any(child.type == "html_inline" for token in page for child in token.children or [])
    last = [token for token in page if token.type == "inline"][-1]
    assert last.content == "AFTER" and page[-1].type == "paragraph_close" and page[-1].level == 0


@given(LINES | st.sampled_from(ATTACKS))
def test_quoted_text_stays_in_its_quotation(source):
    page = READER.parse(f"{quoted(contained(source))}\n\nAFTER\n")
    assert page[-2].content == "AFTER" and page[-3].level == 0


@given(st.text(max_size=80) | st.sampled_from(ATTACKS))
def test_a_block_of_code_is_one_block(source):
    page = READER.parse(f"{fenced(source)}\n\nAFTER\n")
    assert [token.type for token in page] == ["fence", "paragraph_open", "inline", "paragraph_close"]


@given(st.text(alphabet="ab \\`*_[]()<>&~|#!", max_size=40))
def test_escaped_words_are_words(words):
    (inline,) = [token for token in READER.parse(f"x{escaped(words)}x") if token.type == "inline"]
    assert {child.type for child in inline.children or []} <= {"text", "text_special", "softbreak"}
    assert "".join(child.content for child in inline.children or []) == f"x{words}x"


def test_code_keeps_its_signs():
    source = "Use `<b>` in:\n\n```html\n<p>&amp;</p>\n```\n\n    <pre>\n\n<p> is not."
    assert contained(source) == "Use `<b>` in:\n\n```html\n<p>&amp;</p>\n```\n\n    <pre>\n\n&lt;p> is not."


def test_headings_go_down_and_open_code_is_closed():
    assert contained("# a\n\n##### b\n\n```\nc") == "### a\n\n###### b\n\n```\nc\n```"
    assert contained("a `b\nc`\n===\nd\n\ne\n---\nf") == "### a `b c`\n\n\nd\n\n#### e\n\nf"


def test_the_whole_branch_is_there(tmp_path):
    page = markdown_of(tidepool(), tmp_path)
    assert page.startswith("# The tides are half a day off\n\n- Folder: /home/ann/tidepool\n")
    assert "## You · 2026-03-01 10:21\n\n> The heights that `tidepool` gives for Brest are wrong" in page
    assert "<details><summary>Thought</summary>\n\nHigh water at the wrong time" in page
    assert "<details><summary>edit src/tidepool/harmonics.py</summary>\n\n```diff\n 13 def height" in page
    assert (
        "<details><summary>bash pytest -q tests/test_units.py — exit 1</summary>\n\n```bash\npytest -q"
        in page
    )
    assert "| M2 | 28.984°/h | 28.984 turns/h | ×360 |" in page
    assert "<details><summary>Summary of another branch</summary>\n\n#### What was tried" in page
    assert "*An image (image/png), which an export to HTML shows.*" in page
    assert "**The request failed: overloaded\\_error: the service is busy**" in page
    assert "*Label: the fix*" in page
    assert "Try the second one" not in page and "currents" not in page, "another branch"
    assert "\x1b" not in page


def test_another_branch(tmp_path):
    story = tidepool()
    tried = next(entry for entry in story.entries if "That breaks every table" in str(entry.to_json()))
    page = markdown_of(story, tmp_path, leaf=tried.id)
    assert "Try the second one." in page and "commit message" not in page
    with pytest.raises(KeyError):
        markdown_of(story, tmp_path, leaf="nobody", overwrite=True)


def test_hostile_text_stays_where_it_is(tmp_path):
    page = markdown_of(attacked(), tmp_path)
    tokens = READER.parse(page)
    blocks = [token.content for token in tokens if token.type == "html_block"]
    assert {
        re.sub(r"<summary>[^<>\n]*</summary>", "<summary></summary>", block).strip() for block in blocks
    } == {
        "<details><summary></summary>",
        "</details>",
    }
    assert sum("<details>" in block for block in blocks) == sum("</details>" in block for block in blocks)
    assert not any(child.type == "html_inline" for token in tokens for child in token.children or [])


def test_what_is_there_is_left_alone(tmp_path):
    (tmp_path / "session.md").write_text("mine")
    with pytest.raises(SessionFileError, match="already there"):
        markdown_of(tidepool(), tmp_path)
    assert (tmp_path / "session.md").read_text() == "mine"


def test_parts_of_an_answer_that_are_not_text_are_shown(tmp_path):
    story = Story()
    story.user("draw")
    story.answer(
        {"type": "image", "data": picture(4, 4), "mimeType": "image/png"}, {"type": "hologram", "depth": 3}
    )
    story.add("usage", kind="compaction", provider="p", model="m", usage={"input": 5}, note="It was refused")
    story.add("custom_message", customType="plan", content="for the model alone", display=False)
    page = markdown_of(story, tmp_path)
    note = "A note of plan (extension) that is not shown in the conversation"
    assert f"<details><summary>{note}</summary>\n\nfor the model alone" in page
    assert "*An image (image/png), which an export to HTML shows.*" in page
    assert "A part of a kind that is not known here" in page and '"hologram"' in page
    assert "*compaction: m, 5 in · 0 out · $0.00 (It was refused)*" in page


def test_labels_stand_where_their_entries_are_shown_wherever_they_were_given(tmp_path):
    story = Story()
    start, tool = story.user("go"), call("bash", 1, command="ls")
    story.answer(tool)
    result = story.result(tool, "a b")
    story.add("label", targetId=result, label="what was there")
    end = story.user("and on")
    story.at(start)
    story.add("label", targetId=start, label="from a branch")
    page = markdown_of(story, tmp_path, leaf=end)
    assert "> go\n\n*Label: from a branch*" in page
    assert page.index("</details>") < page.index("*Label: what was there*") < page.index("and on")
