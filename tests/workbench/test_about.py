from sightline.catalog.catalog import Catalog
from sightline.catalog.facts import Model
from sightline.catalog.provider import Provider
from sightline.cli.clients import CLIENTS
from sightline.workbench.about import about

CATALOG = Catalog(
    providers={
        "acme": Provider(key_env="ACME_KEY"),
        "lost": Provider(key_env="LOST_KEY", key_help="Ask for one at the desk."),
        "open": Provider(),
        "local": Provider(embedded=True, default_model="smol"),
    },
    models={"large": Model(providers=("acme",), context_window=1000), "far": Model(providers=("lost",))},
)
TOLD = about("1.2", "http://127.0.0.1:7700", CATALOG, lambda provider: provider.key_env != "LOST_KEY")


def test_the_server_says_what_it_is() -> None:
    assert (TOLD.version, TOLD.address, TOLD.places) == ("1.2", "http://127.0.0.1:7700", ("traffic",))


def test_models_are_those_that_would_get_an_answer() -> None:
    assert [(each.id, each.provider, each.context_window) for each in TOLD.models] == [
        ("large", "acme", 1000),
        ("smol", "local", None),
    ]


def test_what_is_configured_at_a_provider_without_a_key_can_be_chosen() -> None:
    mine = Catalog(
        providers={"mine": Provider(default_model="usual")},
        models={"mine/large": Model(context_window=800), "mine/usual": Model()},
    )
    told = about("1.2", "http://127.0.0.1:7700", mine, lambda _provider: True)
    assert [(each.id, each.provider, each.context_window) for each in told.models] == [
        ("usual", "mine", None),
        ("large", "mine", 800),
    ]


def test_a_model_that_is_configured_at_one_provider_with_a_key_can_be_chosen() -> None:
    mine = Catalog(
        providers={"acme": Provider(key_env="K"), "lost": Provider(key_env="L")},
        models={
            "large": Model(providers=("acme",), context_window=9),
            "acme/large": Model(context_window=800),
            "acme/own": Model(context_window=7),
            "lost/own": Model(),
        },
    )
    told = about("1.2", "http://127.0.0.1:7700", mine, lambda provider: provider.key_env == "K")
    assert [(each.id, each.provider, each.context_window) for each in told.models] == [
        ("own", "acme", 7),
        ("large", "acme", 800),
    ]


def test_providers_say_what_they_lack() -> None:
    told = {each.name: (each.ready, each.why) for each in TOLD.providers}
    assert told["acme"] == told["local"] == (True, "")
    assert told["open"][0] is True
    assert "credential" in told["open"][1]
    assert told["lost"] == (False, "LOST_KEY is not set. Ask for one at the desk.")


def test_every_client_that_can_be_started_is_shown_with_its_command() -> None:
    commands = {each.command.removeprefix("sightline run -- ") for each in TOLD.clients if each.command}
    assert commands == set(CLIENTS)
    (claude,) = [each for each in TOLD.clients if each.name == "Claude Code"]
    assert claude.env == {"ANTHROPIC_BASE_URL": "http://127.0.0.1:7700"}
