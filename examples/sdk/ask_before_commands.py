"""A hook that may block a tool call: here, commands that delete.

What a hook blocks becomes a result that the model reads, so it can go another way. With a real model, leave out
`models` and `model`.
"""

import asyncio

from cantle import create_agent_session
from cantle_agent import Block, RequestedToolCall
from cantle_ai import Models
from cantle_ai.testing import ScriptedModel


def no_deleting(request: RequestedToolCall) -> Block | None:
    command = str(request.arguments.get("command", ""))
    if request.tool.name == "bash" and command.startswith("rm "):
        return Block(reason="Deleting is not allowed here. Say which files should go instead.")
    return None


async def main() -> None:
    scripted = ScriptedModel(
        [
            {"content": [{"type": "toolCall", "name": "bash", "arguments": {"command": "rm -r build"}}]},
            "I may not delete `build`; please remove it yourself.",
        ]
    )
    models = Models()
    async with create_agent_session(models=models, model=scripted.register(models)) as session:
        session.agent.before_tool_call.append(no_deleting)
        await session.prompt("Clean up.")
        for message in session.messages:
            print(f"{message.role}: {message.text}")


asyncio.run(main())
