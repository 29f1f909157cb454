import json
from dataclasses import replace

import pytest

from sightline.catalog.provider import Provider
from sightline.dialects.dialect import Endpoint
from sightline.dialects.endpoint import (
    address,
    call_to,
    count_call,
    dialect_by_api,
    embeddings_call,
    endpoint_of,
    raw_address,
    read_token_count,
)
from sightline.dialects.registry import DEFAULT, NAMES, dialect
from sightline.errors import Code, Fault
from sightline.wire.call import RequestTemplate, Variable

SERVED = [name for name in NAMES if dialect(name).endpoint is not None]


def called(
    provider: Provider, spoken: str = "openai-chat", model: str = "m", *, stream: bool = True
) -> RequestTemplate:
    return call_to(provider, spoken, model, b"{}", stream=stream)


def url(base_url: str, spoken: str = "openai-chat", model: str = "m", *, stream: bool = True) -> object:
    return called(Provider(base_url=base_url), spoken, model, stream=stream).url


# --- where ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spoken", "base_url", "expected"),
    [
        ("openai-chat", "https://e.org/v1", "https://e.org/v1/chat/completions"),
        ("openai-chat", "https://e.org/v1/", "https://e.org/v1/chat/completions"),
        ("openai-chat", "https://e.org/v1beta/openai", "https://e.org/v1beta/openai/chat/completions"),
        ("openai-responses", "https://e.org/v1", "https://e.org/v1/responses"),
        ("anthropic", "https://e.org", "https://e.org/v1/messages"),
        ("anthropic", "https://e.org/v1", "https://e.org/v1/messages"),
        ("anthropic", "https://e.org/anthropic/", "https://e.org/anthropic/v1/messages"),
        ("gemini", "https://e.org", "https://e.org/v1beta/models/m:streamGenerateContent?alt=sse"),
        ("gemini", "https://e.org/v1", "https://e.org/v1/models/m:streamGenerateContent?alt=sse"),
    ],
)
def test_each_dialect_has_its_place_behind_the_base_url(spoken: str, base_url: str, expected: str) -> None:
    assert url(base_url, spoken) == expected


def test_only_gemini_uses_another_url_without_streaming() -> None:
    assert url("https://e.org", "gemini", stream=False) == "https://e.org/v1beta/models/m:generateContent"
    assert url("https://e.org", "anthropic", stream=False) == url("https://e.org", "anthropic")


@pytest.mark.parametrize(
    ("model", "piece"),
    [
        ("gemini-3-pro", "gemini-3-pro"),
        ("models/gemini-3-pro", "gemini-3-pro"),
        ("org/name:free@1", "org/name:free@1"),
        ("a b?c#d%e", "a%20b%3Fc%23d%25e"),
    ],
)
def test_a_model_in_the_path_is_spelled_for_it(model: str, piece: str) -> None:
    assert url("https://e.org", "gemini", model, stream=False) == f"https://e.org/v1beta/models/{piece}:generateContent"


@pytest.mark.parametrize("model", ["", "models/", "../files/1", "a/./b", "models/.."])
def test_a_model_that_would_lead_elsewhere_is_refused(model: str) -> None:
    with pytest.raises(Fault) as caught:
        url("https://e.org", "gemini", model)
    assert caught.value.code is Code.MODEL_UNKNOWN
    assert url("https://e.org/v1", "openai-chat", model) == "https://e.org/v1/chat/completions"


def test_provider_query_is_added_to_the_url() -> None:
    provider = Provider(base_url="https://e.org", query={"api-version": "v1", "q": "a b&c"})
    assert called(provider, "openai-chat").url == "https://e.org/chat/completions?api-version=v1&q=a+b%26c"
    assert str(called(provider, "gemini").url).endswith("?alt=sse&api-version=v1&q=a+b%26c")


def test_a_provider_may_speak_other_dialects_at_other_places() -> None:
    also = {"anthropic": "https://e.org/claude", "openai-responses": ""}
    provider = Provider(base_url="https://e.org/v1", also=also)  # type: ignore[arg-type]
    assert called(provider, "anthropic").url == "https://e.org/claude/v1/messages"
    assert called(provider, "openai-responses").url == "https://e.org/v1/responses"


def test_an_address_may_be_a_variable() -> None:
    told = url("${ACME_URL}/openai/v1/", "openai-responses")
    assert told == Variable("ACME_URL", suffix="/openai/v1/responses", help="It is the provider's address.")
    assert url("${ACME_URL}", "anthropic") == Variable(
        "ACME_URL", suffix="/v1/messages", help="It is the provider's address."
    )


# --- who and how ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spoken", "name", "prefix"),
    [
        ("openai-chat", "authorization", "Bearer "),
        ("openai-responses", "authorization", "Bearer "),
        ("anthropic", "x-api-key", ""),
        ("gemini", "x-goog-api-key", ""),
    ],
)
def test_key_is_sent_in_the_header_the_dialect_expects(spoken: str, name: str, prefix: str) -> None:
    provider = Provider(base_url="https://e.org", key_env="ACME_API_KEY", key_help="Ask acme.")
    assert dict(called(provider, spoken).headers)[name] == Variable("ACME_API_KEY", prefix, help="Ask acme.")
    assert name not in dict(called(Provider(base_url="https://e.org"), spoken).headers)


def test_a_provider_may_want_its_key_elsewhere() -> None:
    azure = Provider(base_url="https://e.org", key_env="K", key_header="api-key")
    assert dict(called(azure, "openai-responses").headers)["api-key"] == Variable("K")
    assert "authorization" not in dict(called(azure, "openai-responses").headers)
    bearer = Provider(base_url="https://e.org", key_env="K", key_header="Authorization")
    assert dict(called(bearer, "anthropic").headers)["Authorization"] == Variable("K", "Bearer ")


def test_body_and_accept_header_are_set() -> None:
    call = call_to(Provider(base_url="https://e.org"), "anthropic", "m", b'{"a": 1}', stream=True)
    assert (call.method, call.body) == ("POST", b'{"a": 1}')
    assert call.headers == (
        ("content-type", "application/json"),
        ("accept", "text/event-stream"),
        ("anthropic-version", "2023-06-01"),
    )
    assert dict(called(Provider(base_url="https://e.org"), stream=False).headers)["accept"] == "application/json"


def test_provider_headers_are_added_and_override_the_defaults() -> None:
    provider = Provider(
        base_url="https://e.org",
        headers={"x-team": "blue", "Anthropic-Version": "2099-01-01", "x-trace": "none"},
        env_headers={"X-Trace": "TRACE_ID"},
    )
    headers = called(provider, "anthropic").headers
    assert [name.lower() for name, _ in headers] == ["content-type", "accept", "anthropic-version", "x-team", "x-trace"]
    assert dict(headers)["Anthropic-Version"] == "2099-01-01"
    assert dict(headers)["X-Trace"] == Variable("TRACE_ID", optional=True)


@pytest.mark.parametrize("spoken", SERVED)
def test_what_is_served_has_an_endpoint(spoken: str) -> None:
    assert isinstance(endpoint_of(spoken), Endpoint)


def test_dialect_without_a_provider_has_no_endpoint() -> None:
    with pytest.raises(Fault, match="no provider speaks raw") as caught:
        endpoint_of("raw")
    assert caught.value.code is Code.USAGE


# --- counting -------------------------------------------------------------------------------------

PROVIDER = Provider(base_url="https://e.org")


def test_a_request_is_counted_without_the_fields_that_the_count_refuses() -> None:
    body = {"model": "m", "messages": [], "max_tokens": 5, "stream": True, "system": "s"}
    call = count_call(PROVIDER, "anthropic", "m", json.dumps(body).encode())
    assert call.url == "https://e.org/v1/messages/count_tokens"
    assert json.loads(call.body) == {"model": "m", "messages": [], "system": "s"}
    assert dict(call.headers)["accept"] == "application/json"


@pytest.mark.parametrize("model", ["m", "models/m"])
def test_gemini_wants_the_whole_request_in_a_field(model: str) -> None:
    call = count_call(PROVIDER, "gemini", model, b'{"contents": []}')
    assert call.url == "https://e.org/v1beta/models/m:countTokens"
    assert json.loads(call.body) == {"generateContentRequest": {"model": "models/m", "contents": []}}


def test_a_provider_that_takes_all_fields_gets_all() -> None:
    call = count_call(Provider(base_url="https://e.org/v1"), "openai-chat", "m", b'{"messages": [], "stream": true}')
    assert json.loads(call.body) == {"messages": [], "stream": True}


@pytest.mark.parametrize("spoken", ["anthropic", "gemini"])
def test_a_body_that_is_no_object_is_for_the_provider_to_refuse(spoken: str) -> None:
    assert count_call(PROVIDER, spoken, "m", b"[]").body == b"[]"


def test_the_count_is_read_from_the_answer() -> None:
    assert read_token_count("anthropic", {"input_tokens": 7}) == 7
    assert read_token_count("gemini", {"totalTokens": 8}) == 8


@pytest.mark.parametrize("answer", [None, [], {}, {"input_tokens": "some"}, {"input_tokens": True}], ids=repr)
def test_an_answer_without_a_count_is_a_fault(answer: object) -> None:
    with pytest.raises(Fault) as caught:
        read_token_count("anthropic", answer)  # type: ignore[arg-type]
    assert caught.value.code is Code.UPSTREAM_PROTOCOL


def test_token_counting_is_refused_where_the_endpoint_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    from sightline.dialects import endpoint

    served = endpoint.endpoint_of("openai-chat")
    monkeypatch.setattr(endpoint, "endpoint_of", lambda _: replace(served, counting=None))
    with pytest.raises(Fault, match="tokens are not counted") as caught:
        read_token_count("openai-chat", {})
    assert caught.value.code is Code.USAGE


def test_a_client_may_name_its_own_version_where_the_dialect_has_one() -> None:
    provider = Provider(base_url="https://e.org")
    assert address(provider, "gemini", "/models/m:x", "/v1") == "https://e.org/v1/models/m:x"
    assert address(provider, "gemini", "/models/m:x") == "https://e.org/v1beta/models/m:x"
    assert address(provider, "openai-chat", "/chat/completions", "/v1") == "https://e.org/chat/completions"


def test_a_provider_may_have_a_version_of_its_own_or_none() -> None:
    provider = Provider(base_url="https://e.org/v1/projects/p", version="")
    assert address(provider, "gemini", "/models/m:x", "/v1beta") == "https://e.org/v1/projects/p/models/m:x"
    assert address(Provider(base_url="https://e.org", version="/v3"), "anthropic", "/messages") == (
        "https://e.org/v3/messages"
    )


@pytest.mark.parametrize(
    ("base", "path", "url"),
    [
        ("https://a.example/v1", "/v1/files?x=1", "https://a.example/v1/files?x=1"),
        ("https://a.example/v1", "/files", "https://a.example/v1/files"),
        ("https://a.example/v1/", "/v2/files", "https://a.example/v2/files"),
        ("https://a.example/api/v1", "/v1/credits", "https://a.example/api/v1/credits"),
        ("https://g.example/v1beta", "/upload/v1beta/files", "https://g.example/upload/v1beta/files"),
        ("https://g.example/v1beta", "/v1internal:load", "https://g.example/v1internal:load"),
        ("https://g.example/v1beta", "/ws/google.ai.v1", "https://g.example/ws/google.ai.v1"),
        ("https://a.example/v1", "/files/v1", "https://a.example/v1/files/v1"),
    ],
)
def test_a_raw_path_stands_behind_the_base_url_with_one_version(base: str, path: str, url: str) -> None:
    assert raw_address(Provider(base_url=base), path) == url


@pytest.mark.parametrize(
    ("path", "headers", "query", "name"),
    [
        ("/v1/files", set(), "", DEFAULT),
        ("/files", set(), "", DEFAULT),
        ("/v1/files", {"anthropic-version"}, "", "anthropic"),
        ("/v1/files", {"x-api-key"}, "", "anthropic"),
        ("/messages/batches", set(), "", "anthropic"),
        ("/responses/resp_1", set(), "", "openai-responses"),
        ("/v1beta/files", set(), "", "gemini"),
        ("/v1/interactions", {"x-goog-api-key"}, "", "gemini"),
        ("/anything", {"x-goog-api-key"}, "", "gemini"),
        ("/v1/files", set(), "key=abc", "gemini"),
        ("/v1internal:load", set(), "", "gemini"),
        ("/upload/v1beta/files", set(), "", "gemini"),
        ("/anything", set(), "", ""),
        ("/", set(), "", ""),
    ],
)
def test_an_api_is_known_by_its_paths_or_its_clients(path: str, headers: set[str], query: str, name: str) -> None:
    assert dialect_by_api(path, headers, query) == name


def test_texts_are_embedded_where_the_dialect_says() -> None:
    call = embeddings_call(Provider(base_url="https://g.example"), "gemini", "e", b"{}")
    assert call.url == "https://g.example/v1beta/models/e:batchEmbedContents"
