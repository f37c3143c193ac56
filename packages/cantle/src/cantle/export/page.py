"""The page around a conversation: its head, its figures, the tree beside it, and what it may do, which is nothing.

The policy in the head lets the page load images that it carries itself and its own style sheet, known by its
digest. There is no script, and none could run; what can be chosen is chosen by links, boxes and folds.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from importlib.resources import files
from typing import TYPE_CHECKING

from cantle.export.branches import Chain, branches, lay_out
from cantle.export.charts import context_chart, cost_chart
from cantle.export.conversation import Conversation
from cantle.export.entry_texts import one_line
from cantle.export.figures import (
    Figures,
    counted,
    dollars,
    figures,
    in_dollars,
    lasting,
    prompt_tokens,
    tokens,
)
from cantle.export.markup import EMPTY, Html, joined, tag, text, void
from cantle.export.outline import outline
from cantle.export.parts import title_of
from cantle.version import VERSION
from cantle_session.entries import SessionHeader
from cantle_session.fates import Fate, fates
from cantle_session.stamps import iso_time

if TYPE_CHECKING:
    from cantle_session.session import Session

__all__ = ["page"]


def page(session: Session, leaf: str | None) -> Iterator[str]:
    """The page in parts, opened on the branch to `leaf`, or to where the session stands. Raises UnknownEntryError when `leaf`
    is no entry's.
    """
    entries, stands = session.entries(), session.leaf_id
    chain = lay_out(entries, stands if leaf is None else leaf)
    unseen = _unseen(session) if leaf in (None, stands) else {}
    conversation = Conversation(entries, session.labels(), unseen)
    return _parts(session.header, title_of(session.name, entries), conversation, chain)


def _unseen(session: Session) -> dict[str, Fate]:
    """By id, what a model that goes on where the session stands is not told of the entries before."""
    return {
        each.entry.id: each.fate
        for each in fates(session)
        if each.fate in ("summed up", "edited out", "excluded")
    }


def _parts(header: SessionHeader, title: str, conversation: Conversation, chain: Chain) -> Iterator[str]:
    numbers = figures(conversation.entries)
    yield _head(title)
    yield _body_start(conversation, chain)
    yield _introduction(header, title, numbers, branches(chain))
    yield Html('<div class="talk">')
    yield from conversation.pieces(chain)
    if not conversation.entries:
        yield tag("p", text("Nothing has been said in this session."), class_="aside")
    yield Html("</div>")
    yield _END


def _head(title: str) -> Html:
    style = (files("cantle.export") / "style.css").read_text("utf-8").replace("\r\n", "\n")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; img-src data:; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )
    return joined(
        [
            Html('<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'),
            void("meta", http_equiv="Content-Security-Policy", content=policy),
            void("meta", name="viewport", content="width=device-width, initial-scale=1"),
            void("meta", name="color-scheme", content="light dark"),
            void("meta", name="referrer", content="no-referrer"),
            void("meta", name="generator", content=f"Cantle {VERSION}"),
            tag("title", text(title)),
            tag("style", Html(style)),
            Html("\n</head>\n"),
        ]
    )


def _body_start(conversation: Conversation, chain: Chain) -> Html:
    return joined(
        [
            Html("<body>\n"),
            tag("a", text("To the conversation"), href="#top", class_="skip"),
            Html('<aside class="side">'),
            void("input", type="checkbox", id="menu"),
            tag("label", text("Contents and view"), for_="menu", class_="menu"),
            tag(
                "div",
                _choices(),
                tag("nav", outline(conversation, chain), aria_label="The tree of the session"),
                class_="panel",
            ),
            Html('</aside>\n<main id="top">\n'),
        ]
    )


def _choices() -> Html:
    """What is shown, and in which colours: boxes that the style sheet looks at."""
    boxes = [
        _choice("checkbox", "show-thinking", "Thinking", checked=True),
        _choice("checkbox", "show-tools", "Tools", checked=True),
        _choice("checkbox", "show-figures", "Figures"),
        _choice("checkbox", "unfold", "Unfold all"),
    ]
    schemes = [
        _choice("radio", "scheme-auto", "Auto", name="scheme", checked=True),
        _choice("radio", "scheme-light", "Light", name="scheme"),
        _choice("radio", "scheme-dark", "Dark", name="scheme"),
    ]
    return tag(
        "form",
        tag("fieldset", tag("legend", text("Show")), *boxes),
        tag("fieldset", tag("legend", text("Colours")), *schemes),
        class_="view",
        autocomplete="off",
    )


def _choice(kind: str, id: str, words: str, *, name: str | None = None, checked: bool = False) -> Html:
    return tag("label", void("input", type=kind, id=id, name=name, checked=checked), tag("span", text(words)))


def _introduction(header: SessionHeader, title: str, numbers: Figures, ends: int) -> Html:
    facts = [("Folder", header.cwd), ("Session", header.id)]
    if header.parent_session is not None:
        facts.append(("Forked from", header.parent_session))
    if numbers.first is not None and numbers.last is not None:
        begun = f"{iso_time(numbers.first)[:16].replace('T', ' ')} UTC"
        lasted = numbers.last - numbers.first
        facts.insert(0, ("Begun", f"{begun}, {lasting(lasted)} long" if lasted > 0 else begun))
    lines = [tag("div", tag("dt", text(name)), tag("dd", text(value))) for name, value in facts]
    return tag(
        "header",
        tag("h1", text(title)),
        tag("dl", *lines, class_="facts"),
        _tiles(numbers, ends),
        _charts(numbers),
        _models(numbers),
        class_="intro",
    )


def _tiles(numbers: Figures, ends: int) -> Html:
    total = numbers.total
    sent = prompt_tokens(total)
    tiles = [
        (f"{numbers.prompts:,}", "prompts" if numbers.prompts != 1 else "prompt"),
        (f"{numbers.answers:,}", counted(numbers.calls, "tool call")),
        (f"{tokens(sent)}", "tokens in" + (f", {total.cache_read / sent:.0%} cached" if sent else "")),
        (tokens(total.output), "tokens out"),
        (dollars(total), "cost"),
    ]
    tiles[1] = (tiles[1][0], f"answers, {tiles[1][1]}" if numbers.answers != 1 else f"answer, {tiles[1][1]}")
    if ends > 1:
        tiles.append((f"{ends:,}", "branches"))
    shown = (tag("div", tag("b", text(value)), tag("span", text(words))) for value, words in tiles)
    return tag("div", *shown, class_="tiles")


def _charts(numbers: Figures) -> Html:
    moments = numbers.moments
    if len(moments) < 2 or not any(moment.context for moment in moments):
        return EMPTY
    charts = [context_chart(moments)]
    if moments[-1].spent > 0:
        charts.append(cost_chart(moments, in_dollars))
    return tag("div", *charts, class_="charts")


def _models(numbers: Figures) -> Html:
    if not numbers.models:
        return EMPTY
    names = ("", "requests", "new input", "cache read", "cache write", "output", "cost")
    head = tag("tr", *(tag("th", text(name), scope="col") for name in names))
    rows = []
    for model in numbers.models:
        usage = model.usage
        cells = [
            f"{model.requests:,}",
            *(f"{value:,}" for value in (usage.input, usage.cache_read, usage.cache_write, usage.output)),
            dollars(usage),
        ]
        name = tag("th", text(one_line(model.name)), scope="row")
        rows.append(tag("tr", name, *(tag("td", text(cell)) for cell in cells)))
    table = tag("table", tag("thead", head), tag("tbody", *rows))
    summary = tag("summary", text("Tokens and cost by model"))
    return tag("details", summary, tag("div", table, class_="wide", tabindex="0"), class_="models")


_END = (
    '\n<footer class="end">Written by Cantle. All times are UTC. '
    "The page holds the whole session and loads nothing from elsewhere.</footer>\n</main>\n</body>\n</html>\n"
)
