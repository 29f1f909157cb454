import pytest

from sightline.errors import Code, Fault
from sightline.exchange.stream_pump import failure_frame, unreadable
from sightline.model.reply import Reply
from tests.relay_stage import DIALECTS
from tests.reply_samples import streamed


@pytest.mark.parametrize("spoken", DIALECTS)
def test_one_frame_says_that_a_stream_has_failed(spoken: str) -> None:
    frame = failure_frame(spoken, Fault(Code.NETWORK, "gone"), Reply(id="r_9"), b"")
    assert frame.count(b"data: ") == 1
    assert frame.endswith(b"\n\n")
    assert b"gone" in frame


def test_frames_that_are_numbered_go_on_to_be() -> None:
    frames = streamed("openai-responses")
    frame = failure_frame("openai-responses", Fault(Code.NETWORK, "gone"), Reply(id="r_9"), b"".join(frames[:5]))
    assert b"event: response.failed" in frame
    assert b'"sequence_number":5' in frame
    assert b'"id":"r_9"' in frame


def test_what_cannot_be_read_is_the_provider_s_fault() -> None:
    assert unreadable("no JSON").code is Code.UPSTREAM_PROTOCOL
