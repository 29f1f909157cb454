import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.dialects.anthropic.request import read_request
from sightline.errors import Code, Fault
from sightline.model.message import Message
from sightline.model.parts import Text

CASES = sorted((Path(__file__).parents[2] / "wire_cases" / "anthropic").glob("*/request.json"))
DOCUMENTS = [json.loads(path.read_text()) for path in CASES]

WORDS = [
    "type", "text", "role", "content", "source", "base64", "image", "document", "tool_use", "tool_result", "thinking",
    "input", "system", "user", "assistant", "cache_control", "ephemeral", "json_schema", "schema", "format", "auto",
]  # fmt: skip
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=5)
    | st.sampled_from(WORDS)
)
JSON = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(WORDS) | st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=12,
)


def test_one_message_for_each_message_and_one_for_the_system_prompt():
    request = read_request(
        {
            "model": "claude",
            "system": "Be kind.",
            "messages": [
                {"role": "user", "content": "hi", "id": "m1"},
                {"role": "system", "content": [{"type": "text", "text": "now"}]},
            ],
        }
    )
    assert request.dialect == "anthropic"
    assert request.model == "claude"
    assert request.messages == (
        Message("system", (Text("Be kind.", at="/system"),), bare=True, at="/system"),
        Message("user", (Text("hi", at="/messages/0/content"),), bare=True, at="/messages/0", extras={"id": "m1"}),
        Message("system", (Text("now", at="/messages/1/content/0"),), at="/messages/1"),
    )


def test_a_system_prompt_of_blocks():
    request = read_request({"system": [{"type": "text", "text": "a"}], "messages": []})
    assert request.messages == (Message("system", (Text("a", at="/system/0"),), at="/system"),)


def test_what_we_do_not_model_is_kept():
    thread: Any = {"type": "create"}
    request = read_request({"messages": [], "thread": thread, "metadata": {"user_id": "u", "team": "t"}})
    assert request.extras == {"thread": thread, "metadata": {"team": "t"}}
    assert request.model == ""


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ([], ""),
        ({}, "/messages"),
        ({"messages": None, "input": "responses"}, "/messages"),
        ({"messages": {}}, "/messages"),
        ({"messages": ["hi"]}, "/messages/0"),
        ({"messages": [{"content": "hi"}]}, "/messages/0/role"),
        ({"messages": [{"role": "tool", "content": "hi"}]}, "/messages/0/role"),
        ({"messages": [{"role": "user"}]}, "/messages/0/content"),
        ({"messages": [], "system": 5}, "/system"),
        ({"messages": [], "model": 5}, "/model"),
        ({"messages": [], "tools": {}}, "/tools"),
        ({"messages": [], "tool_choice": "auto"}, "/tool_choice"),
        ({"messages": [], "metadata": "x"}, "/metadata"),
        ({"messages": [], "thinking": True}, "/thinking"),
        ({"messages": [], "max_tokens": "many"}, "/max_tokens"),
    ],
)
def test_a_body_of_the_wrong_shape_names_the_place(body, pointer):
    with pytest.raises(Fault) as caught:
        read_request(body)
    assert (caught.value.code, caught.value.pointer) == (Code.INVALID_REQUEST, pointer)


@given(JSON)
def test_any_json_is_read_or_refused(document):
    with suppress(Fault):
        read_request(document)


def places(value, path=()):
    yield path
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places(inner, (*path, key))


@given(st.sampled_from(DOCUMENTS), st.data())
def test_a_document_with_anything_anywhere_is_read_or_refused(document, data):
    document = json.loads(json.dumps(document))
    path = data.draw(st.sampled_from(list(places(document))[1:]))
    holder = document
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = data.draw(JSON)
    with suppress(Fault):
        read_request(document)
