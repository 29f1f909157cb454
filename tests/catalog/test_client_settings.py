from importlib.resources import files

import msgspec

from sightline.catalog.clients import ClientSettings

TABLE = """
[[settings]]
client = "acme"
way = "base_url"
since = "2.1.70"
variables = { KEEP = "1" }
needs_own_provider = true
keeps = "a feature"
source = "its manual"

[[settings]]
client = "*"
way = "tls"
certificates = ["CERTS"]
keeps = "trust"
source = "a manual"
"""
SETTINGS = msgspec.toml.decode(TABLE, type=ClientSettings)


def test_a_client_is_given_what_is_for_it_and_its_way() -> None:
    assert [each.variables for each in SETTINGS.for_client("acme", "base_url")] == [{"KEEP": "1"}]
    assert SETTINGS.for_client("other", "base_url") == ()
    assert [each.certificates for each in SETTINGS.for_client("other", "tls")] == [("CERTS",)]


def test_an_older_version_does_without_what_it_does_not_need() -> None:
    assert SETTINGS.for_client("acme", "base_url", version="2.1.69") == ()
    assert SETTINGS.for_client("acme", "base_url", version="2.1.70-beta.3")
    assert SETTINGS.for_client("acme", "base_url", version="10.0")
    assert SETTINGS.for_client("acme", "tls", version="0.1")


def test_what_only_the_own_provider_takes_is_left_out_with_routes() -> None:
    assert SETTINGS.for_client("acme", "base_url", has_routes=True) == ()


def test_each_built_in_setting_says_what_it_keeps_and_where_that_is_written() -> None:
    settings = msgspec.toml.decode((files("sightline.catalog") / "clients.toml").read_bytes(), type=ClientSettings)
    for client, way in (("claude", "base_url"), ("codex", "base_url"), ("codex", "tls"), ("any", "tls")):
        found = settings.for_client(client, way)  # type: ignore[arg-type]
        assert found
        assert all(each.keeps and each.source for each in found)
