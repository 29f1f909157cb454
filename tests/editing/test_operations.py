"""Operations come as JSON; whatever is not one of them is refused with a reason."""

import msgspec
import pytest

from sightline.editing.operations import Batch, Delete, Insert, Move, Redo, Set, SetBody, SetText, Undo, operation
from sightline.errors import Fault
from sightline.model.json import Json


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"op": "set_text", "section": "s1", "text": "x"}, SetText(section="s1", text="x")),
        (
            {"op": "set_text", "section": "s1", "part": "s1.p2", "text": "x", "keep": "session"},
            SetText(section="s1", part="s1.p2", text="x", keep="session"),
        ),
        ({"op": "set", "pointer": "/a", "value": None}, Set(pointer="/a", value=None)),
        ({"op": "insert", "pointer": "/a/-", "value": {"b": [1]}}, Insert(pointer="/a/-", value={"b": [1]})),
        ({"op": "move", "from": "/a/1", "pointer": "/a/0"}, Move(source="/a/1", pointer="/a/0")),
        ({"op": "set_body", "body": "{}"}, SetBody(body="{}")),
        (
            {"op": "batch", "operations": [{"op": "delete", "section": "s1"}]},
            Batch(operations=(Delete(section="s1"),)),
        ),
        ({"op": "undo"}, Undo()),
        ({"op": "redo"}, Redo()),
    ],
)
def test_an_operation_is_read(value: Json, expected: object) -> None:
    assert operation(value) == expected
    assert operation(msgspec.to_builtins(expected)) == expected


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        {},
        {"op": "explode"},
        {"op": "set", "value": 1},
        {"op": "set", "pointer": 1, "value": 1},
        {"op": "undo", "twice": True},
        {"op": "set_body", "body": {"a": 1}},
        {"op": "delete", "section": "s1", "keep": "forever"},
        {"op": "batch", "operations": [{"op": "undo"}]},
        {"op": "\ud800"},
        {"op": "undo", "\ud800": 1},
    ],
)
def test_anything_else_is_refused(value: Json) -> None:
    with pytest.raises(Fault) as refused:
        operation(value)
    assert refused.value.status == 400
    assert "set_text" in refused.value.hint
