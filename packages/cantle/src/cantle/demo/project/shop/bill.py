"""Adds up an order and writes the bill."""

from shop.order import Item

DISCOUNT_FROM = 10
"""So many pieces of one item make it a tenth cheaper."""


def item_total(item: Item) -> int:
    """What an item comes to, in cents, rounded down."""
    total = item.quantity * item.cents
    if item.quantity > DISCOUNT_FROM:
        total = total * 9 // 10
    return total


def bill(items: list[Item]) -> str:
    """The bill, a line an item and the sum below."""
    lines = [f"{item.quantity:3} {item.name:12} {item_total(item) / 100:8.2f}" for item in items]
    total = sum(item_total(item) for item in items)
    return "\n".join([*lines, f"{'total':16} {total / 100:8.2f}"])
