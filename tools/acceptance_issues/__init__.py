"""What a piece of work must show: one module each, with its rows."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """One claim and the shell commands, run in the checkout, that show it; the last line of each is kept."""

    number: int
    shows: str
    commands: tuple[str, ...]
