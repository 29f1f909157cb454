"""Request ids and rate limits reach the client under the names of its own dialect."""

from pathlib import Path

import pytest

from tests.relay_stage import asks, open_stage
from tests.reply_samples import streamed, whole
from tests.upstream import answer, says, streams

ID = {"openai-chat": "x-request-id", "openai-responses": "x-request-id", "anthropic": "request-id"}
JSON = ("Content-Type", "application/json")
OPENAI = [("x-ratelimit-limit-requests", "500"), ("x-ratelimit-remaining-tokens", "7000"),
          ("x-ratelimit-reset-tokens", "1m30s")]  # fmt: skip
ANTHROPIC = [("anthropic-ratelimit-requests-remaining", "49"), ("anthropic-ratelimit-input-tokens-limit", "8000"),
             ("anthropic-ratelimit-output-tokens-limit", "90")]  # fmt: skip


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("provider", ["openai-chat", "openai-responses", "anthropic", "gemini"])
@pytest.mark.parametrize("client", [*ID, "gemini"])
async def test_every_answer_has_a_request_id(tmp_path: Path, client: str, provider: str, stream: bool) -> None:
    async with open_stage(tmp_path, provider) as stage:
        name = ID.get(provider)
        given = [(name, "req_of_provider")] if name else []
        plain = answer(200, whole(provider), [JSON, *given])
        stage.upstream.script = [streams(*streamed(provider), headers=given) if stream else plain]
        got = await stage.ask(asks(client, stream=stream))
        assert got.status == 200
        named = [value for key, value in got.headers if key.lower() in (b"x-request-id", b"request-id")]
        if client == "gemini":
            assert named == ([b"req_of_provider"] if provider == client and given else [])
        else:
            assert got.header(ID[client]) == ("req_of_provider" if given else got.exchange)
            assert len(named) == 1


@pytest.mark.parametrize("provider", ["openai-chat", "anthropic"])
async def test_an_error_has_one_too(tmp_path: Path, provider: str) -> None:
    async with open_stage(tmp_path, provider) as stage:
        stage.upstream.script = [says({"error": {"message": "no"}}, 400, [(ID[provider], "req_1")]), says({}, 500)]
        got = await stage.ask(asks("anthropic"))
        assert (got.status, got.header("request-id")) == (400, "req_1")
        got = await stage.ask(asks("anthropic"))
        assert got.header("request-id") == got.exchange


@pytest.mark.parametrize(
    ("client", "provider", "given", "expected"),
    [
        ("anthropic", "openai-chat", OPENAI, {"anthropic-ratelimit-requests-limit": "500",
                                              "anthropic-ratelimit-tokens-remaining": "7000"}),
        ("openai-responses", "anthropic", ANTHROPIC, {"x-ratelimit-remaining-requests": "49",
                                                      "x-ratelimit-limit-tokens": "8000"}),
        ("gemini", "anthropic", ANTHROPIC, dict(ANTHROPIC)),
        ("anthropic", "anthropic", ANTHROPIC, dict(ANTHROPIC)),
    ],
)  # fmt: skip
async def test_rate_limits_have_the_names_of_the_clients_dialect(
    tmp_path: Path, client: str, provider: str, given: list[tuple[str, str]], expected: dict[str, str]
) -> None:
    async with open_stage(tmp_path, provider) as stage:
        stage.upstream.script = [answer(200, whole(provider), [JSON, *given])]
        got = await stage.ask(asks(client))
        for name, value in expected.items():
            assert got.header(name) == value
        limits = {name.decode() for name, _ in got.headers if b"ratelimit" in name.lower()}
        assert limits - {"anthropic-ratelimit-tokens-reset"} == set(expected)


async def test_a_reset_is_written_as_the_dialect_writes_times(tmp_path: Path) -> None:
    async with open_stage(tmp_path, "openai-chat") as stage:
        stage.upstream.script = [answer(200, whole("openai-chat"), [JSON, *OPENAI])]
        got = await stage.ask(asks("anthropic"))
        assert got.header("anthropic-ratelimit-tokens-reset").endswith("Z")
    async with open_stage(tmp_path / "back", "anthropic") as stage:
        reset = ("anthropic-ratelimit-requests-reset", "2100-01-01T00:00:00Z")
        stage.upstream.script = [
            answer(200, whole("anthropic"), [JSON, reset, ("Date", "Thu, 31 Dec 2099 23:59:58 GMT")])
        ]
        got = await stage.ask(asks("openai-chat"))
        assert got.header("x-ratelimit-reset-requests") == "2s"
