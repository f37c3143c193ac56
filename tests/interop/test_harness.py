"""The parts that compare, with made-up runs: they need no reference."""

from __future__ import annotations

from typing import Any

import pytest

from tests.interop.case import Case, Run, Step
from tests.interop.differ import Difference, differences
from tests.interop.explanations import explanations, unexplained
from tests.interop.normalisers import view
from tests.parity.ledger import Row


@pytest.mark.parametrize(
    ("ours", "theirs", "told"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 0.0}, {"a": 0}, []),
        ({"a": True}, {"a": 1}, ["a: True != 1"]),
        ({"a": [{"b": "x"}]}, {"a": [{"b": "y"}]}, ["a[0].b: 'x' != 'y'"]),
        ({"a": {"b": 1}}, {"a": {"c": 1}}, ["a.c: (missing) != 1", "a.b: 1 != (missing)"]),
        ({"a": [1]}, {"a": [1, 2]}, ["a[1]: (missing) != 2"]),
        ({"a": None}, {}, ["a: None != (missing)"]),
        ({"a": ["x", "z"]}, {"a": ["x", "y", "z"]}, ["a[-y]: (missing) != 'y'"]),
        ({"a": ["n"]}, {"a": []}, ["a[+n]: 'n' != (missing)"]),
        ({"events": {}}, {"events": {"x": 1, "y": 2}}, ["events: {} != {'x': 1, 'y': 2}"]),
        ({"a": "text"}, {"a": ["text"]}, ["a: 'text' != ['text']"]),
    ],
)
def test_a_difference_has_a_path_that_says_where_it_is(ours: Any, theirs: Any, told: list[str]) -> None:
    assert [str(one) for one in differences(ours, theirs)] == told


@pytest.mark.parametrize(
    ("line", "case", "path", "covered"),
    [
        ("*: requests[*].body.store", "text", "requests[12].body.store", True),
        ("*: requests[*].body.store", "text", "requests[0].body.store.deep", False),
        ("text*: a.*.c", "text-print", "a.b.c", True),
        ("text*: a.*.c", "image", "a.b.c", False),
        ("text*: a.*.c", "text", "a.b.b.c", False),
        ("text: a.**", "text", "a.b.b[3].c", True),
        ("text: **", "text", "anything at\nall", True),
        ("a.b: x", "a-b", "x", False),
    ],
)
def test_a_row_explains_what_its_patterns_name(line: str, case: str, path: str, covered: bool) -> None:
    row = Row(id="a.b", behaviour="b", page="p.md", status="later", brings="x", differs=(line,))
    left = unexplained(case, [Difference(path, 1, 2)], explanations([row]))
    assert left == ([] if covered else [f"{path}: 1 != 2"])


def run(program: str, **more: Any) -> Run:
    place = f"/tmp/{program}"
    values: dict[str, Any] = {"steps": [], "requests": [], "sessions": [], "files": {}}
    return Run(program=program, places={"project": place}, **{**values, **more})


def entry(number: int, parent: int | None, role: str, words: str) -> dict[str, Any]:
    ids = [f"{number:08x}", None if parent is None else f"{parent:08x}"]
    message = {"role": role, "content": words, "timestamp": 1_700_000_000_000 + number}
    return {"type": "message", "id": ids[0], "parentId": ids[1], "message": message}


def test_runs_that_differ_in_ids_times_and_places_alone_are_the_same() -> None:
    def made(program: str, shift: int) -> Run:
        header = {"type": "session", "id": f"uuid-{shift}", "cwd": f"/tmp/{program}"}
        said = [
            entry(1 + shift, None, "user", f"in /tmp/{program}"),
            entry(2 + shift, 1 + shift, "user", "b"),
        ]
        return run(program, sessions=[[header, *said]])

    case = Case(name="a")
    assert list(differences(view(case, made("x", 0)), view(case, made("y", 70)))) == []


def test_a_parent_that_is_not_the_same_entry_is_a_difference() -> None:
    def made(program: str, parent: int) -> Run:
        said = [entry(1, None, "user", "a"), entry(2, 1, "user", "b"), entry(3, parent, "user", "c")]
        return run(program, sessions=[[{"type": "session", "id": "u"}, *said]])

    case = Case(name="a")
    (found,) = differences(view(case, made("x", 2)), view(case, made("y", 1)))
    assert str(found) == "sessions[0].message user[2].parentId: '<entry 1.2>' != '<entry 1.1>'"


def test_system_messages_leave_the_tree_in_one_piece() -> None:
    header = {"type": "session", "id": "u"}
    ours = run("x", sessions=[[header, entry(1, None, "user", "a"), entry(2, 1, "user", "b")]])
    system = [entry(7, None, "system", "prompt"), entry(8, 7, "user", "a"), entry(9, 8, "user", "b")]
    theirs = run("y", sessions=[[header, *system]])
    case = Case(name="a")
    assert list(differences(view(case, ours), view(case, theirs))) == []


def test_how_an_answer_is_cut_into_deltas_is_no_difference_but_what_they_say_is() -> None:
    def made(*deltas: str) -> Run:
        records = [
            {
                "type": "message_update",
                "usage": {},
                "assistantMessageEvent": {"type": "text_delta", "contentIndex": 0, "delta": delta},
            }
            for delta in deltas
        ]
        return run("x", steps=[Step(code=0, stdout="", stderr="", records=records)])

    case = Case(name="a")
    one, same, other = (view(case, made(*deltas)) for deltas in (["abc"], ["a", "bc"], ["a", "bd"]))
    assert list(differences(one, same)) == []
    (found,) = differences(one, other)
    assert found.path == "events.message_update text_delta[0].assistantMessageEvent.delta"


def asked(path: str, *messages: dict[str, Any]) -> dict[str, Any]:
    return {"method": "POST", "path": path, "headers": {}, "body": {"messages": list(messages)}, "rule": None}


def test_ids_that_are_made_to_fit_are_no_difference_but_a_result_without_its_call_is() -> None:
    def made(call: str, result: str) -> Run:
        said = {"role": "assistant", "tool_calls": [{"id": call, "function": {}}]}
        found = {"role": "tool", "tool_call_id": result, "content": "one"}
        return run("x", requests=[asked("/a", said, found)])

    case = Case(name="a")
    one, same, other = (view(case, made(*ids)) for ids in (["x1", "x1"], ["y2", "y2"], ["y2", "y3"]))
    assert list(differences(one, same)) == []
    (found,) = differences(one, other)
    assert str(found) == "requests[0].body.messages[1].tool_call_id: '<made id 1>' != '<made id 2>'"


def test_what_an_api_is_told_first_is_compared_whole() -> None:
    def made(*paths: str) -> Run:
        return run("x", requests=[asked(path, {"role": "user", "content": "Hi"}) for path in paths])

    requests = view(Case(name="a"), made("/a", "/b", "/b"))["requests"]
    first, second, third = (request["body"]["messages"] for request in requests)
    assert first == second != third == ["<as before>"]


def test_a_run_comes_back_from_json_as_it_was() -> None:
    made = run("x", steps=[Step(code=1, stdout="a", stderr="b", records=[{"type": "x"}])], files={"a": "ÿ"})
    assert Run.from_json(made.to_json()) == made
