import asyncio
from collections.abc import Sequence

import msgspec
import pytest

from sightline.errors import Code, Fault
from sightline.exchange.client_request import ClientRequest
from sightline.exchange.hub import Announced, Hub, News
from sightline.exchange.lane import Lane
from sightline.exchange.phase import DroppedEnd, FailedEnd, FinishedEnd
from sightline.exchange.recorder import FactObserver, Recorder
from sightline.model.exchange import (
    Answered,
    AttemptStarted,
    Dropped,
    Edited,
    ExchangeFailed,
    ExchangeFinished,
    FrameArrived,
    Held,
    Received,
    Released,
    Translated,
)
from sightline.model.parts import Text
from sightline.model.reply import Choice, Reply, Usage
from sightline.model.report import Report
from sightline.store.entries import BodyEntry, Entry, FactEntry, FramesEntry, KeptEntry, plain_entries
from tests.fake_clock import FakeClock

HEADERS = (("User-Agent", "claude-cli/2.1 (external)"), ("X-Api-Key", "secret-of-a-client"), ("Session-Id", "s-7"))


ASKED = ClientRequest("anthropic", b"{}", HEADERS, "/v1/messages", query="beta=true", model="m", received=99.0)


def keeping(kept: list[Entry]) -> Hub:
    return Hub(lambda entries: kept.extend(plain_entries(entries)))


def recorder_on(
    hub: Hub,
    observer: FactObserver | None = None,
    *,
    request: ClientRequest = ASKED,
    clock: FakeClock | None = None,
) -> Recorder:
    caller = Lane(request, ("configured-key",)).caller
    return Recorder(request, "x_1", hub, clock or FakeClock(100.0), caller, observer)


def recorderd(kept: list[Entry], clock: FakeClock | None = None) -> Recorder:
    return recorder_on(keeping(kept), lambda _: None, clock=clock)


def test_a_request_is_kept_with_its_body_and_without_its_credential() -> None:
    kept: list[Entry] = []
    recorder = recorderd(kept)
    assert not kept
    recorder.record_attempt(AttemptStarted(1, "acme", recorder.sha256, detail="configured-key is bad"))
    body, received, attempt = kept
    assert body == BodyEntry(recorder.sha256, b"{}", "s-7")
    assert (received.fact.client, received.fact.path) == ("claude-cli/2.1", "/v1/messages?beta=true")
    assert received.fact.headers[1] == ("X-Api-Key", "***")
    assert attempt.fact == AttemptStarted(1, "acme", recorder.sha256, detail="*** is bad")


def test_frames_tell_their_time_and_are_kept_at_the_end() -> None:
    kept: list[Entry] = []
    clock = FakeClock(100.0)
    recorder = recorderd(kept, clock)
    clock.time = 102.0
    recorder.record_head(200, ((b"X-A", b"configured-key"),))
    recorder.record_chunk(b"one")
    clock.time = 103.0
    recorder.record_chunk(b"two conf")
    assert not kept
    recorder.record_end(FailedEnd(Fault(Code.NETWORK, "lost configured-key")))
    frames = [each.fact for each in kept if isinstance(each, FactEntry) and isinstance(each.fact, FrameArrived)]
    assert frames == [FrameArrived(b"one", 2.0), FrameArrived(b"two ", 3.0), FrameArrived(b"conf", 3.0)]
    last = kept[-1]
    assert isinstance(last.fact, ExchangeFailed)
    assert (last.fact.first_byte, last.fact.elapsed, last.fact.status) == (3.0, 4.0, 200)
    assert (last.fact.message, last.fact.headers) == ("lost ***", (("X-A", "***"),))


def test_a_secret_is_found_across_what_is_looked_at_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sightline.exchange.recorder._MOST_UNMASKED", 20)
    kept: list[KeptEntry] = []
    recorder = recorderd(kept)
    for chunk in (b"data: a configured", b"-k", b"ey b\n\n", b"data: c\n\n"):
        recorder.record_chunk(chunk)
    frames = [each.fact.data for each in recorder.unwritten if isinstance(each.fact, FrameArrived)]
    assert frames == [b"data: a ", b"*** b\n\n", b"data: c\n\n"]
    assert recorder.response == b"data: a *** b\n\ndata: c\n\n"


def test_a_watcher_sees_frames_as_they_come_each_once_and_no_secret() -> None:
    kept: list[KeptEntry] = []
    hub = Hub(kept.extend)
    recorder = recorder_on(hub)
    recorder.record_chunk(b"data: 1\n\n")

    async def watch() -> list[News]:
        with hub.watch() as facts:
            recorder.ensure_recorded()
            shown = [await anext(facts)]
            for chunk in (b"data: 2 configured", b"-key 3\n\n"):
                recorder.record_chunk(chunk)
            async with asyncio.timeout(20):
                shown.append(await anext(facts))
            assert not any(isinstance(each, FramesEntry) for each in kept), "they are written at the end"
            recorder.record_chunk(b"c")
            recorder.record_end(FinishedEnd(Reply()))
        return shown + [fact async for fact in facts]

    shown = asyncio.run(watch())
    assert sum(isinstance(each, FramesEntry) for each in kept) == 1
    frames = [
        each for each in plain_entries(kept) if isinstance(each, FactEntry) and isinstance(each.fact, FrameArrived)
    ]
    assert [each.fact.data for each in frames] == [b"data: 1\n\n", b"data: 2 ", b"*** 3\n\n", b"c"]  # type: ignore[union-attr]
    assert [type(each) for each in shown] == [FactEntry, FramesEntry, FramesEntry, FactEntry]
    facts = [each for each in plain_entries(kept) if isinstance(each, FactEntry)]
    assert plain_entries(each for each in shown if not isinstance(each, Announced)) == facts


def test_what_bodies_resemble() -> None:
    def near(*headers: tuple[str, str], session: str = "") -> str:
        kept: list[Entry] = []
        request = ClientRequest("anthropic", b"", headers, "/", model="m", session=session)
        recorder_on(keeping(kept), request=request).commit()
        return kept[0].near

    assert near() == "m"
    assert near(("User-Agent", "tool/1 x")) == "tool/1 m"
    assert near(("thread-id", "t"), ("User-Agent", "tool/1")) == "t"
    assert near(("thread-id", "t"), session="named") == "named"


def test_secret_split_across_frames_is_not_recorded() -> None:
    kept: list[Entry] = []
    recorder = recorderd(kept)
    recorder.record_attempt(AttemptStarted(1, "acme", recorder.sha256))
    recorder.record_head(200, ())
    for piece in (b"data: conf\n\n", b"data: igured\n\n", b"data: -key\n\n"):
        recorder.record_chunk(piece)
    recorder.record_translation("openai-chat", "aa", Report())
    reply = Reply(choices=(Choice(parts=(Text("it is configured-key"),), finish="stop"),))
    recorder.record_end(FinishedEnd(reply))
    facts = [each for each in kept if isinstance(each, FactEntry)]
    assert [each.n for each in facts] == list(range(len(facts)))
    assert [type(each.fact) for each in facts[2:]] == [FrameArrived, Translated, ExchangeFinished]
    assert b"igured" not in msgspec.json.encode(kept, enc_hook=repr)
    assert b"it is ***" in facts[2].fact.data


def test_recording_failure_is_logged_and_not_raised(caplog: pytest.LogCaptureFixture) -> None:
    def refuse(_entries: object) -> None:
        raise OverflowError("too large")

    recorder_on(Hub(refuse)).record_end(FinishedEnd(Reply(usage=Usage(input_tokens=10**30))))
    assert "x_1 could not be recorded" in caplog.text


def facts_in(kept: list[Entry]) -> list[object]:
    return [each.fact for each in kept if isinstance(each, FactEntry)]


def test_what_a_person_does_is_on_record_at_once() -> None:
    kept: list[Entry] = []
    recorder = recorderd(kept)
    recorder.record_hold(Held())
    assert facts_in(kept)[1:] == [Held()]
    recorder.record_edit("set", recorder.sha256, "aa", b"{1}")
    assert kept[-2:] == [
        BodyEntry("aa", b"{1}", "s-7"),
        FactEntry("x_1", 2, 100.0, Edited("set", recorder.sha256, "aa")),
    ]
    recorder.record_release("aa")
    assert facts_in(kept)[-1] == Released("aa")
    recorder.record_reply(Reply(choices=(Choice(parts=(Text("the configured-key"),), finish="stop"),)))
    body, answered = kept[-2:]
    assert answered.fact == Answered(body.sha256)
    assert body.data == b'{"role":"assistant","parts":[{"type":"text","text":"the ***"}],"finish":"stop"}'
    recorder.record_end(DroppedEnd("no"))
    assert facts_in(kept)[-1] == Dropped("no")


def said(*told: str) -> Reply:
    return Reply(choices=(Choice(parts=tuple(Text(text=text) for text in told)),), id="r_1")


def test_an_exchange_that_begins_on_a_full_disk_is_written_whole_or_not_at_all() -> None:
    kept: list[Entry] = []
    is_full = True

    def record(entries: Sequence[KeptEntry]) -> None:
        if is_full:
            raise OSError(28, "No space left on device")
        kept.extend(plain_entries(entries))

    recorder = recorder_on(Hub(record))
    assert not recorder.ensure_recorded()
    recorder.record_chunk(b"data: 1\n\n")
    is_full = False
    recorder.record_end(FinishedEnd(Reply()))
    assert recorder.is_recorded
    assert [each.n for each in kept if isinstance(each, FactEntry)] == [0, 1, 2]


def test_an_exchange_that_cannot_wait_in_memory_is_not_written_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[Entry] = []
    monkeypatch.setattr("sightline.exchange.hub.MOST_OWED", 0)
    hub = keeping(kept)
    recorder = recorder_on(hub)
    monkeypatch.setattr(hub, "_record", no_room)
    recorder.commit()
    monkeypatch.setattr(hub, "_record", kept.extend)
    recorder.record_end(FinishedEnd(Reply()))
    hub.record([FactEntry("x_1", 9, 1.0, Held())])
    assert not [each for each in kept if isinstance(each, FactEntry)]


def test_an_exchange_whose_id_is_known_ends_even_if_its_rest_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[Entry] = []
    hub = keeping(kept)
    recorder = recorder_on(hub)
    assert recorder.ensure_recorded()
    monkeypatch.setattr("sightline.exchange.hub.MOST_OWED", 3000)
    monkeypatch.setattr(hub, "_record", no_room)
    recorder.record_chunk(b"x" * 9000)
    recorder.record_end(FinishedEnd(Reply()))
    monkeypatch.setattr(hub, "_record", lambda entries: kept.extend(plain_entries(entries)))
    hub.record([FactEntry("x_2", 0, 1.0, Held())])
    facts = [each for each in kept if isinstance(each, FactEntry) and each.exchange == "x_1"]
    assert [each.n for each in facts] == [0, 1]
    assert facts[1].fact.code == "interrupted"


def no_room(_: object) -> None:
    raise OSError(28, "No space left on device")


def test_an_observer_gets_facts_once_they_are_on_record_and_no_frames() -> None:
    kept: list[Entry] = []
    observed: list[FactEntry] = []

    def observe(fact: FactEntry) -> None:
        assert fact in kept
        observed.append(fact)

    recorder = recorder_on(keeping(kept), observe)
    recorder.record_attempt(AttemptStarted(1, "acme", "aa"))
    assert [type(each.fact) for each in observed] == [Received, AttemptStarted], "it is told of an attempt at once"
    recorder.record_chunk(b"data")
    recorder.record_end(FinishedEnd(Reply()))
    assert [type(each.fact) for each in observed] == [Received, AttemptStarted, ExchangeFinished]
    assert any(isinstance(each, FactEntry) and isinstance(each.fact, FrameArrived) for each in kept)


def test_an_observer_gets_facts_that_could_not_be_recorded() -> None:
    observed: list[FactEntry] = []
    recorder_on(Hub(no_room), observed.append).commit()
    assert [type(each.fact) for each in observed] == [Received]
