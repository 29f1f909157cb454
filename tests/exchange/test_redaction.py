import gzip
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.exchange import redaction as scattered
from sightline.exchange.redaction import FrameMasking, identify_caller, secrets_of
from sightline.model.events import TextReceived
from sightline.model.fold import fold
from sightline.model.parts import Text
from sightline.wire.secrets import MASK
from tests.contract.test_law_4_stream_is_whole import read_stream
from tests.relay_stage import DIALECTS, KEY, Stage, asks, open_stage
from tests.reply_samples import SAYS, streamed, whole
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
async def test_no_planted_secret_is_in_the_record(
    tmp_path: Path, client: str, status: int, provider: str, coding: str
) -> None:
    echo = json.dumps({"error": {"message": f"bad key {' '.join(SECRETS)} (api: planted\\/api+222222)"}}).encode()
    body = gzip.compress(echo) if coding else echo
    told = [("Set-Cookie", f"sid={PLANTED['cookie']}"), ("X-Echo", KEY), ("Content-Encoding", coding or "identity")]

    environment = {"ACME_KEY": KEY, "TRACE": PLANTED["trace"]}
    async with open_stage(tmp_path, env_headers={"x-trace": "TRACE"}, environment=environment) as stage:
        stage.upstream.script = [answer(status, body, told)]
        got = await stage.ask(planted(client, provider=provider))
        nothing_is_left(recorded(stage))
        assert MASK in recorded(stage)
        if provider == "acme":
            assert KEY.encode() not in got.body
            assert KEY not in repr(got.headers)


@pytest.mark.parametrize("size", [1, 3, 10, 1000])
async def test_key_split_across_stream_chunks_is_masked(tmp_path: Path, size: int) -> None:
    frames = streamed("openai-chat")
    data = b"".join(frames).replace(b"Let me ", f"{KEY} or {PLANTED['bearer']} ".encode())
    cuts = [data[start : start + size] for start in range(0, len(data), size)]

    async with open_stage(tmp_path) as stage:
        stage.upstream.script = [streams(*cuts)]
        got = await stage.ask(planted("openai-chat", stream=True))
        nothing_is_left(recorded(stage))
        assert KEY.encode() not in got.body
        assert got.body == data.replace(KEY.encode(), MASK.encode()), "the client may see its own credential"
        assert stage.kinds()[-1] == "finished"


@pytest.mark.parametrize("stream", [False, True])
async def test_a_key_that_an_answer_repeats_is_not_translated(tmp_path: Path, *, stream: bool) -> None:
    whole = {"id": "r", "model": "m", "choices": [{"index": 0, "finish_reason": "stop",
             "message": {"role": "assistant", "content": f"key={KEY}"}}]}  # fmt: skip
    frames = b"".join(streamed("openai-chat")).replace(b"Let me ", f"key={KEY} ".encode())

    async with open_stage(tmp_path) as stage:
        stage.upstream.script = [streams(frames) if stream else answer(200, json.dumps(whole).encode())]
        got = await stage.ask(planted("anthropic", stream=stream))
        assert got.status == 200
        assert KEY.encode() not in got.body
        assert b"key=***" in got.body
        nothing_is_left(recorded(stage))


async def test_retries_keep_no_secret_either(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as stage:
        stage.upstream.script = [says({"error": {"message": f"no {KEY}"}}, 503), answer(200, whole("openai-chat"))]
        await stage.ask(planted("openai-chat"))
        nothing_is_left(recorded(stage))


def test_what_a_client_shows_is_found_wherever_it_is() -> None:
    asked = planted("openai-chat")
    assert set(secrets_of(asked.headers, asked.query)) >= {
        PLANTED["bearer"], PLANTED["api"], PLANTED["google"], PLANTED["query"], PLANTED["proxy"]
    }  # fmt: skip


@pytest.mark.parametrize("size", [1, 5, 1000])
async def test_key_spelled_with_escapes_is_masked(tmp_path: Path, size: int) -> None:
    spelled = "".join(f"\\u{ord(letter):04x}" if at % 2 else letter for at, letter in enumerate(KEY))
    data = b"".join(streamed("openai-chat")).replace(b"Let me ", f"{spelled} ".encode())
    cuts = [data[start : start + size] for start in range(0, len(data), size)]

    async with open_stage(tmp_path) as stage:
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


def telling(spoken: str, size: int) -> list[bytes]:
    """The frames of a stream that says hello, and a key so many letters at a time."""
    parts = [KEY[at : at + size] for at in range(0, len(KEY), size)]
    return streamed(spoken, [*SAYS[:2], *(TextReceived(0, part) for part in parts), *SAYS[2:]])


def frame(words: str, **more: object) -> bytes:
    """A frame that tells these words."""
    return b"data: " + json.dumps({"id": "c1", "delta": {"content": words}, **more}).encode() + b"\n\n"


def words_of(data: bytes) -> str:
    """What the frames tell together."""
    lines = [line for line in data.split(b"\n") if line]
    return "".join(json.loads(line.removeprefix(b"data: "))["delta"]["content"] for line in lines)


def shown(pieces: list[bytes], *keys: str) -> tuple[list[bytes], FrameMasking]:
    masking = FrameMasking(keys or (KEY,))
    return [*(masking.feed(piece) for piece in pieces), masking.close()], masking


@given(st.data())
def test_split_key_is_masked_at_any_cut(data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.sets(st.integers(1, len(KEY) - 1), min_size=1)))
    parts = [KEY[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(KEY)], strict=True)]
    before, behind = data.draw(st.sampled_from([("", ""), ("Your key is ", "."), ("sk-", " and sk-")]))
    told = [before + parts[0], *parts[1:-1], parts[-1] + behind]
    stream = b"".join(map(frame, ["Well, ", *told, " That is all."]))
    sizes = data.draw(st.lists(st.integers(1, 200), min_size=1))
    pieces, at = [], 0
    while at < len(stream):
        pieces.append(stream[at : at + sizes[len(pieces) % len(sizes)]])
        at += len(pieces[-1])
    out, masking = shown(pieces)
    text = words_of(b"".join(out))
    assert masking.has_found
    assert KEY not in text
    assert text.startswith(f"Well, {before}")
    assert text.endswith(f"{MASK}{behind} That is all.")
    assert len(text) < len(f"Well, {before}{MASK}{behind} That is all.") + 4, "a few letters may have left before"


@given(
    st.lists(st.sampled_from(["s", "sk", "sk-", "sk-conf", "ured", KEY[:-1], "k-c", '"', "\\", ""])), st.integers(1, 99)
)
def test_what_is_no_key_passes_as_it_came(told: list[str], size: int) -> None:
    if KEY in "".join(told):
        return
    stream = b"".join(map(frame, told))
    out, masking = shown([stream[at : at + size] for at in range(0, len(stream), size)])
    assert b"".join(out) == stream
    assert not masking.has_found


def test_only_a_beginning_that_is_no_accident_is_held_back() -> None:
    masking = FrameMasking((KEY,))
    for words in ("tokens", " is", " s", "sk", "-", "", "sk-"):
        assert masking.feed(frame(words)) == frame(words)
    held = [frame("my sk-conf"), frame("ig")]
    assert [masking.feed(each) for each in held] == [b"", b""]
    assert masking.feed(frame("ure it")) == b"".join([*held, frame("ure it")])


def test_a_line_that_is_not_whole_waits_for_its_end_while_a_key_may_go_on() -> None:
    masking = FrameMasking((KEY,))
    first, second = frame("sk-c"), frame("onfigured-0123456789!")
    assert masking.feed(first[:-4]) == b""
    assert masking.feed(first[-4:] + second[:30]) == b""
    out = masking.feed(second[30:])
    assert words_of(out) == f"{MASK}!"


@pytest.mark.parametrize(
    ("told", "keys", "left"),
    [
        (["abcdef/", "gh", "abcdefgh", "xyz1234", "5"], ["abcdef/gh", "xyz12345"], f"{MASK}abcdefgh{MASK}"),
        pytest.param(["abab", "ab", "1"], ["abab1"], f"ab{MASK}", id="one that begins again within itself"),
        pytest.param(["ab", "cd"], ["abcd"], f"ab{MASK}", id="a short one"),
    ],
)
def test_keys_in_pieces_are_masked(told: list[str], keys: list[str], left: str) -> None:
    out, _ = shown(list(map(frame, told)), *keys)
    assert words_of(b"".join(out)) == left


def test_without_a_key_the_same_bytes_pass() -> None:
    data = frame("x")
    assert FrameMasking(()).feed(data) is data
    assert FrameMasking((KEY,)).feed(data) is data


def test_what_is_held_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scattered, "_MOST_HELD", 500)
    masking = FrameMasking((KEY,))
    assert masking.feed(frame("sk-conf")) == b""
    more = frame("igur", more="x" * 500)
    assert masking.feed(more) == frame("sk-conf") + more
    assert masking.close() == b""


@pytest.mark.parametrize("provider", DIALECTS)
@pytest.mark.parametrize("client", DIALECTS)
@pytest.mark.parametrize("size", [3, 7])
async def test_key_repeated_by_a_provider_is_masked_across_dialects(
    tmp_path: Path, client: str, provider: str, size: int
) -> None:
    async with open_stage(tmp_path, provider) as stage:
        stage.upstream.script = [streams(*telling(provider, size))]
        got = await stage.ask(asks(client, stream=True))
        reply = fold(read_stream(client, [got.body]))
        text = "".join(part.text for part in reply.choice.parts if isinstance(part, Text))
        assert KEY not in text
        assert KEY[size:] not in text
        assert MASK in text
        assert (reply.fault, reply.choice.finish) == (None, "stop")
        assert stage.kinds()[-1] == "finished"


@pytest.mark.parametrize("size", [9, len(KEY)])
async def test_a_coded_stream_that_tells_a_key_whole_or_in_pieces_is_cut_off(tmp_path: Path, size: int) -> None:
    data = gzip.compress(b"".join(telling("openai-chat", size)))
    told = [("Content-Type", "text/event-stream"), ("Content-Encoding", "gzip")]

    async with open_stage(tmp_path) as stage:
        stage.upstream.script = [answer(200, data, told, framing="chunked")]
        got = await stage.ask(asks("openai-chat", stream=True))
        assert got.status == 502
        assert "repeats a configured key" in got.json()["error"]["message"]
        assert stage.kinds()[-1] == "failed"
        nothing_is_left(recorded(stage))


CALLER_KEY = "sk-secret-0123456789"
CALLER_HEADERS = (
    ("User-Agent", "tool/1 (x)"),
    ("Authorization", f"Bearer {CALLER_KEY}"),
    ("Session-Id", "s-1"),
    ("X-Echo", f"a {CALLER_KEY}"),
)


def test_a_client_is_known_without_its_secrets() -> None:
    caller = identify_caller(CALLER_HEADERS, "/v1/messages", f"key={CALLER_KEY}&beta=true", ())
    assert (caller.program, caller.client, caller.session) == ("tool/1", "tool/1", "s-1")
    assert caller.address == "/v1/messages?key=***&beta=true"
    assert dict(caller.headers) == {
        "User-Agent": "tool/1 (x)", "Authorization": "***", "Session-Id": "s-1", "X-Echo": "a ***"
    }  # fmt: skip


def test_our_own_secrets_are_kept_out_too() -> None:
    caller = identify_caller((("User-Agent", "configured-key"),), "/", "", ("configured-key",))
    assert (caller.program, caller.client) == ("configured-key", "***")
    assert caller.redaction.text("a configured-key") == "a ***"


def test_what_a_client_sends_again_is_worked_out_once() -> None:
    assert identify_caller(CALLER_HEADERS, "/", "", ()) is identify_caller(CALLER_HEADERS, "/", "", ())
    assert identify_caller(CALLER_HEADERS, "/", "", ()) is not identify_caller(CALLER_HEADERS, "/other", "", ())
