import msgspec
import pytest

from sightline.app.configuration import configuration
from sightline.catalog.catalog import (
    Catalog,
    entry_of,
    facts_of,
    family_of,
    price_dates,
    prices_at,
    prices_at_address,
    providers_at_other_sites,
    spellings,
    without_prices,
)
from sightline.catalog.facts import Charges, ChatTemplate, Facts, Family, ImageCost, LongPrices, Model, Prices
from sightline.catalog.loading import load
from sightline.catalog.provider import Detection, Provider, Quirks, Route
from sightline.catalog.toml import KEYS, TABLES, WIRE_APIS, TomlText
from sightline.dialects.registry import PROVIDER_DIALECTS
from sightline.settings import Settings
from tests.catalog.documented import PAGE, missing_rows, rows


def test_a_name_goes_before_an_alias_and_the_first_before_others() -> None:
    models = {"a": Model(aliases=("B", "c")), "b": Model(), "B": Model()}
    assert Catalog(models=models).spelled == {"a": "a", "b": "b", "c": "a"}


def test_the_longest_glob_comes_first() -> None:
    one, two = Family(match=("gpt-*", "*")), Family(match=("GPT-5*",))
    assert [family for _, family in Catalog(families={"one": one, "two": two}).globs] == [two, one, one]


def test_every_table_has_its_section() -> None:
    headings = [line for line in PAGE.read_text().splitlines() if line.startswith("## ")]
    assert not [name for name in Catalog.__struct_fields__ if not any(f"[{name}" in line for line in headings)]


def test_every_synonym_is_documented() -> None:
    section = PAGE.read_text().partition("\n## Names from Codex\n")[2]
    names = {*(synonym for keys in KEYS.values() for synonym in keys), *TABLES}
    assert not [name for name in names if name not in section]
    assert not [api for api in WIRE_APIS if f'`wire_api = "{api}"`' not in section]


@pytest.mark.parametrize(
    ("table", "whole", "streamed"),
    [({}, 4, 5), ({"own_retries": 1}, 1, 1), ({"own_retries": 1, "request_max_retries": 0}, 0, 1)],
)
def test_own_requests_have_a_default_retry_budget(table: dict[str, int], whole: int, streamed: int) -> None:
    provider = msgspec.convert(table, Provider)
    assert provider.retries(is_stream=False, is_own=True) == whole
    assert provider.retries(is_stream=True, is_own=True) == streamed


def test_a_client_is_retried_for_where_the_user_says_so_and_nowhere_else() -> None:
    built_in = msgspec.convert({"own_retries": 3}, Provider)
    assert [built_in.retries(is_stream=each, is_own=False) for each in (False, True)] == [0, 0]
    named = msgspec.convert({"request_max_retries": 2, "stream_max_retries": 7}, Provider)
    assert [named.retries(is_stream=each, is_own=False) for each in (False, True)] == [2, 7]


AZURE = Detection(names=("azure",), url_contains=("openai.azure.", "azure-api."), not_url_contains=("azurewebsites",))


@pytest.mark.parametrize(
    ("name", "title", "url", "fits"),
    [
        ("azure", "", "https://anything.example", True),
        ("mine", "Azure", "https://anything.example", True),
        ("mine", "", "https://x.OpenAI.azure.com/openai/v1", True),
        ("mine", "", "https://x.azure-api.azurewebsites.net", False),
        ("mine", "", "https://api.openai.com/v1", False),
        ("azures", "", "https://api.openai.com/v1", False),
    ],
)
def test_a_provider_is_recognised_by_name_title_or_address(name: str, title: str, url: str, *, fits: bool) -> None:
    assert AZURE.fits(name, Provider(title=title, base_url=url)) is fits


def test_a_detection_without_marks_fits_nothing() -> None:
    assert not Detection().fits("", Provider(title="x"))


@pytest.mark.parametrize(
    ("heading", "struct"),
    [
        ("`[providers.NAME]`", Provider),
        ("`[providers.NAME.quirks]`", Quirks),
        ("`[providers.NAME.charges]`", Charges),
        ("`[[routes]]`", Route),
        ("`[detections.NAME]`", Detection),
        ("Facts", Facts),
        ("`prices`", Prices),
        ("`prices.long`", LongPrices),
        ("`image`", ImageCost),
    ],
)
def test_every_key_is_documented(heading: str, struct: type[msgspec.Struct]) -> None:
    missing = missing_rows(heading, struct)
    assert not missing, f"write these rows in {PAGE}, under {heading}"


@pytest.mark.parametrize(("heading", "struct"), [('`[models."NAME"]`', Model), ("`[families.NAME]`", Family)])
def test_what_models_and_families_have_besides_facts_is_documented(heading: str, struct: type[msgspec.Struct]) -> None:
    assert set(missing_rows(heading, struct)) == set(rows(Facts)), PAGE


GPT = Family(match=("gpt-*",), tokenizer="o200k", reasoning=False, message_tokens=3)
GPT_5 = Family(match=("gpt-5*", "GPT5*"), tokenizer="o200k", reasoning=True)
CLAUDE = Family(match=("claude-*",), chars_per_token=3.5)
CATALOG = Catalog(
    families={"gpt-5": GPT_5, "gpt": GPT, "claude": CLAUDE},
    models={
        "gpt-5": Model(context_window=400_000, max_output=128_000, prices=Prices(input=1.0, output=9.0)),
        "azure/gpt-5": Model(context_window=300_000, prices=Prices(input=2.0)),
        "gpt-5-2025-08-07": Model(max_output=100_000),
        "house-model": Model(family="claude", aliases=("house",), context_window=10),
        "lost": Model(family="gone", title="Lost"),
        "Vendor-Large": Model(title="Large"),
    },
)


def test_the_family_that_a_model_names_or_with_the_longest_glob_decides() -> None:
    assert family_of(CATALOG, "any", "house") is CLAUDE
    assert family_of(CATALOG, "openai", "gpt-5-mini") is GPT_5
    assert family_of(CATALOG, "openai", "gpt-4o") is GPT
    assert family_of(CATALOG, "openrouter", "anthropic/Claude-x:free") is CLAUDE
    assert family_of(CATALOG, "any", "unheard-of") == family_of(CATALOG, "any", "lost") == Family()


def test_a_models_facts_are_laid_over_its_familys() -> None:
    assert facts_of(CATALOG, "openai", "gpt-5") == Facts(
        tokenizer="o200k",
        reasoning=True,
        context_window=400_000,
        max_output=128_000,
        prices=Prices(input=1.0, output=9.0),
    )


def test_the_more_exact_entry_is_laid_over_the_others() -> None:
    facts = facts_of(CATALOG, "azure", "gpt-5")
    assert (facts.context_window, facts.max_output, facts.prices) == (300_000, 128_000, Prices(input=2.0))
    facts = facts_of(CATALOG, "openai", "gpt-5-2025-08-07")
    assert (facts.context_window, facts.max_output) == (400_000, 100_000)


@pytest.mark.parametrize(
    "name",
    [
        "gpt-5", "openai/gpt-5", "models/gpt-5", "accounts/x/models/gpt-5", "gpt-5-latest", "gpt-5-2026-01-31",
        "gpt-5-20260131", "gpt-5@20260131", "gpt-5:free", "openai/gpt-5-2026-01-31:batch", "GPT-5",
    ],
)  # fmt: skip
def test_a_model_is_found_however_it_is_spelled(name: str) -> None:
    assert facts_of(CATALOG, "openrouter", name).context_window == 400_000


def test_an_alias_is_the_model_and_case_does_not_matter() -> None:
    assert facts_of(CATALOG, "any", "HOUSE").context_window == 10
    assert facts_of(CATALOG, "any", "vendor-large").title == "Large"


def test_what_is_not_known_stays_unknown() -> None:
    assert facts_of(CATALOG, "any", "unheard-of") == Facts()
    assert entry_of(CATALOG, "unheard-of") is None


def test_spellings_go_from_the_most_exact_to_the_least() -> None:
    paths, names = ["a/b-2026-01-31:free", "a/b-2026-01-31", "a/b"], ["b-2026-01-31:free", "b-2026-01-31", "b"]
    assert spellings("a/b-2026-01-31:free") == [*paths, *names]
    assert spellings("a/") == ["a/"]
    assert spellings("mistral-large-2411") == ["mistral-large-2411"], "a version is not taken for a date"


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
    catalog = (
        load([OWN, TomlText("sightline.toml", users)], {}, Settings, dialects=PROVIDER_DIALECTS).require_sound().catalog
    )
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


def test_prices_can_name_the_providers_they_apply_to() -> None:
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
    window = (
        load([OWN, TomlText("u", ELSEWHERE)], {}, Settings, dialects=PROVIDER_DIALECTS)
        .catalog.models["claude-opus-5"]
        .context_window
    )
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


def test_address_from_a_variable_does_not_count_as_a_changed_site() -> None:
    assert not providers_at_other_sites(
        {"azure": "${ENDPOINT}/v1"}, {"azure": Provider(base_url="https://me.example/v1")}
    )


def test_nothing_moves_without_a_reason() -> None:
    catalog = Catalog(models={"m": Model(prices=PRICES)})
    assert without_prices(catalog, (), lambda _name: False) is catalog


@pytest.mark.parametrize(
    ("provider", "key", "has_key"),
    [
        (Provider(), "", True),
        (Provider(key_env="ACME_KEY"), "", False),
        (Provider(key_env="ACME_KEY"), " ", False),
        (Provider(key_env="ACME_KEY"), "k", True),
        (Provider(key_env="ACME_KEY", embedded=True), "", True),
    ],
)
def test_a_provider_has_its_key_or_takes_none(provider: Provider, key: str, *, has_key: bool) -> None:
    assert provider.has_key({"ACME_KEY": key}) is has_key


def test_what_a_provider_charges_holds_for_its_models_unless_they_say_otherwise() -> None:
    text = """
    [providers.acme]
    base_url = "http://x/v1"
    charges = { tiers = { flex = 0.5, batch = 0.4 }, tools = { web_search = 10.0 } }
    [models."acme/large".prices]
    input = 1.0
    output = 2.0
    tiers = { flex = 0.7 }
    """
    catalog = load([TomlText("sightline.toml", text)], {}, Settings, dialects=PROVIDER_DIALECTS).require_sound().catalog
    prices = facts_of(catalog, "acme", "large").prices
    assert prices is not None
    assert (prices.tiers, prices.tools) == ({"flex": 0.7, "batch": 0.4}, {"web_search": 10.0})


def test_each_price_has_a_month_and_the_page_that_it_was_read_on() -> None:
    catalog = Catalog(
        providers={
            "a": Provider(charges=Charges(as_of="2026-05", source="https://a/prices")),
            "b": Provider(),
            "c": Provider(charges=Charges(source="https://c/prices")),
        },
        models={
            "one": Model(providers=("a", "b"), prices=Prices(as_of="2026-03")),
            "two": Model(
                providers=("a",), prices=Prices(as_of="2026-04", providers=("b", "gone"), source="https://two")
            ),
            "c/three": Model(prices=Prices(as_of="2026-01")),
            "own": Model(providers=("c",), prices=Prices(input=1.0)),
            "free": Model(providers=("c",)),
        },
    )
    assert price_dates(catalog) == [
        ("a", "", "2026-05", "https://a/prices"),
        ("a", "one", "2026-03", "https://a/prices"),
        ("b", "one", "2026-03", ""),
        ("b", "two", "2026-04", "https://two"),
        ("c", "three", "2026-01", "https://c/prices"),
    ]


def test_every_price_of_ours_says_when_and_where_it_was_read() -> None:
    catalog = configuration(None).catalog
    for name, model in catalog.models.items():
        for provider in model.providers:
            prices = facts_of(catalog, provider, name).prices
            if prices is not None and (prices.input or prices.output):  # what costs nothing needs no page
                assert prices.as_of, name
                assert prices.source.startswith("https://"), (provider, name)


REGIONAL = """
[providers.acme]
base_url = "https://{host}/v1"
[providers.acme.charges]
hosts = {{ "*.api.acme.com" = "regional" }}
[models."acme/new"]
prices = {{ input = 1.0, output = 2.0, regions = {{ regional = 1.1 }} }}
[models."acme/old"]
prices = {{ input = 1.0, output = 2.0 }}
"""


@pytest.mark.parametrize(
    ("host", "region"),
    [("api.acme.com", ""), ("eu.api.acme.com", "regional"), ("EU.api.acme.com:443", "regional"), ("[::1]:80", "")],
)
def test_prices_are_those_of_the_region_that_requests_are_sent_to(host: str, region: str) -> None:
    text = TomlText("sightline.toml", REGIONAL.format(host=host))
    catalog = load([text], {}, Settings, dialects=PROVIDER_DIALECTS).require_sound().catalog
    for model in ("new", "old"):
        prices = facts_of(catalog, "acme", model).prices
        assert prices is not None
        assert prices.region == region
        assert prices_at_address(prices, "https://jp.api.acme.com/v1/responses").region == "regional"
        assert prices_at_address(prices, "https://api.acme.com/v1/responses").region == ""
        assert prices_at_address(prices, "").region == region


def test_a_template_frames_messages_as_the_model_reads_them() -> None:
    template = ChatTemplate(message="<{role}>{text}</s>")
    assert template.frame("user", "What is {role}?") == "<user>What is {role}?</s>"
    assert template.end == "</s>"
