import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.gateway.paths import GatewayPath, caller_of, parse_path, parse_upstream_path
from sightline.web.asgi import Upstream

ASKS = {
    "/v1/chat/completions": ("openai-chat", False),
    "/v1/responses": ("openai-responses", False),
    "/v1/responses/input_tokens": ("openai-responses", True),
    "/v1/messages": ("anthropic", False),
    "/v1/messages/count_tokens": ("anthropic", True),
}


@pytest.mark.parametrize(
    "written",
    ["{}", "/{}", "//{}", "{}/", "{}//", "/v1{}", "/v1/{}"],
    ids=["plain", "leading", "leading twice", "trailing", "trailing twice", "doubled version", "doubled and slashed"],
)
@pytest.mark.parametrize(
    ("prefix", "provider", "session"),
    [
        ("", "", ""),
        ("/p/acme", "acme", ""),
        ("/s/task", "", "task"),
        ("/p/acme/s/task", "acme", "task"),
        ("/s/task/p/acme", "acme", "task"),
        ("//p/a%2Fb/s/my%20task", "a/b", "my task"),
    ],
)
def test_every_path_is_known_however_it_is_written(written: str, prefix: str, provider: str, session: str) -> None:
    for path, asked in ASKS.items():
        place = parse_path(prefix + written.format(path))
        assert (place.kind, place.provider, place.session) == ("ask", provider, session)
        assert (place.dialect, place.counts) == asked
        assert place.path.startswith("/v1/")
        assert "/" + written.format(path).lstrip("/") == place.path


@pytest.mark.parametrize("path", [path.removeprefix("/v1") for path in ASKS])
def test_the_version_may_be_missing(path: str) -> None:
    assert (parse_path(path).dialect, parse_path(path).counts) == ASKS["/v1" + path]


@pytest.mark.parametrize(
    ("path", "model", "is_stream", "counts"),
    [
        ("/v1beta/models/gemini-3:generateContent", "gemini-3", False, False),
        ("/v1beta/models/gemini-3:streamGenerateContent", "gemini-3", True, False),
        ("/v1beta/models/gemini-3:countTokens", "gemini-3", False, True),
        ("/v1/models/gemini-3:generateContent", "gemini-3", False, False),
        ("/models/gemini-3:generateContent", "gemini-3", False, False),
        ("/v1beta/v1beta/models/gemini-3:generateContent", "gemini-3", False, False),
        ("/v1beta//models/gemini-3:generateContent/", "gemini-3", False, False),
        ("/v1beta/models/gemini-3%3AgenerateContent", "gemini-3", False, False),
        ("/v1beta/models/a%2Fb:generateContent", "a/b", False, False),
        ("/v1beta/models/a/b:streamGenerateContent", "a/b", True, False),
        ("/v1beta/models/a:b:generateContent", "a:b", False, False),
        ("/v1alpha/models/x:generateContent", "x", False, False),
    ],
)
def test_google_names_the_model_and_the_verb_in_the_path(path: str, model: str, is_stream: bool, counts: bool) -> None:
    assert parse_path(path) == GatewayPath("ask", path, "gemini", model, is_stream, counts)
    assert parse_path("/p/acme/s/t" + path) == GatewayPath("ask", path, "gemini", model, is_stream, counts, "acme", "t")


@pytest.mark.parametrize(
    ("path", "kind", "dialect", "model"),
    [
        ("/v1/models", "models", "", ""),
        ("/v1/models/", "models", "", ""),
        ("/models", "models", "", ""),
        ("/v1beta/models", "models", "gemini", ""),
        ("/v1/models/gpt-6", "model", "", "gpt-6"),
        ("/v1/models/vendor/gpt-6", "model", "", "vendor/gpt-6"),
        ("/v1beta/models/gemini-3", "model", "gemini", "gemini-3"),
    ],
)
def test_models_are_listed(path: str, kind: str, dialect: str, model: str) -> None:
    assert parse_path(path) == GatewayPath(kind, path, dialect, model)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("path", "dialect"),
    [
        ("/", ""),
        ("/p", ""),
        ("/p/", ""),
        ("/p/acme", ""),
        ("/p/acme/", ""),
        ("/p/acme/api/exchanges", ""),
        ("/p/acme/s/x/api/health", ""),
        ("/p/a/p/b/v1/messages", ""),
        ("//api/exchanges", ""),
        ("/v1/embeddings", ""),
        ("/backend-api/me", ""),
        ("/v1/messages/batches", "anthropic"),
        ("/v1/responses/resp_1", "openai-responses"),
        ("/v1/chat/completions/x", "openai-chat"),
        ("/v1beta/cachedContents", "gemini"),
        ("/v1/chat%2Fcompletions", ""),
        ("/V1/messages/x/../..", ""),
    ],
)
def test_what_is_not_known_tells_at_most_its_dialect(path: str, dialect: str) -> None:
    place = parse_path(path)
    assert (place.kind, place.dialect) == ("unknown", dialect)


@pytest.mark.parametrize(
    ("path", "headers", "query", "dialect"),
    [
        ("/v1/models", [], "", "openai-chat"),
        ("/v1/models", [(b"anthropic-version", b"2023-06-01")], "", "anthropic"),
        ("/v1/models", [(b"x-goog-api-key", b"k")], "", "gemini"),
        ("/v1/models", [(b"x-goog-api-client", b"genai")], "", "gemini"),
        ("/v1/models", [], "key=k", "gemini"),
        ("/v1/models", [], "pageSize=3&key=k", "gemini"),
        ("/v1/models", [], "monkey=k", "openai-chat"),
        ("/v1beta/models", [(b"anthropic-version", b"2023-06-01")], "", "gemini"),
    ],
)
def test_the_caller_is_known_by_path_and_headers(
    path: str, headers: list[tuple[bytes, bytes]], query: str, dialect: str
) -> None:
    assert caller_of(parse_path(path), headers, query) == dialect


@given(st.text(st.characters(max_codepoint=255), max_size=60))
def test_any_text_is_some_place(text: str) -> None:
    place = parse_path(text)
    assert place.path.startswith("/")
    assert not place.path.startswith("//")


UPSTREAM = Upstream("https://openrouter.ai", "openrouter", ("/api/v1", "/api"), "s1")


@pytest.mark.parametrize(
    ("path", "kind", "dialect"),
    [
        ("/api/v1/chat/completions", "ask", "openai-chat"),
        ("/api/v1/messages", "ask", "anthropic"),
        ("/v1/responses", "ask", "openai-responses"),
        ("/api/v1/models", "unknown", ""),
        ("/apiary", "unknown", ""),
        ("/s/other/v1/responses", "unknown", ""),
    ],
)
def test_a_path_at_a_providers_own_host_stays_as_it_is(path: str, kind: str, dialect: str) -> None:
    found = parse_upstream_path(path, UPSTREAM)
    assert (found.path, found.provider, found.session) == (path, "openrouter", "s1")
    assert (found.kind, found.dialect) == (kind, dialect)
