import gzip
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from sightline.wire.secrets import MASK, secrets_of
from tests.relay_stage import KEY, Stage, asks, play
from tests.reply_samples import streamed, whole
from tests.upstream import answer, says, streams

PLANTED = {
    "bearer": "planted-bearer-111111",
    "api": "planted/api+222222",
    "google": "planted-google-333333",
    "query": "planted-query-444444",
    "cookie": "planted-cookie-555555",
    "proxy": "planted-proxy-666666",
    "trace": "planted-trace-777777",
}
HEADERS = (
    ("Authorization", f"Bearer {PLANTED['bearer']}"),
    ("X-Api-Key", PLANTED["api"]),
    ("x-goog-api-key", PLANTED["google"]),
    ("Cookie", f"sid={PLANTED['cookie']}"),
    ("Proxy-Authorization", f"Basic {PLANTED['proxy']}"),
    ("Referer", f"https://user:pass@example.org/?key={PLANTED['query']}"),
    ("User-Agent", "tool/1"),
)
SECRETS = (*PLANTED.values(), KEY)


def recorded(stage: Stage) -> str:
    return repr(stage.entries) + msgspec.json.encode(stage.entries).decode()


def nothing_is_left(text: str) -> None:
    for secret in SECRETS:
        assert secret not in text
        assert secret.replace("/", "\\/") not in text
        assert secret.replace("/", "%2F").replace("+", "%2B") not in text
    assert "user:pass" not in text


def planted(spoken: str, **more: Any) -> Any:
    return asks(spoken, headers=HEADERS, query=f"alt=x&key={PLANTED['query']}", **more)


@pytest.mark.parametrize("client", ["openai-chat", "anthropic"])
@pytest.mark.parametrize("status", [200, 400, 401])
@pytest.mark.parametrize("provider", ["acme", "open"])
@pytest.mark.parametrize("coding", ["", "gzip"])
def test_no_planted_secret_is_in_the_record(
    tmp_path: Path, client: str, status: int, provider: str, coding: str
) -> None:
    echo = json.dumps({"error": {"message": f"bad key {' '.join(SECRETS)} (api: planted\\/api+222222)"}}).encode()
    body = gzip.compress(echo) if coding else echo
    told = [("Set-Cookie", f"sid={PLANTED['cookie']}"), ("X-Echo", KEY), ("Content-Encoding", coding or "identity")]

    async def story(stage: Stage) -> None:
        stage.upstream.script = [answer(status, body, told)]
        got = await stage.ask(planted(client, provider=provider))
        nothing_is_left(recorded(stage))
        assert MASK in recorded(stage)
        if provider == "acme":
            assert KEY.encode() not in got.body
            assert KEY not in repr(got.headers)

    environment = {"ACME_KEY": KEY, "TRACE": PLANTED["trace"]}
    play(story, tmp_path, env_headers={"x-trace": "TRACE"}, environment=environment)


@pytest.mark.parametrize("size", [1, 3, 10, 1000])
def test_a_key_that_a_stream_repeats_in_pieces_reaches_nobody(tmp_path: Path, size: int) -> None:
    frames = streamed("openai-chat")
    data = b"".join(frames).replace(b"Let me ", f"{KEY} or {PLANTED['bearer']} ".encode())
    cuts = [data[start : start + size] for start in range(0, len(data), size)]

    async def story(stage: Stage) -> None:
        stage.upstream.script = [streams(*cuts)]
        got = await stage.ask(planted("openai-chat", stream=True))
        nothing_is_left(recorded(stage))
        assert KEY.encode() not in got.body
        assert got.body == data.replace(KEY.encode(), MASK.encode()), "the client may see its own credential"
        assert stage.kinds()[-1] == "finished"

    play(story, tmp_path)


@pytest.mark.parametrize("stream", [False, True])
def test_a_key_that_an_answer_repeats_is_not_translated(tmp_path: Path, *, stream: bool) -> None:
    whole = {"id": "r", "model": "m", "choices": [{"index": 0, "finish_reason": "stop",
             "message": {"role": "assistant", "content": f"key={KEY}"}}]}  # fmt: skip
    frames = b"".join(streamed("openai-chat")).replace(b"Let me ", f"key={KEY} ".encode())

    async def story(stage: Stage) -> None:
        stage.upstream.script = [streams(frames) if stream else answer(200, json.dumps(whole).encode())]
        got = await stage.ask(planted("anthropic", stream=stream))
        assert got.status == 200
        assert KEY.encode() not in got.body
        assert b"key=***" in got.body
        nothing_is_left(recorded(stage))

    play(story, tmp_path)


def test_a_key_in_a_coded_stream_cuts_the_stream_off(tmp_path: Path) -> None:
    data = gzip.compress(b"".join(streamed("openai-chat")).replace(b"Let me ", KEY.encode()))
    told = [("Content-Type", "text/event-stream"), ("Content-Encoding", "gzip")]

    async def story(stage: Stage) -> None:
        stage.upstream.script = [answer(200, data, told, framing="chunked")]
        got = await stage.ask(asks("openai-chat", stream=True))
        assert got.status == 502
        assert "repeats a configured key" in got.json()["error"]["message"]
        assert stage.kinds()[-1] == "failed"
        nothing_is_left(recorded(stage))

    play(story, tmp_path)


def test_retries_keep_no_secret_either(tmp_path: Path) -> None:
    async def story(stage: Stage) -> None:
        stage.upstream.script = [says({"error": {"message": f"no {KEY}"}}, 503), answer(200, whole("openai-chat"))]
        await stage.ask(planted("openai-chat"))
        nothing_is_left(recorded(stage))

    play(story, tmp_path)


def test_what_a_client_shows_is_found_wherever_it_is() -> None:
    asked = planted("openai-chat")
    assert set(secrets_of(asked.headers, asked.query)) >= {
        PLANTED["bearer"], PLANTED["api"], PLANTED["google"], PLANTED["query"], PLANTED["proxy"]
    }  # fmt: skip


@pytest.mark.parametrize("size", [1, 5, 1000])
def test_a_key_that_is_spelled_in_escapes_reaches_nobody(tmp_path: Path, size: int) -> None:
    spelled = "".join(f"\\u{ord(letter):04x}" if at % 2 else letter for at, letter in enumerate(KEY))
    data = b"".join(streamed("openai-chat")).replace(b"Let me ", f"{spelled} ".encode())
    cuts = [data[start : start + size] for start in range(0, len(data), size)]

    async def story(stage: Stage) -> None:
        error = f'{{"error": {{"message": "no {spelled}", "code": "x"}}}}'.encode()
        stage.upstream.script = [streams(*cuts), answer(401, error, [("X-Echo", spelled)])]
        got = await stage.ask(planted("openai-chat", stream=True))
        assert got.body == data.replace(spelled.encode(), MASK.encode())
        assert spelled.encode() not in stage.raw_reply()
        assert stage.kinds()[-1] == "finished"
        refused = await stage.ask(planted("openai-chat"))
        assert refused.body == error.replace(spelled.encode(), MASK.encode())
        assert spelled not in repr(refused.headers)
        nothing_is_left(recorded(stage))

    play(story, tmp_path)
