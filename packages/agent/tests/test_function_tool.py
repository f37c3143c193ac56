"""Tools made of typed functions."""

import asyncio
import dataclasses
import enum
import threading
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

import msgspec
import pytest

from cantle_agent.docstring import parse_docstring
from cantle_agent.errors import SchemaError
from cantle_agent.function_tool import tool
from cantle_agent.schema import ToolSchema
from cantle_agent.tool import Tool, ToolContext, ToolError, ToolResult
from cantle_ai.content import ImageContent, TextContent
from packages.agent.tests.support import call, make_agent, results, says


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


class Options(TypedDict, total=False):
    loud: bool


class Edit(msgspec.Struct):
    old: str
    new: str = ""


class FakeModel:
    """Has what is used of a pydantic model, and refuses what pydantic would."""

    def __init__(self, a: int) -> None:
        self.a = a

    @classmethod
    def model_json_schema(cls) -> dict[str, Any]:
        inner = {"type": "object", "properties": {"z": {"type": "string"}}}
        return {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "inner": {"$ref": "#/$defs/Inner"}},
            "$defs": {"Inner": inner},
        }

    @classmethod
    def model_validate(cls, value: Any) -> "FakeModel":
        if value["a"] < 0:
            raise ValueError("a is below zero")
        return cls(value["a"])

    def model_dump(self, *, mode: str) -> dict[str, Any]:
        return {"a": self.a}


async def result_of(made: Tool, arguments: dict[str, object]) -> Any:
    """The result of a call, through an agent."""
    agent, _, _ = make_agent([says("", call(made.name, arguments)), "done"], [made])
    await agent.prompt("go")
    (result,) = results(agent.messages)
    return result


def test_signature_and_docstring_become_name_description_and_schema():
    @tool
    async def weather(city: str, days: Annotated[int, "How many days ahead"] = 1) -> str:
        """Look up the forecast.

        Only for places that have one.

        Args:
            city: Name of the place,
                with its country.
            days: Not this one.

        Returns:
            The forecast.
        """
        return city

    assert weather.name == "weather"
    assert weather.description == "Look up the forecast.\n\nOnly for places that have one."
    assert weather.parameters == {
        "type": "object",
        "properties": {
            "city": {"description": "Name of the place, with its country.", "type": "string"},
            "days": {"description": "How many days ahead", "type": "integer", "default": 1},
        },
        "required": ["city"],
        "additionalProperties": False,
    }


def test_every_kind_of_type_has_its_schema():
    @tool
    def many(
        a: str | None,
        b: list[int],
        c: dict[str, float],
        d: Literal["x", "y"],
        e: Colour,
        f: Point,
        g: Options,
        h: Edit,
        i: Path,
        j: Annotated[int, msgspec.Meta(ge=1, description="from one")],
        k: FakeModel,
        l,  # noqa: E741
        m: Literal[1, 2] = 1,
        n: Path = Path("here"),
        o: Point | None = None,
    ) -> None:
        """Do it."""

    properties: Any = many.parameters["properties"]
    assert properties["a"] == {"anyOf": [{"type": "string"}, {"type": "null"}]}
    assert properties["b"] == {"type": "array", "items": {"type": "integer"}}
    assert properties["c"] == {"type": "object", "additionalProperties": {"type": "number"}}
    assert properties["d"] == {"type": "string", "enum": ["x", "y"]}
    assert properties["e"] == {"$ref": "#/$defs/Colour"}
    assert properties["i"] == {"type": "string"}
    assert properties["j"] == {"description": "from one", "type": "integer", "minimum": 1}
    assert properties["k"]["properties"]["a"] == {"type": "integer"}
    assert properties["l"] == {}
    assert properties["m"] == {"type": "integer", "enum": [1, 2], "default": 1}
    assert properties["n"] == {"type": "string", "default": "here"}
    assert "default" not in properties["o"]
    definitions: Any = many.parameters["$defs"]
    assert set(definitions) == {"Colour", "Point", "Options", "Edit", "Inner"}
    assert definitions["Colour"]["type"] == "string"
    assert many.parameters["required"] == list("abcdefghijkl")
    ToolSchema(many.parameters)


async def test_arguments_arrive_as_their_types():
    seen: list[Any] = []

    @tool
    async def typed(
        e: Colour, f: Point, g: Options, h: list[Edit], i: Path, k: FakeModel, n: int = 7
    ) -> None:
        """Do it."""
        seen.extend([e, f, g, h, i, type(k), n])

    await result_of(
        typed,
        {
            "e": "red",
            "f": {"x": "3"},
            "g": {"loud": "true"},
            "h": '[{"old": "a"}]',
            "i": "a/b",
            "k": {"a": 1},
        },
    )
    assert seen == [Colour.RED, Point(3), {"loud": True}, [Edit("a")], Path("a/b"), FakeModel, 7]


async def test_null_for_a_parameter_with_a_default_takes_the_default():
    @tool
    async def optional(n: int = 7, text: str | None = "x") -> str:
        """Do it."""
        return f"{n} {text}"

    assert (await result_of(optional, {"n": None, "text": None})).text == "7 None"


async def test_what_a_model_type_refuses_is_the_calls_error():
    @tool
    async def strict(k: FakeModel) -> None:
        """Do it."""

    result = await result_of(strict, {"k": {"a": -1}})
    assert result.is_error and "a is below zero" in result.text and result.text.startswith("k: ")


async def test_a_context_parameter_gets_the_running_call():
    @tool
    async def aware(text: str, ctx: ToolContext) -> str:
        """Do it."""
        ctx.progress(ToolResult.of("half"))
        return f"{ctx.tool_name} {text} {ctx.signal.aborted}"

    @tool
    def aware_too(run: Annotated[ToolContext, "the call"], *, text: str) -> str:
        """Do it."""
        return f"{run.tool_name} {text}"

    assert list(aware.parameters["properties"]) == ["text"]  # type: ignore[arg-type]
    assert (await result_of(aware, {"text": "a"})).text == "aware a False"
    assert (await result_of(aware_too, {"text": "a"})).text == "aware_too a"


@pytest.mark.parametrize(
    ("value", "text", "details"),
    [
        ("plain", "plain", None),
        (None, "Done.", None),
        ({"a": [1, 2.5, None]}, '{"a":[1,2.5,null]}', {"a": [1, 2.5, None]}),
        ([1, 2], "[1,2]", [1, 2]),
        (7, "7", 7),
        (Point(1), '{"x":1,"y":0}', {"x": 1, "y": 0}),
        (Edit("a"), '{"old":"a","new":""}', {"old": "a", "new": ""}),
        (FakeModel(3), '{"a":3}', {"a": 3}),
        (Colour.BLUE, '"blue"', "blue"),
    ],
)
async def test_what_a_function_returns_becomes_a_result(value: Any, text: str, details: Any):
    @tool
    async def give() -> Any:
        """Do it."""
        return value

    result = await result_of(give, {})
    assert (result.text, result.details, result.is_error) == (text, details, False)


async def test_results_and_blocks_are_passed_on():
    image = ImageContent("iVBORw0KGgoAAAAN", "image/png")
    for value in (ToolResult(content=[image]), image, [image], (image,)):

        @tool
        async def give(value: Any = value) -> Any:
            """Do it."""
            return value

        assert (await result_of(give, {})).content == [image]

    @tool
    async def both() -> list[TextContent | ImageContent]:
        """Do it."""
        return [TextContent("look"), image]

    assert len((await result_of(both, {})).content) == 2


@pytest.mark.parametrize(
    "value", [b"\x89PNG", bytearray(b"a"), object(), [TextContent("a"), 1], {"a": object()}]
)
async def test_what_no_model_can_read_is_an_error_that_says_what_to_return(value: Any):
    @tool
    async def give() -> Any:
        """Do it."""
        return value

    result = await result_of(give, {})
    assert result.is_error and f"of the type {type(value).__name__}." in result.text
    assert "ImageContent" in result.text and "ToolResult" in result.text


async def test_a_plain_function_runs_in_a_thread_and_its_error_is_the_calls():
    threads: list[int] = []

    @tool
    def work(n: int) -> str:
        """Do it."""
        threads.append(threading.get_ident())
        if n == 0:
            raise StopIteration("not a generator")
        if n == 1:
            raise ToolError("no one", details={"n": 1})
        return "ok"

    assert (await result_of(work, {"n": 2})).text == "ok"
    assert threads[0] != threading.get_ident()
    assert "not a generator" in (await result_of(work, {"n": 0})).text
    assert (await result_of(work, {"n": 1})).details == {"n": 1}


async def test_plain_functions_run_side_by_side():
    meeting = threading.Barrier(2, timeout=5)

    @tool
    def meet() -> str:
        """Do it."""
        meeting.wait()
        return "met"

    agent, _, _ = make_agent([says("", call("meet"), call("meet")), "done"], [meet])
    await agent.prompt("go")
    assert [result.text for result in results(agent.messages)] == ["met", "met"]


async def test_a_plain_function_that_hangs_is_left_behind_after_an_abort():
    begun, go = threading.Event(), threading.Event()

    @tool
    def hang() -> str:
        """Do it."""
        begun.set()
        go.wait(30)
        return "late"

    agent, _, _ = make_agent([says("", call("hang")), "never"], [hang], grace=0.01)
    task = asyncio.create_task(agent.prompt("go"))
    await asyncio.to_thread(begun.wait, 5)
    agent.abort()
    async with asyncio.timeout(5):
        await task
    go.set()
    assert results(agent.messages)[0].is_error


def test_the_decorator_takes_what_a_tool_has():
    @tool(
        name="go",
        description="Goes.",
        label="Go!",
        execution_mode="sequential",
        prompt_snippet="goes",
        prompt_guidelines=["Go slowly."],
    )
    async def whatever() -> None:
        """Not this."""

    assert (whatever.name, whatever.description, whatever.label) == ("go", "Goes.", "Go!")
    assert whatever.execution_mode == "sequential" and whatever.prompt_guidelines == ("Go slowly.",)


async def test_methods_and_callables_can_be_tools():
    class Counter:
        """Count."""

        def __init__(self) -> None:
            self.count = 0

        def add(self, n: int) -> int:
            """Count on."""
            self.count += n
            return self.count

        async def __call__(self, n: int) -> int:
            return n

    counter = Counter()
    assert (await result_of(tool(counter.add), {"n": 2})).text == "2" and counter.count == 2
    assert (await result_of(tool(name="counter")(counter), {"n": 4})).text == "4"


@pytest.mark.parametrize(
    ("signature", "problem"),
    [
        ("*names: str", "Give each argument of a tool its own name"),
        ("**fields: str", "Give each argument of a tool its own name"),
        ("text: str, /", "Give each argument of a tool its own name"),
        ("thing: threading.Thread", "parameter 'thing' has a type that JSON can't fill"),
        ("thing: 'Nowhere'", "an annotation can't be read"),
    ],
)
def test_what_json_can_not_fill_is_refused_at_once(signature: str, problem: str):
    scope: dict[str, Any] = {"threading": threading}
    exec(f"def bad({signature}): 'Do it.'", scope)
    with pytest.raises(TypeError, match=problem):
        tool(scope["bad"])


def test_pydantic_models_work_when_pydantic_is_there():
    pydantic = pytest.importorskip("pydantic")
    model = pydantic.create_model("Model", a=(int, ...))

    def use(m):
        """Use it."""

    use.__annotations__ = {"m": model}
    assert tool(use).parameters["properties"]["m"]["properties"]["a"]["type"] == "integer"  # type: ignore[index,call-overload]


@pytest.mark.parametrize(
    ("docstring", "description", "parameters"),
    [
        ("Just this.", "Just this.", {}),
        ("Do it.\n\nArgs:\n    a: first\n    b (int): second\n        and more\n\nRaises:\n    X: no", "Do it.", {"a": "first", "b": "second and more"}),
        ("Do it.\n\n:param a: first\n    and more\n:param int b: second\n:returns: nothing\n:rtype: int", "Do it.", {"a": "first and more", "b": "second"}),
        ("Do it.\n\na: first\nb - second", "Do it.", {"a": "first", "b": "second"}),
        ("Do it.\n\nnote: this stays\na: first", "Do it.\n\nnote: this stays", {"a": "first"}),
        ("a: this is the summary", "a: this is the summary", {}),
        ("Do it.\n\nParameters:\n    a: first\n\nAnd a last word.", "Do it.\n\nAnd a last word.", {"a": "first"}),
        ("Do it.\n\nArgs:\n    c: of nobody\n    a: first", "Do it.", {"a": "first"}),
        ("", "", {}),
    ],
)  # fmt: skip
def test_docstrings_of_three_styles(docstring: str, description: str, parameters: dict[str, str]):
    said = parse_docstring(docstring, ["a", "b"])
    assert (said.description, said.parameters) == (description, parameters)


@pytest.mark.parametrize(
    ("docstring", "problem"),
    [
        ("", "has no description that a model could read"),
        ("Args:\n    a: first", "has no description that a model could read"),
        (
            "Do it.\n\nArgs:\n    a: first\n    c: third",
            "describes 'c', which is no parameter. There are: a, ctx",
        ),
        ("Do it.\n\n:param c: third", "describes 'c', which is no parameter"),
    ],
)
def test_a_docstring_that_a_model_could_not_use_is_refused(docstring: str, problem: str):
    def bad(a: int, ctx: ToolContext) -> None:
        pass

    bad.__doc__ = docstring
    with pytest.raises(SchemaError, match=f"bad.*{problem}"):
        tool(bad)


def test_a_docstring_may_tell_of_the_context():
    @tool
    def work(a: int, ctx: ToolContext) -> None:
        """Do it.

        Args:
            a: First.
                With more: of it.
            ctx: The call.
        """

    assert work.parameters["properties"] == {
        "a": {"description": "First. With more: of it.", "type": "integer"}
    }
