import pytest

from sightline.dialects.openai_responses.names import NAME
from sightline.dialects.openai_responses.snapshots import SnapshotReader
from sightline.dialects.signatures import wrap
from sightline.model.events import (
    ArgumentsReceived,
    FieldReceived,
    LogprobsReceived,
    PartReceived,
    SignatureReceived,
    TextReceived,
    ToolCallBegun,
    ToolCallCompleted,
)
from sightline.model.fold import fold
from sightline.model.parts import Opaque

TOKEN = {"token": "a", "logprob": -0.5, "bytes": [97], "top_logprobs": []}


def message(words, name="msg_1", **fields):
    content = [{"type": "output_text", "text": words, "annotations": []}]
    return {"type": "message", "id": name, "role": "assistant", "content": content, **fields}


@pytest.fixture
def hearing():
    return SnapshotReader()


def texts(events):
    return [(event.part, event.text) for event in events if isinstance(event, TextReceived)]


def fields(events):
    return [event.at for event in events if isinstance(event, FieldReceived)]


def test_a_later_snapshot_of_an_item_goes_on_where_the_earlier_one_stopped(hearing):
    assert texts(hearing.item(message("Hel"), 0, "/1/item")) == [(0, "Hel")]
    assert texts(hearing.outcome({"output": [message("Hello")]}, "/2/response")) == [(0, "lo")]


def test_fields_logprobs_and_whole_parts_are_told_once(hearing):
    item = message("a", phase="final")
    item["content"][0]["logprobs"] = [TOKEN]
    item["content"].append({"type": "odd"})
    first = hearing.item(item, 0, "/1/item")
    assert fields(first) == ["/1/item/id", "/1/item/phase"]
    assert len([event for event in first if isinstance(event, (LogprobsReceived, PartReceived))]) == 2
    item["mood"] = "new"
    again = hearing.item(item, 0, "/2/response/output/0")
    assert again == [FieldReceived("/2/response/output/0/mood", "new")]


def test_items_are_known_by_their_ids_wherever_they_stand(hearing):
    hearing.place(message(""), 3)
    hearing.texts[3000] = ["Hel"]
    events = hearing.outcome({"output": [message("Hello"), message("other", "msg_2")]}, "")
    assert texts(events) == [(3000, "lo"), (1000, "other")]


def test_an_item_that_stands_where_another_was_heard_is_not_that_other(hearing):
    hearing.item(message("a"), 1, "/1/item")
    events = hearing.outcome({"output": [message("a"), message("b", "msg_2")]}, "")
    assert [part.text for part in fold(events).choice.parts] == ["b"]


def test_where_ids_change_on_the_way_the_place_tells(hearing):
    hearing.item(message("a", "msg_x"), 0, "/1/item")
    assert texts(hearing.outcome({"output": [message("ab", "msg_y")]}, "")) == [(0, "b")]


def test_items_that_share_an_id_are_told_apart_by_their_place(hearing):
    hearing.item(message("a"), 0, "/1/item")
    hearing.item(message("b"), 1, "/2/item")
    events = hearing.outcome({"output": [message("a"), message("b")]}, "")
    assert texts(events) == fields(events) == []


def test_an_item_of_another_kind_at_a_place_is_told_as_a_field(hearing):
    hearing.item(message("a"), 0, "/1/item")
    item = {"type": "web_search_call", "id": "ws"}
    assert hearing.outcome({"output": [item]}, "")[0] == FieldReceived("/output/0", item)


def test_a_call_that_is_complete_stays_as_it_is(hearing):
    call = {"type": "function_call", "id": "fc", "call_id": "c", "name": "f", "arguments": '{"a":'}
    first = hearing.item(call, 0, "/1/item")
    assert [type(event) for event in first if not isinstance(event, FieldReceived)][::2] == [
        ToolCallBegun,
        ToolCallCompleted,
    ]
    assert hearing.item(call, 0, "/2/item") == []
    assert hearing.item({**call, "arguments": '{"a":1}'}, 0, "/3/item") == [
        FieldReceived("/3/item/arguments", '{"a":1}')
    ]


def test_a_call_may_have_no_arguments(hearing):
    call = {"type": "function_call", "id": "fc", "call_id": "c", "name": "f", "arguments": ""}
    assert [type(event) for event in hearing.item(call, 0, "/1/item")] == [ToolCallBegun, ToolCallCompleted]


def test_a_seal_that_comes_late_is_told_and_told_once(hearing):
    item = {"type": "reasoning", "id": "rs", "summary": []}
    assert hearing.item(item, 0, "/1/item") == [SignatureReceived(0, None, NAME, id="rs")]
    sealed = {**item, "encrypted_content": "enc"}
    assert hearing.item(sealed, 0, "/2/item") == [SignatureReceived(0, "enc", NAME, id="rs")]
    assert hearing.item(sealed, 0, "/3/item") == []


def test_what_comes_whole_comes_once(hearing):
    redacted = {"type": "reasoning", "summary": [], "encrypted_content": wrap("d", "anthropic", "redacted")}
    search = {"type": "web_search_call", "id": "ws"}
    assert isinstance(hearing.item(redacted, 0, "/1/item")[0], PartReceived)
    assert hearing.item(search, 1, "/2/item") == [PartReceived(1000, Opaque(NAME, search, at="/2/item"))]
    assert hearing.item(redacted, 0, "/3/item") == hearing.item(search, 1, "/4/item") == []


def test_the_echo_of_text_is_told_by_its_members(hearing):
    echo = {"format": {"type": "text"}, "verbosity": "low"}
    assert fields(hearing.outcome({"text": echo}, "/r")) == ["/r/text/format", "/r/text/verbosity"]
    assert fields(hearing.outcome({"text": "odd"}, "/r")) == ["/r/text"]


def test_the_action_of_a_built_in_tool_is_told_once(hearing):
    item = {"type": "shell_call", "call_id": "c", "id": "i", "action": {"commands": ["a"]}, "status": "completed"}
    events = hearing.item({**item, "environment": {"type": "local"}}, 0, "/0/item")
    assert events == [
        ToolCallBegun(0, "c", "shell", kind="shell", item="i", at="/0/item"),
        ArgumentsReceived(0, '{"commands":["a"]}'),
        ToolCallCompleted(0, extras={"environment": {"type": "local"}}),
        FieldReceived("/0/item/environment", {"type": "local"}),
    ]
    assert hearing.item(item, 0, "/1/item") == []
    assert hearing.item({**item, "action": {"commands": ["b"]}}, 0, "/2/item") == [
        FieldReceived("/2/item", '{"commands":["b"]}')
    ]


def test_a_call_that_had_begun_stays_one_without_an_action(hearing):
    hearing.calls.add(0)
    item = {"type": "shell_call", "call_id": "c", "environment": {"type": "container_reference"}}
    assert hearing.item(item, 0, "/0/item")[0] == ToolCallCompleted(
        0, extras={"environment": {"type": "container_reference"}}
    )


def test_a_call_that_ends_as_something_unknown_is_told_as_a_field(hearing):
    hearing.calls.add(0)
    item = {"type": "functio_call", "id": "fc_1", "call_id": "c", "name": "f", "arguments": "{}"}
    assert hearing.item(item, 0, "/1/item") == [FieldReceived("/1/item", item)]
