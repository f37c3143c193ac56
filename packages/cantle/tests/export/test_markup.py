"""Text of a session never becomes more than text."""

from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cantle.export.code import code_block, highlighted, highlighted_lines
from cantle.export.languages import LANGUAGES, language, language_of
from cantle.export.markup import clean, plain, tag, text, void
from cantle.export.prose import as_typed, rendered
from packages.cantle.tests.export.attacks import ATTACKS
from packages.cantle.tests.export.reading import read
from tests.support.samples import samples

ANY = (
    st.text(max_size=200)
    | st.sampled_from(ATTACKS)
    | st.text(alphabet="<>&\"'`*_[]()!|\n #-~\\\x00\u202e\ud800", max_size=60)
)
SOME = ["python", "bash", "json", "html", "c++", "typescript", "diff", "yaml", "php", "none of these"]
HARMLESS = {
    "a", "blockquote", "br", "code", "del", "div", "em", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre", "span",
    "strong", "table", "tbody", "td", "th", "thead", "tr", "ul",
}  # fmt: skip
ATTRIBUTES = {"class", "href", "rel", "start", "tabindex", "title"}


def normal(value: str) -> str:
    """As a reader of HTML gives it back."""
    return clean(value).replace("\r\n", "\n").replace("\r", "\n")


@given(ANY)
def test_text_is_read_back_as_it_was_but_for_what_nobody_sees(value):
    page = read(tag("p", text(value), title=value))
    assert normal(page.text) == normal(value)
    assert [element.name for element in page.elements] == ["p"]
    assert page.elements[0].attributes == {"title": clean(value)}
    page.text.encode()


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("a\x00b\x1b", "a␀b␛"),
        ("\x7f\x9b", "␡\ufffd"),
        ("\u202eevil\u202c", "⟨U+202E⟩evil⟨U+202C⟩"),
        ("\ud800 \ufffe", "\ufffd \ufffd"),
        ("a\tb\nc \u2028 é \U0001f30a", "a\tb\nc \u2028 é \U0001f30a"),
    ],
)
def test_what_cannot_be_seen_is_shown(value, shown):
    assert clean(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]8;;https://x.example\x07link\x1b]8;;\x1b\\", "link"),
        ("\x1b(B\x1b[?25l\x1b=ok", "ok"),
        ("bo\x08old", "bold"),
        ("\x1b]never closed", ""),
    ],
)
def test_terminal_sequences_leave_no_trace(value, shown):
    assert plain(value) == shown


def test_attributes_can_be_left_out():
    assert (
        void("input", type="radio", checked=True, name=None, disabled=False) == '<input type="radio" checked>'
    )
    assert tag("a", class_="x", aria_current="true") == '<a class="x" aria-current="true"></a>'


@given(ANY)
def test_prose_has_harmless_elements_only(source):
    for page in (read(rendered(source)), read(as_typed(source))):
        assert {element.name for element in page.elements} <= HARMLESS
        assert {name for element in page.elements for name in element.attributes} <= ATTRIBUTES
        links = [str(element.attributes["href"]) for element in page.elements if "href" in element.attributes]
        assert all(link.lower().startswith(("http://", "https://", "mailto:")) for link in links)
        assert not page.problems and not page.left_open


@given(ANY, st.sampled_from(SOME))
def test_code_keeps_every_character(source, language):
    page = read(highlighted(source, language))
    assert normal(page.text) == normal(source)
    assert {element.name for element in page.elements} <= {"span"}


@given(st.lists(ANY.map(lambda line: line.replace("\n", " ")), max_size=8), st.sampled_from(SOME))
def test_lines_of_code_stay_apart(lines, language):
    shown = [read(line) for line in highlighted_lines(lines, language)]
    assert [normal(line.text) for line in shown] == [normal(line) for line in lines]
    assert not any(line.left_open for line in shown)


BULK = (
    "\n", " ", "a", "é", "0", "-", '"', "'", "`", "\\", "(", "<", "<a ", "<!--", "/*", "/", "#", "$(", "@", "::", "a:", "a=", "a.", "0x",
    "1_", "${", "[", '"""', "'\\", "a\n", "\t#", "+\n", "a-", "r'", "--", "=>", "\r", "<a b=", "[a]\n", " \n", "a ", "\\\n", "é=",
)  # fmt: skip


@pytest.mark.parametrize("name", LANGUAGES)
def test_colours_take_time_in_step_with_the_text(name):
    """A part of the expression that read far and failed would take a hundred times as long."""
    assert language(name) is not None
    for piece in BULK[:: samples(1, 3)]:
        source = (piece * 20_000)[:20_000]
        before = process_time()
        assert normal(read(highlighted(source, name)).text) == normal(source)
        assert process_time() - before < 2, repr(piece)


def test_code_has_colours():
    shown = code_block("def add(a: int) -> int:\n    return a + 1  # one more", "python")
    for kind, word in (("k", "def"), ("f", "add"), ("n", "1"), ("c", "# one more")):
        assert f'<span class="{kind}">{word}</span>' in shown


@pytest.mark.parametrize(
    ("path", "language"),
    [
        ("a/b.py", "python"),
        ("C:\\x\\Y.TSX", "typescript"),
        ("Dockerfile", "docker"),
        ("x", ""),
        ("a.unknown", ""),
    ],
)
def test_the_language_of_a_file(path, language):
    assert language_of(path) == language


def test_markdown_reads_well():
    shown = rendered(
        "# Top\n\na *b* **c** ~~d~~ [e](https://x.example) ![f](https://x.example/f.png)\n\n- [x] done\n- [ ] open\n\n|g|h|\n|:-|-:|\n|1|2|"
    )
    assert "<h3>Top</h3>" in shown
    assert '<a href="https://x.example" rel="noopener noreferrer nofollow">e</a>' in shown
    assert '<span class="picture" title="https://x.example/f.png">f</span>' in shown
    assert '<li class="task">☑ done</li>' in shown and '<li class="task">☐ open</li>' in shown
    assert '<td class="right">2</td>' in shown


def test_what_is_typed_keeps_its_lines_and_has_its_code_in_colours():
    shown = as_typed("a  b\n  `c`\n~~~python\nimport os\n~~~\n# not a heading\n```\nleft open")
    assert '<div class="typed">a  b\n  <code>c</code></div>' in shown
    assert '<span class="k">import</span>' in shown
    assert '<div class="typed"># not a heading</div>' in shown
    assert read(shown).text.endswith("left open")


@pytest.mark.parametrize("line", ["```" + "a" * 60_000 + "`", "~" * 60_000 + "`", "~~~" + " " * 60_000 + "`"])
def test_a_long_line_that_only_begins_like_a_fence_takes_little_time(line):
    before = process_time()
    assert line.strip("`") in read(as_typed(line)).text
    assert process_time() - before < 2
