import asyncio
from pathlib import Path

import pytest

from sightline.errors import Code, Fault
from sightline.exchange.recording.exchange_record import find_exchange, load_exchange
from sightline.model.events import Ended, Failed, TextReceived
from sightline.model.exchange import AttemptStarted, Edited, ExchangeCancelled, Fact, Received, Released, Translated
from sightline.model.reply import reply_json
from sightline.model.report import Addition, Loss
from sightline.store.entries import BodyEntry
from tests.recordings import exchange, failed, one, store_with
from tests.store.traffic import NOON, chat_body, chat_stream, noted, sha256

BODY = chat_body("hi")


def test_an_exchange_is_read_back_with_all_that_belongs_to_it(tmp_path: Path) -> None:
    frames = chat_stream("Hel", "lo")
    told = asyncio.run(one(tmp_path, exchange("x_1", BODY, frames)))
    assert (told.id, told.body, told.sent, told.reply_body) == ("x_1", BODY, BODY, b"".join(frames))
    assert (told.spoken, told.model, told.is_count, told.fault) == ("openai-chat", "m", False, None)
    assert told.request().messages[0].role == "user"
    assert told.reply().choice.parts[0].text == "Hello"  # type: ignore[union-attr]
    assert told.usage is not None
    assert dict(told.headers)["x-request-id"] == "r1"


def test_translated_exchange_keeps_client_body_sent_body_and_reply_apart(
    tmp_path: Path,
) -> None:
    client = b'{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"hi"}]}'
    lost, gone = Loss("/a", "a", "b", "option"), Loss("/c", "c", "d", "content")
    reply = b'{"content":[]}'
    entries = [
        *exchange("x_1", client, [b"{}"], asked="anthropic", sent=BODY, losses=(lost,), end=ExchangeCancelled())[:-1],
        BodyEntry(sha256(reply), reply),
        *noted("x_1", [Translated("anthropic", sha256(reply), 1, (gone,), (Addition("/e", "e", "f"),))], first=4),
    ]
    told = asyncio.run(one(tmp_path, entries))
    assert (told.body, told.sent, told.spoken) == (client, BODY, "openai-chat")
    assert told.losses == (lost, gone)
    assert [each.what for each in told.additions] == ["e"]


def test_what_a_person_changed_is_what_was_sent(tmp_path: Path) -> None:
    after, other = chat_body("bye"), chat_body("later")
    facts: list[Fact] = [
        Received("openai-chat", "m", sha256(BODY)),
        Edited("set_text", sha256(BODY), sha256(after)),
        Released(sha256(after)),
        AttemptStarted(1, "acme", sha256(after)),
        Edited("set_text", sha256(after), sha256(other)),
    ]
    kept = [BodyEntry(sha256(body), body) for body in (BODY, after, other)]
    told = asyncio.run(one(tmp_path, [*kept, *noted("x_1", facts)]))
    assert (told.body, told.sent) == (BODY, after)
    assert (told.end, told.usage, told.headers, told.fault) == (None, None, (), None)


def test_an_exchange_that_failed_ends_in_its_fault_and_a_cut_one_in_a_cut(tmp_path: Path) -> None:
    told = asyncio.run(one(tmp_path, exchange("x_1", BODY, chat_stream("Hel")[:1], end=failed(200))))
    assert told.fault == Fault(Code.OVERLOADED, "busy", hint="Wait.", status=200)
    assert [type(event) for event in told.events()][-3:] == [TextReceived, Failed, Ended]
    gone = asyncio.run(one(tmp_path / "b", exchange("x_1", BODY, chat_stream("Hel")[:1], end=ExchangeCancelled())))
    assert gone.reply().fault == gone.fault
    assert (gone.fault.code, gone.fault.reason) == (Code.CANCELLED, "client_gone")
    shown = reply_json(gone.reply())
    assert (shown["finish"], shown["reason"]) == ("cancelled", "client_gone")
    unknown = asyncio.run(one(tmp_path / "c", exchange("x_1", BODY, end=failed(0, "interrupted"))))
    assert (unknown.fault or Fault(Code.USAGE, "")).code is Code.UPSTREAM_ERROR
    nothing = asyncio.run(one(tmp_path / "d", exchange("x_1", BODY, end=ExchangeCancelled())))
    assert "the client has gone" in str(nothing.reply().fault)


async def test_the_beginning_of_an_id_is_enough_if_there_is_only_one(tmp_path: Path) -> None:
    many = [exchange(name, BODY, chat_stream("a")) for name in ("x_ab1", "x_ab2", "x_ab", "x_c*")]
    async with store_with(tmp_path, *many) as store:
        assert (await find_exchange(store, "x_ab1", now=NOON)).id == "x_ab1"
        assert (await find_exchange(store, "ab2", now=NOON)).id == "x_ab2"
        assert (await find_exchange(store, "x_ab", now=NOON)).id == "x_ab"
        assert (await find_exchange(store, "c", now=NOON)).id == "x_c*"
        with pytest.raises(Fault, match="several exchanges begin with 'a'") as several:
            await find_exchange(store, "a", now=NOON)
        assert "and others" in several.value.hint
        for none in ("x_z", "", "*"):
            with pytest.raises(Fault, match="there is no exchange"):
                await find_exchange(store, none, now=NOON)


async def test_pruned_body_is_reported_only_when_bodies_are_needed(tmp_path: Path) -> None:
    facts = noted("x_1", [Received("openai-chat", "m", sha256(b"gone"))])
    async with store_with(tmp_path, facts) as store:
        summary = await find_exchange(store, "x_1", now=NOON)
        assert len((await load_exchange(store, summary, needs_bodies=False)).facts) == 1
        with pytest.raises(Fault, match="no longer holds"):
            await load_exchange(store, summary)


@pytest.mark.parametrize("path", ["/v1/messages/count_tokens?beta=true", "/v1beta/models/m:countTokens"])
def test_counts_are_known_by_their_path(path: str, tmp_path: Path) -> None:
    told = asyncio.run(one(tmp_path, exchange("x_1", BODY, [b"{}"], path=path)))
    assert told.is_count
