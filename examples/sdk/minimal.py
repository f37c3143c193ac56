"""A session, one prompt, the answer.

With a real model, leave out `models` and `model`: they are then found as on the command line.
"""

import asyncio

from cantle import create_agent_session
from cantle_ai import Models
from cantle_ai.testing import ScriptedModel


async def main() -> None:
    models = Models()
    model = ScriptedModel(["There is nothing here yet."]).register(models)
    async with create_agent_session(models=models, model=model) as session:
        await session.prompt("What is in this folder?")
        print(session.messages[-1].text)


asyncio.run(main())
