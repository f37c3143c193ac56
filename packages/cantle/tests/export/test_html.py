"""The page as a file: whole or not at all, complete, and built of nothing that could do harm."""

import os
import re
import stat
import sys

import pytest

from cantle.export.figures import figures
from cantle.export.html import export_html
from cantle.export.markup import clean
from cantle_ai.codec import JsonObject
from cantle_ai.usage import total_usage
from cantle_session.entries import UsageEntry, entry_from_json
from cantle_session.errors import SessionFileError
from cantle_session.session import Session
from packages.cantle.tests.export.attacks import ATTACKS, attacked
from packages.cantle.tests.export.reading import Read, read
from packages.cantle.tests.export.sample_sessions import (
    HEADER,
    Story,
    call,
    long_session,
    picture,
    tidepool,
    write_session,
)
from packages.cantle.tests.export.test_branches import SHAPES
from tests.support.samples import samples

ELEMENTS = {
    "a", "article", "aside", "b", "blockquote", "body", "br", "code", "dd", "del", "details", "div", "dl", "dt", "em",
    "fieldset", "figcaption", "figure", "footer", "form", "h1", "h3", "h4", "h5", "h6", "head", "header", "hr", "html",
    "i", "img", "input", "label", "legend", "li", "line", "main", "mark", "meta", "nav", "ol", "p", "polygon",
    "polyline", "pre", "rect", "section", "small", "span", "strong", "style", "summary", "svg", "table", "tbody", "td",
    "th", "thead", "time", "title", "tr", "ul",
}  # fmt: skip
ATTRIBUTES = {
    "alt", "aria-current", "aria-label", "autocomplete", "charset", "checked", "class", "content", "datetime",
    "decoding", "for", "height", "href", "http-equiv", "id", "lang", "name", "open", "points", "preserveaspectratio",
    "rel", "role", "scope", "src", "start", "tabindex", "title", "type", "viewbox", "width", "x", "x1", "x2", "y", "y1", "y2",
}  # fmt: skip


def page_of(story: Story, folder, **options) -> str:
    with Session.open(write_session(folder / "session.jsonl", story.entries)) as session:
        return export_html(session, folder / "session.html", **options).read_text("utf-8")


def check(page: str) -> Read:
    found = read(page)
    assert not found.problems and not found.left_open
    assert {element.name for element in found.elements} <= ELEMENTS
    assert {name for element in found.elements for name in element.attributes} <= ATTRIBUTES
    ids = [element.attributes["id"] for element in found.elements if "id" in element.attributes]
    assert len(ids) == len(set(ids))
    for element in found.elements:
        address = element.attributes.get("href")
        if address is not None and address.startswith("#"):
            assert address[1:] in ids
        elif address is not None:
            assert re.match(r"(https?://|mailto:)", address, re.IGNORECASE)
        if (source := element.attributes.get("src")) is not None:
            assert re.match(r"data:image/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+=*$", source)
    return found


def test_everything_is_there_and_nothing_else(tmp_path):
    story = tidepool()
    page = page_of(story, tmp_path)
    found = check(page)
    ids = {element.attributes.get("id") for element in found.elements}
    assert {f"e-{entry.id}" for entry in story.entries} <= ids
    for words in (
        "The tides are half a day off", "/home/ann/tidepool", HEADER.id, "anthropic/claude-sonnet-4-5",
        "smells like a unit error", "AssertionError: expected 0.0805", "16+        c.amplitude", "the fix", "to be merged",
        "overloaded_error: the service is busy", "Summary of another branch", "history summed up here", "cache_warm",
        "todo-list", "From here on the model no longer sees", "git diff --stat", "reviewer (extension)", "exit 1", "3 answers", "+3", "−1",
    ):  # fmt: skip
        assert words in found.text, words
    assert "<script" not in page.lower()


def test_figures_are_those_of_the_session(tmp_path):
    story = tidepool()
    with Session.open(write_session(tmp_path / "session.jsonl", story.entries)) as session:
        total = session.usage()
    text = read(page_of(story, tmp_path, overwrite=True)).text
    assert f"${total.cost.total:.3f}" in text
    for figure in (total.cache_read - 9_000, total.output - 400, total.input - 9_000):
        assert f"{figure:,}" in text


def test_rows_by_model_add_up_to_the_total(tmp_path):
    file = write_session(tmp_path / "session.jsonl", tidepool().entries)
    with Session.open(file) as session:
        numbers, total = figures(session.entries()), session.usage()
        warmed = [entry for entry in session.entries() if isinstance(entry, UsageEntry)]
    names = [model.name for model in numbers.models]
    assert "summaries of history" in names
    assert warmed and all(f"{entry.provider}/{entry.model} ({entry.kind})" in names for entry in warmed)
    rows = total_usage(model.usage for model in numbers.models)
    assert rows.total_tokens == numbers.total.total_tokens == total.total_tokens
    assert rows.cost.total == pytest.approx(total.cost.total)


def test_hostile_strings_are_text(tmp_path):
    page = page_of(attacked(), tmp_path)
    found = check(page)
    assert "window.hit" not in "".join(
        value or ""
        for e in found.elements
        for name, value in e.attributes.items()
        if name not in {"title", "alt", "href", "datetime"}
    )
    shown = "".join(found.text.split())
    for attack in ATTACKS:
        assert "".join(clean(attack).split()) in shown or "\x1b" in attack
    assert page.count("<style>") == 1


def test_links_lead_to_the_web_or_stay_in_the_page(tmp_path):
    story = Story()
    story.user("[a](javascript:alert(1)) <a href='javascript:alert(1)'>b</a>")
    story.answer(
        "[a](javascript:alert(1)) [b](data:text/html,x) [c](//x.example) [d](\x01javascript:x) [ok](https://x.example)"
    )
    found = check(page_of(story, tmp_path))
    outside = [str(e.attributes["href"]) for e in found.elements if "href" in e.attributes]
    assert [link for link in outside if not link.startswith("#")] == ["https://x.example"]


def test_the_policy_names_the_style_and_lets_nothing_else_in(tmp_path):
    import base64
    import hashlib

    page = page_of(tidepool(), tmp_path)
    style = page.split("<style>")[1].split("</style>")[0]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policies = [
        str(e.attributes["content"]) for e in read(page).elements
        if e.attributes.get("http-equiv") == "Content-Security-Policy"
    ]  # fmt: skip
    assert policies == [
        f"default-src 'none'; img-src data:; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    ]
    assert page.index("Content-Security-Policy") < page.index("<title>")
    assert "url(" not in style and "@import" not in style


@pytest.mark.parametrize("shape", SHAPES)
def test_pages_grow_with_their_entries_and_stay_flat(shape, tmp_path):
    sizes = []
    for count in (samples(2_000, 200), samples(4_000, 400)):
        folder = tmp_path / str(count)
        folder.mkdir()
        story = Story()
        story.entries = SHAPES[shape](count)
        page = page_of(story, folder)
        sizes.append(len(page))
        assert read(page).depth < 100
    assert sizes[1] < 2.3 * sizes[0]


def test_long_sessions(tmp_path):
    story = long_session(samples(20_000, 1_500))
    found = check(page_of(story, tmp_path))
    assert sum(element.name == "article" for element in found.elements) > len(story.entries) // 3
    assert sum(element.name == "rect" for element in found.elements) < 1_000


def test_nothing_was_said(tmp_path):
    with Session.in_memory(tmp_path) as session:
        page = export_html(session, tmp_path / "out.html").read_text("utf-8")
    assert "Nothing has been said in this session." in check(page).text


def test_images_of_other_kinds_are_named(tmp_path):
    story = Story()
    svg: JsonObject = {
        "type": "image",
        "data": "PHN2ZyBvbmxvYWQ9ImFsZXJ0KDEpIi8+",
        "mimeType": "image/svg+xml",
    }
    bad: JsonObject = {"type": "image", "data": 'iVBORw0KGgo="><script>', "mimeType": "image/png"}
    story.user("look", svg, bad)
    found = check(page_of(story, tmp_path))
    assert not [element for element in found.elements if element.name == "img"]
    assert found.text.count("An image that is not shown here") == 2


def test_what_is_not_known_is_shown_as_it_is(tmp_path):
    story = Story()
    story.user("hi")
    story.add("from_tomorrow", colours=["blue"])
    story.message(role="narrator", content="meanwhile")
    story.answer({"type": "image", "data": picture(4, 4), "mimeType": "image/png"}, {"type": "hologram"})
    story.add("usage", kind="compaction", provider="p", model="m", usage={"input": 5}, note="It was refused")
    found = check(page_of(story, tmp_path))
    assert '"blue"' in found.text and "A message of the role narrator" in found.text
    assert [element.name for element in found.elements].count("img") == 1 and '"hologram"' in found.text
    assert "(It was refused)" in found.text


def test_json_that_is_nested_too_deeply_to_be_written(tmp_path):
    deep: object = "bottom"
    for _ in range(400):
        deep = [deep]
    story = Story()
    story.user("hi")
    story.add("custom", customType="deep", data=deep)
    assert "bottom" in check(page_of(story, tmp_path)).text


def test_results_find_their_calls(tmp_path):
    story = Story()
    story.user("go")
    first, second = call("bash", 1, command="one"), call("bash", 2, command="two")
    story.answer(first, second)
    story.result(second, "second result")
    story.result(first, "first result")
    story.result(call("bash", 9), "a stray one")
    page = page_of(story, tmp_path)
    order = [page.index(words) for words in ("one</code>", "first result", "second result", "a stray one")]
    assert order == sorted(order)
    assert "result of an earlier call" in page


def test_the_branch_that_is_asked_for_is_shown_first(tmp_path):
    story = tidepool()
    tried = next(entry for entry in story.entries if "That breaks every table" in str(entry.to_json()))
    page = page_of(story, tmp_path, leaf=tried.id)
    hidden = page[page.index('<section class="way"') : page.index("That breaks every table")]
    assert hidden.count("<section") == hidden.count("</section>")
    assert "Write the commit message." in hidden
    with pytest.raises(KeyError):
        page_of(story, tmp_path, leaf="nobody", overwrite=True)


def test_what_is_there_is_left_alone(tmp_path):
    target = tmp_path / "session.html"
    target.write_text("mine")
    with pytest.raises(SessionFileError, match="already there and was left as it is; give another name"):
        page_of(tidepool(), tmp_path)
    assert target.read_text() == "mine"
    assert "<!doctype" in page_of(tidepool(), tmp_path, overwrite=True)


def test_a_link_to_nowhere_is_something_that_is_there(tmp_path):
    (tmp_path / "session.html").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(SessionFileError, match="already there"):
        page_of(tidepool(), tmp_path)
    assert not (tmp_path / "elsewhere").exists()


def test_no_folder_to_write_to(tmp_path):
    with Session.in_memory(tmp_path) as session, pytest.raises(SessionFileError, match="give another place"):
        export_html(session, tmp_path / "no" / "such" / "out.html")


def test_a_failure_on_the_way_leaves_nothing(tmp_path):
    from cantle.export.new_page import write_page

    def parts():
        yield "x" * (2 << 20)
        raise OSError(28, "No space left on device")

    with pytest.raises(SessionFileError, match="no space left on device"):
        write_page(tmp_path / "out.html", parts(), overwrite=False)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="files have no such modes there")
def test_only_its_owner_reads_it(tmp_path):
    page_of(tidepool(), tmp_path)
    assert stat.S_IMODE(os.stat(tmp_path / "session.html").st_mode) == 0o600


def test_reading_a_session_changes_nothing(tmp_path):
    file = write_session(tmp_path / "session.jsonl", tidepool().entries)
    before = file.read_bytes()
    with Session.open(file) as session:
        export_html(session, tmp_path / "out.html")
    assert file.read_bytes() == before


def test_odd_times_and_numbers(tmp_path):
    story = Story()
    story.user("hi")
    story.answer("ho", usage={"input": 10**30, "output": -5, "cost": {"total": "much"}}, durationMs=-1)
    story.entries.append(
        entry_from_json({"type": "message", "id": "x", "parentId": story.leaf, "timestamp": "yesterday",
                         "message": {"role": "user", "content": None, "timestamp": 10**30}})
    )  # fmt: skip
    story.entries.append(
        entry_from_json({"type": "usage", "id": "y", "parentId": "x", "timestamp": 5, "usage": []})
    )
    check(page_of(story, tmp_path))


def forgetful() -> Story:
    """What a model is not told any more: summed up, edited out, excluded."""
    story = Story()
    tool = call("bash", 1, command="cat big.log")
    story.user("the first thing")
    story.answer("long ago")
    kept = story.user("the second thing")
    story.answer(tool)
    result = story.result(tool, "much of it")
    story.answer("seen")
    story.message(role="bashExecution", command="pwd", output="/", exitCode=0, cancelled=False, truncated=False,
                  excludeFromContext=True)  # fmt: skip
    story.add("compaction", summary="It began.", firstKeptEntryId=kept, tokensBefore=900)
    story.add("label", targetId=result, label="the log")
    story.add("context_edit", targetId=result, replacement=None)
    return story


def test_what_the_model_no_longer_sees_is_marked_where_the_session_stands(tmp_path):
    story = forgetful()
    found = check(page_of(story, tmp_path))
    unseen = [
        e.attributes["id"] for e in found.elements if "unseen" in str(e.attributes.get("class")).split()
    ]
    first, answer, second, _, _, _, shell = (f"e-{entry.id}" for entry in story.entries[:7])
    assert unseen == [first, answer, shell] and second not in unseen
    page = page_of(story, tmp_path, overwrite=True)
    assert re.findall(r'<small class="fate">([^<]*)</small>', page) == [
        "summed up", "summed up", "edited out", "excluded"
    ]  # fmt: skip
    assert '<mark>the log</mark><small class="fate">edited out</small></summary>' in page.replace("> <", "><")


def test_of_another_branch_nobody_says_what_a_model_would_see(tmp_path):
    story = forgetful()
    assert "unseen" not in page_of(story, tmp_path, leaf=story.entries[3].id).partition("</style>")[2]
