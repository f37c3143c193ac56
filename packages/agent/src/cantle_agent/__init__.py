"""Agent runtime: the loop, tools and their pipeline, events, queues, and the agent that holds them together.

The decorator that makes a tool of a function is :func:`cantle_agent.function_tool.tool`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cantle_agent.agent import Agent
    from cantle_agent.config import (
        AgentContext,
        Block,
        ChangeArguments,
        FinishedToolCall,
        FinishedTurn,
        LoopConfig,
        NextTurn,
        RequestedToolCall,
        ResultChange,
    )
    from cantle_agent.errors import (
        AgentBusyError,
        AgentError,
        ContinueError,
        HookError,
        ListenerError,
        SchemaError,
    )
    from cantle_agent.events import (
        AgentEnd,
        AgentEvent,
        AgentStart,
        MessageEnd,
        MessageStart,
        MessageUpdate,
        ToolExecutionEnd,
        ToolExecutionStart,
        ToolExecutionUpdate,
        TurnEnd,
        TurnStart,
    )
    from cantle_agent.loop import agent_loop, run_loop
    from cantle_agent.messages import AgentMessage, CustomMessage, convert_to_llm
    from cantle_agent.queues import MessageQueue
    from cantle_agent.tool import Tool, ToolContext, ToolError, ToolResult

__all__ = [
    "Agent",
    "AgentBusyError",
    "AgentContext",
    "AgentEnd",
    "AgentError",
    "AgentEvent",
    "AgentMessage",
    "AgentStart",
    "Block",
    "ChangeArguments",
    "ContinueError",
    "CustomMessage",
    "FinishedToolCall",
    "FinishedTurn",
    "HookError",
    "ListenerError",
    "LoopConfig",
    "MessageEnd",
    "MessageQueue",
    "MessageStart",
    "MessageUpdate",
    "NextTurn",
    "RequestedToolCall",
    "ResultChange",
    "SchemaError",
    "Tool",
    "ToolContext",
    "ToolError",
    "ToolExecutionEnd",
    "ToolExecutionStart",
    "ToolExecutionUpdate",
    "ToolResult",
    "TurnEnd",
    "TurnStart",
    "agent_loop",
    "convert_to_llm",
    "run_loop",
]

_HOMES = {
    "Agent": "cantle_agent.agent",
    "AgentBusyError": "cantle_agent.errors",
    "AgentContext": "cantle_agent.config",
    "AgentEnd": "cantle_agent.events",
    "AgentError": "cantle_agent.errors",
    "AgentEvent": "cantle_agent.events",
    "AgentMessage": "cantle_agent.messages",
    "AgentStart": "cantle_agent.events",
    "Block": "cantle_agent.config",
    "ChangeArguments": "cantle_agent.config",
    "ContinueError": "cantle_agent.errors",
    "CustomMessage": "cantle_agent.messages",
    "FinishedToolCall": "cantle_agent.config",
    "FinishedTurn": "cantle_agent.config",
    "HookError": "cantle_agent.errors",
    "ListenerError": "cantle_agent.errors",
    "LoopConfig": "cantle_agent.config",
    "MessageEnd": "cantle_agent.events",
    "MessageQueue": "cantle_agent.queues",
    "MessageStart": "cantle_agent.events",
    "MessageUpdate": "cantle_agent.events",
    "NextTurn": "cantle_agent.config",
    "RequestedToolCall": "cantle_agent.config",
    "ResultChange": "cantle_agent.config",
    "SchemaError": "cantle_agent.errors",
    "Tool": "cantle_agent.tool",
    "ToolContext": "cantle_agent.tool",
    "ToolError": "cantle_agent.tool",
    "ToolExecutionEnd": "cantle_agent.events",
    "ToolExecutionStart": "cantle_agent.events",
    "ToolExecutionUpdate": "cantle_agent.events",
    "ToolResult": "cantle_agent.tool",
    "TurnEnd": "cantle_agent.events",
    "TurnStart": "cantle_agent.events",
    "agent_loop": "cantle_agent.loop",
    "convert_to_llm": "cantle_agent.messages",
    "run_loop": "cantle_agent.loop",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
