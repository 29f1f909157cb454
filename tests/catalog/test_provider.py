import msgspec
import pytest

from sightline.catalog.provider import Provider, Quirks
from tests.catalog.documented import missing_rows


def test_four_lines_are_a_provider() -> None:
    provider = msgspec.convert({"base_url": "http://x/v1", "key_env": "X"}, Provider)
    assert (provider.dialect, provider.request_max_retries, provider.stream_max_retries) == ("openai-chat", 4, 5)
    assert provider.stream_idle_timeout_ms == 300_000


@pytest.mark.parametrize("table", [{"request_max_retries": -1}, {"connect_timeout_ms": 0}, {"dialect": "x"}, {"x": 1}])
def test_what_cannot_be_is_refused(table: dict[str, object]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(table, Provider)


def test_every_key_is_documented() -> None:
    assert not missing_rows("`[providers.NAME]`", Provider)
    assert not missing_rows("`[providers.NAME.quirks]`", Quirks)
