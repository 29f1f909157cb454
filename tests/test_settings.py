import msgspec
import pytest

from sightline.settings import Local, Network, Server, Settings
from tests.catalog.documented import missing_rows


def test_nothing_has_to_be_set() -> None:
    settings = Settings()
    assert (settings.server.host, settings.server.port) == ("127.0.0.1", 7700)
    assert msgspec.convert({}, Settings) == settings


@pytest.mark.parametrize(
    ("table", "kind"),
    [
        ({"port": 65_536}, Server),
        ({"port": -1}, Server),
        ({"allowed_origins": ["http://a/path"]}, Server),
        ({"url": "127.0.0.1:80"}, Local),
        ({"threads": -1}, Local),
        ({"max_connections": 0}, Network),
    ],
)
def test_what_cannot_be_is_refused(table: dict[str, object], kind: type) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(table, kind)


def test_an_origin_and_a_url_are_taken() -> None:
    tables = {"server": {"allowed_origins": ["http://localhost:5173"]}, "local": {"url": "http://127.0.0.1:8080/v1"}}
    assert msgspec.convert(tables, Settings).local.url.endswith("/v1")


@pytest.mark.parametrize("table", Settings.__struct_fields__)
def test_every_key_of_every_table_is_documented(table: str) -> None:
    assert not missing_rows(f"`[{table}]`", type(getattr(Settings(), table)))
