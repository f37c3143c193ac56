"""Ids and names of tool calls as a target takes them: in its alphabet and length, and each id once.

A history may hold ids of other providers (`call_abc|fc_123`, 450 characters, `0`), and the same id in several
answers, from endpoints that number anew in each. A call and its result are renamed alike, the same way in every
request: what an id becomes depends on what stands before it, never on what comes after.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

__all__ = ["ALPHANUMERIC", "NAME_CHARACTERS", "CallIdRule", "CallIds", "fitting_id", "fitting_name"]

CallIdRule: TypeAlias = Callable[[str, bool, int], str]
"""What an id becomes: the id, whether the very model that is asked made it, and how often what came out was taken
already. It gives an id that fits; for another number another one."""

ALPHANUMERIC = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

NAME_CHARACTERS = ALPHANUMERIC + "_-"
"""What OpenAI and Anthropic take in a call's id and a tool's name; no endpoint is known to take less in a name."""
_LONGEST_NAME = 64


def fitting_name(name: str) -> str:
    """A tool's name as every endpoint takes it. Models invent some that none takes back, such as `functions.bash`."""
    letters = _NAME_LETTERS
    if 0 < len(name) <= _LONGEST_NAME and letters.issuperset(name):
        return name
    return "".join(letter if letter in letters else "_" for letter in name[:_LONGEST_NAME]) or "unnamed"


_NAME_LETTERS = frozenset(NAME_CHARACTERS)


def fitting_id(alphabet: str, longest: int, *, prefix: str = "", exactly: int | None = None) -> CallIdRule:
    """The rule that leaves what fits as it is, and makes the rest from a hash.

    An id fits with 1 to `longest` characters of `alphabet`, or `exactly` so many. What is made begins with `prefix`.
    """
    letters = frozenset(alphabet)
    plain = [letter for letter in ALPHANUMERIC if letter in letters]
    size = exactly or min(longest, len(prefix) + 32)

    def rule(call_id: str, own: bool, attempt: int) -> str:
        fits = len(call_id) == exactly if exactly else 0 < len(call_id) <= longest
        if fits and not attempt and letters.issuperset(call_id):
            return call_id
        from hashlib import sha256

        said = call_id if not attempt else f"{call_id}\n{attempt}"
        number = int.from_bytes(sha256(said.encode("utf-8", "surrogatepass")).digest())
        made = prefix
        while len(made) < size:
            number, place = divmod(number, len(plain))
            made += plain[place]
        return made

    return rule


class CallIds:
    """The ids of one projection, in the order of the history."""

    __slots__ = ("_attempts", "_rule", "_taken")

    def __init__(self, rule: CallIdRule) -> None:
        self._rule = rule
        self._taken: set[str] = set()
        self._attempts: dict[tuple[str, bool], int] = {}
        """Where to go on with an id that comes again: some endpoints call every call of a history `0`."""

    def of_call(self, call_id: str, own: bool) -> str:
        """What the id of the next call becomes. Asked once for each call."""
        key = (call_id, own)
        attempt = self._attempts.get(key, 0)
        while (made := self._rule(call_id, own, attempt)) in self._taken:
            attempt += 1
        self._taken.add(made)
        self._attempts[key] = attempt + 1
        return made
