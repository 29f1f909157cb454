"""Service tiers, ids of end users, API versions, media and wrapped signatures."""

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.catalog.facts import Facts
from sightline.dialects.dialect import ApiVersions
from sightline.dialects.fields import from_url, to_url
from sightline.dialects.option_table import (
    KINDS,
    OF_ANTHROPIC,
    OF_CHAT,
    OF_GEMINI,
    OF_RESPONSES,
    fit_anthropic_id,
    fit_openai_ids,
    fit_tier,
    options_of,
    read_options,
    set_path,
    top_level_keys,
    write_options,
)
from sightline.dialects.registry import NAMES, dialect
from sightline.dialects.signatures import NEXT, unwrap, wrap
from sightline.dialects.translate import translate_request
from sightline.errors import Fault
from sightline.model.json import Json, JsonObject
from sightline.model.parts import Inline, Link
from sightline.model.report import Report
from sightline.model.request import Options
from tests.dialects.reports import losses

TABLE = {
    "max_tokens": (("config", "maxTokens"), ("max_tokens",)),
    "stop": (("stop",),),
    "temperature": (("temperature",),),
    "metadata": (("metadata",),),
    "safety_settings": (("safety",),),
    "store": (("store",),),
    "user": (("user",),),
}


def test_options_are_read_from_their_places() -> None:
    found, places = read_options({"config": {"maxTokens": 5}, "stop": ["a", "b"], "temperature": 1}, TABLE)
    assert found == {"max_tokens": 5, "stop": ("a", "b"), "temperature": 1}
    assert places == {"max_tokens": "/config/maxTokens", "stop": "/stop", "temperature": "/temperature"}
    assert options_of(found, places) == Options(max_tokens=5, stop=("a", "b"), temperature=1, places=places)


def test_of_two_spellings_the_first_is_taken() -> None:
    found, _ = read_options({"config": {"maxTokens": 5}, "max_tokens": 9}, TABLE)
    assert found == {"max_tokens": 5}
    assert read_options({"config": 3, "max_tokens": 9}, TABLE)[0] == {"max_tokens": 9}


def test_null_is_unset_and_one_string_is_a_list_of_one() -> None:
    assert read_options({"stop": None, "temperature": None}, TABLE)[0] == {}
    assert read_options({"stop": "END"}, TABLE)[0] == {"stop": ("END",)}


@pytest.mark.parametrize(
    ("name", "value"),
    [("stop", [1]), ("stop", 5), ("temperature", True), ("metadata", []), ("safety", {}), ("store", 1), ("user", 1)],
)
def test_a_wrong_type_names_the_place(name: str, value: Json) -> None:
    with pytest.raises(Fault, match=f"^/{name}: expected"):
        read_options({name: value}, TABLE)


def test_options_are_written_to_their_first_place_and_the_rest_is_lost() -> None:
    report = Report()
    document: JsonObject = {}
    options = Options(max_tokens=5, stop=("a",), seed=7, cache_key="k", top_p=0.5, places={"seed": "/from/seed"})
    write_options(options, TABLE, document, report, dialect="d", same=False, skip=frozenset({"top_p"}))
    assert document == {"config": {"maxTokens": 5}, "stop": ["a"]}
    assert {loss.pointer: loss.severity for loss in report.losses} == {"/from/seed": "option", "/cache_key": "identity"}


def test_a_conversation_that_the_provider_keeps_is_content() -> None:
    report = Report()
    options = Options(previous_response_id="resp_1")
    write_options(options, TABLE, {}, report, dialect="d", same=False, skip=frozenset())
    assert losses(report) == [("/previous_response_id", "content")]


def test_in_the_same_dialect_an_option_goes_back_where_it_stood() -> None:
    document: JsonObject = {}
    options = Options(max_tokens=5, stop=("a",), places={"max_tokens": "/max_tokens"})
    write_options(options, TABLE, document, Report(), dialect="d", same=True, skip=frozenset())
    assert document == {"max_tokens": 5, "stop": ["a"]}


def test_a_path_never_runs_through_a_scalar() -> None:
    with pytest.raises(Fault, match="/a/b: expected an object"):
        set_path({"a": 1}, ("a", "b"), 2)


def test_top_level_keys_are_those_that_are_read_whole() -> None:
    assert top_level_keys(TABLE) == {"max_tokens", "stop", "temperature", "metadata", "safety", "store", "user"}


def test_every_plain_option_has_a_kind() -> None:
    assert set(KINDS) | {"format", "reasoning", "places"} == set(Options.__struct_fields__)


REQUESTS = {
    "openai-chat": {"model": "m", "messages": [{"role": "user", "content": "hi"}]},
    "openai-responses": {"model": "m", "input": "hi"},
    "anthropic": {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]},
    "gemini": {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]},
}
FIELDS = {"gemini": "serviceTier"}
TAKEN = {
    "openai-chat": {"auto", "default", "flex", "priority", "scale", "fast"},
    "openai-responses": {"auto", "default", "flex", "priority", "scale", "fast", "ultrafast"},
    "anthropic": {"auto", "standard_only"},
    "gemini": {"standard", "flex", "priority", "unspecified"},
}


def translated(source: str, target: str, tier: str) -> tuple[object, list[str]]:
    body = {**REQUESTS[source], FIELDS.get(source, "service_tier"): tier}
    result = translate_request(json.dumps(body).encode(), source, target)
    field = FIELDS.get(target, "service_tier")
    losses = [loss.severity for loss in result.report.losses if "tier" in loss.pointer.lower()]
    return json.loads(result.data).get(field), losses


@pytest.mark.parametrize("source", TAKEN)
@pytest.mark.parametrize("target", TAKEN)
def test_every_tier_is_one_that_the_target_takes_or_is_reported(source: str, target: str) -> None:
    if source == target:
        return
    for tier in TAKEN[source]:
        written, losses = translated(source, target, tier)
        assert written in TAKEN[target] if not losses else written is None


@pytest.mark.parametrize(
    ("source", "target", "tier", "written", "losses"),
    [
        ("anthropic", "openai-chat", "standard_only", "default", []),
        ("anthropic", "openai-responses", "standard_only", "default", []),
        ("anthropic", "gemini", "standard_only", "standard", []),
        ("anthropic", "openai-chat", "auto", "auto", []),
        ("anthropic", "gemini", "auto", None, ["identity"]),
        ("openai-chat", "anthropic", "default", "standard_only", []),
        ("openai-chat", "anthropic", "priority", None, ["option"]),
        ("openai-responses", "openai-chat", "ultrafast", None, ["option"]),
        ("openai-chat", "gemini", "fast", "priority", []),
        ("gemini", "openai-chat", "STANDARD", "default", []),
        ("gemini", "anthropic", "unspecified", None, ["identity"]),
        ("gemini", "anthropic", "flex", None, ["option"]),
    ],
)
def test_a_tier_keeps_its_meaning(source: str, target: str, tier: str, written: str | None, losses: list[str]) -> None:
    assert translated(source, target, tier) == (written, losses)


def test_options_without_a_tier_stay_as_they_are() -> None:
    options = Options(temperature=1)
    for tiers in (OF_ANTHROPIC, OF_CHAT, OF_GEMINI, OF_RESPONSES):
        assert fit_tier(options, tiers, Report(), "x") is options


CLAUDE_CODE = json.dumps({"device_id": "d" * 64, "account_uuid": "a" * 36, "session_id": "s" * 36})


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def translated_user_ids(
    body: dict[str, object], source: str, target: str
) -> tuple[dict[str, object], list[tuple[str, str]]]:
    result = translate_request(json.dumps(body).encode(), source, target)
    return json.loads(result.data), losses(result.report)


@pytest.mark.parametrize("target", ["openai-chat", "openai-responses"])
def test_the_id_of_claude_code_goes_to_openai_as_a_hash(target: str) -> None:
    assert len(CLAUDE_CODE) > 150
    body = {
        "model": "m",
        "max_tokens": 99,
        "messages": [{"role": "user", "content": "hi"}],
        "metadata": {"user_id": CLAUDE_CODE},
    }
    written, losses = translated_user_ids(body, "anthropic", target)
    assert written["user"] == digest(CLAUDE_CODE)
    assert ("/metadata/user_id", "identity") in losses
    short, losses = translated_user_ids({**body, "metadata": {"user_id": "u" * 64}}, "anthropic", target)
    assert short["user"] == "u" * 64
    assert ("/metadata/user_id", "identity") not in losses


def test_a_safety_identifier_may_be_longer_than_a_user() -> None:
    report = Report()
    options = Options(user="u" * 65, safety_identifier="s" * 128, places={"user": "/user"})
    fitted = fit_openai_ids(options, report, "openai-chat")
    assert (fitted.user, fitted.safety_identifier) == (digest("u" * 65), "s" * 128)
    assert [(loss.pointer, loss.why) for loss in report.losses] == [
        ("/user", "openai-chat takes 64 characters at most: a hash is sent")
    ]
    assert fit_openai_ids(Options(safety_identifier="s" * 129), report, "x").safety_identifier == digest("s" * 129)


CHAT = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


@pytest.mark.parametrize(
    ("user", "is_hashed"),
    [
        ("someone@example.com", True),
        ("user:someone@mail.example.com", True),
        ("+1 (555) 010-9999", True),
        ("555.010.9999", True),
        ("u" * 257, True),
        ("u" * 256, False),
        ("user-7f3a", False),
        ("0b6c2f1e-9a3d-4b52-8c11-2f4e6d7a8b90", False),
        ("12345", False),
    ],
)
def test_what_looks_like_a_person_goes_to_anthropic_as_a_hash(user: str, is_hashed: bool) -> None:
    written, losses = translated_user_ids({**CHAT, "user": user}, "openai-chat", "anthropic")
    assert written["metadata"] == {"user_id": digest(user) if is_hashed else user}
    assert (("/user", "identity") in losses) is is_hashed


@pytest.mark.parametrize("source", ["openai-chat", "openai-responses"])
def test_a_safety_identifier_is_carried_to_anthropic(source: str) -> None:
    body = CHAT if source == "openai-chat" else {"model": "m", "input": "hi"}
    written, losses = translated_user_ids({**body, "safety_identifier": "s-1"}, source, "anthropic")
    assert written["metadata"] == {"user_id": "s-1"}
    assert "/safety_identifier" not in [pointer for pointer, _ in losses]


def test_a_hashed_safety_identifier_is_reported_by_its_own_place() -> None:
    _, losses = translated_user_ids({**CHAT, "safety_identifier": "a@example.com"}, "openai-chat", "anthropic")
    assert ("/safety_identifier", "identity") in losses


def test_of_two_ids_the_user_goes_and_the_other_is_reported_with_the_true_reason() -> None:
    report = Report()
    options = fit_anthropic_id(Options(user="u-1", safety_identifier="s-1"), report, "anthropic")
    assert (options.user, options.safety_identifier) == ("u-1", None)
    (loss,) = report.losses
    assert (loss.pointer, loss.why) == ("/safety_identifier", "anthropic has one id for a user, and user is sent")
    report = Report()
    assert fit_anthropic_id(Options(user="u-1", safety_identifier="u-1"), report, "anthropic").user == "u-1"
    assert report.losses == ()


def test_options_without_a_user_id_are_unchanged() -> None:
    options = Options(temperature=1)
    assert fit_anthropic_id(options, Report(), "x") is options
    assert fit_openai_ids(options, Report(), "x") is options


VERSIONS = ApiVersions("x-version", (("2026-10-21", ("temperature", "top_k"), ("user_citations",)),))


def test_a_version_refuses_what_earlier_ones_took() -> None:
    facts = Facts(refuses=("top_k",), tools=True)
    assert VERSIONS.narrow(facts, [("accept", "2027-01-01")]) is facts
    assert VERSIONS.narrow(facts, [("X-Version", "2023-06-01")]) is facts
    assert VERSIONS.narrow(facts, [("X-Version", " 2026-10-21")]) == Facts(
        refuses=("top_k", "temperature"), refuses_defaults=True, refuses_parts=("user_citations",), tools=True
    )
    assert VERSIONS.narrow(Facts(), [("x-version", "2026-12-01")]).refuses == ("temperature", "top_k")
    assert VERSIONS.narrow(facts, [("x-version", "2026-10-21"), ("x-version", "2023-06-01")]) is facts


def test_what_we_ask_with_ourselves_refuses_nothing() -> None:
    for name in NAMES:
        known = dialect(name)
        if known.versions is not None and known.endpoint is not None:
            assert known.versions.narrow(Facts(), known.endpoint.headers) == Facts()
    assert dialect("anthropic").versions is not None


@pytest.mark.parametrize(
    ("url", "source"),
    [
        ("data:image/png;base64,AAAA", Inline("image/png", "AAAA")),
        ("data:text/plain;charset=utf-8;base64,AAAA", Inline("text/plain;charset=utf-8", "AAAA")),
        ("DATA:;base64,AAAA", Inline("", "AAAA")),
        ("https://example.com/a.png", Link("https://example.com/a.png")),
        ("data:text/plain,hello", Link("data:text/plain,hello")),
    ],
)
def test_a_url_is_inline_bytes_or_a_link(url: str, source: Inline | Link) -> None:
    assert from_url(url) == source
    assert to_url(source).lower() == url.lower()


names = st.sampled_from(("anthropic", "gemini", "openai-responses"))
ids = st.none() | st.from_regex(r"[a-zA-Z0-9_]+", fullmatch=True)


def test_signature_of_the_readers_own_provider_is_unchanged() -> None:
    assert unwrap("EqQBCkYIB", "anthropic") == ("EqQBCkYIB", "anthropic", None)


@given(signature=st.none() | st.text(min_size=1), signed_by=names, item=ids, reader=names)
def test_a_foreign_signature_comes_back_with_its_maker(
    signature: str | None, signed_by: str, item: str | None, reader: str
) -> None:
    assert unwrap(wrap(signature, signed_by, item), reader) == (signature, signed_by, item)


def test_a_signature_can_belong_to_the_part_that_follows() -> None:
    assert unwrap(wrap("s", "gemini", NEXT), "anthropic") == ("s", "gemini", NEXT)
