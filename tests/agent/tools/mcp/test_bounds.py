from sightline.agent.tools.mcp.config import USUAL


def test_a_message_may_hold_more_than_a_result() -> None:
    assert USUAL.message > 100_000 + 3_500_000


def test_everything_ends_some_time() -> None:
    assert all(value > 0 for value in (USUAL.start_s, USUAL.list_s, USUAL.call_s, USUAL.close_s, USUAL.notice_s))
