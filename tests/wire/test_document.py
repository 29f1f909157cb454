"""An edit changes the bytes of one value; everything else stays as the client wrote it."""

import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.errors import Code, Fault
from sightline.wire.document import WireDocument
from sightline.wire.jsontext import encode
from sightline.wire.pointer import covers, join, parse_pointer, resolve

BODY = b"""\
{
  "model": "gpt-4o", "seed": 12345678901234567890123, "top_p": 1.0,
  "messages": [
    {"role": "user", "content": "caf\\u00e9"},
    {"role":"user","content":[{"type" : "text","text":"b"}, {"type":"text","text":"c"}]}
  ],
  "x-unknown": {"\\u0061": 1e0, "a": 1E0}, "stop": [ ]
}
"""


def body() -> WireDocument:
    return WireDocument(BODY)


# --- documents as people write them ---------------------------------------------------------------

SPACES = st.sampled_from([b"", b"", b"", b" ", b"\n  ", b"\t\r\n"])
NUMBERS = st.sampled_from(["0", "-0", "1", "1.0", "1e0", "1E+2", "-12.50", "12345678901234567890123", "0.1e-5"])
CHARACTERS = 'ab01"\\/~:,{}[] é😀\n\ud800'
SHORT = {'"': '\\"', "\\": "\\\\", "/": "\\/", "\n": "\\n"}
STRINGS = st.text(CHARACTERS, max_size=4)
KEYS = st.sampled_from(["a", "b", "0", "1", "-", "", "~/", "é", '"', "\ud800"])


@st.composite
def spelled(draw: st.DrawFn, text: str) -> bytes:
    """A string with each character as itself or as one of its escapes."""
    parts = []
    for char in text:
        ways = [json.dumps(char)[1:-1]]
        if char not in '"\\\n\ud800':
            ways.append(char)
        if char in SHORT:
            ways.append(SHORT[char])
        if ord(char) < 0x10000:
            ways.append(f"\\u{ord(char):04X}")
        parts.append(draw(st.sampled_from(ways)))
    return f'"{"".join(parts)}"'.encode()


class Rendered:
    """A text under way, with the span of every place in it that a pointer can name."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.spans: dict[str, tuple[int, int]] = {}


@st.composite
def texts(draw: st.DrawFn, *, has_repeats: bool = True) -> Rendered:
    rendered = Rendered()
    even = draw(st.none() | SPACES)

    def space() -> None:
        rendered.data.extend(draw(SPACES) if even is None else even)

    def value(at: str, depth: int) -> None:
        # A repeated key hides the places of its earlier value.
        for hidden in [place for place in rendered.spans if covers(at, place)]:
            del rendered.spans[hidden]
        start = len(rendered.data)
        kind = draw(st.sampled_from(["object", "array"] if depth == 0 else ["object", "array", "scalar", "scalar"]))
        if depth > 2 or kind == "scalar":
            word = st.sampled_from([b"true", b"false", b"null"])
            rendered.data.extend(draw(word | NUMBERS.map(str.encode) | STRINGS.flatmap(spelled)))
        elif kind == "object":
            entries("{}", at, depth, draw(st.lists(KEYS, max_size=4, unique=not has_repeats)))
        else:
            entries("[]", at, depth, list(range(draw(st.integers(0, 4)))))
        rendered.spans[at] = (start, len(rendered.data))

    def entries(brackets: str, at: str, depth: int, names: list) -> None:
        rendered.data.extend(brackets[0].encode())
        space()
        for rank, name in enumerate(names):
            if rank:
                rendered.data.extend(b",")
                space()
            if isinstance(name, str):
                rendered.data.extend(draw(spelled(name)))
                space()
                rendered.data.extend(b":")
                space()
            value(join(at, name), depth + 1)
            space()
        rendered.data.extend(brackets[1].encode())

    rendered.data.extend(draw(st.sampled_from([b"", b"", b"\xef\xbb\xbf"])))
    space()
    value("", 0)
    space()
    return rendered


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([1.0, 0.5]) | STRINGS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner, max_size=2),
    max_leaves=4,
)


def parsed(data: bytes | bytearray):
    return json.loads(bytes(data).removeprefix(b"\xef\xbb\xbf"))


def canonical(value: object) -> str:
    """Text that tells 1, 1.0 and true apart and does not mind the order of keys."""
    return json.dumps(value, sort_keys=True)


def container_and_key(value, pointer: str):
    *above, token = parse_pointer(pointer)
    container = resolve(value, join("", *above))
    return container, token if isinstance(container, dict) else int(token)


def new_places(value) -> list[str]:
    """Every pointer at which something can be inserted."""
    places, below = [], [("", value)]
    while below:
        at, value = below.pop()
        if isinstance(value, dict):
            places += [join(at, key) for key in ("new", "é/~", '"') if key not in value]
            below += [(join(at, key), inner) for key, inner in value.items()]
        elif isinstance(value, list):
            places += [join(at, i) for i in range(len(value) + 1)]
            below += [(join(at, i), inner) for i, inner in enumerate(value)]
    return places


def inserted(value, pointer: str, addition):
    value = copy.deepcopy(value)
    container, key = container_and_key(value, pointer)
    if isinstance(container, dict):
        container[key] = addition
    else:
        container.insert(key, addition)
    return value


def removed(value, pointer: str):
    value = copy.deepcopy(value)
    container, key = container_and_key(value, pointer)
    del container[key]
    return value


def shared_ends(one: bytes, other: bytes) -> int:
    """How many bytes two texts share at their beginnings and, beyond that, at their ends."""
    limit = min(len(one), len(other))
    head = next((i for i in range(limit) if one[i] != other[i]), limit)
    tail = next((i for i in range(limit - head) if one[-1 - i] != other[-1 - i]), limit - head)
    return head + tail


# --- laws -----------------------------------------------------------------------------------------


@given(texts())
def test_every_place_has_its_exact_bytes_and_its_value(rendered: Rendered):
    document = WireDocument(bytes(rendered.data))
    assert canonical(document.document) == canonical(parsed(rendered.data))
    for pointer, (start, stop) in rendered.spans.items():
        assert document.text_of(pointer) == rendered.data[start:stop]
        assert canonical(document.get(pointer)) == canonical(parsed(rendered.data[start:stop]))


@given(texts(), VALUES, st.data())
def test_set_changes_the_bytes_of_that_value_only(rendered: Rendered, value, data: st.DataObject):
    before = WireDocument(bytes(rendered.data))
    pointer = data.draw(st.sampled_from(sorted(rendered.spans.keys() - {""}) or [""]))
    start, stop = rendered.spans[pointer] if pointer else (0, len(before.data))
    after = before.set(pointer, value)
    if encode(before.get(pointer)) == encode(value):
        assert after is before
        return
    assert after.data == before.data[:start] + encode(value) + before.data[stop:]
    assert canonical(after.get(pointer)) == canonical(parsed(encode(value)))
    assert before.data == rendered.data


@given(texts(), st.data())
def test_setting_what_is_there_changes_nothing(rendered: Rendered, data: st.DataObject):
    document = WireDocument(bytes(rendered.data))
    pointer = data.draw(st.sampled_from(sorted(rendered.spans)))
    assert document.set(pointer, document.get(pointer)) is document


@given(texts(), VALUES, st.data())
def test_set_and_set_back_is_the_original(rendered: Rendered, value, data: st.DataObject):
    before = WireDocument(bytes(rendered.data))
    pointer = data.draw(st.sampled_from(sorted(rendered.spans.keys() - {""}) or [""]))
    old = before.get(pointer)
    if pointer and encode(old) == before.text_of(pointer):
        assert before.set(pointer, value).set(pointer, old) == before


@given(texts(), VALUES, st.data())
def test_insert_only_adds_bytes(rendered: Rendered, value, data: st.DataObject):
    before = WireDocument(bytes(rendered.data))
    pointer = data.draw(st.sampled_from(new_places(before.document)))
    after = before.insert(pointer, value)
    assert canonical(after.document) == canonical(inserted(before.document, pointer, parsed(encode(value))))
    assert after.text_of(pointer) == encode(value)
    assert shared_ends(before.data, after.data) == len(before.data)


@given(texts(), st.data())
def test_remove_only_takes_bytes(rendered: Rendered, data: st.DataObject):
    before = WireDocument(bytes(rendered.data))
    places = sorted(rendered.spans.keys() - {""})
    if not places:
        return
    pointer = data.draw(st.sampled_from(places))
    after = before.remove(pointer)
    assert canonical(after.document) == canonical(removed(before.document, pointer))
    container, _ = container_and_key(before.document, pointer)
    for other in places if isinstance(container, dict) else ():
        if not covers(pointer, other) and not covers(other, pointer):
            assert after.text_of(other) == before.text_of(other)


@given(texts(has_repeats=False))
def test_remove_takes_one_stretch_of_bytes(rendered: Rendered):
    before = WireDocument(bytes(rendered.data))
    for pointer in rendered.spans.keys() - {""}:
        after = before.remove(pointer)
        assert shared_ends(before.data, after.data) == len(after.data)


@given(VALUES.filter(lambda value: isinstance(value, dict | list)), VALUES, st.data())
def test_insert_then_remove_is_the_original_for_compact_documents(document, value, data: st.DataObject):
    before = WireDocument(encode(document))
    pointer = data.draw(st.sampled_from(new_places(before.document)))
    assert before.insert(pointer, value).remove(pointer) == before


@given(texts(), st.data())
def test_move_carries_the_very_bytes(rendered: Rendered, data: st.DataObject):
    before = WireDocument(bytes(rendered.data))
    places = sorted(rendered.spans.keys() - {""})
    if not places:
        return
    source = data.draw(st.sampled_from(places))
    without = removed(before.document, source)
    pointer = data.draw(st.sampled_from([place for place in new_places(without) if not covers(source, place)] or [""]))
    if not pointer:
        return
    after = before.move(source, pointer)
    assert after.text_of(pointer) == before.text_of(source)
    assert canonical(after.document) == canonical(inserted(without, pointer, before.get(source)))


# --- stories --------------------------------------------------------------------------------------


def test_nothing_but_the_edited_text_changes():
    after = body().set("/messages/1/content/1/text", "C\n")
    assert after.data == BODY.replace(b'"text":"c"', b'"text":"C\\n"')


@pytest.mark.parametrize(
    ("pointer", "same", "other"),
    [("/top_p", 1.0, 1), ("/seed", 12345678901234567890123, 1), ("/messages/0/content", "café", "cafe")],
)
def test_the_same_value_is_no_edit(pointer: str, same, other):
    document = body()
    assert document.set(pointer, same) is document
    assert document.set(pointer, other).get(pointer) == other


@pytest.mark.parametrize(("text", "value"), [(b"1", True), (b"1", 1.0), (b"1.0", 1), (b"true", 1), (b"null", False)])
def test_values_equal_in_python_are_distinguished(text: bytes, value):
    assert WireDocument(b'{"a":%b}' % text).set("/a", value).data == b'{"a":%b}' % encode(value)


def test_another_order_of_keys_is_an_edit():
    assert WireDocument(b'{"a":1,"b":2}').set("", {"b": 2, "a": 1}).data == b'{"b":2,"a":1}'


def test_a_number_that_no_double_holds_can_be_stepped_around_and_replaced():
    document = WireDocument(b'{"a": 1e400, "b": 1}')
    assert document.set("/b", 2).data == b'{"a": 1e400, "b": 2}'
    assert document.set("/a", 2).data == b'{"a": 2, "b": 1}'


def test_the_whole_body_can_be_replaced_even_when_it_is_broken():
    assert WireDocument(b" {oops").set("", {"a": 1}).data == b'{"a":1}'
    assert body().set("", []).data == b"[]"


def test_of_repeated_keys_the_last_one_counts():
    document = WireDocument(b'{"a": {"b": 1}, "c": 2, "\\u0061": {"b": 10}, "d": {"a": 3, "a": 3}}')
    assert document.text_of("/a/b") == b"10"
    assert document.set("/a/b", 5).data == document.data.replace(b"10", b"5")
    assert document.remove("/a").data == b'{"c": 2, "d": {"a": 3, "a": 3}}'
    assert document.remove("/d/a").data == document.data.replace(b'"a": 3, "a": 3', b"")


def test_repeated_keys_with_similar_values_are_distinguished():
    assert WireDocument(b'{"a":12,"b":0,"a":1}').set("/a", 7).data == b'{"a":12,"b":0,"a":7}'


def test_documents_with_lone_surrogates_can_be_edited():
    document = WireDocument(b'{"a": ["\\ud800", {"b": [1, [2, "]"]]}, 3], "\\udc00": true}')
    assert document.set("/a/1/b/1/0", 9).data == document.data.replace(b"[2", b"[9")
    assert document.remove("/a/0").data == document.data.replace(b'"\\ud800", ', b"")
    assert document.text_of("/\udc00") == b"true"


def test_inserting_into_a_pretty_document_keeps_it_pretty():
    pretty = WireDocument(b'{\n  "a": [\n    1,\n    2\n  ],\n  "b": {}\n}')
    assert pretty.insert("/a/0", 0).data == pretty.data.replace(b"1,", b"0,\n    1,")
    assert pretty.insert("/a/1", 0).data == pretty.data.replace(b"1,", b"1,\n    0,")
    assert pretty.insert("/a/-", 0).data == pretty.data.replace(b"2\n", b"2,\n    0\n")
    assert pretty.insert("/c", 0).data == pretty.data.replace(b"{}", b'{},\n  "c": 0')
    assert pretty.insert("/b/c", 0).data == pretty.data.replace(b"{}", b'{"c":0}')


@pytest.mark.parametrize(
    ("before", "pointer", "after"),
    [
        (b"[]", "/-", b"[9]"),
        (b"[]", "/0", b"[9]"),
        (b"[1]", "/0", b"[9,1]"),
        (b"[1, 2]", "/0", b"[9, 1, 2]"),
        (b"[ 1 ]", "/1", b"[ 1, 9 ]"),
        (b"[1 , 2]", "/1", b"[1 , 9, 2]"),
        (b"{}", "/a", b'{"a":9}'),
        (b'{"a:b": 1}', "/c", b'{"a:b": 1,"c": 9}'),
    ],
)
def test_where_an_addition_goes(before: bytes, pointer: str, after: bytes):
    assert WireDocument(before).insert(pointer, 9).data == after


@pytest.mark.parametrize(
    ("before", "pointer", "after"),
    [
        (b"[1, 2, 3]", "/0", b"[2, 3]"),
        (b"[1, 2, 3]", "/1", b"[1, 3]"),
        (b"[1, 2, 3]", "/2", b"[1, 2]"),
        (b"[\n  1\n]", "/0", b"[\n]"),
        (b'{"a": 1, "b": 2}', "/a", b'{"b": 2}'),
        (b'{"a": 1, "b": 2}', "/b", b'{"a": 1}'),
        (b'{"a": 1, "a": 2, "b": 3, "a": 4, "c": 5}', "/a", b'{"b": 3, "c": 5}'),
    ],
)
def test_what_a_removal_takes_along(before: bytes, pointer: str, after: bytes):
    assert WireDocument(before).remove(pointer).data == after


def test_a_move_keeps_the_spelling():
    assert WireDocument(b'[1.0, {"a" : 1e0}, 3]').move("/1", "/0").data == b'[{"a" : 1e0}, 1.0, 3]'
    assert WireDocument(b'{"a": 1E2, "b": []}').move("/a", "/b/-").data == b'{"b": [1E2]}'


def test_a_value_can_be_added_as_it_is_spelled():
    assert WireDocument(b'{"a": [1]}').insert_text("/a/-", b"2.50").data == b'{"a": [1,2.50]}'


def test_a_move_to_its_own_place_is_no_edit():
    document = body()
    assert document.move("/messages/0", "/messages/0") is document


@pytest.mark.parametrize("name", ["get", "text_of", "remove", "set"])
@pytest.mark.parametrize(
    "pointer",
    [
        "/nope", "/messages/2", "/messages/-", "/messages/01", "/messages/x", "/model/0", "/model/0/a", "x", "/~",
        "/stop/0",
    ],
)  # fmt: skip
def test_a_place_must_exist(name: str, pointer: str):
    with pytest.raises(Fault) as caught:
        getattr(body(), name)(pointer, *([1] if name == "set" else []))
    assert caught.value.code is Code.INVALID_REQUEST
    assert caught.value.pointer == pointer


@pytest.mark.parametrize("pointer", ["", "/model", "/messages/3", "/messages/x", "/model/0", "/nope/a", "/messages/01"])
def test_an_addition_needs_a_free_place(pointer: str):
    with pytest.raises(Fault) as caught:
        body().insert(pointer, 1)
    assert caught.value.pointer == pointer
    assert pointer not in ("", "/model") or "set" in caught.value.hint


def test_the_whole_document_is_not_removed():
    with pytest.raises(Fault, match="whole document"):
        body().remove("")


@pytest.mark.parametrize(
    ("source", "pointer"),
    [
        ("", "/a"), ("/messages", "/messages/0"), ("/messages", "/model"), ("/nope", "/a"), ("/model", ""),
        ("/nope", "/nope"),
    ],
)  # fmt: skip
def test_a_move_that_makes_no_sense_is_refused(source: str, pointer: str):
    with pytest.raises(Fault):
        body().move(source, pointer)
