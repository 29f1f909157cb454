"""Law 5, no false success: what fails or dies on the way is an error in the client's dialect, never a short answer."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline.dialects.fault_codes import STATUS
from sightline.dialects.registry import NAMES, dialect
from sightline.dialects.translate import StreamTranslation
from sightline.errors import Code, Fault
from sightline.model.events import Ended, Failed, Started, TextReceived
from sightline.model.fold import fold
from sightline.model.report import Report
from sightline.wire.sse import Frame, SseDecoder, encode_frame
from tests.contract.cases import Case, cases, others
from tests.contract.test_law_4_stream_is_whole import CLIENT, read_stream
from tests.examples import examples

ENDINGS = {
    "openai-chat": re.compile(rb'"finish_reason": ?"|\[DONE\]'),
    "openai-responses": re.compile(rb'"type": ?"response\.(completed|incomplete|failed)"'),
    "anthropic": re.compile(rb'"stop_reason": ?"'),
    "gemini": re.compile(rb'"finishReason": ?"|"blockReason": ?"'),
    "raw": re.compile(rb'"finishReason": ?"|\[DONE\]'),
}
"""Without one of these a stream has not said that its answer is whole."""

KEPT = {
    Code.AUTH,
    Code.PERMISSION,
    Code.RATE_LIMITED,
    Code.OVERLOADED,
    Code.INVALID_REQUEST,
    Code.CONTEXT_OVERFLOW,
    Code.REQUEST_TOO_LARGE,
    Code.UPSTREAM_ERROR,
}
"""The codes for which every dialect has a word; of the others the status and the words stay."""


@pytest.mark.parametrize("case", cases("stream.sse"), ids=str)
@settings(max_examples=examples(6))
@given(share=st.floats(0, 1))
def test_a_cut_stream_is_an_error_for_the_client(case: Case, share: float) -> None:
    data = case.file("stream.sse")
    part = data[: int(len(data) * share)]
    source = fold(read_stream(case.dialect, [part]))
    if not ENDINGS[case.dialect].search(part):
        assert source.fault is not None
    for target in others(case.dialect):
        translation = StreamTranslation(case.dialect, target, client=CLIENT)
        reply = fold(read_stream(target, [translation.feed(part) + translation.close()]))
        assert (reply.fault is not None) == (source.fault is not None), target
        if source.fault is not None:
            assert reply.choice.finish == "error", target
            assert source.fault.message in reply.fault.message, target


@pytest.mark.parametrize("case", cases("stream.sse"), ids=str)
def test_garbage_in_a_stream_is_an_error_for_the_client(case: Case) -> None:
    decoder = SseDecoder()
    frames = decoder.feed(case.file("stream.sse")) + decoder.close()
    frames.insert(len(frames) // 2, Frame(b"{broken"))
    broken = b"".join(encode_frame(frame) for frame in frames)
    for target in others(case.dialect):
        translation = StreamTranslation(case.dialect, target, client=CLIENT)
        reply = fold(read_stream(target, [translation.feed(broken) + translation.close()]))
        assert reply.fault is not None, target
        assert reply.choice.finish == "error", target


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("begun", [False, True])
def test_a_failed_stream_says_so_in_its_own_way(name: str, begun: bool) -> None:
    start = [Started("id", "model"), TextReceived(0, "half an ans")] if begun else []
    for code in Code:
        if code is Code.CANCELLED:
            continue
        fault = Fault(code, "the provider's own words")
        writer = dialect(name).stream_writer(CLIENT, Report())
        data = b"".join(writer.feed(event) for event in [*start, Failed(fault), Ended()])
        reply = fold(read_stream(name, [data]))
        assert reply.choice.finish == "error", code
        assert "the provider's own words" in reply.fault.message, code


@pytest.mark.parametrize("source", NAMES)
@pytest.mark.parametrize("target", NAMES)
def test_an_error_body_keeps_its_words_and_its_status_across_dialects(source: str, target: str) -> None:
    for code in Code:
        status, body = dialect(source).write_error(Fault(code, "the provider's own words", status=STATUS[code]))
        fault = dialect(source).read_error(status, body, {})
        told, other = dialect(target).write_error(fault)
        again = dialect(target).read_error(told, other, {})
        assert "the provider's own words" in again.message, code
        if code in KEPT:
            assert fault.code == again.code == code
        assert told == status or (told >= 500 and status >= 500), code
