"""Names of tools that providers do not take, such as `mcp.search`: sent in a form that fits, and told as they were.

The history's calls are fitted by the wire APIs (:func:`cantle_ai.call_ids.fitting_name`) in the same way.
"""

from __future__ import annotations

import msgspec

from cantle_ai.builder import AnswerBuilder
from cantle_ai.call_ids import fitting_name
from cantle_ai.context import Context
from cantle_ai.errors import ConfigurationError
from cantle_ai.model import NamedTool, StreamOptions

__all__ = ["with_fitting_names"]


def with_fitting_names(
    context: Context, options: StreamOptions, builder: AnswerBuilder
) -> tuple[Context, StreamOptions]:
    """The request with the names of its tools as every provider takes them; calls that `builder` makes have the real ones.

    Raises :class:`ConfigurationError` for two tools that could not be told apart.
    """
    names = [fitting_name(tool.name) for tool in context.tools]
    if all(name == tool.name for name, tool in zip(names, context.tools, strict=True)):
        return context, options
    tools = [
        msgspec.structs.replace(tool, name=name) for name, tool in zip(names, context.tools, strict=True)
    ]
    real: dict[str, str] = {}
    for name, tool in zip(names, context.tools, strict=True):
        if name in real:
            raise ConfigurationError(
                None,
                f'The tools "{real[name]}" and "{tool.name}" are both "{name}" to a provider. Rename one of them',
            )
        real[name] = tool.name
    builder.tool_names = real
    if isinstance(options.tool_choice, NamedTool):
        chosen = NamedTool(fitting_name(options.tool_choice.name))
        options = msgspec.structs.replace(options, tool_choice=chosen)
    return msgspec.structs.replace(context, tools=tools), options
