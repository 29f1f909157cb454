import pytest

from sightline.catalog.catalog import Catalog
from sightline.catalog.facts import Facts, Family, Model, Prices
from sightline.catalog.lookup import entry_of, facts_of, family_of, spellings

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


def test_the_family_with_the_longest_glob_decides() -> None:
    assert family_of(CATALOG, "openai", "gpt-5-mini") is GPT_5
    assert family_of(CATALOG, "openai", "gpt-4o") is GPT
    assert family_of(CATALOG, "openrouter", "anthropic/Claude-x:free") is CLAUDE


def test_a_model_can_name_its_family() -> None:
    assert family_of(CATALOG, "any", "house") is CLAUDE


def test_where_no_family_fits_it_is_an_empty_one() -> None:
    assert family_of(CATALOG, "any", "unheard-of") == Family()
    assert family_of(CATALOG, "any", "lost") == Family()


def test_a_models_facts_are_laid_over_its_familys() -> None:
    assert facts_of(CATALOG, "openai", "gpt-5") == Facts(
        tokenizer="o200k",
        reasoning=True,
        context_window=400_000,
        max_output=128_000,
        prices=Prices(input=1.0, output=9.0),
    )


def test_an_entry_for_the_provider_is_laid_over_the_models() -> None:
    facts = facts_of(CATALOG, "azure", "gpt-5")
    assert (facts.context_window, facts.max_output, facts.prices) == (300_000, 128_000, Prices(input=2.0))


def test_the_more_exact_name_wins_over_what_is_left_of_it() -> None:
    facts = facts_of(CATALOG, "openai", "gpt-5-2025-08-07")
    assert (facts.context_window, facts.max_output) == (400_000, 100_000)


@pytest.mark.parametrize(
    "name",
    [
        "gpt-5",
        "openai/gpt-5",
        "models/gpt-5",
        "accounts/x/models/gpt-5",
        "gpt-5-latest",
        "gpt-5-2026-01-31",
        "gpt-5-20260131",
        "gpt-5@20260131",
        "gpt-5:free",
        "openai/gpt-5-2026-01-31:batch",
        "GPT-5",
    ],
)
def test_a_model_is_found_however_it_is_spelled(name: str) -> None:
    assert facts_of(CATALOG, "openrouter", name).context_window == 400_000


def test_an_alias_is_the_model_and_case_does_not_matter() -> None:
    assert facts_of(CATALOG, "any", "HOUSE").context_window == 10
    assert facts_of(CATALOG, "any", "vendor-large").title == "Large"


def test_what_is_not_known_stays_unknown() -> None:
    assert facts_of(CATALOG, "any", "unheard-of") == Facts()
    assert entry_of(CATALOG, "unheard-of") is None


def test_a_version_is_not_taken_for_a_date() -> None:
    assert spellings("mistral-large-2411") == ["mistral-large-2411"]


def test_spellings_go_from_the_most_exact_to_the_least() -> None:
    assert spellings("a/b-2026-01-31:free") == [
        "a/b-2026-01-31:free",
        "a/b-2026-01-31",
        "a/b",
        "b-2026-01-31:free",
        "b-2026-01-31",
        "b",
    ]
    assert spellings("a/") == ["a/"]
