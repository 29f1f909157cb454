"""A caller of our own gets the events that were read for the record: the same that it would read from its bytes."""

from pathlib import Path
from typing import Any

import pytest

from sightline.catalog.provider import Provider
from sightline.dialects.reply_decoder import ReplyDecoder
from sightline.errors import Fault
from sightline.exchange.client_response import WholeBody
from sightline.exchange.stream_pump import StreamPump
from sightline.model.events import Failed, FieldReceived, Started, StreamEvent
from sightline.model.reply import Reply
from tests.engine_stage import EngineStage
from tests.reply_samples import streamed, whole
from tests.upstream import Play, Upstream, answer, chunk, cut, head, streams

DIALECTS = ["openai-chat", "openai-responses", "anthropic", "gemini"]
SECRET = b"the-secret"
EVENT_STREAM = [("Content-Type", "text/event-stream")]
JSON = [("Content-Type", "application/json")]


def broken_off(*frames: bytes) -> Play:
    return cut(head(200, EVENT_STREAM), *map(chunk, frames), how="eof")


def answers(spoken: str) -> dict[str, Play]:
    """Answers of all kinds that a stream was asked for."""
    frames = streamed(spoken)
    first = next(at for at, frame in enumerate(frames) if b"Let me " in frame)
    split = [*frames[:first], frames[first].replace(b"Let me ", b"the-s"), *frames[first + 1 :]]
    at_once = [each.replace(b"Let me ", SECRET) for each in frames]
    return {
        "complete": streams(*frames),
        "one chunk": streams(b"".join(frames)),
        "more behind the end": streams(*frames, *frames),
        **{f"broken off after {count}": broken_off(*frames[:count]) for count in range(len(frames))},
        "half a frame": broken_off(*frames[: first + 1], frames[first + 1][:20]),
        "ended early": streams(*frames[: first + 1]),
        "nothing": streams(),
        "only an end": streams(b"data: [DONE]\n\n"),
        "a ping and an end": streams(b": ping\n\n", b"data: [DONE]\n\n"),
        "an error": streams(*frames[: first + 1], b'event: error\ndata: {"error":{"message":"the-secret is bad"}}\n\n'),
        "an error first": streams(b'data: {"error":{"message":"full","type":"overloaded_error"}}\n\n'),
        "an unreadable frame": streams(*frames[: first + 1], b"data: {nonsense\n\n", *frames[first + 1 :]),
        "a key": streams(*at_once),
        "a key in two frames": streams(*(each.replace(b"look.", b"ecret") for each in split)),
        "the beginning of a key": streams(*split),
        "broken off in a key": broken_off(*split[: first + 1]),
        "no stream": answer(200, whole(spoken), JSON),
        "no JSON": answer(200, b"<html>", [("Content-Type", "text/html")]),
    }


def whole_answers(spoken: str) -> dict[str, Play]:
    """Answers of all kinds where no stream was asked for."""
    body = whole(spoken)
    return {
        "complete": answer(200, body, JSON),
        "a key": answer(200, body.replace(b"Let me ", SECRET), JSON),
        "an error": answer(200, b'{"error":{"message":"full","type":"overloaded_error"}}', JSON),
        "half": answer(200, body[:-20], JSON),
        "no JSON": answer(200, b"<html>", [("Content-Type", "text/html")]),
        "nothing": answer(200, b"", JSON),
        "a stream": streams(*streamed(spoken)),
        "a stream that is called JSON": answer(200, b"".join(streamed(spoken)), JSON),
        "broken off": cut(head(200, JSON), chunk(body[:-20]), how="eof"),
    }


async def ask(folder: Path, spoken: str, play: Play, *, stream: bool) -> tuple[str, list[str], list[str]]:
    """The reply or the fault, the events, and the recorded facts behind the attempt, in words without the port."""
    async with Upstream() as upstream:
        upstream.script = [play]
        once: dict[str, Any] = {"request_max_retries": 0, "stream_max_retries": 0}
        stage = EngineStage(folder, Provider(base_url=upstream.url, dialect=spoken, key_env="ACME_KEY", **once))
        try:
            reply: object = await stage.ask(stage.ready(stream=stream, max_tokens=99))
        except Fault as fault:
            reply = fault
        finally:
            await stage.close()

        def in_words(value: object) -> str:
            fault = getattr(value, "fault", value)
            if isinstance(fault, Fault):
                came = (value.choices, value.usage) if isinstance(value, Reply) else type(value)
                value = came, fault.code, fault.message, fault.status
            return repr(value).replace(upstream.url.removeprefix("http://"), "upstream")

        heard = without_own_frame(stage.heard)
        return in_words(reply), [*map(in_words, heard)], [*map(in_words, stage.facts()[2:])]


def without_own_frame(events: list[StreamEvent]) -> list[StreamEvent]:
    """The events without those of the frame by which Sightline says what went wrong, but for the failure itself: the
    bytes have that frame, and the provider has not sent it."""
    kept = events[:-2]
    if events and not isinstance(events[-2], Failed):
        return events
    while kept and isinstance(kept[-1], Started | FieldReceived):
        kept.pop()
    return [*kept, *events[-2:]]


@pytest.mark.parametrize("spoken", DIALECTS)
@pytest.mark.parametrize("stream", [True, False])
async def test_shared_events_are_those_of_the_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spoken: str, stream: bool
) -> None:
    for name, play in (answers if stream else whole_answers)(spoken).items():
        shared = await ask(tmp_path / "shared" / name, spoken, play, stream=stream)
        with monkeypatch.context() as patch:
            for body in (StreamPump, WholeBody):
                patch.setattr(body, "share_reading", lambda _self: None)
            from_bytes = await ask(tmp_path / "bytes" / name, spoken, play, stream=stream)
        assert shared == from_bytes, name
        assert SECRET.decode() not in repr(shared), name


@pytest.mark.parametrize("stream", [True, False])
async def test_an_answer_is_parsed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stream: bool) -> None:
    made: list[ReplyDecoder] = []
    make = ReplyDecoder._events if stream else ReplyDecoder._whole

    def counted(self: ReplyDecoder, data: Any) -> list[StreamEvent]:
        made.append(self)
        return make(self, data)

    monkeypatch.setattr(ReplyDecoder, make.__name__, counted)
    play = (answers if stream else whole_answers)("openai-chat")["complete"]
    _, heard, _ = await ask(tmp_path, "openai-chat", play, stream=stream)
    assert heard
    assert len({id(each) for each in made}) == 1


@pytest.mark.parametrize("stream", [True, False])
async def test_an_answer_that_our_reader_fails_at_is_no_empty_reply(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stream: bool
) -> None:
    def fail(_self: ReplyDecoder, _data: object) -> list[StreamEvent]:
        raise ZeroDivisionError

    monkeypatch.setattr(ReplyDecoder, "_events" if stream else "_whole", fail)
    play = (answers if stream else whole_answers)("openai-chat")["complete"]
    with pytest.raises(ZeroDivisionError):
        await ask(tmp_path, "openai-chat", play, stream=stream)


@pytest.mark.parametrize("spoken", DIALECTS)
async def test_last_frame_without_its_end_is_no_end_of_an_interrupted_stream(tmp_path: Path, spoken: str) -> None:
    frames = streamed(spoken)
    reply, heard, (fact,) = await ask(
        tmp_path, spoken, broken_off(*frames[:-1], frames[-1].removesuffix(b"\n\n")), stream=True
    )
    assert "Code.NETWORK" in reply
    assert "Failed" in heard[-2]
    assert fact.startswith("ExchangeFailed")
