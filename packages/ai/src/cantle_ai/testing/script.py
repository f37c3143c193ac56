"""Which scripted response answers a request: the first in order that is left and whose `when` holds."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Generic, TypeVar

from msgspec import Struct

from cantle_ai.testing.response import Response, When

__all__ = ["LastMessage", "Script", "holds"]

T = TypeVar("T")


class LastMessage(Struct, frozen=True, kw_only=True):
    """What a `when` looks at."""

    role: str
    text: str
    tool: str | None = None
    is_error: bool | None = None


def holds(when: When | None, last: LastMessage | None) -> bool:
    """Whether `last` is what `when` asks for. No condition holds always."""
    if when is None:
        return True
    if last is None:
        return False
    return (
        (when.role is None or when.role == last.role)
        and (when.contains is None or when.contains in last.text)
        and (when.matches is None or re.search(when.matches, last.text) is not None)
        and (when.tool is None or when.tool == last.tool)
        and (when.is_error is None or when.is_error == last.is_error)
    )


class Script(Generic[T]):
    """A list of responses, and how often each may still be used.

    Something other than a :class:`Response` (a function, for the scripted model) is used once and has no condition.
    """

    def __init__(self, responses: Iterable[Response | T]) -> None:
        self._left: list[tuple[Response | T, float]] = []
        self.extend(responses)

    def extend(self, responses: Iterable[Response | T]) -> None:
        """Add responses at the end."""
        for response in responses:
            times = response.repeat if isinstance(response, Response) else 1
            self._left.append((response, float("inf") if times == "forever" else times))

    def take(self, last: LastMessage | None) -> Response | T | None:
        """The response for a request that ends with `last`, which is used up by one; None when there is none."""
        for place, (response, times) in enumerate(self._left):
            if not isinstance(response, Response) or holds(response.when, last):
                if times > 1:
                    self._left[place] = (response, times - 1)
                else:
                    del self._left[place]
                return response
        return None

    def __len__(self) -> int:
        """How many entries are left, repeated ones counted once."""
        return len(self._left)
