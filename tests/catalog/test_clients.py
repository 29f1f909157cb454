from sightline.catalog.clients import BASE_URLS, CREDENTIALS, DEMANDED, KNOWN_CLIENTS, KnownClient


def test_a_client_is_pointed_at_an_address_by_the_variables_that_it_reads() -> None:
    both = KnownClient("Both", variables=("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL"))
    assert both.environment("http://127.0.0.1:7700") == {
        "OPENAI_BASE_URL": "http://127.0.0.1:7700/v1",
        "ANTHROPIC_BASE_URL": "http://127.0.0.1:7700",
    }
    assert KnownClient("None").environment("http://127.0.0.1:7700") == {}


def test_whoever_is_known_reads_variables_that_are_known_or_is_started_here() -> None:
    known = {name for name, _, _ in BASE_URLS}
    assert all(set(client.variables) <= known for client in KNOWN_CLIENTS)
    assert all(client.variables or client.program for client in KNOWN_CLIENTS)
    assert len({client.title for client in KNOWN_CLIENTS}) == len(KNOWN_CLIENTS)


def test_what_a_client_demands_is_one_of_its_credentials() -> None:
    assert all(set(names) <= set(CREDENTIALS[provider]) for provider, names in DEMANDED.items())
