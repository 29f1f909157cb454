import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from sightline.errors import Code, Fault
from sightline.exchange.client_response import ClientResponse, Headers, ResponseBody, refusal
from sightline.exchange.engine import read_answer
from sightline.model.events import Ended, Failed, FrameBroken, StreamEvent
from sightline.model.parts import Text
from sightline.model.reply import Reply
from tests.reply_samples import SAYS, streamed, whole

FRAMES = streamed("openai-chat", SAYS)
BROKE = Fault(Code.TIMEOUT_IDLE, "nothing came", hint="Wait longer.")
ERROR = b'data: {"error":{"message":"nothing came","type":"server_error","code":null}}\n\n'


class Spoken(ResponseBody):
    """The body of an answer: pieces, a fault to raise, or a fault that is known before the next piece."""

    def __init__(self, pieces: Sequence[bytes | Fault | None]) -> None:
        self.pieces = pieces
        self.relayed: ClientResponse
        self.was_left = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self.pieces:
            if isinstance(piece, Fault):
                raise piece
            if piece is None:
                self.relayed.fault = BROKE
            else:
                yield piece

    async def leave(self) -> None:
        self.was_left = True


def hear(
    *pieces: bytes | Fault | None, headers: Headers | None = None, spoken: str = "openai-chat"
) -> tuple[Reply, list[StreamEvent]]:
    body = Spoken(pieces)
    body.relayed = ClientResponse("x_1", 200, headers or [], body)
    told: list[StreamEvent] = []
    return asyncio.run(read_answer(body.relayed, spoken, told.append)), told


@pytest.mark.parametrize("spoken", ["openai-chat", "openai-responses", "anthropic", "gemini"])
def test_a_stream_and_a_whole_answer_amount_to_a_reply(spoken: str) -> None:
    for pieces in (streamed(spoken, SAYS), [whole(spoken, SAYS)]):
        reply, told = hear(*pieces, spoken=spoken)
        assert (reply.fault, reply.choice.finish) == (None, "stop")
        assert isinstance(told[-1], Ended)


def test_an_answer_that_breaks_off_ends_in_the_fault_itself_and_not_in_what_its_dialect_can_say() -> None:
    reply, told = hear(*FRAMES[:-2], None, ERROR)
    assert reply.fault is BROKE
    assert [event.fault for event in told if isinstance(event, Failed)] == [BROKE]
    assert isinstance(reply.choice.parts[0], Text)


def test_half_a_frame_before_the_end_is_nothing_to_speak_of() -> None:
    reply, told = hear(FRAMES[0], FRAMES[1][:20], None, b"\n\n" + ERROR)
    assert reply.fault is BROKE
    assert not any(isinstance(event, FrameBroken) for event in told)


def test_unreadable_frame_is_reported_and_reading_continues() -> None:
    _, told = hear(FRAMES[0], b"data: {nonsense\n\n", *FRAMES[1:])
    assert any(isinstance(event, FrameBroken) for event in told)


def test_a_fault_out_of_the_bytes_is_the_replys() -> None:
    reply, told = hear(*FRAMES[:1], BROKE)
    assert reply.fault is BROKE
    assert told[-2] == Failed(BROKE)


def test_the_fault_is_the_true_one_also_where_it_is_known_only_later() -> None:
    reply, _ = hear(*FRAMES[:-2], ERROR, None)
    assert reply.fault is BROKE


def test_fault_of_the_event_callback_is_raised() -> None:
    def full(_event: StreamEvent) -> None:
        raise Fault(Code.USAGE, "stdout: No space left on device")

    body = Spoken(FRAMES)
    body.relayed = ClientResponse("x_1", 200, [], body)
    with pytest.raises(Fault, match="No space left"):
        asyncio.run(read_answer(body.relayed, "openai-chat", full))


def test_fault_sent_instead_of_an_answer_is_raised() -> None:
    with pytest.raises(Fault) as caught:
        asyncio.run(read_answer(refusal("openai-chat", BROKE, []), "openai-chat", lambda _: None))
    assert caught.value is BROKE


def test_unrequested_content_encoding_is_named_in_the_error() -> None:
    assert hear(*FRAMES, headers=[(b"content-encoding", b"identity")])[0].fault is None
    with pytest.raises(Fault, match=r"the answer is compressed \(gzip\)"):
        hear(*FRAMES, headers=[(b"Content-Encoding", b"GZIP")])


async def test_what_follows_the_end_is_not_waited_for_long() -> None:
    class Endless(Spoken):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            for frame in FRAMES:
                yield frame
            await asyncio.Event().wait()

    body = Endless([])
    async with ClientResponse("x_1", 200, [], body) as relayed:
        assert (await read_answer(relayed, "openai-chat", lambda _: None)).choice.finish == "stop"
    assert body.was_left


def test_a_fault_behind_the_end_is_none() -> None:
    assert hear(*FRAMES, BROKE)[0].fault is None
