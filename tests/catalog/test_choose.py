from collections.abc import Callable

import pytest

from sightline.catalog.catalog import Catalog
from sightline.catalog.choose import ModelChoice, choose, default_choice
from sightline.catalog.facts import Facts, Family, Model, Prices
from sightline.catalog.provider import DialectName, Provider, Quirks, Route
from sightline.errors import Code, Fault

OPENAI = Provider(dialect="openai-responses", also={"openai-chat": ""}, key_env="OPENAI", default_model="gpt-5")
ANTHROPIC = Provider(dialect="anthropic", key_env="ANTHROPIC", default_model="claude-x")
OPENROUTER = Provider(key_env="OPENROUTER")
GROQ = Provider(key_env="GROQ", default_model="llama")
LOCAL = Provider(embedded=True, key_env="LOCAL", default_model="small")
CATALOG = Catalog(
    providers={"openai": OPENAI, "anthropic": ANTHROPIC, "openrouter": OPENROUTER, "groq": GROQ, "local": LOCAL},
    families={"gpt": Family(match=("gpt-*",), providers=("openai", "gone")), "bare": Family(match=("bare-*",))},
    models={
        "gpt-5": Model(providers=("openai", "openrouter"), context_window=5),
        "claude-x": Model(providers=("anthropic", "openrouter"), aliases=("claude-x-one",)),
        "openai/gpt-oss": Model(providers=("groq",)),
        "openai/gpt-5": Model(context_window=6),
        "llama": Model(providers=("groq",)),
        "bare-1": Model(),
    },
)


def keys(*names: str) -> Callable[[Provider], bool]:
    return lambda provider: provider.key_env in names


def with_routes(*routes: Route) -> Catalog:
    return Catalog(providers=CATALOG.providers, families=CATALOG.families, models=CATALOG.models, routes=routes)


def chosen(wanted: str, *held: str, catalog: Catalog = CATALOG) -> tuple[str, str]:
    choice = choose(catalog, wanted, has_key=keys(*held))
    assert choice.provider is catalog.providers[choice.provider_name]
    return choice.provider_name, choice.model


@pytest.mark.parametrize(
    ("wanted", "held", "provider", "model"),
    [
        # A name can include its provider.
        ("openrouter/anthropic/claude-x", (), "openrouter", "anthropic/claude-x"),
        ("anthropic/claude-new", (), "anthropic", "claude-new"),
        ("local", (), "local", "small"),
        ("local/", (), "local", "small"),
        ("local/other", (), "local", "other"),
        # A vendor's path that is part of the model's name is none; one that is no provider is not sent.
        ("openai/gpt-oss", (), "groq", "openai/gpt-oss"),
        ("openai/gpt-5", (), "openai", "gpt-5"),
        ("meta-llama/llama", (), "groq", "llama"),
        # The first provider of a model whose key is there, else the first; for a new model that of its family.
        ("gpt-5", ("OPENROUTER",), "openrouter", "gpt-5"),
        ("gpt-5", ("OPENROUTER", "OPENAI"), "openai", "gpt-5"),
        ("gpt-5", (), "openai", "gpt-5"),
        ("gpt-9", (), "openai", "gpt-9"),
        # An alias and a dated name are sent as they are.
        ("claude-x-one", (), "anthropic", "claude-x-one"),
        ("claude-x-20260131", (), "anthropic", "claude-x-20260131"),
    ],
)
def test_what_a_name_means(wanted: str, held: tuple[str, ...], provider: str, model: str) -> None:
    assert chosen(wanted, *held) == (provider, model)


def test_provider_without_a_default_model_requires_a_model_name() -> None:
    with pytest.raises(Fault) as caught:
        chosen("openrouter")
    assert caught.value.code is Code.MODEL_UNKNOWN
    assert caught.value.hint == "Name one: openrouter/MODEL."


@pytest.mark.parametrize(
    ("wanted", "hint"),
    [
        ("gtp-5", 'Did you mean "gpt-5"? Write provider/model to say who serves it, for instance openai/gtp-5.'),
        ("", "Write provider/model to say who serves it, for instance openai/MODEL."),
        ("antropic/nosuch", 'There is no provider "antropic"; did you mean "anthropic"? Write provider/model'),
        ("foo/nosuch", 'There is no provider "foo". Write provider/model'),
        ("bare-1", ""),
    ],
)
def test_unknown_model_is_reported_with_the_closest_match(wanted: str, hint: str) -> None:
    with pytest.raises(Fault) as caught:
        chosen(wanted)
    assert caught.value.code is Code.MODEL_UNKNOWN
    assert caught.value.message == f'no provider is known for the model "{wanted}"'
    assert caught.value.hint.startswith(hint)


# --- routes ---------------------------------------------------------------------------------------


def test_the_first_route_that_matches_decides() -> None:
    first, second = Route(model="claude-*", provider="groq", as_="llama"), Route(provider="openrouter")
    catalog = with_routes(first, second)
    assert chosen("claude-x", catalog=catalog) == ("groq", "llama")
    assert chosen("gpt-5", catalog=catalog) == ("openrouter", "gpt-5")
    assert choose(catalog, "claude-x", has_key=keys()).route is first


def test_route_matches_the_model_name_as_written() -> None:
    catalog = with_routes(Route(model="claude-*", provider="groq"), Route(model="openai/*", provider="openai"))
    assert chosen("anthropic/claude-x", catalog=catalog) == ("anthropic", "claude-x")
    assert chosen("openai/gpt-5", catalog=catalog) == ("openai", "gpt-5")


def test_a_route_to_the_provider_that_was_named_takes_its_default_model() -> None:
    catalog = with_routes(Route(provider="groq"))
    assert chosen("groq", catalog=catalog) == chosen("groq/", catalog=catalog) == ("groq", "llama")
    assert chosen("openai/gpt-5", catalog=catalog) == ("groq", "openai/gpt-5")


def test_a_route_can_be_for_one_dialect_only() -> None:
    catalog = with_routes(Route(dialect="anthropic", provider="groq"))
    assert chosen("claude-x", catalog=catalog) == ("anthropic", "claude-x")
    assert choose(catalog, "claude-x", has_key=keys(), arriving="anthropic").provider_name == "groq"
    assert choose(catalog, "claude-x", has_key=keys(), arriving="gemini").provider_name == "anthropic"


def test_a_route_to_nowhere_is_a_mistake_of_the_configuration() -> None:
    with pytest.raises(Fault) as caught:
        chosen("x", catalog=with_routes(Route(provider="grok")))
    assert caught.value.code is Code.CONFIG
    assert caught.value.hint == 'Did you mean "groq"?'


# --- what comes with the choice -------------------------------------------------------------------


def test_the_dialect_changes_only_when_it_has_to() -> None:
    for arriving, spoken in [
        ("openai-chat", "openai-chat"),
        ("openai-responses", "openai-responses"),
        ("anthropic", "openai-responses"),
        (None, "openai-responses"),
    ]:
        assert choose(CATALOG, "openai/gpt-5", has_key=keys(), arriving=arriving).dialect == spoken


def test_facts_and_family_are_those_at_the_chosen_provider() -> None:
    choice = choose(CATALOG, "openai/gpt-5", has_key=keys())
    assert choice.facts.context_window == 6
    assert choice.family is CATALOG.families["gpt"]
    assert choice.route is None


def test_by_default_the_first_key_decides_and_without_one_it_is_the_embedded_model() -> None:
    for held, provider, model in [
        (("GROQ", "ANTHROPIC"), "anthropic", "claude-x"),
        (("OPENROUTER", "GROQ"), "groq", "llama"),
        (("LOCAL",), "local", "small"),
        ((), "local", "small"),
    ]:
        choice = default_choice(CATALOG, keys(*held))
        assert (choice.provider_name, choice.model) == (provider, model)


def test_with_nothing_at_all_the_fault_says_what_to_do() -> None:
    with pytest.raises(Fault) as caught:
        default_choice(Catalog(), keys())
    assert caught.value.code is Code.MODEL_UNKNOWN
    assert "provider/model" in caught.value.hint


def test_a_go_betweens_spelling_is_not_sent_to_the_maker_by_its_family() -> None:
    catalog = Catalog(
        providers={"maker": Provider(base_url="http://127.0.0.1:1")},
        families={"m": Family(match=("m-*",), providers=("maker",))},
        models={"m-1-5": Model(providers=("maker",), aliases=("maker/m-1.5",))},
    )
    assert choose(catalog, "m-9", has_key=lambda _: True).provider_name == "maker"
    with pytest.raises(Fault) as caught:
        choose(catalog, "m-1.5", has_key=lambda _: True)
    assert "m-1-5" in caught.value.hint


def test_a_provider_is_known_in_any_case_and_a_go_betweens_spelling_by_its_makers_name() -> None:
    catalog = Catalog(
        providers={
            "maker": Provider(base_url="http://127.0.0.1:1"),
            "between": Provider(base_url="http://127.0.0.1:2"),
        },
        models={"m-1-5": Model(providers=("maker", "between"), aliases=("maker/m-1.5",))},
    )
    assert choose(catalog, "Maker/m-9", has_key=lambda _: True).model == "m-9"
    assert choose(catalog, "maker/m-1.5", has_key=lambda _: True).model == "m-1-5"
    assert choose(catalog, "between/maker/m-1.5", has_key=lambda _: True).model == "maker/m-1.5"


def test_a_dialect_that_is_spoken_badly_is_translated_instead() -> None:
    also = {"openai-responses": ""}
    for has_indices, spoken in ((True, "openai-responses"), (False, "openai-chat")):
        provider = Provider(base_url="http://127.0.0.1:1", also=also, quirks=Quirks(responses_indices=has_indices))
        catalog = Catalog(providers={"acme": provider})
        assert choose(catalog, "acme/m", has_key=lambda _: True, arriving="openai-responses").dialect == spoken


def test_a_vendors_rules_hold_in_the_dialects_of_its_home() -> None:
    def has_rules(spoken: DialectName, **settings: object) -> bool:
        provider = Provider(dialect="gemini", also={"openai-chat": ""}, **settings)  # type: ignore[arg-type]
        return ModelChoice("p", provider, "m", Facts(), Family(), None, spoken).has_vendor_rules

    strict = Quirks(vendor_rules=True)
    assert has_rules("gemini", quirks=strict, home=("gemini",))
    assert not has_rules("openai-chat", quirks=strict, home=("gemini",))
    assert has_rules("openai-chat", quirks=strict)
    assert not has_rules("gemini", home=("gemini",))


def test_a_reply_is_charged_by_the_model_that_answered_where_its_price_is_known() -> None:
    models = {name: Model(prices=Prices(input=price)) for name, price in (("acme/a", 1.0), ("acme/b", 2.0))}
    catalog = Catalog(providers={"acme": Provider(base_url="http://127.0.0.1:1")}, models=models)
    choice = choose(catalog, "acme/a", has_key=lambda _: True)
    for answered, price in (("", 1.0), ("a", 1.0), ("b", 2.0), ("unheard-of", 1.0)):
        found = choice.prices_for(answered)
        assert found is not None
        assert found.input == price, answered
    alone = ModelChoice("acme", Provider(), "a", Facts(prices=Prices(input=3.0)), Family())
    assert alone.prices_for("b") == Prices(input=3.0)
