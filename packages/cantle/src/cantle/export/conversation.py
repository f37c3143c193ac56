"""What each entry of a session shows, and the chains of entries with their forks.

The page's address is its state: `#e-<entry id>` and `#w…` name a place, and the style sheet shows the branch on
which that place is. So branches are chosen by links, without a script, and a place can be passed on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from cantle.export.branches import Chain, Fork, Way
from cantle.export.code import code_block
from cantle.export.entry_texts import anchors, clock, day, gist, one_line, pretty_json
from cantle.export.figures import counted
from cantle.export.markup import EMPTY, Html, joined, tag, text
from cantle.export.parts import (
    answer_figures,
    compacted,
    ending_of,
    extension_name,
    file_lists,
    hidden_note,
    note_words,
    raw_json,
    shell_command,
    system_prompt,
    thought,
    typed_content,
    usage_line,
)
from cantle.export.prose import rendered
from cantle.export.tool_calls import folded, image, result_alone, tool_call
from cantle.export.turns import is_note, results_of, speaker_of, turns_of
from cantle_ai.codec import Json
from cantle_ai.content import (
    Content,
    ImageContent,
    TextContent,
    ThinkingContent,
    ToolCall,
    UnknownContent,
    UserContent,
)
from cantle_ai.messages import AssistantMessage, ToolResultMessage, UnknownMessage, UserMessage
from cantle_ai.usage import Usage, total_usage
from cantle_session.entries import (
    BranchSummaryEntry,
    CompactionEntry,
    ContextEditEntry,
    CustomEntry,
    CustomMessageEntry,
    Entry,
    LabelEntry,
    MessageEntry,
    usage_of,
)
from cantle_session.fates import Fate
from cantle_session.messages import (
    BashExecutionMessage,
    BranchSummaryMessage,
    CompactionSummaryMessage,
    ExtensionMessage,
)

__all__ = ["Conversation", "way_anchor"]

_NEIGHBOURS = 2
"""Ways before and after the present one that a fork offers by name; the outline has all."""
_LOOK = 60
"""Entries at which a way is looked for a line that tells what it is about."""


class Conversation:
    """The entries of a session, ready to be written."""

    def __init__(
        self, entries: Sequence[Entry], labels: Mapping[str, str], unseen: Mapping[str, Fate]
    ) -> None:
        """`labels` and `unseen`, which tells what became of entries that a model is not shown, are by entry id."""
        self.entries = entries
        self.anchors = anchors(entries)
        self.labels = labels
        self._unseen = unseen
        self._places = {entry.id: position for position, entry in enumerate(entries)}

    def pieces(self, chain: Chain) -> Iterator[Html]:
        """The chain, piece by piece, with everything that lies in it."""
        today = ""
        run: list[int] = []
        for index, item in enumerate(chain.items):
            if isinstance(item, int):
                run.append(item)
                continue
            yield from self._run(run, today)
            today = self._day_of(run) or today
            run = []
            yield from self._fork(item, chain.items[index + 1 : index + 1 + _LOOK])
        yield from self._run(run, today)

    def title_of(self, way: Way, ahead: Sequence[int | Fork] = ()) -> str:
        """What a way on is about, in one line; `ahead` is what follows it, where it goes on in place."""
        items = ahead if way.chain is None else way.chain.items[:_LOOK]
        for position in (item for item in items if isinstance(item, int)):
            entry = self.entries[position]
            if isinstance(entry, MessageEntry) and isinstance(entry.message, UserMessage):
                return gist(entry, 70)
        return gist(self.entries[way.first], 70)

    # --- forks

    def _fork(self, fork: Fork, ahead: Sequence[int | Fork]) -> Iterator[Html]:
        titles = [self.title_of(way, ahead) for way in fork.ways]
        yield Html('<div class="fork">')
        yield self._choices(fork, titles, fork.main)
        for way in fork.ways:
            if way.chain is not None:
                yield Html(f'<section class="way" id="{way_anchor(fork, way)}">')
                yield self._choices(fork, titles, way)
                yield from self.pieces(way.chain)
                yield Html("</section>")
        yield Html("</div>")

    def _choices(self, fork: Fork, titles: list[str], here: Way | None) -> Html:
        """The ways on from a fork, as links; the present one is marked."""
        count = len(fork.ways)
        at = here.number if here is not None else count
        low, high = max(1, at - _NEIGHBOURS), min(count, at + _NEIGHBOURS)
        numbers = [1, *range(max(low, 2), min(high, count - 1) + 1), *([count] if count > 1 else [])]
        links = []
        for before, number in zip([0, *numbers], numbers, strict=False):
            if number > before + 1:
                links.append(tag("li", text(f"{number - before - 1} more"), class_="more"))
            links.append(tag("li", self._choice(fork, fork.ways[number - 1], titles[number - 1], here)))
        if fork.main is None:
            stands = tag(
                "a",
                tag("b", text("The session stands here")),
                href=f"#{way_anchor(fork, None)}",
                aria_current="true" if here is None else None,
            )
            links.insert(0, tag("li", stands))
        name = f"Branch {at} of {count}" if here is not None else counted(count, "branch", "branches")
        return tag(
            "nav",
            tag("p", text(name)),
            tag("ul", *links),
            class_="ways",
            aria_label="Branches from here",
            id=way_anchor(fork, here) if here is fork.main else None,
        )

    def _choice(self, fork: Fork, way: Way, title: str, here: Way | None) -> Html:
        when = self.entries[way.first].timestamp
        about = " · ".join(
            filter(None, (counted(way.messages, "message"), f"{day(when)} {clock(when)}".strip()))
        )
        return tag(
            "a",
            tag("b", text(f"{way.number}")),
            tag("span", text(title)),
            tag("small", text(about)),
            href=f"#{way_anchor(fork, way)}",
            aria_current="true" if way is here else None,
        )

    # --- entries in a row

    def _run(self, run: list[int], today: str) -> Iterator[Html]:
        results = results_of(self.entries, run)
        claimed = set(results.values())
        turns = turns_of(self.entries, run)
        speaker = ""
        shown = [position for position in run if position not in claimed]
        for noted, group in groupby(shown, lambda position: is_note(self.entries[position])):
            if noted:
                yield tag("div", *(self._note(position) for position in group), class_="notes")
                continue
            for position in group:
                entry = self.entries[position]
                if (date := day(entry.timestamp)) and date != today:
                    yield tag("p", text(date), class_="day")
                    today = date
                said = self._entry(position, results, turns, speaker)
                speaker = speaker_of(entry)
                yield said

    def _day_of(self, run: list[int]) -> str:
        return next(
            (date for position in reversed(run) if (date := day(self.entries[position].timestamp))), ""
        )

    def _entry(
        self, position: int, results: dict[tuple[int, str], int], turns: dict[int, list[int]], speaker: str
    ) -> Html:
        entry = self.entries[position]
        match entry:
            case MessageEntry(message=UserMessage() as message):
                return self._article("user", "You", position, typed_content(message.content))
            case MessageEntry(message=AssistantMessage() as answer):
                return self._answer(position, answer, results, turns.get(position), speaker)
            case MessageEntry(message=ToolResultMessage() as result):
                return self._article(
                    "answer more", "", position, result_alone(result, f"{self.anchors[position]}-r")
                )
            case MessageEntry(message=BashExecutionMessage() as command):
                return self._article("shell", "You, in the shell", position, shell_command(command))
            case MessageEntry(message=ExtensionMessage() as note):
                return self._extension(position, note.custom_type, note.content, note.details, note.display)
            case CustomMessageEntry():
                return self._extension(
                    position, entry.custom_type, entry.content, entry.details, entry.display
                )
            case MessageEntry(message=BranchSummaryMessage() as message):
                return self._summary(position, "Summary of another branch", message.summary, None, None)
            case BranchSummaryEntry():
                return self._summary(
                    position, "Summary of another branch", entry.summary, entry.usage, entry.details
                )
            case MessageEntry(message=CompactionSummaryMessage() as message):
                return self._summary(position, compacted(message.tokens_before), message.summary, None, None)
            case CompactionEntry():
                title = compacted(entry.tokens_before or 0)
                return self._summary(position, title, entry.summary, entry.usage, entry.details)
            case MessageEntry(message=UnknownMessage(raw={"role": "system"} as raw)):
                return self._article("raw", "", position, system_prompt(raw))
            case MessageEntry(message=UnknownMessage(role=role, raw=raw)):
                return self._article(
                    "raw", "", position, raw_json(f"A message of the role {one_line(role)}", raw)
                )
        return self._article(
            "raw", "", position, raw_json(f"An entry of the type {one_line(entry.type)}", entry.to_json())
        )

    def _article(self, kind: str, author: str, position: int, *body: Html) -> Html:
        entry = self.entries[position]
        fate = self._unseen.get(entry.id)
        head = [tag("b", text(author))] if author else []
        head += self._marks(position, stretch=not author)
        if head:
            head.append(self._time(position))
        return tag(
            "article",
            tag("header", *head) if head else EMPTY,
            *body,
            class_=f"entry {kind} unseen" if fate else f"entry {kind}",
            id=self.anchors[position],
        )

    def _marks(self, position: int, *, stretch: bool) -> list[Html]:
        """An entry's label, and what became of it; in a `stretch` of entries not that they were summed up together."""
        entry_id = self.entries[position].id
        label, fate = self.labels.get(entry_id), self._unseen.get(entry_id)
        marks = [tag("mark", text(one_line(label, 80)))] if label else []
        if fate is not None and not (stretch and fate == "summed up"):
            marks.append(tag("small", text(fate), class_="fate"))
        return marks

    def _time(self, position: int) -> Html:
        stamp = self.entries[position].timestamp
        shown = tag("time", text(clock(stamp)), datetime=stamp, title=stamp) if clock(stamp) else text("#")
        return tag("a", shown, class_="at", href=f"#{self.anchors[position]}")

    def _answer(
        self,
        position: int,
        answer: AssistantMessage,
        results: dict[tuple[int, str], int],
        turn: list[int] | None,
        speaker: str,
    ) -> Html:
        blocks = [self._block(position, block, results) for block in answer.content]
        follows = speaker_of(self.entries[position]) == speaker
        figures = (
            [] if answer.usage == Usage() else [tag("footer", text(answer_figures(answer)), class_="figures")]
        )
        if turn is not None and len(turn) > 1:
            figures.append(tag("footer", text(self._turn(turn)), class_="turn"))
        elif turn is not None and figures:
            figures = [tag("footer", text(answer_figures(answer)))]
        author = "" if follows else answer.model or "Assistant"
        kind = "answer more" if follows else "answer"
        return self._article(kind, author, position, *blocks, ending_of(answer), *figures)

    def _block(self, position: int, block: Content, results: dict[tuple[int, str], int]) -> Html:
        match block:
            case TextContent():
                return tag("div", rendered(block.text), class_="prose") if block.text.strip() else EMPTY
            case ThinkingContent():
                return thought(block)
            case ToolCall():
                at = results.get((position, block.id))
                entry = None if at is None else self.entries[at]
                message = entry.message if isinstance(entry, MessageEntry) else None
                result = message if isinstance(message, ToolResultMessage) else None
                if at is None:
                    return tool_call(block, result, None)
                return tool_call(block, result, self.anchors[at], *self._marks(at, stretch=True))
            case ImageContent():
                return image(block)
            case UnknownContent():
                return raw_json("A part of a kind that is not known here", block.to_json())

    def _turn(self, turn: list[int]) -> str:
        """A turn of several answers in one line."""
        answers = [self.entries[position] for position in turn]
        usage = total_usage(filter(None, map(usage_of, answers)))
        return f"{counted(len(turn), 'answer')} · {usage_line(usage)}"

    def _extension(
        self, position: int, name: str, content: str | Sequence[UserContent], details: Json, display: bool
    ) -> Html:
        body = [typed_content(content)]
        if details is not None:
            body.append(raw_json("Details", details))
        if display:
            return self._article("extension", extension_name(name), position, *body)
        hidden = folded(text(hidden_note(name)), *body, class_="raw")
        return self._article("raw", "", position, hidden)

    def _summary(self, position: int, title: str, summary: str, usage: Usage | None, details: Json) -> Html:
        files = [joined(file_lists(details))] if isinstance(details, dict) else []
        cost = [] if usage is None else [tag("footer", text(usage_line(usage)))]
        body = folded(
            text(title), tag("div", rendered(summary), class_="prose"), *files, *cost, class_="summary"
        )
        return self._article("between", "", position, body)

    # --- what is no message

    def _note(self, position: int) -> Html:
        entry = self.entries[position]
        match entry:
            case LabelEntry():
                what = f"Label “{one_line(entry.label)}” on " if entry.label else "Label taken from "
                said = joined([text(what), self._link(entry.target_id)])
            case ContextEditEntry():
                said = self._edit(entry)
            case CustomEntry():
                said = folded(
                    text(f"State of {one_line(entry.custom_type)}"),
                    code_block(pretty_json(entry.data), "json"),
                    class_="raw",
                )
            case _:
                said = text(note_words(entry))
        return tag("div", said, class_="note", id=self.anchors[position])

    def _edit(self, entry: ContextEditEntry) -> Html:
        target = self._link(entry.target_id)
        if entry.replacement is None:
            return joined([text("From here on the model no longer sees "), target])
        content = entry.replacement["content"]
        shown = content if isinstance(content, str) else pretty_json(content)
        what = joined([text("From here on the model sees other words for "), target])
        return joined([what, folded(text("The other words"), code_block(shown), class_="raw")])

    def _link(self, entry_id: str) -> Html:
        place = self._places.get(entry_id)
        if place is None:
            return text("an entry that is not there")
        return tag("a", text(gist(self.entries[place], 50)), href=f"#{self.anchors[place]}")


def way_anchor(fork: Fork, way: Way | None) -> str:
    """The name of the place where a way begins; of the fork itself, for the one that goes on in the chain."""
    return f"f{fork.number}" if way is fork.main or way is None else f"w{fork.number}-{way.number}"
