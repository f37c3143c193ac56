"""Signals and controllers: everybody is told once, in order, and nobody is told who left."""

import asyncio

import pytest

from cantle_ai.abort import AbortController, AbortError


def test_a_new_signal_is_not_aborted():
    signal = AbortController().signal
    assert not signal.aborted
    assert signal.reason is None
    signal.raise_if_aborted()


def test_an_aborted_signal_says_why():
    controller = AbortController()
    controller.abort("the user pressed Escape")
    assert controller.signal.aborted
    assert controller.signal.reason == "the user pressed Escape"
    with pytest.raises(AbortError, match="Escape"):
        controller.signal.raise_if_aborted()


def test_it_is_aborted_once():
    controller = AbortController()
    calls: list[str] = []
    controller.signal.add_callback(lambda: calls.append("told"))
    controller.abort("first")
    controller.abort("second")
    assert calls == ["told"]
    assert controller.signal.reason == "first"


def test_an_empty_reason_becomes_one():
    controller = AbortController()
    controller.abort("")
    assert controller.signal.reason == "Operation aborted"


def test_callbacks_run_in_the_order_in_which_they_were_added():
    controller = AbortController()
    calls: list[int] = []
    for number in range(5):
        controller.signal.add_callback(lambda number=number: calls.append(number))  # type: ignore[misc]
    controller.abort()
    assert calls == [0, 1, 2, 3, 4]


def test_one_function_added_twice_is_called_twice():
    controller = AbortController()
    calls: list[str] = []

    def callback() -> None:
        calls.append("told")

    first = controller.signal.add_callback(callback)
    controller.signal.add_callback(callback)
    first()
    controller.abort()
    assert calls == ["told"]


def test_a_removed_callback_is_not_called():
    controller = AbortController()
    calls: list[str] = []
    controller.signal.add_callback(lambda: calls.append("removed"))()
    controller.signal.add_callback(lambda: calls.append("kept"))
    controller.abort()
    assert calls == ["kept"]


def test_removing_twice_takes_nobody_else_away():
    """Functions that are gone leave their address to others: it must not be the key."""
    controller = AbortController()
    calls: list[int] = []
    removers = [controller.signal.add_callback(lambda: None) for _ in range(50)]
    for remove in removers:
        remove()
    for number in range(50):
        controller.signal.add_callback(lambda number=number: calls.append(number))  # type: ignore[misc]
    for remove in removers:
        remove()
    controller.abort()
    assert calls == list(range(50))


def test_a_callback_added_after_the_abort_is_called_at_once():
    controller = AbortController()
    controller.abort()
    calls: list[str] = []
    controller.signal.add_callback(lambda: calls.append("told"))()
    assert calls == ["told"]


def test_a_callback_may_remove_another_while_they_are_called():
    controller = AbortController()
    calls: list[str] = []
    controller.signal.add_callback(lambda: remove())
    remove = controller.signal.add_callback(lambda: calls.append("removed"))
    controller.signal.add_callback(lambda: calls.append("kept"))
    controller.abort()
    assert calls == ["kept"]


def test_a_callback_that_raises_keeps_nobody_from_the_news():
    controller = AbortController()
    calls: list[str] = []

    def broken() -> None:
        raise ValueError("first")

    def broken_too() -> None:
        raise ValueError("second")

    controller.signal.add_callback(broken)
    controller.signal.add_callback(broken_too)
    controller.signal.add_callback(lambda: calls.append("told"))
    with pytest.raises(ValueError, match="first"):
        controller.abort()
    assert calls == ["told"]
    controller.abort()


def test_a_callback_may_abort_again():
    controller = AbortController()
    calls: list[str] = []
    controller.signal.add_callback(controller.abort)
    controller.signal.add_callback(lambda: calls.append("told"))
    controller.abort()
    assert calls == ["told"]


def test_a_child_follows_its_parent():
    parent = AbortController()
    child = AbortController(parent.signal)
    grandchild = AbortController(child.signal)
    parent.abort("all of it")
    assert child.signal.reason == grandchild.signal.reason == "all of it"


def test_a_child_of_an_aborted_parent_is_aborted():
    parent = AbortController()
    parent.abort("before")
    assert AbortController(parent.signal).signal.reason == "before"


def test_a_parent_does_not_follow_its_child():
    parent = AbortController()
    AbortController(parent.signal).abort()
    assert not parent.signal.aborted


def test_a_parent_forgets_children_that_are_aborted_or_detached():
    parent = AbortController()
    aborted, detached = AbortController(parent.signal), AbortController(parent.signal)
    aborted.abort("only this one")
    detached.detach()
    detached.detach()
    assert not parent.signal._callbacks
    parent.abort()
    assert aborted.signal.reason == "only this one"
    assert not detached.signal.aborted


async def test_waiting_ends_with_the_abort():
    controller = AbortController()
    waiting = [asyncio.create_task(controller.signal.wait()) for _ in range(3)]
    await asyncio.sleep(0)
    assert not any(task.done() for task in waiting)
    controller.abort()
    await asyncio.wait_for(asyncio.gather(*waiting), 5)
    await controller.signal.wait()


async def test_a_cancelled_wait_leaves_nothing_behind():
    controller = AbortController()
    waiting = asyncio.create_task(controller.signal.wait())
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])
    assert not controller.signal._callbacks
    controller.abort()


async def test_another_thread_aborts_through_the_loop():
    controller = AbortController()
    loop = asyncio.get_running_loop()
    waiting = asyncio.create_task(controller.signal.wait())
    await asyncio.sleep(0)
    await asyncio.to_thread(lambda: loop.call_soon_threadsafe(controller.abort))
    await asyncio.wait_for(waiting, 5)
