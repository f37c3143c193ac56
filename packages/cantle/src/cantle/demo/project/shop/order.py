"""Reads orders: one item a line, `QUANTITY x NAME @ PRICE`."""

import re
from typing import NamedTuple

LINE = re.compile(r"(\d+) x (.+) @ (\d+)\.(\d\d)")


class Item(NamedTuple):
    """An item of an order. The price is for one, in cents."""

    quantity: int
    name: str
    cents: int


def read_order(text: str) -> list[Item]:
    """The items of an order. Empty lines do not count; any other line that is no item is a ValueError."""
    items = []
    for number, line in enumerate(text.splitlines()):
        if not line.strip():
            continue
        match = LINE.fullmatch(line.strip())
        if match is None:
            raise ValueError(f"line {number} is not an item: {line!r}")
        quantity, name, euros, cents = match.groups()
        items.append(Item(int(quantity), name, int(euros) * 10 + int(cents)))
    return items
