import pytest

from sightline.catalog.catalog import Catalog
from sightline.catalog.facts import Model
from sightline.catalog.provider import Provider, Route
from sightline.errors import Code, Fault
from sightline.exchange.client_request import ClientRequest
from sightline.exchange.routing import PLACEHOLDER, credential, route_for

PROVIDERS = {
    "openai": Provider(
        dialect="openai-responses", also={"openai-chat": ""}, key_env="O", home=("openai-chat", "openai-responses")
    ),
    "anthropic": Provider(dialect="anthropic", key_env="A", home=("anthropic",)),
    "groq": Provider(key_env="G"),
    "acme": Provider(key_env="M"),
    "plain": Provider(),
    "local": Provider(embedded=True, key_env="L", default_model="small", also={"anthropic": ""}),
}
MODELS = {"gpt": Model(providers=("openai", "groq")), "claude": Model(providers=("anthropic",))}
CATALOG = Catalog(providers=PROVIDERS, models=MODELS, routes=(Route(model="fast-*", provider="acme", as_="acme-1"),))
OWN = (("Authorization", "Bearer mine"),)


def goes(model: str, keys: str = "", *, own: bool = False, spoken: str = "openai-chat", provider: str = "") -> str:
    """`provider/model`, and a star where the client's own credential serves."""
    asked = ClientRequest(spoken, b"", OWN if own else (), "/", model=model, provider=provider)
    choice = route_for(CATALOG, asked, lambda each: each.embedded or not each.key_env or each.key_env in keys)
    serves = PROVIDERS[choice.provider_name].key_env and not choice.provider.key_env
    return f"{choice.provider_name}/{choice.model}{'*' if serves else ''}"


@pytest.mark.parametrize("provider", ["anthropic", "local", "host.example"])
def test_an_address_that_the_client_has_connected_to_is_what_it_means(provider: str) -> None:
    asked = ClientRequest(
        "openai-chat", b"", OWN, "/v1/x", model="fast-1", provider=provider, upstream="https://host.example"
    )
    choice = route_for(CATALOG, asked, lambda _provider: True)
    assert (choice.provider_name, choice.model, choice.dialect) == (provider, "fast-1", "openai-chat")
    assert (choice.provider.base_url, choice.provider.key_env) == ("https://host.example", "")
    assert not choice.provider.embedded
    assert choice.route is None


def test_the_path_names_the_provider() -> None:
    assert goes("fast-1", provider="groq") == "groq/fast-1"
    assert goes("x", provider="anthropic", own=True, spoken="anthropic") == "anthropic/x*"
    assert goes("x", provider="anthropic", own=True) == "anthropic/x", "it was not sent for this provider"
    with pytest.raises(Fault, match="openai, anthropic, groq, acme, plain, local") as caught:
        goes("x", provider="nobody")
    assert caught.value.status == 404


def test_then_the_first_route_that_matches() -> None:
    assert goes("fast-9", "M") == "acme/acme-1"
    assert goes("fast-9", own=True) == "acme/acme-1", "a configured key is not replaced in silence"


def test_then_a_provider_that_serves_the_model() -> None:
    assert goes("gpt", "O") == "openai/gpt"
    assert goes("gpt", "G") == "groq/gpt"
    assert goes("gpt", own=True) == "openai/gpt*"
    assert goes("claude", own=True) == "anthropic/claude*"
    assert goes("plain/anything") == "plain/anything"


def test_then_the_dialect_s_home() -> None:
    assert goes("unheard-of", "O") == "openai/unheard-of"
    assert goes("unheard-of", own=True) == "openai/unheard-of*"
    assert goes("claude", "O") == "openai/claude"


def test_then_the_model_inside() -> None:
    assert goes("unheard-of") == "local/small"
    assert goes("gpt", spoken="anthropic") == "local/small"
    assert goes("local/small") == "local/small"


def test_unknown_model_is_rejected_without_an_embedded_model() -> None:
    asked = ClientRequest("openai-chat", b"", (), "/", model="unheard-of")
    outside = Catalog(providers={"openai": PROVIDERS["openai"]})
    assert route_for(outside, asked, lambda _: False).provider_name == "openai"
    for catalog in (
        Catalog(providers={"acme": PROVIDERS["acme"]}),
        Catalog(providers={"acme": PROVIDERS["acme"]}, models={"unheard-of": Model(providers=("acme",))}),
    ):
        with pytest.raises(Fault) as caught:
            route_for(catalog, asked, lambda _: False)
        assert caught.value.code is Code.MODEL_UNKNOWN


def test_route_to_an_unknown_provider_is_reported() -> None:
    catalog = Catalog(providers=PROVIDERS, routes=(Route(provider="nobody"),))
    with pytest.raises(Fault) as caught:
        route_for(catalog, ClientRequest("openai-chat", b"", (), "/", model="m"), lambda _: True)
    assert caught.value.code is Code.CONFIG


def test_the_credential_is_the_dialect_s_own_before_others() -> None:
    headers = (("Authorization", "Bearer b"), ("X-Api-Key", "k"))
    asked = ClientRequest("anthropic", b"", headers, "/", query="key=q%20")
    assert credential(asked, "x-api-key") == "k"
    assert credential(asked) == "b"
    assert credential(ClientRequest("gemini", b"", (), "/", query="alt=sse&key=q%2B")) == "q+"
    assert credential(ClientRequest("gemini", b"", (), "/")) == ""


def test_a_placeholder_is_no_credential() -> None:
    headers = (("authorization", f"Bearer {PLACEHOLDER}"), ("x-api-key", PLACEHOLDER))
    assert credential(ClientRequest("anthropic", b"", headers, "/", query=f"key={PLACEHOLDER}")) == ""
    assert credential(ClientRequest("anthropic", b"", (*headers, ("x-goog-api-key", "k")), "/")) == "k"
