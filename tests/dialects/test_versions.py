from sightline.catalog.facts import Facts
from sightline.dialects.dialect import ApiVersions
from sightline.dialects.registry import NAMES, dialect

VERSIONS = ApiVersions("x-version", (("2026-10-21", ("temperature", "top_k")),))


def test_a_version_refuses_what_earlier_ones_took() -> None:
    facts = Facts(refuses=("top_k",), tools=True)
    assert VERSIONS.narrow(facts, [("accept", "2027-01-01")]) is facts
    assert VERSIONS.narrow(facts, [("X-Version", "2023-06-01")]) is facts
    assert VERSIONS.narrow(facts, [("X-Version", " 2026-10-21")]) == Facts(refuses=("top_k", "temperature"), tools=True)
    assert VERSIONS.narrow(Facts(), [("x-version", "2026-12-01")]).refuses == ("temperature", "top_k")
    assert VERSIONS.narrow(facts, [("x-version", "2026-10-21"), ("x-version", "2023-06-01")]) is facts


def test_what_we_ask_with_ourselves_refuses_nothing() -> None:
    for name in NAMES:
        known = dialect(name)
        if known.versions is not None and known.endpoint is not None:
            assert known.versions.narrow(Facts(), known.endpoint.headers) == Facts()
    assert dialect("anthropic").versions is not None
