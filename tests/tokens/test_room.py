import pytest

from sightline.catalog.facts import Facts
from sightline.tokens.account import RateLimits
from sightline.tokens.window_budget import UNKNOWN_WINDOW, Room, model_limit, reply_reserve, reserve_for_calibration


@pytest.mark.parametrize(
    ("facts", "limits", "expected"),
    [
        (Facts(), None, UNKNOWN_WINDOW),
        (Facts(context_window=200_000), None, 200_000),
        (Facts(context_window=200_000, tpm=30_000), None, 30_000),
        (Facts(context_window=8_000, tpm=30_000), None, 8_000),
        (Facts(context_window=200_000, tpm=30_000), RateLimits(), 30_000),
        (Facts(context_window=200_000, tpm=30_000), RateLimits(tpm=90_000), 90_000),
        (Facts(tpm=1_000), None, 1_000),
    ],
)
def test_the_limit_is_the_window_or_the_tokens_of_a_minute(
    facts: Facts, limits: RateLimits | None, expected: int
) -> None:
    assert model_limit(facts, limits) == expected


def test_a_small_window_keeps_a_quarter_for_the_reply() -> None:
    assert reply_reserve(800, 8_000, None) == 800
    assert reply_reserve(800, 400, None) == 100


def test_a_request_that_limits_its_reply_reserves_that_much() -> None:
    assert reply_reserve(800, 8_000, 4_000) == 4_000
    assert reply_reserve(800, 8_000, 10) == 10


def test_history_gets_what_nothing_else_takes() -> None:
    room = Room(1_000, system=100, tools=50, user=200, reply=150)
    assert room.usable == 700
    assert room.history == 500
    assert room.beside(300) == 400


def test_there_is_never_less_than_no_room() -> None:
    room = Room(100, system=80, user=50)
    assert room.history == 0
    assert room.beside(500) == 0


def test_a_prompt_must_fit_beside_what_is_always_there() -> None:
    room = Room(1_000, system=100, tools=50, reply=400)
    assert room.can_ever_hold(850)
    assert not room.can_ever_hold(851)


def test_what_was_only_learned_is_a_small_reserve_and_refuses_nothing() -> None:
    assert reserve_for_calibration(90_000, 8000) == 1000
    assert reserve_for_calibration(12, 8000) == 12
    room = Room(1000, system=1100, learned=1050)
    assert room.can_ever_hold(900)
    assert not room.can_ever_hold(951)
    assert room.usable == -100
