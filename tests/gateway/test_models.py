import pytest

from sightline.catalog.catalog import Catalog
from sightline.catalog.facts import Model
from sightline.catalog.provider import Provider, Route
from sightline.errors import Code, Fault
from sightline.gateway.models import find_model, for_codex, list_models

CATALOG = Catalog(
    providers={
        "keyed": Provider(key_env="KEYED", default_model="large"),
        "unkeyed": Provider(key_env="UNKEYED", default_model="absent"),
        "open": Provider(),
        "local": Provider(embedded=True, default_model="smol"),
    },
    models={
        "large": Model(providers=("unkeyed", "keyed"), title="The Large", context_window=1000, max_output=100),
        "other": Model(providers=("unkeyed",)),
        "keyed/large": Model(providers=("keyed",)),
        "smol": Model(providers=("local",)),
        "ours": Model(providers=("open",)),
    },
    routes=(
        Route(model="claude-*", provider="keyed", as_="large"),
        Route(model="fast", provider="open", as_="ours"),
        Route(model="oth*", provider="local"),
    ),
)


def has_key(provider: Provider) -> bool:
    return provider.key_env in ("", "KEYED")


def names(provider: str = "") -> dict[str, str]:
    return {each.id: each.provider for each in list_models(CATALOG, has_key, provider)}


def test_listed_is_what_would_get_an_answer() -> None:
    assert names() == {"large": "keyed", "smol": "local", "fast": "open", "other": "local"}


def test_a_default_model_of_several_providers_is_listed_for_the_last_one() -> None:
    providers = {name: Provider(key_env="KEYED", default_model="shared") for name in "abcdefgh"}
    listed = list_models(Catalog(providers=providers), lambda _: True, "")
    assert [(each.id, each.provider) for each in listed] == [("shared", "h")]


def test_a_provider_that_is_chosen_lists_its_own() -> None:
    assert names("open") == {"ours": "open", "fast": "open"}
    assert names("unkeyed") == {"large": "unkeyed", "other": "unkeyed", "absent": "unkeyed"}


def test_model_of_a_single_provider_is_listed_by_a_requestable_name() -> None:
    models = {
        "keyed/own": Model(context_window=7),
        "unkeyed/own": Model(),
        "unkeyed/gpt": Model(providers=("keyed", "local")),  # the vendor's name has a slash, others serve it
    }
    catalog = Catalog(providers=CATALOG.providers, models=models)
    found = {each.id: (each.provider, each.facts.context_window) for each in list_models(catalog, has_key)}
    assert found.pop("keyed/own") == ("keyed", 7)
    assert found.pop("unkeyed/gpt") == ("keyed", None)
    assert set(found) == {"large", "smol"}
    assert {each.id for each in list_models(catalog, has_key, "keyed")} >= {"own"}, "behind /p/ it is named so"


def test_unknown_provider_is_reported_with_the_known_ones() -> None:
    with pytest.raises(Fault) as caught:
        list_models(CATALOG, has_key, "acme")
    assert caught.value.status == 404
    assert "keyed, unkeyed, open, local" in caught.value.hint


def test_one_model_is_found_by_its_name() -> None:
    models = list_models(CATALOG, has_key)
    assert find_model(models, "large").provider == "keyed"
    assert find_model(models, "models/large").provider == "keyed"
    with pytest.raises(Fault) as caught:
        find_model(models, "huge")
    assert (caught.value.code, caught.value.status) == (Code.MODEL_UNKNOWN, 404)


def test_codex_keeps_what_it_knows_of_its_models() -> None:
    assert for_codex() == {"models": []}
