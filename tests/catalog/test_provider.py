import msgspec
import pytest

from sightline.catalog.provider import Provider, Quirks
from tests.catalog.documented import missing_rows


def test_four_lines_are_a_provider() -> None:
    provider = msgspec.convert({"base_url": "http://x/v1", "key_env": "X"}, Provider)
    assert provider.dialect == "openai-chat"
    assert provider.stream_idle_timeout_ms == 300_000


@pytest.mark.parametrize("table", [{"request_max_retries": -1}, {"connect_timeout_ms": 0}, {"dialect": "x"}, {"x": 1}])
def test_what_cannot_be_is_refused(table: dict[str, object]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(table, Provider)


@pytest.mark.parametrize(
    ("table", "whole", "streamed"),
    [({}, 4, 5), ({"own_retries": 1}, 1, 1), ({"own_retries": 1, "request_max_retries": 0}, 0, 1)],
)
def test_requests_of_our_own_have_a_budget_without_being_asked(
    table: dict[str, int], whole: int, streamed: int
) -> None:
    provider = msgspec.convert(table, Provider)
    assert provider.retries(is_stream=False, is_own=True) == whole
    assert provider.retries(is_stream=True, is_own=True) == streamed


def test_a_client_is_retried_for_where_the_user_says_so_and_nowhere_else() -> None:
    built_in = msgspec.convert({"own_retries": 3}, Provider)
    assert [built_in.retries(is_stream=each, is_own=False) for each in (False, True)] == [0, 0]
    named = msgspec.convert({"request_max_retries": 2, "stream_max_retries": 7}, Provider)
    assert [named.retries(is_stream=each, is_own=False) for each in (False, True)] == [2, 7]


def test_every_key_is_documented() -> None:
    assert not missing_rows("`[providers.NAME]`", Provider)
    assert not missing_rows("`[providers.NAME.quirks]`", Quirks)
