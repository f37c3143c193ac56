"""The conversation in the Messages API's form, the blocks of each message encoded once.

    {"role": "user", "content": [{"type": "text", …} | {"type": "image", …} | {"type": "tool_result", …}, …]}
    {"role": "assistant", "content": [{"type": "thinking", …} | {"type": "redacted_thinking", …}
                                      | {"type": "text", …} | {"type": "tool_use", …}, …]}

The roles alternate: what follows each other in one role is one message, whose blocks are those of all. The API
reads neighbours of one role that way in any case, and stricter servers refuse them. The results of an answer come
first in their message, and the images of failed ones after all of them, as an error may hold text only.

The bytes of a block depend on its message, never on what comes later: so the blocks of one request begin those of
the next, which is what prompt caches live on. They are kept in the message's own `wire`. Cache marks are the
exception; a mark is put into a block for its request alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from cantle_ai.apis.anthropic_messages_compat import AnthropicMessagesCompat
from cantle_ai.apis.encoded_messages import EncodedMessages, kept_bytes
from cantle_ai.call_ids import NAME_CHARACTERS, fitting_id, fitting_name
from cantle_ai.codec import Json, JsonObject
from cantle_ai.content import ImageContent, TextContent, ThinkingContent, ToolCall
from cantle_ai.history import ReplayRules, Turn
from cantle_ai.messages import AssistantMessage, Message, ToolResultMessage

__all__ = ["REPLAY_RULES", "encode_turns", "marked"]

REPLAY_RULES = ReplayRules(call_id=fitting_id(NAME_CHARACTERS, 64, prefix="toolu_"))
"""The ids of `tool_use` blocks match `^[a-zA-Z0-9_-]+$`; endpoints that imitate the API bound them at 64."""

_LOOKBACK = 20
"""So many blocks before a mark the cache looks for what it holds ("Prompt caching")."""
_IMAGES_BELOW = "(its images follow the results)"


class _Group:
    """One message that is being put together: the encoded blocks of its turns, and how many there are."""

    __slots__ = ("blocks", "count", "role")

    def __init__(self, role: str) -> None:
        self.role = role
        self.blocks: list[bytes] = []
        self.count = 0

    def add(self, blocks: bytes, count: int) -> None:
        self.blocks.append(blocks)
        self.count += count


def encode_turns(
    turns: Iterable[Turn], compat: AnthropicMessagesCompat, *, mark: bytes | None
) -> EncodedMessages:
    """The messages of a request in order. `mark` is the cache mark to set, a member of a JSON object."""
    encoded = EncodedMessages()
    key = ("anthropic-messages", compat.allow_empty_signature)
    encode = partial(_blocks, compat=compat)
    groups: list[_Group] = []
    images: list[Turn] = []
    for turn in turns:
        message = turn.message
        role = "assistant" if isinstance(message, AssistantMessage) else "user"
        blocks = kept_bytes(turn, key, encode)
        if not isinstance(message, ToolResultMessage):
            _add_images(groups, images)
        if blocks:
            if not groups or groups[-1].role != role:
                groups.append(_Group(role))
            groups[-1].add(blocks, _size(message))
        if isinstance(message, ToolResultMessage) and message.is_error and turn.images:
            images.append(turn)
        encoded.count_images(turn)
    _add_images(groups, images)
    if mark is not None:
        _mark(groups, mark)
    encoded.parts = [
        b'{"role":"' + group.role.encode() + b'","content":[' + b",".join(group.blocks) + b"]}"
        for group in groups
    ]
    return encoded


def marked(block: bytes, mark: bytes) -> bytes:
    """An encoded object with one member more."""
    return b"".join([block[:-1], b",", mark, b"}"])


def _mark(groups: Sequence[_Group], mark: bytes) -> None:
    """Mark the end of the last user message, and of the one before where it would be out of sight otherwise.

    The latter is where the request before this one was marked.
    """
    places = [place for place, group in enumerate(groups) if group.role == "user"][-2:]
    if len(places) == 2 and sum(group.count for group in groups[places[0] + 1 :]) < _LOOKBACK:
        del places[0]
    for place in places:
        blocks = groups[place].blocks
        blocks[-1] = marked(blocks[-1], mark)


def _blocks(turn: Turn, compat: AnthropicMessagesCompat) -> list[JsonObject]:
    match turn.message:
        case AssistantMessage():
            blocks = (_answer_block(block, compat) for block in turn.assistant_blocks())
            return [block for block in blocks if block is not None]
        case ToolResultMessage():
            return [_result(turn, turn.message.is_error)]
        case _:
            return [_shown(block) for block in turn.user_blocks()]


def _answer_block(
    block: TextContent | ThinkingContent | ToolCall, compat: AnthropicMessagesCompat
) -> JsonObject | None:
    match block:
        case TextContent():
            return _text(block.text) if block.text.strip() else None
        case ToolCall():
            name = fitting_name(block.name)
            return {"type": "tool_use", "id": block.id, "name": name, "input": block.arguments}
        case ThinkingContent(redacted=True):
            return {"type": "redacted_thinking", "data": block.signature} if block.signature else None
        case ThinkingContent() if block.signature or compat.allow_empty_signature:
            return {"type": "thinking", "thinking": block.thinking, "signature": block.signature or ""}
        case ThinkingContent():
            return _text(block.thinking) if block.thinking.strip() else None


def _result(turn: Turn, is_error: bool) -> JsonObject:
    blocks = turn.result_blocks()
    texts = [block.text for block in blocks if isinstance(block, TextContent)]
    with_images = len(texts) < len(blocks)
    content: Json
    if with_images and not is_error:
        content = [_shown(block) for block in blocks]
    else:
        content = "\n".join([*texts, _IMAGES_BELOW] if with_images else texts)
    return {"type": "tool_result", "tool_use_id": turn.call_id, "content": content, "is_error": is_error}


def _add_images(groups: Sequence[_Group], failed: list[Turn]) -> None:
    """Add the images of failed results, each result's after a line that says whose they are. Empties the list."""
    for turn in failed:
        groups[-1].add(kept_bytes(turn, "anthropic-messages images", _images), 1 + len(turn.images))
    failed.clear()


def _images(turn: Turn) -> list[JsonObject]:
    return [_text(f"Images of the result of {turn.call_id}:"), *map(_shown, turn.images)]


def _shown(block: TextContent | ImageContent) -> JsonObject:
    if isinstance(block, TextContent):
        return _text(block.text)
    return {
        "type": "image",
        "source": {"type": "base64", "media_type": block.detected_type, "data": block.data},
    }


def _text(text: str) -> JsonObject:
    return {"type": "text", "text": text}


def _size(message: Message) -> int:
    """How many blocks a message makes, roughly."""
    if isinstance(message, ToolResultMessage) or isinstance(message.content, str):
        return 1
    return max(1, len(message.content))
