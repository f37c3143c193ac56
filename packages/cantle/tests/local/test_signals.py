"""The first signal is an exception, once what was being started is known; ignored ones stay ignored."""

from __future__ import annotations

import signal

import pytest

from cantle.local.signals import Stopped, held_back, stoppable


def test_the_first_signal_raises_and_the_handlers_are_as_before() -> None:
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    with pytest.raises(Stopped) as stopped, stoppable():
        signal.raise_signal(signal.SIGTERM)
    assert stopped.value.number is signal.SIGTERM
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before


def test_a_second_signal_acts_as_before() -> None:
    with pytest.raises(KeyboardInterrupt), stoppable():
        try:
            signal.raise_signal(signal.SIGTERM)
        except Stopped:
            signal.raise_signal(signal.SIGINT)


def test_what_is_being_started_is_known_before_the_signal_acts() -> None:
    started: list[str] = []
    with pytest.raises(Stopped), stoppable():
        with held_back():
            signal.raise_signal(signal.SIGTERM)
            started.append("known")
        started.append("too late")
    assert started == ["known"]


def test_an_ignored_signal_stays_ignored() -> None:
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with stoppable(), held_back():
            signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)
