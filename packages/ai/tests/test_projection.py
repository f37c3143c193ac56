"""One history, as another model is to see it."""

import base64
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cantle_ai.call_ids import ALPHANUMERIC, NAME_CHARACTERS, CallIds, fitting_id, fitting_name
from cantle_ai.content import ImageContent, TextContent, ThinkingContent, ToolCall
from cantle_ai.history import NO_OUTPUT, Projection, ProjectionReport, ReplayRules, Turn, project
from cantle_ai.messages import AssistantMessage, Message, ToolResultMessage, UserMessage, encode_message
from cantle_ai.model import Model, StreamOptions
from tests.support.samples import samples

MODEL = Model(id="m", provider="p", api="a", base_url="http://localhost", input=("text", "image"))
BLIND = Model(id="m", provider="p", api="a", base_url="http://localhost")
RULES = ReplayRules(call_id=fitting_id(NAME_CHARACTERS, 64, prefix="call_"))
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(40)).decode()
THOUGHT = ThinkingContent("so", signature="sig")
SECRET = ThinkingContent("", signature="enc", redacted=True)


def user(content="u") -> UserMessage:
    return UserMessage(content, timestamp=1)


def answer(*blocks, model="m", stop="stop") -> AssistantMessage:
    return AssistantMessage(list(blocks), "a", "p", model, stop_reason=stop, timestamp=2)


def result(call="c", *blocks) -> ToolResultMessage:
    return ToolResultMessage(call, "tool", list(blocks) or [TextContent("r")], timestamp=3)


def projected(
    *messages: Message, model: Model = MODEL, rules: ReplayRules = RULES, options: StreamOptions | None = None
) -> Projection:
    return project(messages, model, options or StreamOptions(), rules)


def only_answer(*blocks, model="m", rules: ReplayRules = RULES) -> list[object]:
    """What becomes of an answer's blocks."""
    turns = projected(user(), answer(*blocks, model=model), rules=rules).turns
    return list(turns[1].assistant_blocks()) if len(turns) > 1 else []


# --- thinking


def test_own_thinking_stays_as_it_is():
    assert only_answer(THOUGHT, SECRET, TextContent("t", signature="s")) == [
        THOUGHT, SECRET, TextContent("t", signature="s"),
    ]  # fmt: skip


@pytest.mark.fault("C01")
def test_c01_thinking_of_another_model_is_plain_text_without_tags():
    assert only_answer(THOUGHT, TextContent("t"), model="other") == [TextContent("so"), TextContent("\n\nt")]


@pytest.mark.fault("C01")
def test_c01_what_is_opaque_to_others_is_left_out():
    call = ToolCall("c", "tool", {"x": 1}, thought_signature="sig")
    shown = only_answer(SECRET, TextContent("t", signature="s"), call, model="other")
    assert shown == [TextContent("t"), ToolCall("c", "tool", {"x": 1})]


@pytest.mark.parametrize("other", [{"api": "b"}, {"provider": "q"}, {"model": "n"}])
def test_another_model_is_one_of_another_name_provider_or_api(other):
    message = AssistantMessage(
        [THOUGHT, TextContent("t")], **{"api": "a", "provider": "p", "model": "m", **other}
    )
    assert not projected(user(), message).turns[1].own


@pytest.mark.fault("C02")
def test_c02_empty_thinking_with_a_signature_is_kept():
    empty = ThinkingContent("", signature="sig")
    assert only_answer(empty, TextContent("t")) == [empty, TextContent("t")]


def test_thinking_without_text_and_signature_is_gone():
    assert only_answer(ThinkingContent(" "), TextContent("t")) == [TextContent("t")]


@pytest.mark.fault("C04")
def test_c04_no_thinking_stands_where_nothing_follows_it():
    assert only_answer(TextContent("t"), THOUGHT, SECRET) == [TextContent("t")]


@pytest.mark.fault("C04")
def test_c04_an_answer_that_broke_off_is_left_out_with_its_thinking():
    broken = answer(THOUGHT, stop="aborted")
    assert [turn.message.role for turn in projected(user(), broken, user()).turns] == ["user", "user"]


def test_thinking_may_stand_last_where_it_has_a_field_of_its_own():
    rules = ReplayRules(call_id=RULES.call_id, thinking_may_end=True)
    assert only_answer(TextContent("t"), SECRET, rules=rules) == [TextContent("t"), SECRET]
    assert only_answer(SECRET, rules=rules) == []


# --- empty messages


@pytest.mark.fault("C06")
@pytest.mark.parametrize(
    "blocks", [(), (TextContent(""),), (TextContent(" \n"),), (THOUGHT,), (SECRET,), (ThinkingContent(""),)]
)
def test_c06_an_answer_of_which_nothing_can_be_sent_is_left_out(blocks):
    made = projected(user("1"), answer(*blocks), user("2"))
    assert [turn.message.role for turn in made.turns] == ["user", "user"]
    assert made.report.counts == {"empty_answers": 1}


@pytest.mark.fault("B03")
@pytest.mark.parametrize("blocks", [[TextContent("")], [TextContent(" \n\t")], []])
def test_b03_a_result_without_text_says_so(blocks):
    made = projected(user(), answer(ToolCall("c", "tool", {})), ToolResultMessage("c", "tool", blocks))
    assert made.turns[2].result_blocks() == [TextContent(NO_OUTPUT)]


@pytest.mark.fault("B04")
def test_b04_an_image_needs_no_text_beside_it():
    shown = projected(user([TextContent(""), ImageContent(PNG, "image/png")])).turns[0].user_blocks()
    assert shown == [ImageContent(PNG, "image/png")]


@pytest.mark.parametrize("content", ["", " ", [], [TextContent("\n")]])
def test_an_empty_prompt_is_never_sent_as_nothing(content):
    (block,) = projected(user(content)).turns[0].user_blocks()
    assert isinstance(block, TextContent)
    assert block.text.strip()


def test_a_conversation_whose_beginning_is_lost_begins_with_the_user():
    made = projected(answer(ToolCall("c", "tool", {})), result())
    assert [turn.message.role for turn in made.turns] == ["user", "assistant", "toolResult"]
    assert made.report.counts == {"missing_beginning": 1}


# --- images


@pytest.mark.fault("C08")
def test_c08_images_are_there_again_for_a_model_with_eyes():
    shown = ImageContent(PNG, "image/png")
    messages: list[Message] = [
        user([shown]),
        answer(ToolCall("c", "tool", {})),
        result("c", TextContent("t"), shown),
    ]
    blind = projected(*messages, model=BLIND)
    assert blind.report.counts == {"images": 2}
    assert not any(
        isinstance(block, ImageContent)
        for block in (*blind.turns[0].user_blocks(), *blind.turns[2].result_blocks())
    )
    seeing = projected(*messages)
    assert seeing.turns[0].user_blocks() == [shown]
    assert seeing.turns[2].result_blocks() == [TextContent("t"), shown]
    assert seeing.turns[2].images == [shown]
    assert blind.turns[2].images == []
    assert not seeing.report


def test_an_image_that_no_provider_takes_is_counted():
    assert projected(user([ImageContent("bm8=", "image/png")])).report.counts == {"images": 1}


# --- ids of calls


@pytest.mark.fault("C03")
@pytest.mark.parametrize("call_id", ["call_1|fc_" + "x" * 400, "a b", "", "日本", "x" * 65, "call.1"])
def test_c03_an_id_that_does_not_fit_is_renamed_on_both_sides(call_id):
    made = projected(user(), answer(ToolCall(call_id, "tool", {})), result(call_id))
    (call,) = made.turns[1].calls
    assert call.id == made.turns[2].call_id != call_id
    assert call.id.startswith("call_")
    assert 0 < len(call.id) <= 64
    assert set(call.id) <= set(NAME_CHARACTERS)
    assert made.report.counts == {"call_ids": 1}


@pytest.mark.fault("C03")
def test_c03_an_id_that_fits_stays():
    made = projected(user(), answer(ToolCall("toolu_01-x", "tool", {})), result("toolu_01-x"))
    assert (made.turns[1].calls[0].id, made.turns[2].call_id) == ("toolu_01-x", "toolu_01-x")
    assert not made.report


@pytest.mark.fault("C03")
def test_c03_the_same_id_in_two_answers_becomes_two():
    turns = (
        answer(ToolCall("0", "tool", {"n": 1})),
        result("0"),
        answer(ToolCall("0", "tool", {"n": 2})),
        result("0"),
    )
    made = projected(user(), *turns)
    first, second = made.turns[1].calls[0].id, made.turns[3].calls[0].id
    assert (first, made.turns[2].call_id) == ("0", "0")
    assert second == made.turns[4].call_id != first


@pytest.mark.fault("C03")
def test_c03_the_same_id_twice_in_one_answer_becomes_two_with_a_result_each():
    calls = answer(ToolCall("0", "tool", {"n": 1}), ToolCall("0", "tool", {"n": 2}))
    made = projected(user(), calls, result("0", TextContent("1")), result("0", TextContent("2")))
    assert [call.id for call in made.turns[1].calls] == [made.turns[2].call_id, made.turns[3].call_id]
    assert len({call.id for call in made.turns[1].calls}) == 2


@pytest.mark.parametrize(
    ("rule", "alphabet", "sizes"),
    [
        (fitting_id(ALPHANUMERIC, 9, exactly=9), ALPHANUMERIC, {9}),
        (fitting_id(NAME_CHARACTERS, 40, prefix="call_"), NAME_CHARACTERS, {37}),
        (fitting_id(NAME_CHARACTERS, 8), NAME_CHARACTERS, {8}),
    ],
)
def test_ids_that_are_made_fit_and_differ(rule, alphabet, sizes):
    ids = CallIds(rule)
    made = [ids.of_call(f"not fitting {number % 40}", False) for number in range(200)]
    assert len(set(made)) == 200
    assert {len(call_id) for call_id in made} == sizes
    assert set("".join(made)) <= set(alphabet)


@pytest.mark.fault("C03")
def test_c03_an_id_that_every_answer_repeats_costs_no_more_each_time():
    asked = []

    def rule(call_id, own, attempt):
        asked.append(attempt)
        return f"{call_id}-{attempt}"

    ids = CallIds(rule)
    made = [ids.of_call("0", number % 2 == 0) for number in range(1000)]
    assert len(set(made)) == 1000
    assert len(asked) < 3000


@pytest.mark.parametrize(
    ("name", "fits"),
    [("bash", "bash"), ("functions.bash", "functions_bash"), ("", "unnamed"), ("é" * 70, "_" * 64)],
)
def test_names_of_tools_are_made_to_fit(name, fits):
    assert fitting_name(name) == fits


# --- what is told


def test_a_consistent_history_of_the_same_model_changes_nothing():
    call = ToolCall("c", "tool", {}, thought_signature="s")
    made = projected(user(), answer(THOUGHT, call), result(), answer(TextContent("t")))
    assert not made.report
    assert all(
        shown is stored
        for shown, stored in zip(made.turns[1].assistant_blocks(), [THOUGHT, call], strict=True)
    )


def test_everything_that_is_changed_is_counted():
    told: list[ProjectionReport] = []
    messages: list[Message] = [
        answer(THOUGHT, SECRET, TextContent("t", signature="s"), ToolCall("a b", "tool", {}), model="other"),
        result("nobody"),
        user([ImageContent(PNG, "image/png")]),
        answer(ToolCall("x", "tool", {}), stop="error"),
        result("x"),
        answer(THOUGHT),
    ]
    report = projected(*messages, model=BLIND, options=StreamOptions(on_projection=told.append)).report
    assert report.counts == {
        "missing_beginning": 1, "thinking_as_text": 1, "redacted_thinking": 1, "signatures": 1, "call_ids": 1,
        "interrupted_calls": 1, "orphan_results": 1, "images": 1, "failed_answers": 1, "empty_answers": 1,
    }  # fmt: skip
    assert told == [report]


def test_nothing_is_told_when_nothing_is_changed():
    told: list[ProjectionReport] = []
    projected(user(), options=StreamOptions(on_projection=told.append))
    assert told == []


# --- properties

BLOCKS = st.one_of(
    st.builds(TextContent, st.sampled_from(["", " ", "t"]), signature=st.sampled_from([None, "s"])),
    st.builds(
        ThinkingContent,
        st.sampled_from(["", "th"]),
        signature=st.sampled_from([None, "s"]),
        redacted=st.booleans(),
    ),
    st.builds(
        ToolCall,
        st.sampled_from(["c", "c|d", ""]),
        st.just("tool"),
        thought_signature=st.sampled_from([None, "s"]),
    ),
)
MESSAGES = st.one_of(
    st.builds(user, st.sampled_from(["u", "", [ImageContent(PNG, "image/png")]])),
    st.builds(
        lambda blocks, model, stop: answer(*blocks, model=model, stop=stop),
        st.lists(BLOCKS, max_size=4),
        st.sampled_from(["m", "other"]),
        st.sampled_from(["stop", "toolUse", "error", "aborted"]),
    ),
    st.builds(result, st.sampled_from(["c", "c|d", "", "z"])),
)


def shapes(turns: Sequence[Turn]) -> list[object]:
    """All that a wire API can see of the turns."""
    seen: list[object] = []
    for turn in turns:
        match turn.message:
            case AssistantMessage():
                blocks: Sequence[object] = turn.assistant_blocks()
            case ToolResultMessage():
                blocks = turn.result_blocks()
            case UserMessage():
                blocks = turn.user_blocks()
        seen.append((turn.message.role, turn.key, list(blocks)))
    return seen


@settings(max_examples=samples(5000, 200), deadline=None)
@given(st.lists(MESSAGES, max_size=10), st.sampled_from([MODEL, BLIND]))
def test_any_history_is_consistent_and_stored_as_it_was(messages, model):
    before = [encode_message(message) for message in messages]
    turns = projected(*messages, model=model).turns
    open_calls: set[str] = set()
    seen: set[str] = set()
    assert not turns or isinstance(turns[0].message, UserMessage)
    for turn in turns:
        if isinstance(turn.message, ToolResultMessage):
            open_calls.remove(turn.call_id)
            assert turn.result_blocks()
            continue
        assert not open_calls
        if isinstance(turn.message, AssistantMessage):
            blocks = turn.assistant_blocks()
            assert blocks
            assert not isinstance(blocks[-1], ThinkingContent)
            assert turn.own or not any(isinstance(block, ThinkingContent) for block in blocks)
            ids = [call.id for call in turn.calls]
            assert ids == list(turn.ids)
            assert len(seen | set(ids)) == len(seen) + len(ids)
            seen |= set(ids)
            open_calls = set(ids)
        else:
            assert turn.user_blocks()
    assert not open_calls
    for message in messages:
        message.wire.clear()
    assert [encode_message(message) for message in messages] == before


@settings(max_examples=samples(3000, 150), deadline=None)
@given(st.lists(MESSAGES, max_size=8), st.lists(MESSAGES, max_size=4))
def test_what_is_said_later_changes_nothing_before_it(first, later):
    # An answer settles which calls before it have a result.
    first = [user("begin"), *first, answer(TextContent("so far"))]
    shown = shapes(projected(*first).turns)
    assert shapes(projected(*first, user("more"), *later).turns)[: len(shown)] == shown


def test_a_result_has_the_name_of_its_call_whatever_it_says_itself():
    said = answer(ToolCall("a", "read", {}), ToolCall("b", "edit", {}), ToolCall("a", "bash", {}))
    results = [ToolResultMessage(call, "write", [TextContent("r")], timestamp=3) for call in "aba"]
    turns = projected(user(), said, *results).turns
    assert [(turn.call_id, turn.tool_name) for turn in turns[2:]] == [
        (call.id, call.name) for call in (turns[1].calls[0], turns[1].calls[1], turns[1].calls[2])
    ]
    assert [turn.tool_name for turn in turns[2:]] == ["read", "edit", "bash"]
