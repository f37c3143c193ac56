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
    "agent": ("Agent",),
    "config": (
        "AgentContext",
        "Block",
        "ChangeArguments",
        "FinishedToolCall",
        "FinishedTurn",
        "LoopConfig",
        "NextTurn",
        "RequestedToolCall",
        "ResultChange",
    ),
    "errors": (
        "AgentBusyError",
        "AgentError",
        "ContinueError",
        "HookError",
        "ListenerError",
        "SchemaError",
    ),
    "events": (
        "AgentEnd",
        "AgentEvent",
        "AgentStart",
        "MessageEnd",
        "MessageStart",
        "MessageUpdate",
        "ToolExecutionEnd",
        "ToolExecutionStart",
        "ToolExecutionUpdate",
        "TurnEnd",
        "TurnStart",
    ),
    "loop": ("agent_loop", "run_loop"),
    "messages": ("AgentMessage", "CustomMessage", "convert_to_llm"),
    "queues": ("MessageQueue",),
    "tool": ("Tool", "ToolContext", "ToolError", "ToolResult"),
}


def __getattr__(name: str) -> object:
    for home, names in _HOMES.items():
        if name in names:
            from importlib import import_module

            value: object = getattr(import_module(f"{__name__}.{home}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
