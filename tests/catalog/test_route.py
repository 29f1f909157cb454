import msgspec
import pytest

from sightline.catalog.route import Route
from tests.catalog.documented import missing_rows


def test_a_route_needs_a_provider_and_matches_anything() -> None:
    assert msgspec.convert({"provider": "acme", "as": "large"}, Route) == Route(model="*", provider="acme", as_="large")
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"model": "*"}, Route)


def test_every_key_is_documented() -> None:
    assert not missing_rows("`[[routes]]`", Route)
