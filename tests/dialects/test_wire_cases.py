"""What real clients and providers sent, in its own dialect: it is written back as it was, and whatever is changed in it
is read or refused, and nothing else happens. That a stream is its whole reply is one of the laws."""

import copy
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.dialects.dialect import Client, Target
from sightline.dialects.registry import NAMES, dialect
from sightline.errors import Fault
from sightline.model.events import Ended, Failed, Finished, StreamEvent
from sightline.model.fold import fold
from sightline.model.json import Json
from sightline.model.report import Report
from sightline.model.request import Request
from sightline.wire.jsontext import decode, encode
from sightline.wire.pointer import resolve
from sightline.wire.sse import Frame, SseDecoder
from tests.contract.cases import Case, cases
from tests.contract.essence import essence
from tests.contract.generated import TARGET, requests
from tests.dialects.reports import without_nulls

T = TypeVar("T")
CLIENT = Client(id="client-id", model="client-model", created=1700000000)
REQUESTS = cases("request.json")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)


def pointers(value: Any) -> Iterator[str]:
    """Every `at` below a canonical value."""
    if isinstance(value, (tuple, list)):
        for item in value:
            yield from pointers(item)
    elif hasattr(value, "__struct_fields__"):
        if at := getattr(value, "at", ""):
            yield at
        for name in value.__struct_fields__:
            yield from pointers(getattr(value, name))


def members(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every member of every object and list, as what holds it and its key."""
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield value, key
        yield from members(inner)


def spoil(data: st.DataObject, document: Any) -> Any:
    """The document with something else in one to three places."""
    spoilt = copy.deepcopy(document)
    for _ in range(data.draw(st.integers(1, 3))):
        holder, key = data.draw(st.sampled_from(list(members(spoilt)) or [(spoilt, 0)]))
        if holder:
            holder[key] = data.draw(JSON)
    return spoilt


def draw_file(data: st.DataObject, name: str, file: str) -> bytes:
    return data.draw(st.sampled_from([case for case in cases(file) if case.dialect == name])).file(file)


def read_frames(name: str, frames: list[Frame]) -> list[StreamEvent]:
    reader = dialect(name).stream_reader()
    return [event for frame in frames for event in reader.feed(frame)] + reader.close()


def assert_one_end(events: list[StreamEvent]) -> None:
    assert [event for event in events if isinstance(event, Ended)] == [events[-1]]
    assert any(isinstance(event, (Finished, Failed)) for event in events)
    assert fold(events).choices


@pytest.mark.parametrize("case", REQUESTS, ids=str)
def test_a_request_is_written_back_as_it_was_and_every_place_is_real(case: Case) -> None:
    spoken, document, report = dialect(case.dialect), decode(case.file("request.json")), Report()
    request = spoken.read_request(document)
    assert without_nulls(spoken.write_request(request, Target(), report)) == without_nulls(document)
    assert (report.losses, report.additions) == ((), ())
    for at in [*pointers(request), *request.options.places.values()]:
        resolve(document, at)


@pytest.mark.parametrize("name", NAMES)
@given(request=requests())
def test_a_request_that_we_wrote_is_written_back_as_it_was(name: str, request: Request) -> None:
    spoken, report = dialect(name), Report()
    body = spoken.write_request(request, TARGET, Report())
    assert spoken.write_request(spoken.read_request(body), Target(), report) == body
    assert (report.losses, report.additions) == ((), ())


@pytest.mark.parametrize("case", REQUESTS, ids=str)
def test_what_real_clients_send_is_taken(case: Case) -> None:
    spoken, document = dialect(case.dialect), decode(case.file("request.json"))
    found = [each.pointer for each in spoken.problems(spoken.read_request(document)) if each.severity == "error"]
    # A picture in a tool message is what some servers of this dialect take and the vendor does not.
    assert found == (["/messages/3/content/1"] if str(case) == "openai-chat-litellm" else [])
    assert spoken.vendor_problems(document) == []


@pytest.mark.parametrize("case", cases("reply.json"), ids=str)
def test_a_reply_that_is_streamed_is_the_reply_that_is_written(case: Case) -> None:
    spoken = dialect(case.dialect)
    events = spoken.read_reply(decode(case.file("reply.json")))
    writer = spoken.stream_writer(CLIENT, Report())
    data = b"".join(writer.feed(event) for event in events)
    whole = fold(spoken.read_reply(spoken.write_reply(fold(events), CLIENT, Report())))
    streamed = fold(read_frames(case.dialect, SseDecoder().feed(data)))
    if streamed.fault is not None and whole.fault is not None:  # a stream keeps what came before an error
        assert (streamed.fault.code, streamed.fault.message) == (whole.fault.code, whole.fault.message)
    else:
        assert essence(streamed) == essence(whole)


def spoilt(data: st.DataObject, name: str, file: str) -> Any:
    return data.draw(JSON) if data.draw(st.booleans()) else spoil(data, decode(draw_file(data, name, file)))


def read_or_refuse(read: Callable[[Json], T], document: Json) -> T | None:
    """What is read; None for a document that is refused by its place."""
    try:
        return read(document)
    except Fault as fault:
        if fault.pointer is None:
            raise
        return None


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_any_request_is_read_or_refused_and_what_is_written_stays_as_it_is(name: str, data: st.DataObject) -> None:
    spoken = dialect(name)
    request = read_or_refuse(spoken.read_request, spoilt(data, name, "request.json"))
    if request is not None:
        spoken.problems(request)
        written = spoken.write_request(request, Target(), Report())
        assert spoken.write_request(spoken.read_request(written), Target(), Report()) == written


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_any_reply_is_read_to_its_end_or_refused(name: str, data: st.DataObject) -> None:
    events = read_or_refuse(dialect(name).read_reply, spoilt(data, name, "reply.json"))
    if events is not None:
        assert_one_end(events)


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_any_stream_is_read_to_its_one_end(name: str, data: st.DataObject) -> None:
    frames = SseDecoder().feed(draw_file(data, name, "stream.sse"))
    documents = [decode(frame.data) for frame in frames if frame.data != b"[DONE]"]
    marker = [Frame(b"[DONE]")] if data.draw(st.booleans()) else []
    assert_one_end(read_frames(name, [*(Frame(encode(each)) for each in spoil(data, documents)), *marker]))
