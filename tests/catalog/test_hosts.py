import pytest

from sightline.catalog.provider import KnownHost, KnownHosts, Provider, addresses_of


def test_a_host_is_its_providers_with_the_paths_of_its_base_urls() -> None:
    hosts = KnownHosts(
        [
            ("openrouter", "https://openrouter.ai/api"),
            ("openrouter", "https://openrouter.ai/api/v1/"),
            ("openrouter", "https://openrouter.ai/api"),
            ("mine", "https://openrouter.ai/other"),
            ("openai", "https://API.openai.com"),
        ]
    )
    assert hosts.find("openrouter.ai", 443) == KnownHost("openrouter.ai", "openrouter", ("/api/v1", "/api"))
    assert hosts.find("api.openai.com", 443) == KnownHost("api.openai.com", "openai")
    assert hosts.names == ("api.openai.com", "openrouter.ai")


@pytest.mark.parametrize(
    "url", ["http://plain.example/v1", "https://127.0.0.1/v1", "https://localhost", "https://", "https://a:b:c", "no"]
)
def test_a_base_url_without_tls_to_another_machine_opens_nothing(url: str) -> None:
    assert KnownHosts([("p", url)]).names == ()


def test_a_port_is_part_of_what_is_known() -> None:
    hosts = KnownHosts([("p", "https://llm.example:8443/v1")])
    assert hosts.find("llm.example", 8443) == KnownHost("llm.example", "p", ("/v1",))
    assert hosts.find("llm.example", 443) is None


def test_hosts_that_a_user_names_are_their_own_provider() -> None:
    hosts = KnownHosts([], ["LLM.example", "*.corp.example:8443"])
    assert hosts.find("llm.example", 443) == KnownHost("llm.example", "llm.example")
    assert hosts.find("a.corp.example", 8443) == KnownHost("a.corp.example", "a.corp.example")
    assert hosts.find("corp.example", 8443) is None
    assert hosts.find("a.corp.example", 443) is None
    assert hosts.names == ("*.corp.example", "llm.example")


def test_addresses_begin_with_the_variables_that_are_set() -> None:
    providers = {
        "azure": Provider(base_url="${AZURE}/openai/v1", also={"anthropic": "", "openai-chat": "https://a.example"}),
        "unset": Provider(base_url="${UNSET}/v1", other_urls=("https://b.example",)),
    }
    assert list(addresses_of(providers, {"AZURE": "https://mine.azure.com/"})) == [
        ("azure", "https://mine.azure.com/openai/v1"),
        ("azure", "https://a.example"),
        ("unset", "https://b.example"),
    ]
