"""When a context is too full."""

import pytest

from cantle_session.compaction import CompactionSettings, compaction_needed

DEFAULT = CompactionSettings()


@pytest.mark.parity("compaction.triggers")
def test_compaction_is_needed_when_less_than_the_reserve_is_free():
    assert not compaction_needed(128_000 - 16_384, 128_000, DEFAULT)
    assert compaction_needed(128_000 - 16_383, 128_000, DEFAULT)
    assert (DEFAULT.reserve_tokens, DEFAULT.keep_recent_tokens) == (16_384, 20_000)


def test_it_is_not_needed_when_switched_off_or_without_a_window():
    assert not compaction_needed(10**9, 128_000, CompactionSettings(enabled=False))
    assert not compaction_needed(5, 0, DEFAULT)


@pytest.mark.parametrize(
    ("window", "reserve", "keep"),
    [(1_000_000, 16_384, 20_000), (65_536, 16_384, 20_000), (32_768, 16_384, 8_192), (8_192, 4_096, 2_048)],
)
def test_small_windows_are_shared_out(window, reserve, keep):
    fitted = DEFAULT.within(window)
    assert (fitted.reserve_tokens, fitted.keep_recent_tokens) == (reserve, keep)
    assert not compaction_needed(window - reserve, window, DEFAULT)
    assert compaction_needed(window - reserve + 1, window, DEFAULT)


def test_what_was_set_stays_where_the_window_has_room_for_it():
    settings = CompactionSettings(enabled=False, reserve_tokens=60_000, keep_recent_tokens=30_000)
    assert settings.within(200_000) == settings


def test_most_of_a_large_window_may_be_reserved_for_the_sake_of_a_short_history():
    settings = CompactionSettings(reserve_tokens=800_000)
    assert settings.within(1_000_000) == settings
    assert compaction_needed(200_001, 1_000_000, settings)
    assert not compaction_needed(200_000, 1_000_000, settings)
    assert CompactionSettings(reserve_tokens=10**9).within(1_000_000).reserve_tokens == 1_000_000 - 16_384
