"""Markdown as models write it, as HTML: headings, lists, tables, code in colours, links that lead out.

HTML in the text is text. Links lead to the web or to mail only. A picture from elsewhere is its name: a page
that is read does not tell anybody so.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from cantle.export.code import code_block
from cantle.export.markup import EMPTY, Html, clean, joined, tag, text

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.renderer import RendererHTML
    from markdown_it.token import Token
    from markdown_it.utils import EnvType, OptionsDict

__all__ = ["as_typed", "rendered"]

_LONGEST = 200_000
"""Characters that are read as Markdown; a longer text is shown as it was written."""
_FENCE = re.compile(r"(`{3,}+|~{3,}+)[ \t]*+([\w+#.-]*+)[^`]*+$")
"""None of its parts gives back what it took: a long line that is no fence would be tried from each place in it."""
_SPAN = re.compile(r"`([^`\n]+)`")
_LINK = re.compile(r"(?:https?://|mailto:)", re.IGNORECASE)


def rendered(source: str) -> Html:
    """Markdown as HTML."""
    if len(source) > _LONGEST:
        return tag("div", text(source), class_="typed")
    parser = _parser()
    tokens = parser.parse(clean(source))
    _mark_tasks(tokens)
    return Html(parser.renderer.render(tokens, parser.options, {}))


def as_typed(source: str) -> Html:
    """What a person typed: lines and spaces as they are, fenced code in colours."""
    parts: list[Html] = []
    kept: list[str] = []
    fence, language = "", ""
    for line in source.split("\n"):
        found = _FENCE.match(line)
        if not fence and found is not None:
            parts.append(_typed(kept))
            kept, fence, language = [], found[1], found[2]
        elif fence and found is not None and found[1].startswith(fence) and not found[2]:
            parts.append(code_block("\n".join(kept), language))
            kept, fence = [], ""
        else:
            kept.append(line)
    parts.append(code_block("\n".join(kept), language) if fence else _typed(kept))
    return joined(parts)


def _mark_tasks(tokens: Sequence[Token]) -> None:
    """Let `[ ]` and `[x]` at the beginning of a list's items be boxes."""
    for item, paragraph, inline in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if item.type != "list_item_open" or paragraph.type != "paragraph_open" or not inline.children:
            continue
        first = inline.children[0]
        if first.type == "text" and first.content[:4].lower() in {"[ ] ", "[x] "}:
            first.content = ("☐ " if first.content[1] == " " else "☑ ") + first.content[4:]
            item.attrSet("class", "task")


def _typed(lines: list[str]) -> Html:
    source = "\n".join(lines).strip("\n")
    if not source.strip():
        return EMPTY
    pieces = _SPAN.split(source)
    shown = (tag("code", text(piece)) if index % 2 else text(piece) for index, piece in enumerate(pieces))
    return tag("div", *shown, class_="typed")


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False, "breaks": True}).enable(["table", "strikethrough"])
    parser.validateLink = lambda url: _LINK.match(url) is not None  # type: ignore[method-assign]
    for name, rule in _RULES.items():
        parser.add_render_rule(name, rule)
    return parser


def _code(
    renderer: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType
) -> str:
    token = tokens[index]
    words = token.info.split(maxsplit=1)
    return code_block(token.content.rstrip("\n"), words[0] if words else "")


def _image(
    renderer: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType
) -> str:
    """Its name alone: the page loads nothing from anywhere."""
    token = tokens[index]
    return tag(
        "span", text(token.content or "image"), class_="picture", title=str(token.attrs.get("src", ""))
    )


def _link_open(
    renderer: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType
) -> str:
    tokens[index].attrSet("rel", _REL)
    return renderer.renderToken(tokens, index, options, env)


def _heading(
    renderer: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType
) -> str:
    """Two levels further down: the page has headings of its own."""
    token = tokens[index]
    level = min(int(token.tag[1:]) + 2, 6)
    return f"<h{level}>" if token.nesting == 1 else f"</h{level}>\n"


def _table_open(
    renderer: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType
) -> str:
    return '<div class="wide" tabindex="0"><table>\n'


def _table_close(
    renderer: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType
) -> str:
    return "</table></div>\n"


def _cell_open(
    renderer: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType
) -> str:
    """A column's side comes as a style, which the page's policy does not allow."""
    token = tokens[index]
    side = str(token.attrs.get("style", "")).rpartition(":")[2]
    return f'<{token.tag} class="{side}">' if side in {"center", "right"} else f"<{token.tag}>"


_REL = "noopener noreferrer nofollow"
_RULES = {
    "fence": _code,
    "code_block": _code,
    "image": _image,
    "link_open": _link_open,
    "heading_open": _heading,
    "heading_close": _heading,
    "table_open": _table_open,
    "table_close": _table_close,
    "th_open": _cell_open,
    "td_open": _cell_open,
}
