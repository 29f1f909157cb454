import msgspec
import pytest

from sightline.catalog.facts import Facts, Family, ImageCost, LongPrices, Model, Prices
from tests.catalog.documented import PAGE, missing_rows, rows


def test_nothing_is_known_unless_it_is_said() -> None:
    values = [getattr(Facts(), name) for name in Facts.__struct_fields__]
    assert all(value in (None, "") for value in values)


@pytest.mark.parametrize(
    ("table", "kind"),
    [
        ({"context_window": 0}, Facts),
        ({"chars_per_token": 0}, Facts),
        ({"input": ["smell"]}, Facts),
        ({"input": -0.1}, Prices),
        ({"as_of": "last May"}, Prices),
        ({}, ImageCost),
        ({"context_windo": 1}, Model),
    ],
)
def test_what_cannot_be_is_refused(table: dict[str, object], kind: type) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(table, kind)


@pytest.mark.parametrize(
    ("heading", "struct"),
    [("Facts", Facts), ("`prices`", Prices), ("`prices.long`", LongPrices), ("`image`", ImageCost)],
)
def test_every_key_is_documented(heading: str, struct: type[msgspec.Struct]) -> None:
    assert not missing_rows(heading, struct)


@pytest.mark.parametrize(("heading", "struct"), [('`[models."NAME"]`', Model), ("`[families.NAME]`", Family)])
def test_what_models_and_families_have_besides_facts_is_documented(heading: str, struct: type[msgspec.Struct]) -> None:
    assert set(missing_rows(heading, struct)) == set(rows(Facts)), PAGE
