"""Runs of frames that bring one text: they are written as each of them by itself would be, whatever is in them."""

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline.dialects.dialect import Client
from sightline.dialects.registry import NAMES, dialect
from sightline.dialects.streaming import StreamReader
from sightline.dialects.text_runs import GrowingText, TextFraming, TextRuns
from sightline.dialects.translate import StreamTranslation
from sightline.model.events import CitationReceived, StreamEvent, TextReceived, ThinkingReceived
from sightline.model.parts import Citation, Text
from sightline.model.report import Report
from tests.examples import examples

CLIENT = Client(id="client-id", model="client-model", created=1700000000, provider="acme")
ARRAY = Client(id="client-id", model="client-model", created=1700000000, provider="acme", as_array=True)
SOURCES = ("anthropic", "openai-chat")
PAIRS = [(source, target) for source in SOURCES for target in NAMES if source != target]

ODD = ("", " ", "\n", '"', "\\", '\\"', "\ud83d", "\ude00", "é", "⟨x⟩", "\0", "data: {}", "\n\n", "😀", "/", '"}}\n\n')
words = st.one_of(st.sampled_from(ODD), st.text(max_size=6), st.sampled_from(("plain", "words ", "and more")))
kinds = st.sampled_from(
    ("text", "text", "text", "text", "thinking", "call", "ping", "comment", "raw", "break", "spaced")
)
scripts = st.lists(st.tuples(kinds, st.lists(words, min_size=1, max_size=12)), max_size=8)


def spell(document: Any, *, ascii_only: bool = False) -> bytes:
    text = json.dumps(document, ensure_ascii=ascii_only, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass")


def chat_frames(script: list[tuple[str, list[str]]]) -> list[bytes]:
    """A stream of Chat Completions with these pieces; some of its frames are spelled or broken in odd ways."""

    def chunk(delta: Any, finish: str | None = None, **more: Any) -> Any:
        choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
        return {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": choices, **more}

    frames = [spell(chunk({"role": "assistant", "content": ""}))]
    for kind, pieces in script:
        for piece in pieces:
            match kind:
                case "text" | "spaced":
                    frames.append(spell(chunk({"content": piece}), ascii_only=kind == "spaced"))
                case "thinking":
                    frames.append(spell(chunk({"reasoning_content": piece})))
                case "call":
                    call = {"index": 0, "id": "t1", "type": "function", "function": {"name": "f", "arguments": piece}}
                    frames.append(spell(chunk({"tool_calls": [call]})))
                case "ping":
                    frames.append(spell(chunk({}, extra_field=piece)))
                case _:
                    frames.append(odd_frame(kind, piece))
    return [*frames, spell(chunk({}, "stop")), b"[DONE]"]


def message_frames(script: list[tuple[str, list[str]]]) -> list[bytes]:
    """The same as a stream of Messages, with a block for each entry of the script."""
    message = {"id": "m1", "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": None}
    frames = [spell({"type": "message_start", "message": {**message, "usage": {"input_tokens": 3}}})]
    for index, (kind, pieces) in enumerate(script):
        block: dict[str, Any] = {"type": "text", "text": ""}
        delta, key = "text_delta", "text"
        if kind == "thinking":
            block, delta, key = {"type": "thinking", "thinking": "", "signature": ""}, "thinking_delta", "thinking"
        elif kind == "call":
            block = {"type": "tool_use", "id": "t1", "name": "f", "input": {}}
            delta, key = "input_json_delta", "partial_json"
        frames.append(spell({"type": "content_block_start", "index": index, "content_block": block}))
        for piece in pieces:
            if kind == "ping":
                frames.append(spell({"type": "ping"}))
            elif kind in ("comment", "raw", "break"):
                frames.append(odd_frame(kind, piece))
            fragment = {"type": "content_block_delta", "index": index, "delta": {"type": delta, key: piece}}
            frames.append(spell(fragment, ascii_only=kind == "spaced"))
        frames.append(spell({"type": "content_block_stop", "index": index}))
    stop = {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}}
    return [*frames, spell({**stop, "usage": {"output_tokens": 9}}), spell({"type": "message_stop"})]


def odd_frame(kind: str, piece: str) -> bytes:
    if kind == "comment":
        return b"\n: a comment\n\ndata: "
    return b'{"type":"unheard","x":1}' if kind == "raw" else b'{"broken": "' + piece.encode("utf-8", "surrogatepass")


def stream_of(source: str, script: list[tuple[str, list[str]]]) -> list[bytes]:
    if source == "openai-chat":
        return [b"data: %b\n\n" % frame for frame in chat_frames(script)]
    names = [frame.partition(b'"type":"')[2].partition(b'"')[0] for frame in message_frames(script)]
    return [b"event: %b\ndata: %b\n\n" % pair for pair in zip(names, message_frames(script), strict=True)]


def translated(source: str, target: str, chunks: list[bytes], client: Client = CLIENT) -> tuple[Any, ...]:
    translation = StreamTranslation(source, target, client=client)
    data = b"".join(translation.feed(chunk) for chunk in chunks) + translation.close()
    report, reply = translation.report, translation.reply
    fault = None if reply.fault is None else (reply.fault.code, reply.fault.message)
    return data, report.losses, report.additions, reply.choices, reply.usage, reply.unmodelled, fault


@pytest.mark.parametrize(("source", "target"), PAIRS)
@settings(max_examples=examples(25))
@given(script=scripts, size=st.integers(1, 700))
def test_however_a_stream_comes_it_is_translated_as_byte_by_byte(
    source: str, target: str, script: list[tuple[str, list[str]]], size: int
) -> None:
    # A frame that never comes in one piece is read and written in full.
    frames = stream_of(source, script)
    data = b"".join(frames)
    expected = translated(source, target, [data[index : index + 1] for index in range(len(data))])
    assert translated(source, target, [data]) == expected
    assert translated(source, target, frames) == expected
    assert translated(source, target, [data[index : index + size] for index in range(0, len(data), size)]) == expected


@pytest.mark.parametrize("source", SOURCES)
def test_elements_of_an_array_are_written_one_by_one(source: str) -> None:
    frames = stream_of(source, [("text", ["some", "more", "words"])])
    at_once = translated(source, "gemini", [b"".join(frames)], ARRAY)
    assert at_once == translated(source, "gemini", [bytes([byte]) for byte in b"".join(frames)], ARRAY)


@pytest.mark.parametrize(
    ("source", "target", "kind"),
    [
        *((source, target, "text") for source, target in PAIRS if target != "raw"),
        ("anthropic", "openai-chat", "thinking"),
        ("openai-chat", "anthropic", "thinking"),
    ],
)
@pytest.mark.parametrize("is_whole", [True, False])
def test_most_frames_of_a_text_are_not_read_one_by_one(
    monkeypatch: pytest.MonkeyPatch, source: str, target: str, kind: str, *, is_whole: bool
) -> None:
    read: list[bytes] = []
    feed = StreamReader.feed
    monkeypatch.setattr(StreamReader, "feed", lambda self, frame: read.append(frame.data) or feed(self, frame))
    frames = stream_of(source, [(kind, [f"word {number} \n " for number in range(100)])])
    data, *_ = translated(source, target, [b"".join(frames)] if is_whole else frames)
    assert all(f"word {number} \\n ".encode() in data for number in range(100))
    assert len(read) <= 9


@pytest.mark.parametrize("source", SOURCES)
def test_reasoning_for_responses_is_written_frame_by_frame(source: str) -> None:
    frames = stream_of(source, [("thinking", ["some ", "more ", "thoughts "])])
    at_once = translated(source, "openai-responses", [b"".join(frames)])
    assert at_once == translated(source, "openai-responses", [bytes([byte]) for byte in b"".join(frames)])


def test_a_long_stream_without_text_is_fed_at_once() -> None:
    frames = stream_of("anthropic", [("call", ["1"] * 50), ("text", ["some", "more"])])
    assert translated("anthropic", "openai-chat", [b"".join(frames)]) == translated("anthropic", "openai-chat", frames)


def test_a_field_that_equals_the_text_is_not_taken_for_it() -> None:
    frame = b'data: {"id":"c","choices":[{"index":0,"delta":{"content":"\\u0041"},"note":"%b"}]}\n\n'
    translation = StreamTranslation("openai-chat", "anthropic", client=CLIENT)
    for note in (b"A", b"A", b"B", b"C"):
        translation.feed(frame % note)
    assert [part.text for part in translation.reply.choice.parts if isinstance(part, Text)] == ["AAAA"]


def test_many_texts_of_one_stream_are_each_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[bytes] = []
    feed = StreamReader.feed
    monkeypatch.setattr(StreamReader, "feed", lambda self, frame: read.append(frame.data) or feed(self, frame))
    frames = stream_of("anthropic", [("text", ["some ", "more ", "words "] * 10)] * 20)
    translated("anthropic", "openai-chat", frames)
    assert len(frames) > 600
    assert len(read) < 80  # three for each text, and those of the message


def test_a_citation_behind_a_run_says_where_it_stands_in_all_of_the_text() -> None:
    writer = dialect("openai-chat").stream_writer(CLIENT, Report())
    assert isinstance(writer, TextFraming)
    citation = CitationReceived(1, Citation(url="https://example.org", title="t", start=0, end=2))
    writer.feed(TextReceived(0, "abc"))
    writer.note_text(TextReceived(0, "defgh"))
    writer.note_text(ThinkingReceived(2, "not counted"))
    writer.feed(TextReceived(1, "ij"))
    assert b'"start_index":8,"end_index":10' in writer.feed(citation)


class Writer(TextFraming):
    """Writes a text between two bars."""

    def __init__(self, frame: bytes | None = b'|"\\u0000\xc3\xa9"|') -> None:
        self.frame = frame
        self.noted: list[GrowingText] = []

    def feed(self, event: StreamEvent) -> bytes:
        raise AssertionError("a run is written without being fed")

    def text_frame(self, event: GrowingText) -> bytes | None:
        return self.frame

    def note_text(self, event: GrowingText) -> None:
        self.noted.append(event)


def test_a_run_ends_where_a_frame_differs() -> None:
    writer = Writer()
    runs = TextRuns(writer)
    runs.learn(b'data: {"t":"one"}\n\n', TextReceived(2, "one"))
    data = b'data: {"t":"two"}\n\ndata: {"t":"and"}\n\ndata: {"u":"three"}\n\n'
    run = runs.take(data, 0)
    assert run is not None
    assert (run.end, run.frames, run.event) == (38, 2, TextReceived(2, "twoand"))
    assert run.written == b'|"two"||"and"|'
    assert writer.noted == [TextReceived(2, "twoand")]
    assert runs.take(data, run.end) is None


def test_half_a_frame_is_left() -> None:
    runs = TextRuns(Writer())
    runs.learn(b'data: {"t":"one"}\n\n', TextReceived(0, "one"))
    run = runs.take(b'data: {"t":"two"}\n\ndata: {"t":"thr', 0)
    assert run is not None
    assert (run.end, run.frames) == (19, 1)
    assert runs.take(b'data: {"t":"thr', 0) is None


def test_a_long_run_is_taken_in_steps_so_that_little_is_split_again_behind_a_frame_that_differs() -> None:
    runs = TextRuns(Writer())
    frame = b'data: {"t":"one"}\n\n'
    runs.learn(frame, TextReceived(0, "one"))
    data = frame * 5000
    ends = [0]
    while ends[-1] < len(data):
        run = runs.take(data, ends[-1])
        assert run is not None
        assert run.end == ends[-1] + run.frames * len(frame)
        ends.append(run.end)
    assert max(later - end for end, later in pairwise(ends)) <= 1 << 12


@pytest.mark.parametrize("piece", [b"", b"\xff", b'"', b"\\", b"\\ud83d", b"\n", b"\x01"])
def test_a_piece_that_is_not_one_text_ends_a_run(piece: bytes) -> None:
    runs = TextRuns(Writer())
    runs.learn(b'data: {"t":"one"}\n\n', TextReceived(0, "one"))
    odd = b'data: {"t":"%b"}\n\n' % piece
    assert runs.take(odd, 0) is None
    run = runs.take(b'data: {"t":"two"}\n\n' + odd, 0)
    assert run is not None
    assert (run.end, run.written) == (19, b'|"two"|')


def test_a_text_is_spelled_as_the_writer_would() -> None:
    runs = TextRuns(Writer())
    runs.learn(b'data: {"t":"one"}\n\n', ThinkingReceived(0, "one"))
    run = runs.take(b'data: {"t":"\\u00e9\\/"}\n\ndata: {"t":"\\n"}\n\n', 0)
    assert run is not None
    assert (run.event, run.written) == (ThinkingReceived(0, "é/\n"), '|"é/"||"\\n"|'.encode())


@pytest.mark.parametrize(
    ("frame", "event", "written"),
    [
        (b'data: {"t":"one"}\n\n', TextReceived(0, "one", at="/0"), Writer().frame),
        (b'data: {"t":"one"}\r\n\n', TextReceived(0, "one"), Writer().frame),
        (b'data: {"t":""}\n\n', TextReceived(0, ""), Writer().frame),
        (b'data: {"t":"one","u":"one"}\n\n', TextReceived(0, "one"), Writer().frame),
        (b'data: {"t":"\\u006fne"}\n\n', TextReceived(0, "one"), Writer().frame),
        (b'data: {"t":"\\u006fne","u":"one"}\n\n', TextReceived(0, "one"), Writer().frame),
        (b'data: {"t":"\\ud83d"}\n\n', TextReceived(0, "\ud83d"), Writer().frame),
        (b'data: {"t":"one"}\n\n', TextReceived(0, "one"), None),
        (b'data: {"t":"one"}\n\n', TextReceived(0, "one"), b'|"\\u0000\\u00e9"|'),
    ],
)
def test_nothing_is_learned_from_a_frame_that_may_say_more(
    frame: bytes, event: GrowingText, written: bytes | None
) -> None:
    runs = TextRuns(Writer(written))
    runs.learn(frame, event)
    assert not runs.is_known
    assert runs.take(frame, 0) is None
