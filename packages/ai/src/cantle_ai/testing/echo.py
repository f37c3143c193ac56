"""A model that says back what it was told, and calls tools when it is told to.

The last user message, line by line:

    >> read {"path": "a.txt"}     calls the tool `read` with these arguments
    ?? because                    thinks "because"
    anything else                 is said as it stands

After tool results it says their text.
"""

from __future__ import annotations

from cantle_ai.context import Context
from cantle_ai.messages import ToolResultMessage
from cantle_ai.model import Model
from cantle_ai.testing.response import Block, CallBlock, Chunk, Response, TextBlock, ThinkingBlock
from cantle_ai.testing.scripted import ScriptedModel, scripted_model

__all__ = ["EchoModel", "echo"]

_CALL, _THOUGHT = ">> ", "?? "


def echo(context: Context) -> Response:
    """The echo of a context's last message, or of the tool results at its end."""
    results: list[str] = []
    for message in reversed(context.messages):
        if not isinstance(message, ToolResultMessage):
            break
        results.append(message.text)
    if results:
        return Response(content="\n".join(reversed(results)))
    text = context.messages[-1].text if context.messages else ""
    thoughts: list[str] = []
    said: list[str] = []
    calls: list[Block] = []
    for line in text.split("\n"):
        if line.startswith(_CALL):
            name, _, arguments = line.removeprefix(_CALL).strip().partition(" ")
            calls.append(CallBlock(name=name, arguments=arguments.strip()))
        elif line.startswith(_THOUGHT):
            thoughts.append(line.removeprefix(_THOUGHT))
        else:
            said.append(line)
    blocks: list[Block] = []
    if thoughts:
        blocks.append(ThinkingBlock(thinking="\n".join(thoughts)))
    if any(said):
        blocks.append(TextBlock(text="\n".join(said)))
    return Response(content=(*blocks, *calls))


class EchoModel(ScriptedModel):
    """A :class:`ScriptedModel` whose every answer is :func:`echo`."""

    def __init__(self, *, seed: int = 0, chunk: Chunk = (1, 16), model: Model | None = None) -> None:
        super().__init__(echo, seed=seed, chunk=chunk, model=model or scripted_model("echo", provider="echo"))
