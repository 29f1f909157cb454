"""The quirks of real providers, each as the fragments that they send and the calls that must come of them."""

import pytest

from sightline.dialects.openai_chat.choices import Assembly, Fragment
from sightline.errors import Code, Fault
from sightline.model.events import ArgumentsReceived, ToolCallBegun, ToolCallCompleted
from tests.dialects.openai_chat.telling import calling, chunk, heard


def part(index=0, call_id=None, name=None, arguments=None):
    """An entry of a delta's `tool_calls`; None leaves the field out."""
    function = {key: value for key, value in {"name": name, "arguments": arguments}.items() if value is not None}
    fields = {"index": index, "id": call_id, "function": function}
    return {key: value for key, value in fields.items() if value is not None}


def calls(*fragments):
    """Id, name and arguments of each call that the fragments amount to, one fragment in a chunk."""
    begun: dict[int, tuple[str, str]] = {}
    arguments: dict[int, list[str]] = {}
    for event in heard(*(calling(fragment) for fragment in fragments), chunk({}, "tool_calls")):
        if isinstance(event, ToolCallBegun):
            begun[event.part] = (event.id, event.name)
        elif isinstance(event, ArgumentsReceived):
            arguments.setdefault(event.part, []).append(event.fragment)
    return [(*begun[number], "".join(arguments.get(number, []))) for number in sorted(begun)]


A, B = '{"a":1}', '{"b":2}'
QUIRKS = {
    "id only on the first fragment": [
        part(0, "x", "f", ""), part(0, arguments='{"a"'), part(0, arguments=":1}"),
        part(1, "y", "g", ""), part(1, arguments=B),
    ],
    "id repeated on each fragment": [
        part(0, "x", "f", '{"a"'), part(0, "x", arguments=":1}"),
        part(1, "y", "g", '{"b"'), part(1, "y", arguments=":2}"),
    ],
    "id and name repeated on each fragment": [
        part(0, "x", "f", '{"a"'), part(0, "x", "f", ":1}"), part(0, "y", "g", '{"b"'), part(0, "y", "g", ":2}"),
    ],
    "both calls at index 0 with different ids": [
        part(0, "x", "f", ""), part(0, arguments=A),
        part(0, "y", "g", ""), part(0, arguments='{"b"'), part(0, arguments=":2}"),
    ],
    "interleaved by id at one index": [
        part(0, "x", "f", '{"a"'), part(0, "y", "g", '{"b"'),
        part(0, "x", arguments=":1}"), part(0, "y", arguments=":2}"),
    ],
    "interleaved by index, id once": [
        part(0, "x", "f", ""), part(1, "y", "g", ""), part(0, arguments='{"a"'), part(1, arguments='{"b"'),
        part(0, arguments=":1}"), part(1, arguments=":2}"),
    ],
    "empty ids on later fragments": [
        part(0, "x", "f", ""), part(0, "", arguments=A), part(1, "y", "g", ""), part(1, "", arguments=B),
    ],
    "no index at all": [
        part(None, "x", "f", ""), part(None, arguments=A), part(None, "y", "g", '{"b"'), part(None, arguments=":2}"),
    ],
    "a null index on later fragments": [
        part(0, "x", "f", ""), {"index": None, "function": {"arguments": A}},
        part(1, "y", "g", ""), {"index": None, "function": {"arguments": B}},
    ],
    "an index that is a string": [
        part("0", "x", "f", A), part("1", "y", "g", '{"b"'), part("1", arguments=":2}"),
    ],
    "the name after the id": [
        part(0, "x"), part(0, name="f"), part(0, arguments=A),
        part(1, "y", arguments='{"b"'), part(1, name="g", arguments=":2}"),
    ],
    "the id after nothing but an index": [
        part(0), part(0, "x", "f", A), part(1, arguments=""), part(1, "y", "g", B),
    ],
    "a whole call in one fragment": [part(0, "x", "f", A), part(1, "y", "g", B)],
    "a whole call told once more at its end": [
        part(0, "x", "f", '{"a"'), part(0, arguments=":1}"), part(0, "x", "f", A),
        part(1, "y", "g", B), part(1, "y", "g", B),
    ],
    "arguments as an object": [
        {"index": 0, "id": "x", "function": {"name": "f", "arguments": {"a": 1}}}, part(1, "y", "g", B),
    ],
}  # fmt: skip

WITHOUT_IDS = {
    "indexes": [part(0, name="f", arguments=""), part(0, arguments=A), part(1, name="g"), part(1, arguments=B)],
    "interleaved by index": [
        part(0, name="f"), part(1, name="g"), part(0, arguments='{"a"'), part(1, arguments='{"b"'),
        part(0, arguments=":1}"), part(1, arguments=":2}"),
    ],
    "neither ids nor indexes": [
        part(None, name="f", arguments='{"a"'), part(None, arguments=":1}"), part(None, name="g", arguments=B),
    ],
    "another name at the same index": [part(0, name="f", arguments=A), part(0, name="g", arguments=B)],
    "name repeated on each fragment": [
        part(0, name="f", arguments='{"a"'), part(0, name="f", arguments=":1}"), part(1, name="g", arguments=B),
    ],
}  # fmt: skip


@pytest.mark.parametrize("fragments", QUIRKS.values(), ids=QUIRKS)
def test_calls_with_ids_are_told_apart(fragments):
    assert calls(*fragments) == [("x", "f", A), ("y", "g", B)]


def test_an_id_that_a_model_gives_to_several_calls_does_not_join_them():
    assert calls(
        part(0, "x", "f", ""), part(0, arguments=A), part(1, "x", "f", ""), part(1, "x", arguments=B),
        part(1, "x", "f", B), part(2, "x", "g", A),
    ) == [("x", "f", A), ("x", "f", B), ("x", "g", A)]  # fmt: skip


@pytest.mark.parametrize("fragments", WITHOUT_IDS.values(), ids=WITHOUT_IDS)
def test_calls_without_ids_are_told_apart_and_get_none(fragments):
    assert calls(*fragments) == [("", "f", A), ("", "g", B)]


def test_the_same_tool_called_twice_without_ids_is_two_calls():
    assert calls(part(0, name="f", arguments=A), part(0, name="f", arguments=B)) == [
        ("", "f", A),
        ("", "f", B),
    ]
    by_index = (part(0, name="f"), part(1, name="f"), part(0, arguments=A), part(1, arguments=B))
    assert calls(*by_index) == [("", "f", A), ("", "f", B)]


def test_an_id_that_comes_after_the_name_does_not_make_a_call_without_a_name():
    assert calls(part(0, name="f", arguments='{"a"'), part(0, "late", arguments=":1}")) == [("", "f", A)]


def test_a_new_id_with_a_name_is_a_new_call_even_where_the_last_has_no_id():
    assert calls(part(0, name="f", arguments=A), part(0, "y", "g", B)) == [("", "f", A), ("y", "g", B)]


def test_arguments_that_come_before_the_name_wait_for_it():
    assert calls(part(0, "x", arguments='{"a"'), part(0, name="f", arguments=":1}")) == [("x", "f", A)]


def test_a_call_that_never_gets_a_name_is_still_told():
    assert calls(part(0, "x", arguments="{}")) == [("x", "", "{}")]


def test_fragments_without_index_and_id_continue_the_call_that_was_last_spoken_of():
    assert calls(part(0, "x", "f"), part(1, "y", "g"), part(0, arguments='{"a"'), part(7, arguments=":1}")) == [
        ("x", "f", A),
        ("y", "g", ""),
    ]


def test_a_custom_call_is_free_text_and_never_complete_before_the_end():
    first = {"index": 0, "id": "x", "type": "custom", "custom": {"name": "sh", "input": "{}"}}
    more = {"index": 0, "custom": {"name": "sh", "input": " ls"}}
    events = heard(calling(first), calling(more), calling(part(1, "y", "g", B)), chunk({}, "tool_calls"))
    begun = [event for event in events if isinstance(event, ToolCallBegun)]
    assert [(event.name, event.kind) for event in begun] == [("sh", "custom"), ("g", "function")]
    assert [event.fragment for event in events if isinstance(event, ArgumentsReceived)] == ["{}", " ls", B]
    completed = [index for index, event in enumerate(events) if isinstance(event, ToolCallCompleted)]
    assert min(completed) > events.index(begun[1])


def fragment(arguments, *, index=0, call_id="", name=""):
    return Fragment(index, call_id, name, arguments, "function", "/here")


def test_a_call_is_complete_as_soon_as_the_next_one_begins_after_its_json():
    assembly = Assembly(2)
    assert assembly.grow(0, "{") is None
    assembly.add(fragment(A, call_id="x", name="f"))
    assert assembly.add(fragment("", index=1, call_id="y", name="g")) == [
        ToolCallCompleted(4, 2),
        ToolCallBegun(5, "y", "g", 2, at="/here"),
    ]
    assert assembly.finish() == [ToolCallCompleted(5, 2)]


def test_white_space_behind_a_complete_call_is_nothing_and_more_is_a_fault():
    assembly = Assembly(0)
    assembly.add(fragment(A, call_id="x", name="f"))
    assembly.add(fragment("", index=1, call_id="y", name="g"))
    assert assembly.add(fragment("\n", call_id="x")) == []
    assert assembly.grow(0, "more") is None
    with pytest.raises(Fault) as caught:
        assembly.add(fragment("more", call_id="x"))
    assert (caught.value.code, caught.value.pointer) == (Code.UPSTREAM_PROTOCOL, "/here")
