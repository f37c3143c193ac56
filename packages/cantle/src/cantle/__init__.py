"""Cantle, a coding agent: the command line, the SDK and the built-in tools.

    import asyncio
    from cantle import create_agent_session

    async def main():
        async with create_agent_session() as session:
            await session.prompt("What is in this folder?")
            print(session.last_answer.text)

    asyncio.run(main())

Public names are loaded when they are first used, so that importing one module does not load the rest.
"""

from __future__ import annotations

TYPE_CHECKING = False  # type checkers take it for True; importing `typing` for it costs more than the rest
if TYPE_CHECKING:
    from cantle.errors import UserError
    from cantle.hub.agent_session import AgentSession
    from cantle.hub.events import SessionEvent
    from cantle.sdk import create_agent_session
    from cantle.settings import Settings, load_settings

__all__ = [
    "AgentSession",
    "SessionEvent",
    "Settings",
    "UserError",
    "create_agent_session",
    "load_settings",
]

_HOMES = {
    "AgentSession": "cantle.hub.agent_session",
    "SessionEvent": "cantle.hub.events",
    "Settings": "cantle.settings",
    "UserError": "cantle.errors",
    "create_agent_session": "cantle.sdk",
    "load_settings": "cantle.settings",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted(__all__)
