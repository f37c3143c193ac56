"""The answer as it arrives: a listener gets every event, and prints the pieces of text.

With a real model, leave out `models` and `model`.
"""

import asyncio

from cantle import SessionEvent, create_agent_session
from cantle_agent import MessageUpdate
from cantle_ai import Models
from cantle_ai.events import TextDelta
from cantle_ai.testing import ScriptedModel


def show(event: SessionEvent) -> None:
    match event:
        case MessageUpdate(event=TextDelta(delta=delta)):
            print(delta, end="|", flush=True)


async def main() -> None:
    models = Models()
    model = ScriptedModel(["One word after the other."], chunk=5).register(models)
    async with create_agent_session(models=models, model=model) as session:
        session.subscribe(show)
        await session.prompt("Say something.")
    print()


asyncio.run(main())
