import asyncio
import json
from pathlib import Path

import pytest

from sightline.catalog.catalog import Catalog
from sightline.catalog.provider import Provider
from sightline.engine.recording.asking import again, call_of, elsewhere, had_credential
from sightline.errors import Code, Fault
from sightline.model.exchange import ExchangeCancelled, Fact, Received
from sightline.store.entries import Kept
from sightline.wire.call import Variable
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


def test_another_model_is_asked_in_the_clients_own_words(tmp_path: Path) -> None:
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
    assert isinstance(value, Variable)
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


def test_a_provider_that_is_not_there_any_more_is_told(tmp_path: Path) -> None:
    told = asyncio.run(one(tmp_path, exchange("x_1", BODY)))
    for gone, words in ((Catalog(), "no longer configured"), (catalog(dialect="anthropic"), "no longer speaks")):
        with pytest.raises(Fault, match=words) as fault:
            call_of(told, gone)
        assert fault.value.code is Code.CONFIG


def test_what_was_never_sent_has_no_call_but_can_be_asked(tmp_path: Path) -> None:
    facts: list[Fact] = [Received("openai-chat", "m", sha256(BODY)), ExchangeCancelled()]
    told = asyncio.run(one(tmp_path, [Kept(sha256(BODY), BODY), *noted("x_1", facts)]))
    assert again(told).provider == ""
    with pytest.raises(Fault, match="not sent to anybody"):
        call_of(told, catalog())
