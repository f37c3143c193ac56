"""Conversations for the tests of compaction: short ways to say things, in a session in memory."""

from collections.abc import Iterable
from typing import Any

from cantle_agent.messages import AgentMessage
from cantle_ai.content import AssistantContent, TextContent, ToolCall
from cantle_ai.messages import AssistantMessage, StopReason, ToolResultMessage, UserMessage
from cantle_ai.usage import Usage
from cantle_session.session import Session


def says(text: str, *, tokens: int = 0, stop: StopReason = "stop", **fields: Any) -> AssistantMessage:
    """An answer; `tokens` is the size of the context that its provider reports."""
    usage = Usage(input=tokens, total_tokens=tokens)
    content: list[AssistantContent] = [TextContent(text)] if text else []
    return AssistantMessage(content, "openai-completions", "p", "m", usage, stop, **fields)


def calls(*ids: str, name: str = "read", tokens: int = 0, **arguments: Any) -> AssistantMessage:
    """An answer that calls a tool once for each id, which is the path as well where no arguments are given."""
    usage = Usage(input=tokens, total_tokens=tokens)
    blocks = [ToolCall(call_id, name, arguments or {"path": call_id}) for call_id in ids]
    return AssistantMessage(list(blocks), "openai-completions", "p", "m", usage, "toolUse")


def gives(call_id: str, text: str, *, name: str = "read", is_error: bool = False) -> ToolResultMessage:
    return ToolResultMessage(call_id, name, [TextContent(text)], is_error)


def words(tokens: int, mark: str = "") -> str:
    """A text of so many tokens by estimate."""
    return (mark + "x" * tokens * 4)[: tokens * 4]


def session_of(messages: Iterable[AgentMessage]) -> Session:
    session = Session.in_memory("/work")
    add(session, *messages)
    return session


def add(session: Session, *messages: AgentMessage) -> list[str]:
    """Add the messages and give their ids."""
    return [session.append_message(message).id for message in messages]


def said(messages: Iterable[AgentMessage]) -> list[str]:
    """What messages say, in their first letters."""
    return [message.text[:8].rstrip("x") or message.role for message in messages]


def standing(session: Session) -> str:
    """The entry at which a session stands that has one."""
    assert session.leaf_id is not None
    return session.leaf_id


def user(text: str) -> UserMessage:
    return UserMessage(text)
