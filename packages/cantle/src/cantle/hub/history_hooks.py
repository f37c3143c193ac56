"""What may change how a history is compacted or a branch is left: the ports that extensions come in by.

    session.before_compact.append(lambda request: CallOff("not now"))
    session.before_navigate.append(lambda request: OwnSummary("We tried threads.") if request.summarize else None)

A hook may be a coroutine function; it gets an abort signal, and is cancelled when it does not heed it. The first
decision that is not None counts. What a hook raises is the failure of what it was asked about.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from msgspec import UNSET, Struct, UnsetType

from cantle.hub.events import CompactionReason
from cantle_ai.abort import AbortSignal
from cantle_ai.codec import Json
from cantle_ai.usage import Usage

if TYPE_CHECKING:
    from cantle_session.compaction.plan import CompactionPlan
    from cantle_session.compaction.settings import CompactionSettings
    from cantle_session.entries import Entry
    from cantle_session.session import Session

__all__ = [
    "BeforeCompact",
    "BeforeNavigate",
    "CallOff",
    "CompactionRequest",
    "NavigationRequest",
    "OwnSummary",
]


class CompactionRequest(Struct, frozen=True, kw_only=True):
    """A compaction that is about to be made."""

    plan: CompactionPlan
    """What is summed up and what is kept."""
    settings: CompactionSettings
    reason: CompactionReason
    instructions: str | None
    """What the user asked to be kept in view."""
    will_retry: bool
    """Whether the request that was too long is sent again afterwards."""
    session: Session
    signal: AbortSignal


class NavigationRequest(Struct, frozen=True, kw_only=True):
    """The session is about to stand at another entry."""

    target_id: str
    """The entry that was chosen."""
    new_leaf_id: str | None
    """What the next entry will follow: the target, or what stands before it where it is a user's message."""
    old_leaf_id: str | None
    common_ancestor_id: str | None
    entries: Sequence[Entry]
    """What is left: the entries behind the common ancestor up to the old leaf, oldest first."""
    summarize: bool
    """Whether they are to be summed up."""
    instructions: str | None
    session: Session
    signal: AbortSignal


class CallOff(Struct, frozen=True):
    """A hook's decision that it is not done."""

    reason: str = ""


class OwnSummary(Struct, frozen=True, kw_only=True):
    """A hook's summary in place of the one that a model would be asked for."""

    summary: str
    """Not empty: that is refused, and nothing is written."""
    details: Json = None
    usage: Usage | None = None
    """What the summary took; counts in the session's totals."""
    first_kept_entry_id: str | None | UnsetType = UNSET
    """Where what a compaction keeps begins: an entry of the path, None for nothing; left out, as planned."""


BeforeCompact: TypeAlias = Callable[
    [CompactionRequest], CallOff | OwnSummary | None | Awaitable[CallOff | OwnSummary | None]
]
BeforeNavigate: TypeAlias = Callable[
    [NavigationRequest], CallOff | OwnSummary | None | Awaitable[CallOff | OwnSummary | None]
]
