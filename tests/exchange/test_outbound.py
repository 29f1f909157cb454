import json
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import msgspec
import pytest

from sightline.catalog.choose import ModelChoice
from sightline.catalog.facts import Facts, Family, Model
from sightline.catalog.provider import Provider, Route
from sightline.exchange.client_request import ClientRequest
from sightline.exchange.outbound import body_of, end_to_end, own_key, secrets_of_provider
from tests.relay_stage import DIALECTS, KEY, PATHS, REQUESTS, Got, Stage, asks, is_error_of, open_stage, play
from tests.upstream import Seen

OWN = "sk-client-abcdefghij"
PLACES = {
    "openai-chat": ("authorization", "Bearer "),
    "openai-responses": ("authorization", "Bearer "),
    "anthropic": ("x-api-key", ""),
    "gemini": ("x-goog-api-key", ""),
}
CREDENTIALS: dict[str, dict[str, Any]] = {
    "bearer": {"headers": (("Authorization", f"Bearer {OWN}"),)},
    "x-api-key": {"headers": (("X-Api-Key", OWN),)},
    "x-goog-api-key": {"headers": (("x-goog-api-key", OWN),)},
    "query": {"headers": (), "query": f"alt=json&key={OWN}"},
    "api-key": {"headers": (("api-key", OWN),)},
    "x-auth-token": {"headers": (("X-Auth-Token", OWN),)},
    "query of another name": {"headers": (), "query": f"alt=json&api_key={OWN}"},
    "coded query": {"headers": (), "query": f"alt=json&%6bey={OWN}"},
}


def sent(folder: Path, spoken: str, asked: Any, **settings: Any) -> tuple[Seen | None, Got]:
    """What the provider saw, and what the client got."""
    return sent_in_turn(folder, spoken, [asked], **settings)[0]


def sent_in_turn(folder: Path, spoken: str, requests: list[Any], **settings: Any) -> list[tuple[Seen | None, Got]]:
    """The same of each of these requests, one after the other."""
    result: list[tuple[Seen | None, Got]] = []

    async def story(stage: Stage) -> None:
        for asked in requests:
            count = len(stage.upstream.seen)
            got = await stage.ask(asked)
            result.append((next(iter(stage.upstream.seen[count:]), None), got))

    play(story, folder, spoken, **settings)
    return result


def names(seen: Seen | None) -> list[str]:
    return [name.lower() for name, _ in seen.headers]


# --- credentials ------------------------------------------------------------------------------------


@pytest.mark.parametrize("client", DIALECTS)
@pytest.mark.parametrize("provider", DIALECTS)
def test_configured_key_replaces_every_client_credential(tmp_path: Path, client: str, provider: str) -> None:
    requests = [asks(client, **credential) for credential in CREDENTIALS.values()]
    name, prefix = PLACES[provider]
    for how, (seen, got) in zip(CREDENTIALS, sent_in_turn(tmp_path, provider, requests), strict=True):
        assert seen is not None, how
        assert seen.header(name) == f"{prefix}{KEY}", how
        assert OWN not in repr(seen), how
        assert got.status == 200, how


@pytest.mark.parametrize("client", DIALECTS)
@pytest.mark.parametrize("provider", DIALECTS)
def test_client_credential_is_forwarded_without_a_configured_key(tmp_path: Path, client: str, provider: str) -> None:
    requests = [asks(client, provider="open", **credential) for credential in CREDENTIALS.values()]
    name, prefix = PLACES[provider]
    for how, (seen, _) in zip(CREDENTIALS, sent_in_turn(tmp_path, provider, requests), strict=True):
        assert seen is not None, how
        if client == provider:
            assert [pair for pair in seen.headers if OWN in pair[1]] == list(CREDENTIALS[how]["headers"]), how
            assert (OWN in seen.target) == ("query" in how), how
        else:
            assert seen.header(name) == f"{prefix}{OWN}", how
            assert OWN not in seen.target, how


@pytest.mark.parametrize("client", ["openai-chat", "anthropic"])
def test_a_key_that_is_not_set_is_a_401_and_nothing_is_sent(tmp_path: Path, client: str) -> None:
    asked = asks(client, headers=(("Authorization", f"Bearer {OWN}"),))
    seen, got = sent(tmp_path, "openai-chat", asked, environment={})
    assert (seen, got.status) == (None, 401)
    assert "ACME_KEY" in got.body.decode()


def test_configured_headers_stand_in_place_of_the_client_s(tmp_path: Path) -> None:
    asked = asks("openai-chat", headers=(("X-Team", "red"), ("X-Trace", "mine"), ("X-Org", "mine")))
    seen, _ = sent(
        tmp_path,
        "openai-chat",
        asked,
        headers={"x-team": "blue"},
        env_headers={"x-trace": "TRACE_ID", "x-org": "UNSET"},
        environment={"ACME_KEY": KEY, "TRACE_ID": "t-12345"},
    )
    told = [(name, value) for name, value in seen.headers if name.lower().startswith("x-")]
    assert told == [("X-Org", "mine"), ("x-team", "blue"), ("x-trace", "t-12345")]


def test_a_key_header_of_the_provider_s_own(tmp_path: Path) -> None:
    seen, _ = sent(tmp_path, "openai-chat", asks("openai-chat"), key_header="api-key")
    assert (seen.header("api-key"), seen.header("authorization")) == (KEY, "")


def test_what_a_provider_s_settings_hide() -> None:
    provider = Provider(
        key_env="K", env_headers={"x": "E", "y": "UNSET"}, headers={"x-api-key": "inline", "x-team": "blue"}
    )
    assert secrets_of_provider(provider, {"K": " k1 ", "E": "e1"}) == ("k1", "e1", "inline")


def test_a_client_of_a_dialect_without_an_api_has_its_key_in_any_header_of_one() -> None:
    client = ClientRequest("raw", b"", (("Authorization", f"Bearer {OWN}"),), "/")
    provider = Provider(dialect="anthropic", base_url="https://api.example")
    choice = ModelChoice("acme", provider, "m", Facts(), Family(), None, "raw")
    assert own_key(client, choice) == (("x-api-key", OWN),)
    assert own_key(msgspec.structs.replace(client, headers=()), choice) == ()


# --- headers ----------------------------------------------------------------------------------------


def test_headers_pass_in_their_order_and_spelling_but_those_of_the_connection(tmp_path: Path) -> None:
    headers = (
        ("Host", "127.0.0.1:7700"),
        ("X-Custom", "1"),
        ("anthropic-BETA", "a,b"),
        ("Connection", "keep-alive, X-Gone"),
        ("X-Gone", "1"),
        ("Keep-Alive", "5"),
        ("TE", "trailers"),
        ("Expect", "100-continue"),
        ("Cookie", "session=1"),
        ("Proxy-Authorization", "Basic abc"),
        ("X-Sightline-Strict", "0"),
        ("Content-Length", "12"),
        ("x-custom", "2"),
        ("User-Agent", "claude-cli/2.1 (external)"),
        ("Accept-Encoding", "gzip, zstd;q=0.5"),
    )
    seen, _ = sent(tmp_path, "anthropic", asks("anthropic", headers=headers))
    passed = [pair for pair in seen.headers if pair[0] not in ("Host", "Content-Length", "x-api-key")]
    assert passed == [headers[1], headers[2], *headers[12:]]
    assert end_to_end(headers) == passed


@pytest.mark.parametrize("codings", ["gzip, deflate, br, zstd", "br;q=0.5", "*", "compress", "identity"])
def test_accept_encoding_passes_as_it_came(tmp_path: Path, codings: str) -> None:
    seen, _ = sent(tmp_path, "openai-chat", asks("openai-chat", headers=(("Accept-Encoding", codings),)))
    assert seen.header("accept-encoding") == codings


def test_a_client_without_a_coding_and_a_user_agent_gets_none(tmp_path: Path) -> None:
    seen, _ = sent(tmp_path, "openai-chat", asks("openai-chat", headers=()))
    assert not {"accept-encoding", "user-agent"} & set(names(seen))


def test_only_required_headers_are_forwarded_across_dialects(tmp_path: Path) -> None:
    headers = (("User-Agent", "codex/1"), ("X-Custom", "1"), ("originator", "codex"), ("Accept-Encoding", "br"))
    seen, _ = sent(tmp_path, "anthropic", asks("openai-responses", headers=headers))
    assert sorted(names(seen)) == [
        "accept",
        "accept-encoding",
        "anthropic-version",
        "content-length",
        "content-type",
        "host",
        "user-agent",
        "x-api-key",
    ]
    assert seen.header("user-agent") == "codex/1"


# --- addresses --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spoken", "path", "query", "expected"),
    [
        ("openai-chat", "/v1/chat/completions", "", "/base/chat/completions"),
        ("openai-chat", "//v1//v1/chat/completions/", "a=1&b=%20", "/base/chat/completions?a=1&b=%20"),
        ("openai-chat", "/chat/completions", "", "/base/chat/completions"),
        ("anthropic", "/v1/messages", "beta=true", "/base/v1/messages?beta=true"),
        ("anthropic", "/messages", "", "/base/v1/messages"),
        ("gemini", "/v1beta/models/m:generateContent", "alt=json", "/base/v1beta/models/m:generateContent?alt=json"),
        ("gemini", "/v1/models/m:generateContent", "", "/base/v1/models/m:generateContent"),
        ("gemini", "/models/m:generateContent", "", "/base/v1beta/models/m:generateContent"),
    ],
)
async def test_client_path_is_appended_to_the_base_url(
    tmp_path: Path, spoken: str, path: str, query: str, expected: str
) -> None:
    async with open_stage(tmp_path, spoken) as stage:
        provider = Provider(dialect=spoken, base_url=f"{stage.upstream.url}/base")  # type: ignore[arg-type]
        stage.providers["based"] = provider
        await stage.ask(asks(spoken, path=path, query=query, provider="based"))
        assert stage.upstream.seen[0].target == expected


def test_configured_query_replaces_the_client_query(tmp_path: Path) -> None:
    asked = asks("openai-chat", query="api-version=old&x=1")
    seen, _ = sent(tmp_path, "openai-chat", asked, query={"api-version": "v 1"})
    assert seen.target.endswith("?x=1&api-version=v+1")


def test_routed_model_replaces_the_model_in_the_path(tmp_path: Path) -> None:
    route = Route(model="m", provider="acme", as_="models/big:1")
    asked = asks("gemini", stream=True)
    seen, _ = sent(tmp_path, "gemini", asked, routes=(route,))
    assert seen.target == "/v1beta/models/big:1:streamGenerateContent?alt=sse"
    assert seen.body == asked.body


STRAYING = ["x/../../evil", "x/%2e%2e/%2E%2e/evil", "x%2f..%2f..%2fevil", "x\\..\\evil", "x%5c..%5cevil", "x%0d%0aevil"]


@pytest.mark.parametrize("model", STRAYING)
@pytest.mark.parametrize("verb", ["generateContent", "streamGenerateContent", "countTokens"])
def test_a_path_that_leads_out_of_the_api_goes_nowhere(tmp_path: Path, model: str, verb: str) -> None:
    is_stream = verb.startswith("stream")
    path = f"/v1beta/models/{model}:{verb}"
    asked = asks("gemini", path=path, model=unquote(model), is_stream=is_stream, counts=verb == "countTokens")
    seen, got = sent(tmp_path, "gemini", asked)
    assert (seen, got.status) == (None, 400)
    assert is_error_of("gemini", got.status, got.body)


@pytest.mark.parametrize("model", [unquote(each) for each in STRAYING])
@pytest.mark.parametrize("by", ["route", "body"])
@pytest.mark.parametrize("client", DIALECTS)
def test_a_name_that_leads_out_of_the_api_goes_nowhere(tmp_path: Path, model: str, by: str, client: str) -> None:
    name = "m" if by == "route" else model
    body = json.dumps({**REQUESTS[client], "model": name}).encode()
    routes = (Route(provider="acme", as_=model if by == "route" else ""),)
    path = f"/v1beta/models/{quote(name, safe='')}:generateContent" if client == "gemini" else PATHS[client]
    seen, got = sent(tmp_path, "gemini", asks(client, body=body, model=name, path=path), routes=routes)
    assert (seen, got.status) == (None, 400)
    assert is_error_of(client, got.status, got.body)


@pytest.mark.parametrize("client", DIALECTS)
def test_marks_of_an_address_in_a_name_are_escaped(tmp_path: Path, client: str) -> None:
    routes = (Route(provider="acme", as_="odd?key=x#y z"),)
    seen, _ = sent(tmp_path, "gemini", asks(client), routes=routes)
    assert seen.target == "/v1beta/models/odd%3Fkey%3Dx%23y%20z:generateContent"


# --- bodies -----------------------------------------------------------------------------------------


def test_a_route_may_move_system_messages_within_a_dialect(tmp_path: Path) -> None:
    messages = [{"role": "user", "content": "a"}, {"role": "system", "content": "b"}, {"role": "user", "content": "c"}]
    body = json.dumps({"model": "m", "messages": messages}).encode()
    route = Route(provider="acme", system="merge_all")
    seen, got = sent(tmp_path, "openai-chat", asks("openai-chat", body=body), routes=(route,))
    assert [message["role"] for message in seen.json()["messages"]] == ["system", "user", "user"]
    assert got.status == 200


@pytest.mark.parametrize("by", ["header", "route"])
def test_strict_refuses_a_loss_in_the_client_s_words(tmp_path: Path, by: str) -> None:
    body = b'{"model":"m","messages":[{"role":"user","content":"hi"}],"logit_bias":{"1":5}}'
    asked = asks("openai-chat", body=body, strict=by == "header")
    routes = (Route(provider="acme", strict=by == "route"),)
    seen, got = sent(tmp_path, "anthropic", asked, routes=routes)
    assert (seen, got.status) == (None, 400)
    assert got.json()["error"]["code"] == "translation_loss"
    assert "/logit_bias" in got.json()["error"]["message"]


async def test_losses_are_counted_in_a_header_and_listed_in_the_record(tmp_path: Path) -> None:
    body = b'{"model":"m","messages":[{"role":"user","content":"hi"}],"logit_bias":{"1":5},"stream":true}'
    async with open_stage(tmp_path, "anthropic") as stage:
        got = await stage.ask(asks("openai-chat", body=body, is_stream=True))
        fact: Any = stage.facts()[1]
        assert got.header("x-sightline-losses") == str(fact.losses) == str(len(fact.report))
        assert "/logit_bias" in [loss.pointer for loss in fact.report]
        assert fact.dialect == "anthropic"
        assert stage.bodies()[fact.sha256] == stage.upstream.seen[0].body


OPUS = Model(refuses=("temperature", "top_k"), thinking=("adaptive",), one_sampler=True)


async def test_option_refused_by_the_model_is_dropped_and_reported(tmp_path: Path) -> None:
    body = b'{"model":"m","messages":[{"role":"user","content":"hi"}],"temperature":0.2,"top_p":0.9}'
    async with open_stage(tmp_path, "anthropic", models={"m": OPUS}) as stage:
        got = await stage.ask(asks("openai-chat", body=body))
        assert got.status == 200
        seen = json.loads(stage.upstream.seen[0].body)
        assert "temperature" not in seen
        assert seen["top_p"] == 0.9
        fact: Any = stage.facts()[1]
        assert [(loss.pointer, loss.why) for loss in fact.report if loss.pointer == "/temperature"] == [
            ("/temperature", "m does not take it")
        ]


LONG = "word " * 1200
AGENT = {"model": "m", "messages": [{"role": "user", "content": LONG}],
         "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]}  # fmt: skip


@pytest.mark.parametrize(
    ("routes", "marks"),
    [
        ((), 1),
        ((Route(provider="acme"),), 1),
        ((Route(provider="acme", cache="auto"),), 1),
        ((Route(provider="acme", cache="off"),), 0),
    ],
)
def test_a_route_says_whether_an_agent_gets_cache_marks(tmp_path: Path, routes: tuple[Route, ...], marks: int) -> None:
    asked = asks("openai-chat", body=json.dumps(AGENT).encode(), provider="" if routes else "acme")
    seen, got = sent(tmp_path, "anthropic", asked, routes=routes)
    assert (seen.body.count(b"cache_control"), got.status) == (marks, 200)


@pytest.mark.parametrize(("version", "is_sent"), [("2023-06-01", True), ("2026-10-21", False)])
async def test_the_version_of_the_api_decides_what_is_sent(tmp_path: Path, version: str, is_sent: bool) -> None:
    content = [
        {"role": "model", "parts": [{"fileData": {"fileUri": "https://x/a.pdf", "mimeType": "application/pdf"}}]}
    ]
    asked = {"contents": [*content, {"role": "user", "parts": [{"text": "b"}]}], "generationConfig": {"topK": 3}}
    async with open_stage(tmp_path, "anthropic", headers={"anthropic-version": version}) as stage:
        await stage.ask(asks("gemini", body=json.dumps(asked).encode()))
        seen = stage.upstream.seen[0]
        assert seen.header("anthropic-version") == version
        assert ("top_k" in seen.json()) is is_sent
        assert ("document" in seen.body.decode()) is is_sent
        fact: Any = stage.facts()[1]
        lost = {(loss.pointer, loss.severity) for loss in fact.report if loss.severity != "identity"}
        refused = {("/generationConfig/topK", "option"), ("/contents/0/parts/0", "content")}
        assert lost == (set() if is_sent else refused)


async def test_beta_headers_pass_within_a_dialect_and_are_reported_across(tmp_path: Path) -> None:
    headers = (("Anthropic-Beta", "context-1m-2025-08-07, effort-2025-11-24"), ("anthropic-version", "2023-06-01"))
    async with open_stage(tmp_path / "same", "anthropic") as stage:
        await stage.ask(asks("anthropic", headers=headers))
        assert stage.upstream.seen[0].header("anthropic-beta") == headers[0][1]
    async with open_stage(tmp_path / "across", "openai-responses") as stage:
        await stage.ask(asks("anthropic", headers=headers))
        assert "beta" not in str(stage.upstream.seen[0].headers).lower()
        fact: Any = stage.facts()[1]
        assert [loss.what for loss in fact.report if "beta" in loss.what] == [
            "anthropic-beta: context-1m-2025-08-07",
            "anthropic-beta: effort-2025-11-24",
        ]


async def test_a_client_that_comes_home_brings_no_signatures_of_another_provider(tmp_path: Path) -> None:
    """A session may go from one provider to another; Anthropic answers a thought that it has not signed with 400."""
    thought = {"type": "thinking", "thinking": "t", "signature": "sightline:openai-responses:rs_1:abc"}
    turn = {"role": "assistant", "content": [thought, {"type": "text", "text": "b"}]}
    asked = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "a"}, turn]}
    async with open_stage(tmp_path, "anthropic") as stage:
        got = await stage.ask(asks("anthropic", body=json.dumps(asked).encode()))
        assert got.status == 200
        seen = stage.upstream.seen[0]
        assert seen.json()["messages"][1]["content"] == [{"type": "text", "text": "b"}]
        fact: Any = stage.facts()[1]
        assert [loss.pointer for loss in fact.report] == ["/messages/1/content/0/signature", "/messages/1/content/0"]
        assert stage.bodies()[fact.sha256] == seen.body


@pytest.mark.parametrize("text", ["see sightline: it works", "sightline:openai-responses:rs_1:abc"])
def test_words_about_signatures_pass_as_they_came(tmp_path: Path, text: str) -> None:
    body = json.dumps({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": text}]}).encode()
    seen, _ = sent(tmp_path, "anthropic", asks("anthropic", body=body))
    assert seen.body == body


def test_what_a_client_of_the_provider_s_own_dialect_sends_is_its_own_affair(tmp_path: Path) -> None:
    body = b'{"model":"m", "max_tokens":9,"messages":[{"role":"user","content":"hi"}],"temperature":0.2}'
    seen, got = sent(tmp_path, "anthropic", asks("anthropic", body=body), models={"m": OPUS})
    assert seen.body == body
    assert got.status == 200


def test_a_thread_is_refused_in_the_way_that_makes_the_client_resend(tmp_path: Path) -> None:
    body = b'{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"}],"thread":{"type":"create"}}'
    seen, got = sent(tmp_path, "openai-chat", asks("anthropic", body=body))
    assert (seen, got.status) == (None, 400)
    assert got.json()["error"]["details"] == {"error_code": "thread_unsupported_request"}


def test_a_thread_of_the_provider_s_own_dialect_passes(tmp_path: Path) -> None:
    body = b'{"model":"m","max_tokens":9,"messages":[],"thread":{"type":"create"}}'
    seen, _ = sent(tmp_path, "anthropic", asks("anthropic", body=body))
    assert seen.body == body


@pytest.mark.parametrize("field", ['"previous_response_id":"r_0"', '"conversation":"c_0"'])
def test_history_that_another_provider_keeps_is_refused(tmp_path: Path, field: str) -> None:
    body = b'{"model":"m","input":"hi",%s}' % field.encode()
    seen, got = sent(tmp_path, "openai-chat", asks("openai-responses", body=body))
    assert seen is None
    error = got.json()["error"]
    assert (got.status, error["code"]) == (400, "previous_response_not_found")
    assert error["param"] in field


def test_a_body_that_is_no_request_is_the_client_s_400(tmp_path: Path) -> None:
    seen, got = sent(tmp_path, "openai-chat", asks("anthropic", body=b"[1"))
    assert seen is None
    assert (got.status, got.json()["type"]) == (400, "error")


@pytest.mark.parametrize("client", DIALECTS)
@pytest.mark.parametrize("provider", DIALECTS)
def test_a_body_of_a_thousand_levels_reaches_every_dialect(tmp_path: Path, client: str, provider: str) -> None:
    plain = asks(client).body
    deep = plain[:-1] + b', "x_deep": ' + b"[" * 999 + b"]" * 999 + b"}"
    seen, got = sent(tmp_path, provider, asks(client, body=deep))
    assert got.status == 200
    assert client != provider or seen.body == deep


# --- the same request with other words --------------------------------------------------------------


@pytest.mark.parametrize("client", DIALECTS)
@pytest.mark.parametrize("provider", DIALECTS)
async def test_a_request_like_an_earlier_one_has_its_own_words(tmp_path: Path, client: str, provider: str) -> None:
    words = ["one", 'the "second"', "third ⟨text 0 of a template⟩", " ", "fünf\n", "six"]
    bodies = [json.dumps(REQUESTS[client]).replace('"hi"', json.dumps(each)).encode() for each in words]
    expected: list[bytes] = []
    async with open_stage(tmp_path, provider) as stage:
        for body in bodies:
            asked = asks(client, body=body)
            expected.append(body_of(asked, stage.relay.router.route_for(asked)))
            assert (await stage.ask(asked)).status == 200
        first, *others = stage.upstream.seen
        assert [first.body, *(each.body for each in others)] == expected
        assert all(names(each) == names(first) and each.target == first.target for each in others)


def test_a_strict_request_is_refused_also_after_one_that_was_not(tmp_path: Path) -> None:
    body = json.dumps(REQUESTS["openai-chat"] | {"seed": 7}).encode()
    asked = [asks("openai-chat", body=body, strict=strict) for strict in (False, False, False, True)]
    assert [got.status for _, got in sent_in_turn(tmp_path, "anthropic", asked)] == [200, 200, 200, 400]
