import pytest

from sightline.catalog.catalog import Catalog
from sightline.catalog.facts import Family, Model, Prices
from sightline.catalog.loading import load
from sightline.catalog.lookup import facts_of
from sightline.catalog.pricing import prices_at, providers_at_other_sites, without_prices
from sightline.catalog.provider import Provider
from sightline.catalog.toml import TomlText
from sightline.settings import Settings

PRICES = Prices(input=4.0, output=20.0)
OWN = TomlText(
    "models.toml",
    """
[providers.anthropic]
dialect = "anthropic"
base_url = "https://api.anthropic.com"
[providers.azure]
base_url = "${AZURE_OPENAI_ENDPOINT}/openai/v1"
[models."claude-opus-5"]
providers = ["anthropic"]
context_window = 1_000_000
prices = { input = 4.0, output = 20.0 }
[models."claude-nobody"]
providers = ["anthropic"]
[models."gpt-9"]
providers = ["azure"]
prices = { input = 1.0, output = 2.0 }
[models."claude-shared"]
providers = ["anthropic", "azure"]
prices = { input = 1.0, output = 2.0 }
[models."anthropic/claude-named"]
prices = { input = 3.0, output = 6.0 }
""",
    builtin=True,
)
ELSEWHERE = '[providers.anthropic]\nbase_url = "http://127.0.0.1:4000"\n'


def priced(users: str, provider: str, model: str) -> Prices | None:
    catalog = load([OWN, TomlText("sightline.toml", users)], {}, Settings).sound().catalog
    facts = facts_of(catalog, provider, model)
    return facts.prices


def test_a_makers_price_is_not_that_of_a_server_with_the_same_model() -> None:
    entry = Model(providers=("anthropic",), prices=PRICES)
    assert prices_at(entry, "anthropic") == PRICES
    assert prices_at(entry, "ollama") is None
    catalog = Catalog(models={"claude-opus-5": entry}, providers={"acme": Provider(base_url="http://127.0.0.1:1/v1")})
    assert facts_of(catalog, "acme", "claude-opus-5").prices is None
    assert facts_of(catalog, "acme", "anthropic/claude-opus-5").prices is None
    assert facts_of(catalog, "openrouter", "anthropic/claude-opus-5:beta").prices is None
    assert facts_of(catalog, "anthropic", "claude-opus-5-20260101").prices == PRICES


def test_a_table_without_a_provider_holds_everywhere_and_one_of_a_provider_there() -> None:
    assert prices_at(Model(prices=PRICES), "acme") == PRICES
    assert prices_at(Family(prices=PRICES, providers=("x",)), "acme") is None
    assert prices_at(Model(providers=("x",), prices=PRICES), "acme", is_for_provider=True) == PRICES
    catalog = Catalog(models={"m": Model(prices=PRICES), "acme/m": Model(prices=Prices(input=1.0), providers=("x",))})
    assert facts_of(catalog, "acme", "m").prices == Prices(input=1.0)
    assert facts_of(catalog, "other", "m").prices == PRICES


def test_prices_can_name_who_charges_them() -> None:
    told = Prices(input=4.0, output=20.0, providers=("anthropic", "acme"))
    entry = Model(providers=("anthropic",), prices=told)
    assert prices_at(entry, "acme") == told
    assert prices_at(entry, "ollama") is None


def test_a_vendor_whose_address_was_moved_has_no_built_in_price() -> None:
    assert priced("", "anthropic", "claude-opus-5") == PRICES
    assert priced(ELSEWHERE, "anthropic", "claude-opus-5") is None
    assert priced(ELSEWHERE, "anthropic", "claude-named") is None
    assert priced(ELSEWHERE, "anthropic", "claude-nobody") is None
    assert priced(ELSEWHERE, "anthropic", "claude-shared") is None
    assert priced(ELSEWHERE, "azure", "claude-shared") == Prices(input=1.0, output=2.0, providers=("azure",))
    assert priced(ELSEWHERE, "azure", "gpt-9") == Prices(input=1.0, output=2.0)
    window = load([OWN, TomlText("u", ELSEWHERE)], {}, Settings).catalog.models["claude-opus-5"].context_window
    assert window == 1_000_000


def test_a_price_that_the_user_sets_for_the_moved_vendor_holds() -> None:
    own = ELSEWHERE + '[models."claude-opus-5".prices]\ninput = 0.5\noutput = 1.0\n'
    assert priced(own, "anthropic", "claude-opus-5") == Prices(input=0.5, output=1.0)


@pytest.mark.parametrize(
    ("url", "is_moved"),
    [
        ("https://api.anthropic.com/v1", False),
        ("https://eu.api.Anthropic.com:443", False),
        ("https://user@api.anthropic.com", False),
        ("https://anthropic.com.example.org", True),
        ("http://127.0.0.1:8000", True),
        ("http://10.0.0.1", True),
        ("http://[::1]:8000", True),
        ("http://gateway/v1", True),
    ],
)
def test_another_host_of_the_same_site_is_still_the_vendor(url: str, *, is_moved: bool) -> None:
    providers = {"anthropic": Provider(base_url=url)}
    moved = providers_at_other_sites({"anthropic": "https://api.anthropic.com", "gone": "https://x.example"}, providers)
    assert moved == ({"anthropic"} if is_moved else frozenset())


def test_an_address_that_stands_in_a_variable_was_the_users_all_along() -> None:
    assert not providers_at_other_sites(
        {"azure": "${ENDPOINT}/v1"}, {"azure": Provider(base_url="https://me.example/v1")}
    )


def test_nothing_moves_without_a_reason() -> None:
    catalog = Catalog(models={"m": Model(prices=PRICES)})
    assert without_prices(catalog, (), lambda _name: False) is catalog
