"""Law 7 for the chat: whatever a history holds, and however it is trimmed, what is sent is valid where it goes."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.chat.core.random_histories import problems_of
from tests.examples import examples


@settings(max_examples=examples(100), deadline=None)
@given(st.integers(0, 10**9))
def test_no_history_makes_an_invalid_request(seed: int) -> None:
    assert problems_of(seed) == []


def test_two_thousand_histories_make_no_invalid_request() -> None:
    assert [problem for seed in range(2_000) for problem in problems_of(seed)] == []
