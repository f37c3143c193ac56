"""One history for any model: what of a conversation a request carries, and in which form its target takes it.

A history records what happened; a provider accepts only what is consistent, and only what it has made itself
of that which is opaque. Each request is a projection of the history for its target:

- answers that failed or broke off are left out, with the results of their calls;
- results stand directly after the answer that asked for them; a call without one gets an error result that says
  :data:`INTERRUPTED`; a result that nobody asked for is left out;
- thinking of another model is plain text; its redacted thinking and its signatures are gone;
- thinking that nothing follows, blank text and empty answers are gone, an empty result says :data:`NO_OUTPUT`;
- ids of calls are made to fit (:mod:`cantle_ai.call_ids`), images may be notes (:mod:`cantle_ai.history_images`);
- a conversation whose beginning is lost still begins with the user.

The stored messages are never changed. What a message becomes depends on it and on what stands before it, so the
bytes of one request begin those of the next.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct

from cantle_ai.call_ids import CallIdRule, CallIds
from cantle_ai.content import AssistantContent, ImageContent, TextContent, ThinkingContent, ToolCall
from cantle_ai.history_images import images_left_out, shown_blocks
from cantle_ai.messages import AssistantMessage, Message, ToolResultMessage, UserMessage

if TYPE_CHECKING:
    from cantle_ai.model import Model, StreamOptions

__all__ = [
    "INTERRUPTED",
    "NO_OUTPUT",
    "Projection",
    "ProjectionKind",
    "ProjectionReport",
    "ReplayRules",
    "Turn",
    "project",
    "replayable",
]

INTERRUPTED = "The call was interrupted before it gave a result."
"""What a call without a result is answered with."""
NO_OUTPUT = "(no output)"
"""What stands for a result without text: the strictest servers refuse an empty one."""
_NO_TEXT = "(empty message)"
_NO_BEGINNING = "(The beginning of this conversation is missing.)"

ProjectionKind: TypeAlias = Literal[
    "failed_answers",
    "empty_answers",
    "interrupted_calls",
    "orphan_results",
    "images",
    "thinking_as_text",
    "redacted_thinking",
    "signatures",
    "call_ids",
    "missing_beginning",
]
"""What a projection did, each kind counted:

=================== ==============================================================================
`failed_answers`    answers left out because they failed or broke off
`empty_answers`     answers left out because nothing of them can be sent
`interrupted_calls` calls that were given the result that they lack
`orphan_results`    results left out because no call asked for them
`images`            images that a note stands for
`thinking_as_text`  thinking of another model, sent as text
`redacted_thinking` redacted thinking of another model, left out
`signatures`        signatures of another model on text or calls, left out
`call_ids`          calls whose ids were made to fit
`missing_beginning` 1 when the conversation did not begin with the user
=================== ==============================================================================
"""


class ProjectionReport(Struct, frozen=True):
    """What a request changed or left out of its history, by kind. False when nothing was."""

    counts: Mapping[ProjectionKind, int] = {}

    def __bool__(self) -> bool:
        return bool(self.counts)


class ReplayRules(Struct, frozen=True, kw_only=True):
    """What a wire API takes of a history."""

    call_id: CallIdRule
    thinking_may_end: bool = False
    """Whether thinking may stand after everything else of an answer, as where it has fields of its own."""


class Turn:
    """One message of a projection, and what of it the target may see."""

    __slots__ = ("_left_out", "_rules", "ids", "message", "own", "tool_name")

    def __init__(
        self,
        message: Message,
        rules: ReplayRules,
        own: bool = False,
        ids: tuple[str, ...] = (),
        left_out: str | None = None,
        tool_name: str = "",
    ) -> None:
        """`own` says that the model that is asked has written it; `ids` are those of its calls, in order.

        `left_out` is what stands for each image, None where they are sent. `tool_name` is the name in the call that
        a result answers: what providers compare, whatever the result itself calls its tool.
        """
        self.message = message
        self._rules = rules
        self.own = own
        self.ids = ids
        self._left_out = left_out
        self.tool_name = tool_name

    @property
    def key(self) -> tuple[object, ...]:
        """All that its form depends on beside the message and the model: part of the key of kept bytes."""
        return (self.own, self.ids, self._left_out, self.tool_name)

    @property
    def call_id(self) -> str:
        """The id of the call that this result answers, as the target knows it."""
        return self.ids[0]

    @property
    def calls(self) -> list[ToolCall]:
        """The calls of an answer, with the ids that the target knows them by."""
        return [block for block in self.assistant_blocks() if isinstance(block, ToolCall)]

    @property
    def images(self) -> list[ImageContent]:
        """The images of a message that is no answer, as far as they are sent."""
        content = self.message.content
        if self._left_out is not None or isinstance(content, str):
            return []
        return [block for block in content if isinstance(block, ImageContent) and block.detected_type]

    def assistant_blocks(self) -> list[TextContent | ThinkingContent | ToolCall]:
        """The blocks of an answer. Own ones are the stored blocks themselves wherever nothing had to change.

        Thinking is always own, and something follows it, or stands before it where that will do. Text is never
        blank, but own text with a signature.
        """
        assert isinstance(self.message, AssistantMessage)
        content = self.message.content
        blocks = list(self._own_blocks(content) if self.own else self._foreign_blocks(content))
        said = [place for place, block in enumerate(blocks) if not isinstance(block, ThinkingContent)]
        if not said:
            return []
        return blocks if self._rules.thinking_may_end else blocks[: said[-1] + 1]

    def user_blocks(self) -> list[TextContent | ImageContent]:
        """The blocks of what the user said: at least one, no blank text."""
        assert isinstance(self.message, UserMessage)
        content = self.message.content
        blocks = [TextContent(content)] if isinstance(content, str) else content
        shown = [block for block in shown_blocks(blocks, self._left_out) if not _blank(block)]
        return shown or [TextContent(_NO_TEXT)]

    def result_blocks(self) -> list[TextContent | ImageContent]:
        """The blocks of a result: at least one, no blank text."""
        assert isinstance(self.message, ToolResultMessage)
        blocks = [block for block in shown_blocks(self.message.content, self._left_out) if not _blank(block)]
        return blocks or [TextContent(NO_OUTPUT)]

    def _own_blocks(
        self, content: Sequence[AssistantContent]
    ) -> Iterator[TextContent | ThinkingContent | ToolCall]:
        ids = iter(self.ids)
        for block in content:
            match block:
                case ToolCall():
                    call_id = next(ids)
                    yield block if call_id == block.id else _renamed(block, call_id, block.thought_signature)
                case TextContent():
                    if block.text.strip() or block.signature is not None:
                        yield block
                case ThinkingContent():
                    if block.thinking.strip() or block.signature:
                        yield block

    def _foreign_blocks(self, content: Sequence[AssistantContent]) -> Iterator[TextContent | ToolCall]:
        ids = iter(self.ids)
        lead = ""
        for block in content:
            match block:
                case ToolCall():
                    yield _renamed(block, next(ids))
                    lead = ""
                case TextContent():
                    if block.text.strip():
                        yield TextContent(lead + block.text) if lead or block.signature is not None else block
                        lead = ""
                case ThinkingContent():
                    if block.thinking.strip() and not block.redacted:
                        yield TextContent(lead + block.thinking)
                        # A paragraph of its own, also where a target knows but one text.
                        lead = "\n\n"


class Projection(Struct, frozen=True):
    """The messages of one request, in order."""

    turns: Sequence[Turn]
    report: ProjectionReport


def project(
    messages: Sequence[Message], model: Model, options: StreamOptions, rules: ReplayRules
) -> Projection:
    """The history as `model` is to see it. Tells `options.on_projection`, when there is anything to tell."""
    projecting = _Projecting(model, rules, images_left_out(model, options))
    turns = [
        turn for message in replayable(messages, projecting.counts) if (turn := projecting.turn(message))
    ]
    if turns and isinstance(turns[0].message, AssistantMessage):
        projecting.counts["missing_beginning"] += 1
        turns.insert(0, Turn(UserMessage(_NO_BEGINNING, timestamp=0), rules))
    report = ProjectionReport(dict(+projecting.counts))
    if report and options.on_projection is not None:
        options.on_projection(report)
    return Projection(turns, report)


class _Projecting:
    """The state of one projection on its way through the history."""

    __slots__ = ("_ids", "_left_out", "_model", "_open", "_rules", "counts")

    def __init__(self, model: Model, rules: ReplayRules, left_out: str | None) -> None:
        self._model = model
        self._rules = rules
        self._left_out = left_out
        self._ids = CallIds(rules.call_id)
        self._open: dict[str, list[tuple[str, str]]] = {}
        self.counts: Counter[ProjectionKind] = Counter()

    def turn(self, message: Message) -> Turn | None:
        """The next message's turn; None when nothing of it can be sent."""
        match message:
            case AssistantMessage():
                return self._answer(message)
            case ToolResultMessage():
                self._count_images(message.content)
                call_id, name = self._open[message.tool_call_id].pop(0)
                return Turn(message, self._rules, False, (call_id,), self._left_out, name)
            case UserMessage():
                if not isinstance(message.content, str):
                    self._count_images(message.content)
                return Turn(message, self._rules, False, (), self._left_out)

    def _answer(self, message: AssistantMessage) -> Turn | None:
        model = self._model
        own = message.model == model.id and message.provider == model.provider and message.api == model.api
        self._open = {}
        ids: list[str] = []
        for call in message.tool_calls:
            call_id = self._ids.of_call(call.id, own)
            if call_id != call.id:
                self.counts["call_ids"] += 1
            self._open.setdefault(call.id, []).append((call_id, call.name))
            ids.append(call_id)
        if not own:
            self._count_foreign(message)
        turn = Turn(message, self._rules, own, tuple(ids))
        if not ids and not turn.assistant_blocks():
            self.counts["empty_answers"] += 1
            return None
        return turn

    def _count_foreign(self, message: AssistantMessage) -> None:
        for block in message.content:
            match block:
                case ThinkingContent():
                    self.counts["redacted_thinking"] += block.redacted
                    self.counts["thinking_as_text"] += not block.redacted and bool(block.thinking.strip())
                case TextContent():
                    self.counts["signatures"] += block.signature is not None
                case ToolCall():
                    self.counts["signatures"] += block.thought_signature is not None

    def _count_images(self, blocks: Iterable[object]) -> None:
        for block in blocks:
            if isinstance(block, ImageContent):
                self.counts["images"] += self._left_out is not None or block.detected_type is None


def replayable(
    messages: Iterable[Message], counts: Counter[ProjectionKind] | None = None
) -> Iterator[Message]:
    """The messages to send, in the order in which providers want them; what is left out or made is counted.

    Answers that failed or were aborted are left out, and with them the results of their calls. Results come
    directly after the answer that asked for them, ahead of what was said meanwhile; a call without one gets
    an error result that says :data:`INTERRUPTED`; results that no call asked for are left out.
    """
    counts = Counter() if counts is None else counts
    open_calls: list[ToolCall] = []
    results: list[Message] = []
    said: list[Message] = []
    failed: set[str] = set()
    for message in messages:
        match message:
            case AssistantMessage():
                if open_calls or results or said:
                    yield from _batch(open_calls, results, said, counts)
                    open_calls, results, said = [], [], []
                failed = set()
                if message.failed or message.stop_reason == "pending":
                    counts["failed_answers"] += 1
                    failed = {call.id for call in message.tool_calls}
                else:
                    open_calls = message.tool_calls
                    yield message
            case ToolResultMessage():
                for place, call in enumerate(open_calls):
                    if call.id == message.tool_call_id:
                        del open_calls[place]
                        results.append(message)
                        break
                else:
                    counts["orphan_results"] += message.tool_call_id not in failed
            case _:
                said.append(message)
    yield from _batch(open_calls, results, said, counts)


def _batch(
    open_calls: list[ToolCall], results: list[Message], said: list[Message], counts: Counter[ProjectionKind]
) -> Iterator[Message]:
    yield from results
    for call in open_calls:
        counts["interrupted_calls"] += 1
        yield ToolResultMessage(call.id, call.name, [TextContent(INTERRUPTED)], is_error=True, timestamp=0)
    yield from said


def _renamed(call: ToolCall, call_id: str, signature: str | None = None) -> ToolCall:
    return ToolCall(call_id, call.name, call.arguments, thought_signature=signature, namespace=call.namespace)


def _blank(block: TextContent | ImageContent) -> bool:
    return isinstance(block, TextContent) and not block.text.strip()
