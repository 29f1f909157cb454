import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.exchange import redaction as scattered
from sightline.exchange.redaction import FrameMasking
from sightline.model.events import TextReceived
from sightline.model.fold import fold
from sightline.model.parts import Text
from sightline.wire.secrets import MASK
from tests.contract.test_law_4_stream_is_whole import read_stream
from tests.relay_stage import DIALECTS, KEY, Stage, asks, play
from tests.reply_samples import SAYS, streamed
from tests.upstream import answer, streams


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
def test_a_key_in_pieces_reaches_nobody_however_it_is_cut(data: st.DataObject) -> None:
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


def test_several_keys_and_their_spellings() -> None:
    out, _ = shown(
        [frame("abcdef/"), frame("gh"), frame("abcdefgh"), frame("xyz1234"), frame("5")], "abcdef/gh", "xyz12345"
    )
    assert words_of(b"".join(out)) == f"{MASK}abcdefgh{MASK}"


def test_a_key_that_begins_again_within_itself() -> None:
    out, _ = shown([frame("abab"), frame("ab"), frame("1")], "abab1")
    assert words_of(b"".join(out)) == f"ab{MASK}"


def test_short_keys_and_none() -> None:
    out, _ = shown([frame("ab"), frame("cd")], "abcd")
    assert words_of(b"".join(out)) == f"ab{MASK}"
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
def test_a_key_told_by_a_provider_reaches_no_client(tmp_path: Path, client: str, provider: str, size: int) -> None:
    async def story(stage: Stage) -> None:
        stage.upstream.script = [streams(*telling(provider, size))]
        got = await stage.ask(asks(client, stream=True))
        reply = fold(read_stream(client, [got.body]))
        text = "".join(part.text for part in reply.choice.parts if isinstance(part, Text))
        assert KEY not in text
        assert KEY[size:] not in text
        assert MASK in text
        assert (reply.fault, reply.choice.finish) == (None, "stop")
        assert stage.kinds()[-1] == "finished"

    play(story, tmp_path, provider)


def test_a_coded_stream_that_tells_a_key_in_pieces_is_cut_off(tmp_path: Path) -> None:
    data = gzip.compress(b"".join(telling("openai-chat", 9)))
    told = [("Content-Type", "text/event-stream"), ("Content-Encoding", "gzip")]

    async def story(stage: Stage) -> None:
        stage.upstream.script = [answer(200, data, told, framing="chunked")]
        got = await stage.ask(asks("openai-chat", stream=True))
        assert got.status == 502
        assert "repeats a configured key" in got.json()["error"]["message"]
        assert stage.kinds()[-1] == "failed"

    play(story, tmp_path)
