"""Makes a tool of a typed function: the signature is its schema, the docstring its description.

    @tool
    async def weather(city: str, days: Annotated[int, "How many days ahead"] = 1) -> str:
        \"\"\"Look up the weather forecast.

        Args:
            city: Name of the place, with its country.
        \"\"\"

A parameter annotated :class:`ToolContext` gets the running call's context and is not part of the schema.
A coroutine function is awaited. A plain function runs in a thread of its own; an abort can't stop it, so
one that takes long asks for the context and looks at its signal.

The function returns text, blocks, a :class:`ToolResult`, or anything JSON has a form for, which the model
gets as JSON and `details` keeps as data. What it raises is the call's error.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import PurePath
from typing import Annotated, Any, Protocol, TypeGuard, get_args, get_origin, get_type_hints, overload

import msgspec

from cantle_agent.docstring import parse_docstring
from cantle_agent.errors import SchemaError
from cantle_agent.tool import ExecutionMode, Tool, ToolContext, ToolError, ToolResult
from cantle_ai.codec import Json, JsonObject, encode_json
from cantle_ai.content import ImageContent, TextContent, UnknownContent

__all__ = ["tool"]

_Function = Callable[..., object]


@overload
def tool(function: _Function, /) -> Tool: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    label: str = "",
    execution_mode: ExecutionMode = "parallel",
    prompt_snippet: str = "",
    prompt_guidelines: Sequence[str] = (),
) -> Callable[[_Function], Tool]: ...


def tool(
    function: _Function | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    label: str = "",
    execution_mode: ExecutionMode = "parallel",
    prompt_snippet: str = "",
    prompt_guidelines: Sequence[str] = (),
) -> Tool | Callable[[_Function], Tool]:
    """A tool that calls the decorated function. Name and description default to the function's own.

    Parameters may have any type that msgspec reads from JSON (numbers, text, lists, mappings, literals, enums,
    optionals, unions, dataclasses, typed dictionaries, structs, dates), a path, or a pydantic model. Without an
    annotation anything is taken. Raises TypeError for a parameter that JSON can't fill, and SchemaError for a
    function that nothing describes, or whose docstring describes a parameter that it does not have.
    """
    scope = sys._getframe(1).f_locals

    def make(function: _Function) -> Tool:
        signature = _Signature(function, scope)
        if not signature.description and not description:
            raise SchemaError(
                f"{signature.where} has no description that a model could read. Give it a docstring."
            )
        return Tool(
            name=name or str(getattr(function, "__name__", type(function).__name__)),
            description=signature.description if description is None else description,
            parameters=signature.schema,
            execute=_Execute(function, signature),
            label=label,
            execution_mode=execution_mode,
            prompt_snippet=prompt_snippet,
            prompt_guidelines=tuple(prompt_guidelines),
        )

    return make if function is None else make(function)


class _Signature:
    """What a function wants: a schema for the model, and the types to turn its arguments into."""

    __slots__ = ("context_name", "description", "schema", "types", "where")

    def __init__(self, function: _Function, scope: Mapping[str, object]) -> None:
        import inspect

        where = getattr(function, "__qualname__", repr(function))
        parameters = inspect.signature(function).parameters
        hints = _hints(function, scope, where)
        self.where = where
        self.types: dict[str, Any] = {}
        self.context_name: str | None = None
        for parameter in parameters.values():
            wanted = hints.get(parameter.name, Any)
            if _without_metadata(wanted) is ToolContext:
                self.context_name = parameter.name
            elif parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
                raise TypeError(
                    f"{where}: {parameter} can't be filled by name. Give each argument of a tool its own name."
                )
            else:
                self.types[parameter.name] = wanted
        described = parse_docstring(inspect.getdoc(function) or "", parameters)
        if described.strangers:
            raise SchemaError(
                f"{where}: the docstring describes {described.strangers[0]!r}, which is no parameter. "
                f"There are: {', '.join(parameters) or 'none'}."
            )
        self.description = described.description
        defaults = {
            name: parameters[name].default
            for name in self.types
            if parameters[name].default is not inspect.Parameter.empty
        }
        self.schema = _schema(self.types, defaults, described.parameters, where)

    def read(self, arguments: JsonObject) -> dict[str, object]:
        """Arguments as the function's types. Raises ToolError with the place of what does not fit."""
        values: dict[str, object] = {}
        for name, value in arguments.items():
            try:
                values[name] = msgspec.convert(value, self.types.get(name, Any), dec_hook=_read_foreign)
            except msgspec.ValidationError as error:
                raise ToolError(f"{name}: {error}") from error
        return values


class _Execute:
    """The `execute` of a tool made of a function."""

    __slots__ = ("__wrapped__", "_is_async", "_signature")

    def __init__(self, function: _Function, signature: _Signature) -> None:
        import inspect

        self.__wrapped__ = function
        self._signature = signature
        self._is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
            getattr(function, "__call__", None)  # noqa: B004 - the method of an object that is called
        )

    async def __call__(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        values = self._signature.read(arguments)
        if self._signature.context_name is not None:
            values[self._signature.context_name] = context
        if self._is_async:
            made: Any = self.__wrapped__(**values)
        else:
            made = await _in_thread(lambda: self.__wrapped__(**values), context.tool_name)
        return _result(await made if isinstance(made, Awaitable) else made)


async def _in_thread(work: Callable[[], object], name: str) -> object:
    """Run `work` in a thread that nobody waits for at exit, so that one that hangs can't hold the process."""
    import contextvars
    import threading

    loop = asyncio.get_running_loop()
    future: asyncio.Future[object] = loop.create_future()
    context = contextvars.copy_context()

    def settle(value: object, error: BaseException | None) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(value)
        else:
            future.set_exception(error)

    def run() -> None:
        value: object = None
        problem: BaseException | None = None
        try:
            value = context.run(work)
        except StopIteration as error:
            problem = RuntimeError(f"StopIteration: {error}")  # a future refuses to carry it
        except BaseException as error:  # noqa: BLE001 - carried over to the task that waits
            problem = error
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, value, problem)

    threading.Thread(target=run, name=f"cantle-tool-{name}", daemon=True).start()
    return await future


def _result(value: object) -> ToolResult:
    if isinstance(value, ToolResult):
        return value
    if isinstance(value, str):
        return ToolResult.of(value)
    if value is None:
        return ToolResult.of("Done.")
    members = list(value) if isinstance(value, (list, tuple)) else [value]
    blocks = [block for block in members if isinstance(block, _BLOCKS)]
    if blocks and len(blocks) == len(members):
        return ToolResult(content=blocks)
    if _is_model(value):
        value = value.model_dump(mode="json")
    # Bytes have a form in JSON, base64, which a model can't read: an image would fill the context as text.
    if isinstance(value, (bytes, bytearray, memoryview)):
        raise _unreadable(value)
    try:
        details: Json = msgspec.to_builtins(value)
    except TypeError:
        raise _unreadable(value) from None
    return ToolResult.of(encode_json(details).decode("utf-8"), details=details)


_BLOCKS = (TextContent, ImageContent, UnknownContent)


def _unreadable(value: object) -> ToolError:
    return ToolError(
        f"The tool's function returned what no model can read, of the type {type(value).__name__}. It has to return "
        "text, blocks such as ImageContent, a ToolResult, or what JSON has a form for."
    )


def _hints(function: _Function, scope: Mapping[str, object], where: str) -> dict[str, Any]:
    target = function if hasattr(function, "__annotations__") else type(function).__call__
    try:
        return get_type_hints(target, localns=dict(scope), include_extras=True)
    except NameError as error:
        raise TypeError(f"{where}: an annotation can't be read: {error}") from error


def _schema(
    types: Mapping[str, Any], defaults: Mapping[str, object], texts: Mapping[str, str], where: str
) -> JsonObject:
    properties: JsonObject = {}
    definitions: JsonObject = {}
    for name, wanted in types.items():
        node = _node(wanted, definitions, f"{where}: parameter {name!r}")
        if text := _annotated_text(wanted) or texts.get(name):
            node = {"description": text, **node}
        default = defaults.get(name)
        if default is not None and (written := _written(default)) is not None:
            node = {**node, "default": written}
        properties[name] = node
    schema: JsonObject = {"type": "object", "properties": properties}
    if required := [name for name in types if name not in defaults]:
        schema["required"] = list(required)
    schema["additionalProperties"] = False
    if definitions:
        schema["$defs"] = definitions
    return schema


def _node(wanted: Any, definitions: JsonObject, where: str) -> JsonObject:
    def foreign(kind: type) -> JsonObject:
        if issubclass(kind, PurePath):
            return {"type": "string"}
        if _is_model_type(kind):
            model = kind.model_json_schema()
            definitions.update(model.pop("$defs", {}))
            return model
        raise NotImplementedError(kind)

    try:
        [node], found = msgspec.json.schema_components(
            [wanted], schema_hook=foreign, ref_template="#/$defs/{name}"
        )
    except (TypeError, NotImplementedError) as error:
        raise TypeError(f"{where} has a type that JSON can't fill: {wanted!r} ({error})") from error
    definitions.update({name: _typed(child) for name, child in found.items()})
    typed: JsonObject = _typed(node)
    return typed


def _typed(node: Any) -> Any:
    """The schema with a type beside each `enum` of strings or of integers, which strict providers want."""
    if isinstance(node, list):
        return [_typed(child) for child in node]
    if not isinstance(node, dict):
        return node
    node = {key: _typed(child) for key, child in node.items()}
    options = node.get("enum")
    if isinstance(options, list) and "type" not in node:
        kinds = {type(option) for option in options}
        if kinds == {str} or kinds == {int}:
            node = {"type": "string" if kinds == {str} else "integer", **node}
    return node


def _annotated_text(wanted: Any) -> str | None:
    """A description from `Annotated`: a string, or something with a `description`, such as a pydantic field."""
    if get_origin(wanted) is not Annotated:
        return None
    for note in get_args(wanted)[1:]:
        text = note if isinstance(note, str) else getattr(note, "description", None)
        if isinstance(text, str):
            return text
    return None


def _without_metadata(wanted: Any) -> Any:
    return get_args(wanted)[0] if get_origin(wanted) is Annotated else wanted


def _written(default: object) -> Json:
    """A default as the schema shows it; None for one that JSON has no form for."""
    if _is_model(default):
        return default.model_dump(mode="json")
    try:
        written: Json = msgspec.to_builtins(default, enc_hook=str if isinstance(default, PurePath) else None)
    except (TypeError, ValueError):
        return None
    return written


def _read_foreign(kind: type, value: object) -> object:
    if _is_model_type(kind):
        return kind.model_validate(value)
    return kind(value)


class _ModelType(Protocol):
    """The part of pydantic's models that is used, so that pydantic need not be installed."""

    def model_json_schema(self) -> dict[str, Any]: ...
    def model_validate(self, value: object) -> object: ...


class _Model(Protocol):
    def model_dump(self, *, mode: str) -> Json: ...


def _is_model_type(kind: object) -> TypeGuard[_ModelType]:
    return isinstance(kind, type) and hasattr(kind, "model_json_schema") and hasattr(kind, "model_validate")


def _is_model(value: object) -> TypeGuard[_Model]:
    return _is_model_type(type(value)) and hasattr(value, "model_dump")
