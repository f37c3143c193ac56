"""A typed function as a tool: the model sees a schema made from its signature and docstring.

With a real model, `models = cantle_ai.Models()` gives both: `models.stream`, and `models.find("openai", "gpt-5")`.
"""

import asyncio

from cantle_agent import Agent
from cantle_agent.function_tool import tool
from cantle_ai.testing import ScriptedModel

STOCK = {"apples": 12, "pears": 0}


@tool
async def in_stock(article: str) -> str:
    """How many pieces of an article there are.

    Args:
        article: The article's name, in the plural.
    """
    if article not in STOCK:
        raise LookupError(f"There is no article {article!r}. There are: {', '.join(STOCK)}.")
    return str(STOCK[article])


async def main() -> None:
    scripted = ScriptedModel(
        [
            {"content": [{"type": "toolCall", "name": "in_stock", "arguments": {"article": "apple"}}]},
            {"content": [{"type": "toolCall", "name": "in_stock", "arguments": {"article": "apples"}}]},
            lambda context: f"There are {context.messages[-1].text} apples.",
        ]
    )
    agent = Agent(stream=scripted.stream, model=scripted.model, tools=[in_stock])
    await agent.prompt("Do we have apples?")
    for message in agent.messages:
        print(f"{message.role}: {message.text}")


asyncio.run(main())
