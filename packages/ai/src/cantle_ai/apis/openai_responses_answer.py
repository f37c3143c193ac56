"""Puts the events of one response together.

A response is a list of items: messages, reasoning, calls, and what the vendor's own tools did. An item is
announced (`response.output_item.added`), grows by deltas, and is sent whole when it is done; the last event
holds all of them again. Servers leave out any of these, so each block takes what is still missing from
whatever comes later, and never loses what it has.

What the API wants back is kept where the session file has it: the reasoning item as the thinking block's
signature, id and phase of a message as the text's, and a call's id as `call_id|item_id`. An item of a kind that
is not known here becomes a redacted thinking block, whose signature is the item.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias, TypeVar

import msgspec
from msgspec import Struct

from cantle_ai.apis.new_call_ids import NewCallIds
from cantle_ai.apis.openai_responses_events import Event, object_in, text_in, texts_in, usage_of
from cantle_ai.apis.openai_responses_tiers import at_tier
from cantle_ai.builder import AnswerBuilder
from cantle_ai.codec import Json, JsonObject, encode_json
from cantle_ai.content import TextContent, ThinkingContent, ToolCall
from cantle_ai.context import Context
from cantle_ai.errors import ProviderError
from cantle_ai.messages import StopReason
from cantle_ai.usage import Price

__all__ = ["Answer"]

_B = TypeVar("_B", TextContent, ThinkingContent, ToolCall)
_Kind: TypeAlias = Literal["message", "reasoning", "function_call", "custom_tool_call", "other"]

_KINDS: dict[str, _Kind] = {
    "message": "message",
    "reasoning": "reasoning",
    "function_call": "function_call",
    "custom_tool_call": "custom_tool_call",
}
_ENDS = {
    "response.completed": "completed",
    "response.done": "completed",
    "response.incomplete": "incomplete",
    "response.failed": "failed",
    "response.cancelled": "cancelled",
}
"""The events that end a response, and the status that each speaks of, should its response not say."""
_BETWEEN_PARTS = "\n\n"


class _Head(Struct, gc=False):
    """What of a response that has begun is looked at."""

    id: str | None = None
    model: str | None = None


_head = msgspec.json.Decoder(_Head).decode


class _Item:
    """An item that is being received. It has no block before there is something to show."""

    __slots__ = ("block", "done", "fields", "held", "kind", "part")

    def __init__(self, kind: _Kind, fields: JsonObject) -> None:
        self.kind: _Kind = kind
        self.fields = fields
        self.block: int | None = None
        self.part: tuple[str, int | None] | None = None
        self.held: list[str] = []
        """Arguments of a call whose name has not come; of a custom tool, its input so far."""
        self.done = False


class Answer:
    """Takes events and tells the builder. `finish` must follow the last."""

    def __init__(
        self,
        builder: AnswerBuilder,
        requested_model: str,
        context: Context,
        *,
        price: Price | None = None,
        tier_prices: Mapping[str, float] | None = None,
    ) -> None:
        """`context` is what was asked: calls whose ids are in it get others. `tier_prices` go over the known ones."""
        self.empty = True
        """Whether no event has said anything yet."""
        self._builder = builder
        self._requested_model = requested_model
        self._price = price
        self._tier_prices = tier_prices or {}
        self._ids = NewCallIds(context, separator="|")
        self._items: dict[int, _Item] = {}
        self._by_id: dict[str, _Item] = {}
        self._received: list[_Item] = []
        self._has_calls = False
        self._status: str | None = None
        self._response: JsonObject = {}

    @property
    def ended(self) -> bool:
        """Whether the response has said how it ended."""
        return self._status is not None

    def add(self, event: Event) -> None:
        kind = event.type or ""
        match kind:
            case "response.output_text.delta" | "response.refusal.delta":
                self._text(self._item(event, "message"), event.delta)
            case "response.function_call_arguments.delta":
                self._arguments(self._item(event, "function_call"), event.delta)
            case "response.reasoning_summary_text.delta":
                self._thought(self._item(event, "reasoning"), ("summary", event.summary_index), event.delta)
            case "response.reasoning_text.delta":
                self._thought(self._item(event, "reasoning"), ("content", event.content_index), event.delta)
            case "response.custom_tool_call_input.delta":
                self._input(self._item(event, "custom_tool_call"), event.delta)
            case "response.output_item.added":
                self._added(event)
            case "response.output_item.done":
                self._done(event, object_in(event.item))
            case "response.function_call_arguments.done":
                self._rest_of_arguments(self._item(event, "function_call"), event.arguments)
            case "response.output_text.done" | "response.refusal.done":
                item = self._item(event, "message")
                if item.block is None:
                    self._text(item, event.text or event.refusal)
            case _ if kind in _ENDS:
                self.end_with(object_in(event.response), _ENDS[kind])
            case "response.created" | "response.in_progress" | "response.queued":
                self._begin(event)
            case _:
                return
        self.empty = False

    def end_with(self, response: JsonObject, status: str = "completed") -> None:
        """Take the whole response. `status` is what it is when it does not say."""
        self.empty = False
        self._status = text_in(response, "status") or status
        self._response = response
        self._name(text_in(response, "id"), text_in(response, "model"))
        output = response.get("output")
        self._take_all(
            [item for item in output if isinstance(item, dict)] if isinstance(output, list) else []
        )

    def finish(self) -> None:
        """All events have come: close the answer. Raises :class:`ProviderError` if it ended in a failure."""
        builder, response = self._builder, self._response
        for item in self._received:
            if not item.done:
                self._close(item)
        usage = usage_of(response.get("usage"))
        if usage is not None:
            tier = text_in(response, "service_tier")
            builder.usage(at_tier(usage, self._price, tier, self._tier_prices))
        details = response.get("incomplete_details")
        reason = text_in(details, "reason") if isinstance(details, dict) else None
        status = self._status or "completed"
        raw = f"{status}.{reason}" if status == "incomplete" and reason else status
        builder.message.raw_stop_reason = raw
        if status == "failed":
            raise _failure(response.get("error"))
        if status == "cancelled":
            raise ProviderError("The provider cancelled the answer", code="cancelled")
        if reason == "content_filter":
            raise ProviderError("The provider's content filter stopped the answer", code=reason)
        end: StopReason = "toolUse" if self._has_calls else "stop"
        builder.done("length" if status == "incomplete" else end, raw=raw)

    # --- items

    def _begin(self, event: Event) -> None:
        try:
            head = _head(event.response)
        except msgspec.MsgspecError:
            return
        self._name(head.id, head.model)

    def _name(self, response_id: str | None, model: str | None) -> None:
        message = self._builder.message
        if message.response_id is None and response_id:
            message.response_id = response_id
        if message.response_model is None and model and model != self._requested_model:
            message.response_model = model

    def _item(self, event: Event, kind: _Kind, fields: JsonObject | None = None) -> _Item:
        """The item that an event speaks of: by its id, else by its place, as one vendor changes ids on the way."""
        id = event.item_id or (text_in(fields, "id") if fields else None)
        item = self._by_id.get(id) if id else None
        if item is None:
            if event.output_index is not None:
                item = self._items.get(event.output_index)
            elif self._received and not self._received[-1].done:
                item = self._received[-1]
            if item is not None and item.done and fields and item.fields.get("id") != id:
                item = None  # some servers say 0 for every place
        if item is None or item.kind != kind:
            item = self._new(kind, fields or {}, event.output_index, event.item_id)
        return item

    def _new(
        self, kind: _Kind, fields: JsonObject, index: int | None = None, item_id: str | None = None
    ) -> _Item:
        item = _Item(kind, {"type": kind, **fields})
        self._received.append(item)
        if index is not None:
            self._items[index] = item
        for id in (item_id, text_in(fields, "id")):
            if id:
                self._by_id.setdefault(id, item)
        return item

    def _added(self, event: Event) -> None:
        fields = object_in(event.item)
        id = text_in(fields, "id")
        if not text_in(fields, "type") or (id and id in self._by_id):
            return  # says nothing, or was said already
        item = self._new(_kind(fields), fields, event.output_index)
        if item.kind in ("function_call", "custom_tool_call"):
            self._has_calls = True
            if text_in(fields, "name"):
                self._open_call(item)

    def _done(self, event: Event, fields: JsonObject) -> None:
        if text_in(fields, "type"):
            self._finish_item(self._item(event, _kind(fields), fields), fields)

    def _take_all(self, output: list[JsonObject]) -> None:
        """All items once more: each is one that was received, by one of its ids, else by its kind in order, else new."""
        left = [*self._received]
        for name in ("id", "call_id", "type"):
            others: list[JsonObject] = []
            for fields in output:
                said = text_in(fields, name)
                item = next((each for each in left if said and each.fields.get(name) == said), None)
                if item is None:
                    others.append(fields)
                else:
                    left.remove(item)
                    self._finish_item(item, fields)
            output = others
        for fields in output:
            if text_in(fields, "type"):
                self._finish_item(self._new(_kind(fields), fields), fields)

    def _finish_item(self, item: _Item, fields: JsonObject) -> None:
        """Take what of an item has not come yet, and close its block."""
        if item.done:
            return
        known = item.fields
        if item.kind in ("reasoning", "other"):
            # What was announced of it may have been half of it, such as its encrypted content.
            known = {key: value for key, value in known.items() if key in ("type", "id")}
        item.fields = {**known, **{key: value for key, value in fields.items() if value is not None}}
        match item.kind:
            case "message":
                self._finish_message(item)
            case "reasoning":
                self._finish_reasoning(item)
            case "function_call":
                self._has_calls = True
                arguments = item.fields.get("arguments")
                if isinstance(arguments, dict):
                    arguments = encode_json(arguments).decode()
                self._rest_of_arguments(item, arguments if isinstance(arguments, str) else None)
                self._open_call(item)
            case "custom_tool_call":
                self._has_calls = True
                self._finish_input(item)
            case "other":
                signature = encode_json(item.fields).decode()
                item.block = self._builder.thinking_start(signature=signature, redacted=True)
        self._close(item)

    def _close(self, item: _Item) -> None:
        item.done = True
        if item.block is not None:
            self._builder.end(item.block)

    # --- text

    def _text(self, item: _Item, delta: str | None) -> None:
        if item.done or not delta:
            return
        if item.block is None:
            item.block = self._builder.text_start()
        self._builder.text_delta(item.block, delta)

    def _finish_message(self, item: _Item) -> None:
        received = "" if item.block is None else self._block(item, TextContent).text
        self._text(item, _rest(received, "".join(texts_in(item.fields.get("content")))))
        if item.block is not None:
            self._block(item, TextContent).signature = _text_signature(item.fields)

    # --- thinking

    def _thought(self, item: _Item, part: tuple[str, int | None], delta: str | None) -> None:
        if item.done or not delta:
            return
        if item.block is None:
            item.block = self._builder.thinking_start()
        elif part != item.part:
            delta = _BETWEEN_PARTS + delta
        item.part = part
        self._builder.thinking_delta(item.block, delta)

    def _finish_reasoning(self, item: _Item) -> None:
        if item.block is None:
            for name in ("summary", "content"):
                for place, text in enumerate(texts_in(item.fields.get(name))):
                    self._thought(item, (name, place), text)
        if item.block is None:
            item.block = self._builder.thinking_start()
        self._block(item, ThinkingContent).signature = encode_json(item.fields).decode()

    # --- calls

    def _open_call(self, item: _Item) -> None:
        """Open a call's block, now that its name is known or will not come."""
        if item.block is not None:
            return
        call_id, item_id = self._ids.of(text_in(item.fields, "call_id")), text_in(item.fields, "id")
        name = text_in(item.fields, "name") or ""
        item.block = self._builder.tool_call_start(f"{call_id}|{item_id}" if item_id else call_id, name)
        self._block(item, ToolCall).namespace = text_in(item.fields, "namespace")
        if item.kind == "function_call":
            for held in item.held:
                self._builder.tool_call_delta(item.block, held)
            item.held.clear()

    def _arguments(self, item: _Item, delta: str | None) -> None:
        if item.done or not delta:
            return
        if item.block is None:
            item.held.append(delta)
        else:
            self._builder.tool_call_delta(item.block, delta)

    def _rest_of_arguments(self, item: _Item, whole: str | None) -> None:
        """What of the arguments has not come in deltas. Others than those that came do not replace them."""
        if item.done or not whole:
            return
        known = "".join(item.held) if item.block is None else self._block(item, ToolCall).arguments_text
        self._arguments(item, _rest(known, whole))

    def _input(self, item: _Item, delta: str | None) -> None:
        """The input of a custom tool is any text, which becomes the argument `input`."""
        if item.done or not delta:
            return
        self._open_call(item)
        assert item.block is not None
        begin = "" if item.held else '{"input":"'
        item.held.append(delta)
        self._builder.tool_call_delta(item.block, begin + encode_json(delta)[1:-1].decode())

    def _finish_input(self, item: _Item) -> None:
        self._open_call(item)
        assert item.block is not None
        self._input(item, _rest("".join(item.held), text_in(item.fields, "input") or ""))
        self._builder.tool_call_delta(item.block, '"}' if item.held else '{"input":""}')

    # --- the end

    def _block(self, item: _Item, kind: type[_B]) -> _B:
        assert item.block is not None
        block = self._builder.message.content[item.block]
        assert isinstance(block, kind)
        return block


def _kind(fields: JsonObject) -> _Kind:
    return _KINDS.get(text_in(fields, "type") or "", "other")


def _rest(known: str, whole: str) -> str:
    """What `whole` has after what is `known`; nothing where it goes another way."""
    return whole[len(known) :] if whole.startswith(known) else ""


def _text_signature(fields: JsonObject) -> str | None:
    """Id and phase of a message, as the session file has them; None without an id."""
    id, phase = text_in(fields, "id"), text_in(fields, "phase")
    if id is None:
        return None
    kept: JsonObject = {"v": 1, "id": id}
    if phase is not None:
        kept["phase"] = phase
    return encode_json(kept).decode()


def _failure(error: Json) -> ProviderError:
    from cantle_ai.apis.http_errors import error_from_json

    if error:
        return error_from_json(error)
    return ProviderError("The provider ended the answer as failed, and did not say why", code="server_error")
