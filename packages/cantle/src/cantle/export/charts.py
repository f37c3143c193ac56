"""Tokens and cost over time, as two drawings without text of their own: labels are HTML, so they keep their size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from cantle.export.figures import Moment, tokens
from cantle.export.markup import EMPTY, Html, tag, text
from cantle_session.stamps import iso_time

__all__ = ["context_chart", "cost_chart"]

_WIDTH, _HEIGHT = 1000, 100
_BARS = 240
"""Bars that can still be told apart. More requests than that share them: the largest context, the latest cost."""


def context_chart(moments: Sequence[Moment]) -> Html:
    """The size of each request's context, with what the cache had of it, and where history was compacted."""
    bins = _bins(moments)
    step = _WIDTH / len(bins)
    top = max((moment.context for moment in moments), default=0) or 1
    drawn = []
    for index, group in enumerate(bins):
        largest = max(group, key=lambda moment: moment.context)
        left, width = index * step, max(step * 0.82, 0.5)
        full = _HEIGHT * largest.context / top
        cached = _HEIGHT * min(largest.cached, largest.context) / top
        if any(moment.compacted for moment in group):
            drawn.append(_line(left + step / 2))
        drawn.append(_bar("fresh", left, width, full, full - cached))
        drawn.append(_bar("cached", left, width, cached, cached))
        note = f"{_when(largest)}: {tokens(largest.context)} tokens, {tokens(largest.cached)} of them cached"
        drawn.append(_tip(left, step, note))
    key = tag(
        "span", tag("i", class_="cached"), text("cached"), tag("i", class_="fresh"), text("new"), class_="key"
    )
    return _chart("Tokens of each request", key, tokens(top), moments, drawn)


def cost_chart(moments: Sequence[Moment], written: Callable[[float], str]) -> Html:
    """What was spent until each request; `written` puts dollars into words."""
    bins = _bins(moments)
    step = _WIDTH / len(bins)
    top = max(moment.spent for moment in moments) or 1.0
    corners = [
        f"{index * step:.1f},{_HEIGHT * (1 - group[-1].spent / top):.1f}"
        for index, group in enumerate(bins, 1)
    ]
    line = " ".join([f"0,{_HEIGHT}", *corners])
    drawn = [
        tag("polygon", points=f"{line} {_WIDTH},{_HEIGHT}", class_="area"),
        tag("polyline", points=line, class_="line"),
    ]
    drawn += [
        _tip(index * step, step, f"{_when(group[-1])}: {written(group[-1].spent)} so far")
        for index, group in enumerate(bins)
    ]
    return _chart("Spent so far", EMPTY, written(top), moments, drawn)


def _bins(moments: Sequence[Moment]) -> list[Sequence[Moment]]:
    count = min(len(moments), _BARS)
    edges = [len(moments) * index // count for index in range(count + 1)]
    return [moments[low:high] for low, high in pairwise(edges)]


def _chart(title: str, key: Html, top: str, moments: Sequence[Moment], drawn: list[Html]) -> Html:
    drawing = tag(
        "svg",
        *drawn,
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
        preserveAspectRatio="none",
        role="img",
        aria_label=f"{title}: at most {top}",
    )
    ends = tag(
        "div", tag("span", text(_when(moments[0]))), tag("span", text(_when(moments[-1]))), class_="ends"
    )
    head = tag("figcaption", tag("span", text(title)), key, tag("span", text(top), class_="top"))
    return tag("figure", head, drawing, ends, class_="chart")


def _bar(kind: str, left: float, width: float, top: float, height: float) -> Html:
    return tag(
        "rect",
        class_=kind,
        x=f"{left:.2f}",
        y=f"{_HEIGHT - top:.2f}",
        width=f"{width:.2f}",
        height=f"{max(height, 0):.2f}",
    )


def _line(at: float) -> Html:
    return tag("line", class_="cut", x1=f"{at:.2f}", x2=f"{at:.2f}", y1="0", y2=str(_HEIGHT))


def _tip(left: float, width: float, note: str) -> Html:
    area = {"x": f"{left:.2f}", "y": "0", "width": f"{width:.2f}", "height": str(_HEIGHT)}
    return tag("rect", tag("title", text(note)), class_="tip", **area)


def _when(moment: Moment) -> str:
    return iso_time(moment.at)[:16].replace("T", " ") if moment.at else ""
