"""Streams become frames whatever the line ends, however the bytes are cut, and however sloppy the sender."""

import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.errors import Code, Fault
from sightline.wire.sse import Frame, SseDecoder, comment, encode_frame

STREAMS = Path(__file__).parents[1] / "wire_cases"

LINES = st.sampled_from(
    [
        b"",
        b"data: {}",
        b'data: {"a": "\xc3\xa9"}',
        b"data:[1]",
        b"data: [DONE]",
        b"data: a",
        b"data",
        b"data:",
        b"data: {",
        b'data:  "a": [1,',
        b"data: 2]",
        b"data: }",
        b"event: x",
        b"event",
        b"event: y\xff",
        b"id: 7",
        b"id: \x00",
        b"retry: 10",
        b": note",
        b"other: x",
        b"\xef\xbb\xbfdata: b",
    ]
)
LINE_ENDS = st.sampled_from([b"\n", b"\r\n", b"\r"])


@st.composite
def streams(draw: st.DrawFn) -> bytes:
    lines = draw(st.lists(LINES, max_size=12))
    even = draw(LINE_ENDS | st.none())
    text = b"".join(line + (even or draw(LINE_ENDS)) for line in lines)
    return text + draw(st.sampled_from([b"", b"data: {}", b"data: x", b"da"]))


def frames_of(*chunks: bytes) -> list[Frame]:
    decoder = SseDecoder()
    return [frame for chunk in chunks for frame in decoder.feed(chunk)] + decoder.close()


def frames(*data: bytes) -> list[Frame]:
    """Frames with these data, and with neither name nor id."""
    return [Frame(each) for each in data]


def data_of(*chunks: bytes) -> list[bytes]:
    return [frame.data for frame in frames_of(*chunks)]


# --- the standard ---------------------------------------------------------------------------------


def test_a_frame_is_given_as_soon_as_its_blank_line_arrives():
    decoder = SseDecoder()
    assert decoder.feed(b"event: ping\ndata: {}\n") == []
    assert decoder.feed(b"\n") == [Frame(b"{}", "ping")]
    assert decoder.close() == []


FOUR = b'event: a\ndata: {"n":1}\n\nevent: a\ndata: {"n":2}\n\ndata: {"n":3}\n\nevent: b\ndata: [DONE]\n\n'
STANDARD: dict[str, tuple[list[bytes], list[Frame]]] = {
    "many frames in one chunk": (
        [FOUR],
        [Frame(b'{"n":1}', "a"), Frame(b'{"n":2}', "a"), Frame(b'{"n":3}'), Frame(b"[DONE]", "b")],
    ),
    "mixed line ends": ([b"data: 1\r\n\ndata: 2\r\rdata: 3\n\r\ndata: 4\n\n"], frames(b"1", b"2", b"3", b"4")),
    "a line end cut in two": ([b"data: 1\r", b"\ndata: 2\r", b"", b"\n\r", b"\n"], frames(b"1\n2")),
    "a byte order mark at the start only": (
        [b"\xef", b"\xbb\xbfdata: 1\n\n", b"\xef\xbb\xbfdata: 2\n\ndata: 3\n\n"],
        frames(b"1", b"3"),
    ),
    "a byte order mark before all there is": ([b"\xef\xbb\xbfdata: 1"], frames(b"1")),
    "comments and unknown fields": (
        [b": ping\n\ndata: 1\n: note\nretry: 5\nother: x\ndata: 2\n\n"],
        frames(b"1\n2"),
    ),
    "one space after the colon": ([b"data:1\n\ndata:  2\n\ndata\n\ndata:\n\n"], frames(b"1", b" 2", b"", b"")),
    "an event without data is dropped with its name": ([b"event: a\nid: 1\n\ndata: 1\n\n"], frames(b"1")),
    "the id of one frame": ([b"id: 7\ndata: 1\n\nid: \0\ndata: 2\n\n"], [Frame(b"1", id="7"), Frame(b"2")]),
    "a name that is not UTF-8": ([b"event: \xff\ndata: \xff\n\n"], [Frame(b"\xff", "\ufffd")]),
    "a name in an earlier chunk": ([b"event: a\n", b"data: {}\n\ndata: {}\n\n"], [Frame(b"{}", "a"), Frame(b"{}")]),
    "lines of one event": ([b"data: a\ndata: b\n\n"], frames(b"a\nb")),
    "too many blank lines": ([b"\n\n\ndata: 1\n\n\n\n\ndata: 2\n\n\n"], frames(b"1", b"2")),
}


@pytest.mark.parametrize(("chunks", "expected"), STANDARD.values(), ids=list(STANDARD))
def test_a_stream_is_read_as_the_standard_says(chunks: list[bytes], expected: list[Frame]):
    assert frames_of(*chunks) == expected


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_every_line_end_counts(end: bytes):
    assert frames_of(end.join([b"event: a", b"data: 1", b"", b"data: 2", b"", b""])) == [Frame(b"1", "a"), Frame(b"2")]


def test_a_return_at_a_chunk_end_already_ends_the_line():
    decoder = SseDecoder()
    assert decoder.feed(b"data: 1\r\r") == [Frame(b"1")]
    assert decoder.feed(b"data: 2\r\n\r\n") == [Frame(b"2")]


def test_pretty_printed_json_is_one_frame():
    pretty = json.dumps({"a": [{"b": "}"}, {}, []], "c": {}}, indent=1).encode()
    assert data_of(b"".join(b"data: %b\n" % line for line in pretty.split(b"\n")) + b"\n") == [pretty]


# --- what providers really send -------------------------------------------------------------------


@pytest.mark.parametrize("ending", [b"", b"\n", b"\r\n"])
def test_the_end_of_the_stream_ends_the_last_frame(ending: bytes):
    assert frames_of(b"data: {}\n\nevent: a\ndata: {}" + ending) == [Frame(b"{}"), Frame(b"{}", "a")]


DEEP = b"[" * 5000 + b"]" * 5000
SLOPPY: dict[str, tuple[bytes, list[Frame]]] = {
    "frames are separated by their data": (
        b'data: {"a":1}\ndata: [1]\nevent: x\ndata: {}\nevent: y\ndata: [DONE]\ndata: {}\n',
        [Frame(b'{"a":1}'), Frame(b"[1]"), Frame(b"{}", "x"), Frame(b"[DONE]", "y"), Frame(b"{}")],
    ),
    "also those of several lines": (
        b"data: {\ndata: }\ndata: [\ndata: ]\ndata: {}\n",
        frames(b"{\n}", b"[\n]", b"{}"),
    ),
    "also behind a lone surrogate": (
        b'data: {"a":"\\ud800"}\ndata: {}\n',
        frames(b'{"a":"\\ud800"}', b"{}"),
    ),
    "also behind deep nesting": (b"data: %b\ndata: {}\n" % DEEP, frames(DEEP, b"{}")),
    "data that is no JSON container is joined": (
        b"data: 1\ndata: 2\nevent: x\ndata: {}\ndata: {}\n\n",
        [Frame(b"1\n2\n{}\n{}", "x")],
    ),
    "a malformed event does not swallow the next": (
        b"event: a\ndata: {oops}\ndata: {}\ndata: {oops\nevent: b\ndata: [DONE]\n",
        [Frame(b"{oops}", "a"), Frame(b"{}"), Frame(b"{oops"), Frame(b"[DONE]", "b")],
    ),
    "text in brackets is joined with the text that follows": (
        b"data: [see note]\ndata: more\ndata: and more\n\n",
        frames(b"[see note]\nmore\nand more"),
    ),
    "a name amid unfinished data is that event's": (b"data: {\nevent: a\ndata: }\n\n", [Frame(b"{\n}", "a")]),
}


@pytest.mark.parametrize(("stream", "expected"), SLOPPY.values(), ids=list(SLOPPY))
def test_frames_without_blank_lines_between_them(stream: bytes, expected: list[Frame]):
    assert frames_of(stream) == expected


def test_a_frame_without_a_blank_line_is_given_when_the_next_begins():
    decoder = SseDecoder()
    assert decoder.feed(b'data: {"a":1}\n') == []
    assert decoder.feed(b"data: {}\n") == [Frame(b'{"a":1}')]


def test_recorded_streams_are_split_into_their_frames():
    for path in sorted(STREAMS.glob("*/*/stream.sse")):
        lines = path.read_bytes().splitlines()
        assert data_of(path.read_bytes()) == [line[6:] for line in lines if line.startswith(b"data: ")], path


# --- laws -----------------------------------------------------------------------------------------


@given(streams(), st.lists(st.integers(0, 200), max_size=6))
def test_any_split_gives_the_same_frames(stream: bytes, cuts: list[int]):
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    whole = frames_of(stream)
    assert frames_of(*(stream[start:stop] for start, stop in pairwise(edges))) == whole
    assert frames_of(*(stream[i : i + 1] for i in range(len(stream)))) == whole


def is_joined_when_read(data: bytes) -> bool:
    """Whether no beginning of the data would be taken for an event by itself."""
    return b"\n" not in data or data[:1] not in (b"{", b"[")


NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n\0"), max_size=5)
FRAMES = st.builds(
    Frame,
    data=st.binary(max_size=12).map(lambda data: data.replace(b"\r", b"")).filter(is_joined_when_read)
    | st.dictionaries(NAMES, st.lists(st.integers()), max_size=3).map(
        lambda value: json.dumps(value, indent=1).encode()
    ),
    event=NAMES,
    id=NAMES,
)


@given(st.lists(FRAMES, max_size=5))
def test_what_is_written_is_read_back(frames: list[Frame]):
    assert frames_of(b"".join(encode_frame(frame) for frame in frames)) == frames


@given(st.lists(FRAMES, max_size=3), st.text(st.characters(exclude_categories=["Cs"]), max_size=8))
def test_comments_never_become_frames(frames: list[Frame], text: str):
    assert frames_of(b"".join(encode_frame(frame) + comment(text) for frame in frames)) == frames


@pytest.mark.parametrize(
    ("data", "is_between"),
    [
        (b"", False),
        (b"data: 1\n\n", True),
        (b": ping\n\n", True),
        (b"data: 1\n", False),
        (b"data: 1\n\nda", False),
        (b"data: 1\n\nevent: x\n", False),
        (b"data: 1\n\nid: 7\n", False),
        (b"data: 1\r\n\r", False),
        (b"data: 1\r\n\r\n", True),
    ],
)
def test_it_knows_when_a_frame_is_complete_and_no_other_has_begun(data: bytes, *, is_between: bool):
    decoder = SseDecoder()
    decoder.feed(data)
    assert decoder.is_between is is_between


# --- writing --------------------------------------------------------------------------------------


def test_the_written_form():
    assert encode_frame(Frame(b"{}")) == b"data: {}\n\n"
    assert encode_frame(Frame(b"a\nb\r\nc\rd", "x", "7")) == (
        b"event: x\nid: 7\ndata: a\ndata: b\ndata: c\ndata: d\n\n"
    )
    assert comment("ping\npong") == b": ping\n: pong\n\n"


@pytest.mark.parametrize("frame", [Frame(b"", "a\ndata: x"), Frame(b"", id="a\rb")])
def test_a_name_cannot_smuggle_in_a_line(frame: Frame):
    with pytest.raises(Fault, match="line break") as caught:
        encode_frame(frame)
    assert caught.value.code is Code.INVALID_REQUEST
