"""A message to an agent that is at work: it enters after the running tools, before the next request.

With a real model, leave out `models` and `model`.
"""

import asyncio

from cantle import SessionEvent, create_agent_session
from cantle_agent import ToolExecutionStart
from cantle_ai import Models
from cantle_ai.testing import ScriptedModel


async def main() -> None:
    scripted = ScriptedModel(
        [
            {"content": [{"type": "toolCall", "name": "bash", "arguments": {"command": "echo in English"}}]},
            lambda context: f"The last thing I read was: {context.messages[-1].text}",
        ]
    )
    models = Models()
    async with create_agent_session(models=models, model=scripted.register(models)) as session:

        def interrupt(event: SessionEvent) -> None:
            if isinstance(event, ToolExecutionStart):
                session.steer("In Latin, please.")

        session.subscribe(interrupt)
        await session.prompt("Write a poem.")
        print(session.messages[-1].text)


asyncio.run(main())
