import asyncio
import json
from pathlib import Path

import pytest

from sightline.catalog.catalog import Catalog
from sightline.catalog.provider import Provider
from sightline.errors import Code, Fault
from sightline.exchange.recording.har import har
from sightline.exchange.resend import again, call_of, elsewhere, had_credential
from sightline.model.exchange import ExchangeCancelled, Fact, Received
from sightline.store.entries import BodyEntry
from sightline.wire.call import Variable
from sightline.wire.snippet import curl
from tests.recordings import exchange, one
from tests.store.traffic import chat_body, chat_stream, noted, sha256

BODY = chat_body("hi")
HEADERS = (
    ("Content-Type", "application/json"), ("Authorization", "***"), ("X-Team", "blue"), ("Cookie", "***"),
    ("Host", "127.0.0.1"), ("Accept-Encoding", "gzip"), ("Content-Encoding", "zstd"), ("User-Agent", "tests/1"),
)  # fmt: skip
ANTHROPIC = b'{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"hi"}]}'


def catalog(**fields: object) -> Catalog:
    base = {"dialect": "openai-chat", "base_url": "http://127.0.0.1:9/v1", "key_env": "ACME_KEY"}
    return Catalog(providers={"acme": Provider(**{**base, **fields})})  # type: ignore[arg-type]


def test_the_same_request_goes_to_the_same_provider_with_the_very_bytes(tmp_path: Path) -> None:
    entries = exchange(
        "x_1", BODY, chat_stream("a"), headers=HEADERS, path="/v1/chat/completions?a=1&key=***", session="s"
    )
    asked = again(asyncio.run(one(tmp_path, entries)))
    assert (asked.dialect, asked.body, asked.provider, asked.model) == ("openai-chat", BODY, "acme", "m")
    assert (asked.path, asked.query) == ("/v1/chat/completions", "a=1")
    assert (asked.origin, asked.session, asked.is_stream) == ("x_1", "s", True)
    assert [name for name, _ in asked.headers] == ["Content-Type", "X-Team", "User-Agent"]


@pytest.mark.parametrize(
    ("spoken", "stream", "path", "query"),
    [
        ("openai-chat", False, "/v1/chat/completions", ""),
        ("gemini", True, "/v1beta/models/m:streamGenerateContent", "alt=sse"),
    ],
)
def test_a_translated_request_is_sent_again_as_it_was_sent(
    spoken: str, stream: bool, path: str, query: str, tmp_path: Path
) -> None:
    sent = BODY if spoken == "openai-chat" else b'{"contents":[]}'
    entries = exchange("x_1", ANTHROPIC, asked="anthropic", spoken=spoken, sent=sent, stream=stream, headers=HEADERS)
    asked = again(asyncio.run(one(tmp_path, entries)))
    assert (asked.dialect, asked.body, asked.provider) == (spoken, sent, "acme")
    assert (asked.path, asked.query, asked.is_stream) == (path, query, stream)
    assert asked.headers == (("User-Agent", "tests/1"),)


def test_other_model_is_requested_with_the_original_client_body(tmp_path: Path) -> None:
    told = asyncio.run(one(tmp_path, exchange("x_1", ANTHROPIC, asked="anthropic", sent=BODY)))
    asked = elsewhere(told, "other/large")
    assert (asked.dialect, asked.provider, asked.model) == ("anthropic", "", "other/large")
    assert asked.body == ANTHROPIC.replace(b'"m"', b'"other/large"')
    own = elsewhere(asyncio.run(one(tmp_path / "b", exchange("x_1", BODY))), "n")
    assert json.loads(own.body)["model"] == "n"
    gemini = exchange("x_1", b'{"contents":[]}', spoken="gemini")
    asked = elsewhere(asyncio.run(one(tmp_path / "c", gemini)), "g/new")
    assert (asked.path, asked.body) == ("/v1beta/models/g/new:generateContent", b'{"contents":[]}')


def test_the_call_names_the_key_as_a_variable(tmp_path: Path) -> None:
    told = asyncio.run(one(tmp_path, exchange("x_1", BODY, headers=HEADERS)))
    call = call_of(told, catalog(headers={"x-own": "1"}, env_headers={"x-trace": "TRACE"}, query={"v": "2"}))
    assert (call.method, call.url, call.body) == ("POST", "http://127.0.0.1:9/v1/chat/completions?v=2", BODY)
    assert dict(call.headers) == {
        "Content-Type": "application/json",
        "X-Team": "blue",
        "User-Agent": "tests/1",
        "x-own": "1",
        "x-trace": Variable("TRACE", optional=True),
        "authorization": Variable("ACME_KEY", "Bearer "),
    }


def test_a_clients_own_credential_gets_a_variable_of_its_own(tmp_path: Path) -> None:
    told = asyncio.run(one(tmp_path, exchange("x_1", BODY, headers=HEADERS)))
    assert had_credential(told)
    value = dict(call_of(told, catalog(key_env="")).headers)["authorization"]
    assert (value.name, value.prefix) == ("ACME_API_KEY", "Bearer ")
    by_query = exchange("x_1", b'{"contents":[]}', spoken="gemini", path="/v1beta/models/m:generateContent?key=***")
    told = asyncio.run(one(tmp_path / "b", by_query))
    assert had_credential(told)
    call = call_of(told, catalog(key_env="", dialect="gemini", base_url="http://127.0.0.1:9"))
    assert "x-goog-api-key" in dict(call.headers)
    none = asyncio.run(one(tmp_path / "c", exchange("x_1", BODY)))
    assert not had_credential(none)
    assert call_of(none, catalog(key_env="")).headers == ()


def test_the_call_of_a_translated_request_is_the_providers(tmp_path: Path) -> None:
    told = asyncio.run(one(tmp_path, exchange("x_1", ANTHROPIC, asked="anthropic", sent=BODY, headers=HEADERS)))
    call = call_of(told, catalog())
    assert (call.url, call.body) == ("http://127.0.0.1:9/v1/chat/completions", BODY)
    assert ("User-Agent", "tests/1") in call.headers


def test_removed_provider_is_reported(tmp_path: Path) -> None:
    told = asyncio.run(one(tmp_path, exchange("x_1", BODY)))
    for gone, words in ((Catalog(), "no longer configured"), (catalog(dialect="anthropic"), "no longer speaks")):
        with pytest.raises(Fault, match=words) as fault:
            call_of(told, gone)
        assert fault.value.code is Code.CONFIG


def test_unsent_exchange_has_no_provider_call_but_can_be_replayed(tmp_path: Path) -> None:
    facts: list[Fact] = [Received("openai-chat", "m", sha256(BODY)), ExchangeCancelled()]
    told = asyncio.run(one(tmp_path, [BodyEntry(sha256(BODY), BODY), *noted("x_1", facts)]))
    assert again(told).provider == ""
    with pytest.raises(Fault, match="not sent to a provider"):
        call_of(told, catalog())


THERE = "https://api.acme.example/v1/chat/completions?v=1&key=***"


@pytest.mark.parametrize(
    "today",
    [
        catalog(),
        catalog(base_url="https://moved.example/v2", query={"v": "3"}),
        catalog(base_url="${ACME_URL}"),
        catalog(dialect="anthropic"),
        Catalog(),
    ],
)
def test_the_call_goes_to_the_address_that_was_used_whatever_is_configured_today(
    tmp_path: Path, today: Catalog
) -> None:
    told = asyncio.run(one(tmp_path, exchange("x_1", BODY, headers=HEADERS, url=THERE)))
    call = call_of(told, today)
    assert call.url == "https://api.acme.example/v1/chat/completions?v=1"
    assert isinstance(dict(call.headers)["authorization"], Variable)
    assert json.loads(har([(told, call)], "9"))["log"]["entries"][0]["request"]["url"] == THERE
    assert "https://api.acme.example/v1/chat/completions?v=1" in curl(call)
    translated = exchange("x_1", ANTHROPIC, asked="anthropic", sent=BODY, headers=HEADERS, url=THERE)
    call = call_of(asyncio.run(one(tmp_path / "b", translated)), today)
    assert call.url == "https://api.acme.example/v1/chat/completions?v=1"


def test_api_key_is_optional_if_it_is_unknown_whether_one_was_sent(tmp_path: Path) -> None:
    told = asyncio.run(one(tmp_path, exchange("x_1", BODY, headers=(("api-key", "***"),), url=THERE)))
    (key,) = call_of(told, Catalog()).headers
    assert key[0] == "api-key"
    assert (key[1].name, key[1].optional) == ("ACME_API_KEY", True)


def test_the_embedded_model_is_not_looked_for_where_it_was(tmp_path: Path) -> None:
    told = asyncio.run(one(tmp_path, exchange("x_1", BODY, url="http://127.0.0.1:5001/v1/chat/completions")))
    call = call_of(told, catalog(embedded=True, base_url="${SIGHTLINE_LOCAL_URL}/v1"))
    assert isinstance(call.url, Variable)


def test_a_secret_of_the_settings_is_in_no_export(tmp_path: Path) -> None:
    told = asyncio.run(one(tmp_path, exchange("x_1", BODY)))
    call = call_of(told, catalog(headers={"x-session-token": "tok-0123456789"}))
    assert "tok-0123456789" not in curl(call)
    assert "${X_SESSION_TOKEN:?}" in curl(call)
    assert b"tok-0123456789" not in har([(told, call)], "9")
